"""What ``attack`` and ``gate`` share: the options of an audit, and from them to what is judged, by whom and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from distract.commands import (
    asking_options,
    best_of_option,
    data_options,
    manner_options,
    options,
    sort_out,
)
from distract.commands.running import asked

if TYPE_CHECKING:
    from distract.session import Selected

audit_options = options(
    data_options,
    click.option("--protocol", "protocols", multiple=True, help="Way of asking; repeatable. Default: the basic ones."),
    click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it."),
    manner_options,
    click.option(
        "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
    ),
    asking_options,
    best_of_option,
    click.option("--verifier", help="Model, named like a judge, that is asked whether a rewrite says the same."),
)


def chosen(judge: str, more: Mapping[str, Any]) -> tuple[Selected, dict[str, Any]]:
    """What is to be judged, and how: what ``session.prepare`` takes beside the run folder.

    Args:
        judge: its name.
        more: the options of an audit, of models and of the draw, by name.
    """
    from distract import session
    from distract.manner import Manner

    asking, loading, rest = sort_out(more)
    names = {name: rest.pop(name) for name in ("generator", "verifier")}
    models = asked(judge, names["generator"], names["verifier"], rest.pop("reference_model"), loading)
    manner = Manner(rest.pop("orders"), rest.pop("samples"), rest.pop("answer_tokens"), rest["seed"])
    protocols, limit = rest.pop("protocols"), rest.pop("limit") or None
    selected = session.select(**names, asking=asking, models=models.models, limit=limit, **rest)
    how = {"judge": judge, "backend": models.judge, "protocols": protocols, "manner": manner}
    return selected, {**how, "reference": models.reference, "prices": models.prices}
