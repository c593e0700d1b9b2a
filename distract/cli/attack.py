"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distract.cli.attack_options import audit_options
from distract.cli.number_types import click_type
from distract.cli.run import Terminal, check_conclusive, print_run, profile_run, run_in_terminal
from distract.cli.shared import (
    command,
    control_option,
    draw_options,
    json_option,
    judge_options,
    model_options,
    store_option,
)


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
    type=click_type("minimal"),
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
def attack(judge: str, profile: bool, store: Path | None, as_json: bool, **more: Any) -> None:
    """Rewrite responses with distractors and measure how often the judge's verdict changes."""
    from distract.studies.attack.measures import MEASURES
    from distract.studies.attack.session import attack_job

    wanted = MEASURES | {*more["measures"]}
    with profile_run(profile) as models:
        job = attack_job(judge, more, store, Terminal())
        models.update(job.models)
        finished = run_in_terminal(job, store)
    print_run(finished, as_json)
    check_conclusive(finished.run.rows, any(one.n for one in finished.result.figures if one.measure in wanted))
