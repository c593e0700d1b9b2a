"""``distract consistency``: do the verdicts on three and four responses to a prompt fit together?"""

from __future__ import annotations

from dataclasses import dataclass

from distract.cli.command import command
from distract.cli.groups import PageOptions, ViewOptions
from distract.cli.pages import Pages
from distract.cli.run import check_conclusive, print_run, run_in_terminal
from distract.cli.terminal import terminal
from distract.studies.consistency.options import PROTOCOLS, ConsistencyOptions


@dataclass(frozen=True, kw_only=True)
class _Options(ConsistencyOptions, PageOptions, ViewOptions):
    pass


@command(_Options)
def consistency(options: _Options) -> None:
    """Measure whether verdicts on three and four responses fit together.

    Shows whether the judge is transitive, and whether a third response changes its verdict on two others. Needs
    data with three or four responses per prompt. Choice sets are shown in one order each, whatever --orders.
    """
    from distract.studies.consistency import session
    from distract.studies.execution import set_up

    pages = Pages.take(options, options.shard)
    job = session.prepare(options, set_up(options, terminal(), PROTOCOLS))
    finished = run_in_terminal(job, options)
    print_run(finished, pages, options)
    check_conclusive(finished.run.rows, shard=finished.run.shard)
