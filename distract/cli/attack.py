"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from dataclasses import dataclass

from distract.cli.command import command
from distract.cli.groups import PageOptions, ViewOptions
from distract.cli.pages import Pages
from distract.cli.run import check_conclusive, print_run, profile_run, run_in_terminal
from distract.cli.terminal import terminal
from distract.studies.attack.options import AttackOptions
from distract.studies.options import output


@dataclass(frozen=True, kw_only=True)
class _Options(AttackOptions, PageOptions, ViewOptions):
    profile: bool = output(False, "report on stderr where the time went")
    paper: bool = output(False, "add flips over all pairs, as the paper counts them")


@command(_Options)
def attack(options: _Options) -> None:
    """Measure how often distractors change a judge's verdict.

    Rewrites responses with distractors, and has the judge compare them before and after.
    """
    from distract.cli.results import paper_parts
    from distract.stats.measures import MEASURES
    from distract.studies.attack.session import attack_job

    # Ties alone have a share of flips among all pairs, but show nothing.
    measures = {row.name for row in MEASURES.values() if row.designs} - {"flip_rate_of_all"} | {*options.measures}
    pages = Pages.take(options, options.shard)
    with profile_run(options.profile) as models:
        job = attack_job(options, terminal())
        models.update(job.models)
        finished = run_in_terminal(job, options)
    print_run(finished, pages, options, paper_parts(finished) if options.paper else ())
    check_conclusive(
        finished.run.rows,
        any(figure.n for figure in finished.result.figures if figure.measure in measures),
        finished.run.shard,
    )
