"""``distract consistency``: do the verdicts on three and four responses to a prompt fit together?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distract.cli.bounds import COUNT
from distract.cli.command import command
from distract.cli.options import (
    data_options,
    draw_options,
    judge_option,
    manner_options,
    option,
    protocol_option,
    run_options,
    shard_option,
    verbose_option,
)
from distract.cli.pages import Pages, page_options
from distract.cli.run import check_conclusive, print_run, run_in_terminal, set_up

PROTOCOLS = ("pairwise", "rank")
"""The default protocols, as in the paper: one shows two responses, the other also shows three."""


@command()
@judge_option
@data_options
@protocol_option(" and ".join(PROTOCOLS))
@option(
    "--sets",
    bounds=COUNT,
    default=4,
    help="Maximum number of triples, and of quadruples, of responses per prompt, drawn by --seed.",
)
@manner_options
@draw_options
@shard_option
@page_options
@verbose_option
@run_options
def consistency(judge: str, verbose: bool, store: Path | None, fresh: bool, as_json: bool, **more: Any) -> None:
    """Measure whether verdicts on three and four responses fit together.

    Shows whether the judge is transitive, and whether a third response changes its verdict on two others. Needs
    data with three or four responses per prompt. Choice sets are shown in one order each, whatever --orders.
    """
    from distract.studies.consistency import session

    pages = Pages.take(more)
    setup, _ = set_up(judge, more, PROTOCOLS)
    job = session.prepare(setup, limit=more.pop("limit") or None, **more)
    finished = run_in_terminal(job, store, is_fresh=fresh)
    print_run(finished, pages, as_json, verbose)
    check_conclusive(finished.run.rows, shard=finished.run.shard)
