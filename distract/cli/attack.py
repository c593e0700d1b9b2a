"""``distract attack``: rewrite, judge, report."""

from __future__ import annotations

from dataclasses import dataclass

from distract.cli.command import command
from distract.cli.run import run_study
from distract.studies.attack.options import AttackOptions
from distract.studies.options import StudyOptions, output


@dataclass(frozen=True, kw_only=True)
class _Options(AttackOptions, StudyOptions):
    paper: bool = output(False, "add flips over all pairs, as the paper counts them")


@command(_Options)
def attack(options: _Options) -> None:
    """Measure how often distractors change a judge's verdict.

    Rewrites responses with distractors, and has the judge compare them before and after.
    """
    from distract.studies.attack.study import STUDY
    from distract.studies.attack.view import paper_table

    run_study(STUDY, options, lambda finished: [paper_table(finished.result.figures)] if options.paper else [])
