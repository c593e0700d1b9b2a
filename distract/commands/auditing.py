"""What ``attack`` and ``gate`` share: the options of an audit, and from them to what is judged, by whom and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from distract.commands import (
    asking_options,
    best_of_option,
    data_options,
    manner_options,
    options,
)
from distract.commands.running import set_up

if TYPE_CHECKING:
    from distract.session import Selected
    from distract.setup import Setup

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


def selected(judge: str, more: dict[str, Any]) -> tuple[Selected, Setup]:
    """What is to be judged, by whom and how.

    Args:
        judge: its name.
        more: the options of an audit, of models and of the draw, by name.
    """
    from distract import session

    setup, asking = set_up(judge, more)
    limit = more.pop("limit") or None
    return session.select(asking=asking, models=setup.helpers, limit=limit, **more), setup
