"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.commands import (
    EPILOG,
    asking_options,
    best_of_option,
    control_option,
    data_options,
    draw_options,
    json_option,
    judge_options,
    manner_options,
    model_options,
    safe,
    say,
    sort_out,
    store_option,
)
from distract.commands.running import carried_out, inconclusive
from distract.commands.showing import shown

if TYPE_CHECKING:
    from distract.manner import Orders
    from distract.records import Role


@click.command(epilog=EPILOG)
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@data_options
@click.option("--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable.")
@click.option("--protocol", "protocols", multiple=True, help="Way of asking; repeatable. Default: the basic ones.")
@click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it.")
@manner_options
@click.option(
    "--measure", "measures", multiple=True, help="Measure, or fixed, flip, severity; repeatable. Default: all."
)
@click.option(
    "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
)
@asking_options
@best_of_option
@control_option
@click.option("--verifier", help="Model, named like a judge, that is asked whether a rewrite says the same.")
@draw_options
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@store_option
@model_options
@judge_options
@json_option
def attack(
    judge: str,
    protocols: tuple[str, ...],
    reference_model: str | None,
    orders: Orders,
    samples: int,
    answer_tokens: int | None,
    generator: str | None,
    verifier: str | None,
    limit: int,
    out: Path | None,
    store: Path | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Rewrite responses with distractors and measure how often the judge's verdict changes."""
    from distract import session
    from distract.backends.catalogue import open_models
    from distract.estimating import estimate
    from distract.manner import Manner
    from distract.report.progress import plan_lines
    from distract.report.tables import show
    from distract.writers import WRITERS

    asking, loading, chosen = sort_out(more)
    names: dict[Role, str | None] = {
        "judge": judge,
        "generator": generator,
        "verifier": verifier,
        "reference": reference_model,
    }
    opened = open_models(names, loading, WRITERS)
    say(opened.notes)
    models = dict(opened.models)
    backend, helper = models.pop("judge"), models.pop("reference", None)
    who: dict[str, Any] = {"generator": generator, "verifier": verifier, "models": models, "asking": asking}
    selected = session.select(**who, limit=limit or None, **chosen)
    prepared = session.prepare(
        selected,
        judge=judge,
        backend=backend,
        protocols=protocols,
        manner=Manner(orders, samples, answer_tokens, chosen["seed"]),
        reference=(reference_model, helper) if reference_model and helper else None,
        out=out,
        prices=opened.prices,
    )
    loaded = carried_out(
        session.job(prepared), store, lambda: estimate(prepared), lambda *known: plan_lines(prepared, *known)
    )
    if as_json:
        click.echo(loaded.summary, nl=False)
    else:
        show(shown(loaded)[1]())
        click.echo(f"\nrun folder: {safe(str(prepared.out))}")
    inconclusive(loaded.rows)
