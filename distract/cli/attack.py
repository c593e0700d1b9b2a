"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distract.cli.command import command
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
from distract.cli.run import check_conclusive, print_run, profile_run, run_in_terminal
from distract.cli.terminal import terminal


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
@option("--profile", is_flag=True, panel="Output", help="Report on stderr where the time went.")
@verbose_option
@run_options
def attack(
    judge: str, profile: bool, verbose: bool, store: Path | None, fresh: bool, as_json: bool, **more: Any
) -> None:
    """Measure how often distractors change a judge's verdict.

    Rewrites responses with distractors, and has the judge compare them before and after.
    """
    from distract.studies.attack.measures import MEASURES
    from distract.studies.attack.session import attack_job

    measures = MEASURES | {*more["measures"]}
    with profile_run(profile) as models:
        job = attack_job(judge, more, terminal())
        models.update(job.models)
        finished = run_in_terminal(job, store, is_fresh=fresh)
    print_run(finished, as_json, verbose)
    check_conclusive(
        finished.run.rows, any(figure.n for figure in finished.result.figures if figure.measure in measures)
    )
