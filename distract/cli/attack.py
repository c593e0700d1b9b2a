"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distract.cli.options import (
    attack_option,
    audit_options,
    control_option,
    draw_options,
    judge_option,
    option,
    run_options,
    verbose_option,
)
from distract.cli.run import Terminal, check_conclusive, print_run, profile_run, run_in_terminal
from distract.cli.shared import command


@command()
@judge_option
@attack_option
@audit_options
@control_option
@option("--measure", "measures", multiple=True, help="Measure, or fixed, flip, severity; repeatable. Default: all.")
@draw_options
@option(
    "--minimal",
    default=0,
    metavar="N",
    help="Find the smallest part of the rewrite that still flips, for the N clearest flips.",
)
@option("--profile", is_flag=True, help="Report on stderr where the time went.")
@verbose_option
@run_options
def attack(judge: str, profile: bool, verbose: bool, store: Path | None, as_json: bool, **more: Any) -> None:
    """Rewrite responses with distractors and measure how often the judge's verdict changes."""
    from distract.studies.attack.measures import MEASURES
    from distract.studies.attack.session import attack_job

    measures = MEASURES | {*more["measures"]}
    with profile_run(profile) as models:
        job = attack_job(judge, more, store, Terminal())
        models.update(job.models)
        finished = run_in_terminal(job, store)
    print_run(finished, as_json, verbose)
    check_conclusive(
        finished.run.rows, any(figure.n for figure in finished.result.figures if figure.measure in measures)
    )
