"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distract.cli.command import command
from distract.cli.options import (
    attack_option,
    control_option,
    data_options,
    judge_option,
    option,
    paper_option,
    probe_option,
    protocol_option,
    rewriting_options,
    run_options,
    seed_option,
    shard_option,
    verbose_option,
)
from distract.cli.pages import Pages, page_options
from distract.cli.run import check_conclusive, print_run, profile_run, run_in_terminal
from distract.cli.terminal import terminal


@command()
@judge_option
@attack_option
@data_options
@protocol_option("pairwise and pointwise")
@rewriting_options
@control_option
@probe_option
@option(
    "--measure",
    "measures",
    multiple=True,
    help="Measure, or fixed, flip, severity, net; repeatable. Default: all that fit and cost little.",
)
@option("--limit", default="24", help="Number of cases, spread over the formats of the data.")
@seed_option
@shard_option
@option("--profile", is_flag=True, panel="Output", help="Report on stderr where the time went.")
@paper_option
@page_options
@verbose_option
@run_options
def attack(
    judge: str, profile: bool, paper: bool, verbose: bool, store: Path | None, fresh: bool, as_json: bool, **more: Any
) -> None:
    """Measure how often distractors change a judge's verdict.

    Rewrites responses with distractors, and has the judge compare them before and after.
    """
    from distract.cli.results import paper_parts
    from distract.stats.measures import MEASURES
    from distract.studies.attack.session import attack_job

    # Ties alone have a share of flips among all pairs, but show nothing.
    measures = {row.name for row in MEASURES.values() if row.designs} - {"flip_rate_of_all"} | {*more["measures"]}
    pages = Pages.take(more)
    with profile_run(profile) as models:
        job = attack_job(judge, more, terminal())
        models.update(job.models)
        finished = run_in_terminal(job, store, is_fresh=fresh)
    print_run(finished, pages, as_json, verbose, paper_parts(finished) if paper else ())
    check_conclusive(
        finished.run.rows,
        any(figure.n for figure in finished.result.figures if figure.measure in measures),
        finished.run.shard,
    )
