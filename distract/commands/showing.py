"""A run read back, shown by the command that made it: as a document to machines, as tables to people.

It knows which command shows what, and no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from distract.runfolder import Loaded

Shown = tuple[Callable[[], dict[str, Any]], Callable[[], "Iterable[RenderableType]"]]
"""What makes the document, and what makes the tables."""


def shown(loaded: Loaded) -> Shown:
    """How a run is shown: to people also an answer that could not be read, if there is one."""
    by_command = {
        "attack": _attack,
        "gate": _gate,
        "meta": _meta,
        "consistency": _consistency,
        "leaderboard": _leaderboard,
    }
    document, parts = by_command[loaded.command](loaded)
    return document, lambda: chain(parts(), unread(loaded))


def unread(loaded: Loaded) -> Iterable[RenderableType]:
    """An answer of a run that could not be read, if there is one."""
    from rich.text import Text

    from distract.report.unread import unread_lines

    return map(Text, unread_lines(loaded.path))


def _attack(loaded: Loaded) -> Shown:
    from distract import metrics
    from distract.briefs import Briefs
    from distract.document import document
    from distract.report.terminal import run_report
    from distract.rewrite_metrics import WithoutTexts

    # Each is gone through as seldom as can be: after a run they come from disk.
    p, rows, rewrites = loaded.parameters, loaded.rows, tuple(WithoutTexts(loaded.rewrites))
    briefs = Briefs(rows, p["protocols"])
    figures = metrics.figures(briefs, rewrites, p["protocols"], p["attacks"], p["ties"])
    # A search that has not begun has not found nothing.
    minimal = None if loaded.flaw and not loaded.minimal else loaded.minimal
    return (
        lambda: document(p, figures, briefs, rewrites, minimal),
        lambda: run_report(p, figures, rows, rewrites, minimal, briefs),
    )


def _gate(loaded: Loaded) -> Shown:
    from distract.gate.deciding import replayed
    from distract.report.gate import gate_report

    verdict = replayed(loaded.parameters, loaded.rows).verdict(loaded.flaw)
    return verdict.document, lambda: gate_report(verdict)


def _meta(loaded: Loaded) -> Shown:
    from distract.meta.document import document, from_run, result
    from distract.report.meta import parts

    source = from_run(loaded.parameters, loaded.rows)
    return lambda: document([source]), lambda: parts(result([source], source.base))


def _consistency(loaded: Loaded) -> Shown:
    from distract.consistency.document import document
    from distract.report.consistency import report_parts

    return lambda: document(loaded.parameters, loaded.rows), lambda: report_parts(loaded.parameters, loaded.rows)


def _leaderboard(loaded: Loaded) -> Shown:
    from distract.report.leaderboard import report_parts
    from distract.tournament.document import document
    from distract.tournament.measuring import measured

    p, rows, rewrites = loaded.parameters, loaded.rows, loaded.rewrites
    if loaded.flaw:
        # What is missing would be taken for what did not change, and the lowest so far need not be the lowest.
        p = {**p, "attacks": [], "flaw": loaded.flaw}
    return lambda: document(p, measured(p, rows), rows, rewrites), lambda: report_parts(p, rows, rewrites)
