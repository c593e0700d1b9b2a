"""``distract demo``: what a run shows, on a judge whose bias is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distract.cli.command import command
from distract.cli.pages import Pages, check_free, protected_paths
from distract.cli.shared import echo, safe_line
from distract.models.options import OptionGroup, setting
from distract.models.ranges import PATH

JUDGE, CASES = "planted:bold=0.7", 12

INTRODUCTION = """\
This judge is a script with a known bias: in 70% of the cases it prefers the
response with more words such as "certainly", in the others the better one.
A run finds:
"""


@dataclass(frozen=True, kw_only=True)
class _Options(OptionGroup):
    html: Path = setting(Path("distract-demo.html"), "page to write", PATH, writes="file")


@command(_Options)
def demo(options: _Options) -> None:
    """Test a judge with a known bias, and write the page of the run.

    Takes a second, downloads nothing and asks no model: the judge is a script, everything else is a real run.
    """
    from distract.report.blocks import Note, Sentence
    from distract.report.terminal import show
    from distract.studies.attack.flip_view import collect_flips, flips_report
    from distract.studies.attack.options import AttackOptions
    from distract.studies.attack.study import STUDY
    from distract.studies.execution import prepare, run_job
    from distract.studies.listener import Listener

    check_free(options.html, protected_paths({}), "--html")
    listener = Listener()
    listener.command = "distract demo"
    chosen = AttackOptions(judge=JUDGE, protocols=("pairwise",), measures=("flip",), limit=CASES)
    finished = run_job(prepare(STUDY, chosen, listener), None, listener)
    echo(INTRODUCTION)
    findings = [block for block in finished.report if isinstance(block, Sentence)]
    clearest = flips_report(finished.run, *collect_flips(finished.run, 1), whole=False)
    show([*findings, *(block for block in clearest if not isinstance(block, Note))])
    Pages(options.html, None).write(lambda: finished.report, finished.run)
    echo(f"\npage: {safe_line(str(options.html))} (open it in a browser)")
    echo(f"run folder: {safe_line(str(finished.run.path))}")
    echo("your judge: distract attack --judge NAME (distract list judges)")
