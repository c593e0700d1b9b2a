"""``distract card``: one page on a judge, to file with a release."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from distract.cli.command import command
from distract.cli.pages import Pages
from distract.cli.shared import echo, warn
from distract.models.options import setting
from distract.models.ranges import INNER_SHARE, PATH, Several
from distract.studies.options import PageOptions


@dataclass(frozen=True, kw_only=True)
class _Options(PageOptions):
    runs: tuple[Path, ...] = setting(MISSING, "run folders", Several(PATH), argument=True, metavar="RUN...")
    threshold: float | None = setting(
        None, "also decide by the flip rates of each finished run of `attack`", INNER_SHARE, flag="--max-flip-rate"
    )


@command(_Options)
def card(options: _Options) -> None:
    """Print a judge card in Markdown, from RUNs of one judge.

    Judge and version, data, attacks, rates with intervals, gate, fidelity and limits; asks no model.
    """
    from distract.core import registry
    from distract.core.job import summarise
    from distract.core.runs import load
    from distract.report import markdown
    from distract.studies.card import card_report
    from distract.studies.gate.finished import decide
    from distract.studies.gate.limits import Limits, has_rate
    from distract.studies.gate.view import gate_report

    pages, loaded = Pages.take(options), [load(path) for path in options.runs]
    for run in loaded:
        warn(run)
    finished = [summarise(registry.get_study(run.command), run) for run in loaded]
    limits = None if options.threshold is None else Limits({"flip_rate": options.threshold})
    judged = [run for run in loaded if run.command == "attack" and has_rate(run.parameters, "flip_rate")]
    decided = [decide(run, limits) for run in judged] if limits else []
    blocks = list(card_report(finished, [block for verdict in decided for block in gate_report(verdict)]))
    pages.write(lambda: blocks)
    if not pages.any:
        echo(markdown.render(blocks).rstrip("\n"))
