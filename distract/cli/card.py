"""``distract card``: one page on a judge, to file with a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distract.cli.command import command
from distract.cli.options import PATH, option
from distract.cli.pages import Pages, page_options
from distract.cli.shared import echo, warn


@command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@option("--max-flip-rate", "threshold", help="Also decide by the flip rates of each finished run of `attack`.")
@page_options
def card(runs: tuple[Path, ...], threshold: float | None, **more: Any) -> None:
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

    pages, loaded = Pages.take(more), [load(path) for path in runs]
    for run in loaded:
        warn(run)
    finished = [summarise(registry.get_study(run.command), run) for run in loaded]
    limits = None if threshold is None else Limits({"flip_rate": threshold})
    judged = [run for run in loaded if run.command == "attack" and has_rate(run.parameters, "flip_rate")]
    decided = [decide(run, limits) for run in judged] if limits else []
    blocks = list(card_report(finished, [block for verdict in decided for block in gate_report(verdict)]))
    pages.write(lambda: blocks)
    if not pages.any:
        echo(markdown.render(blocks).rstrip("\n"))
