"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from distract.commands import (
    command,
    control_option,
    draw_options,
    echo,
    echo_json,
    json_option,
    judge_options,
    model_options,
    safe,
    store_option,
)
from distract.commands.auditing import audit_options, chosen
from distract.commands.numbers import Whole
from distract.commands.running import carried_out, inconclusive, profiled, renew
from distract.commands.showing import shown


@command()
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@click.option("--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable.")
@audit_options
@control_option
@click.option(
    "--measure", "measures", multiple=True, help="Measure, or fixed, flip, severity; repeatable. Default: all."
)
@draw_options
@click.option(
    "--minimal",
    type=Whole(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Find the smallest part of the rewrite that still flips, for the N clearest flips.",
)
@click.option("--profile", is_flag=True, help="Say on stderr where the time went.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@store_option
@model_options
@judge_options
@json_option
def attack(
    judge: str,
    minimal: int,
    profile: bool,
    out: Path | None,
    store: Path | None,
    fresh: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Rewrite responses with distractors and measure how often the judge's verdict changes."""
    from distract import session
    from distract.estimating import estimate
    from distract.metrics import MEASURES
    from distract.report.progress import plan_lines
    from distract.report.tables import show

    measures = more["measures"]
    with profiled(profile) as models:
        selected, how = chosen(judge, more)
        # Said only where it is wanted, so that other runs stay what they are.
        prepared = session.prepare(selected, out=out, more={"minimal": minimal} if minimal else {}, **how)
        models.update(prepared.models)
        if fresh:
            renew([prepared.models["judge"]], store)
        loaded = carried_out(
            session.job(prepared), store, lambda: estimate(prepared), lambda *known: plan_lines(prepared, *known)
        )
    if as_json:
        echo_json(loaded.summary)
    else:
        show(shown(loaded)[1]())
        echo(f"\nrun folder: {safe(str(prepared.out))}")
    results = json.loads(loaded.summary)["results"] if loaded.summary else []
    wanted = MEASURES | {*measures}
    inconclusive(loaded.rows, any(one["n"] for one in results if one["measure"] in wanted))
