"""What ``distract compare`` shows: two runs side by side, a line for each protocol and attack.

Built on Rich with plain ``Text`` cells only. It computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import interval, line, p_value, percent
from distract.report.tables import grid
from distract.studies.gate.verdict import Check, Verdict
from distract.studies.gate.view import COLOURS


def comparison_report(baseline_name: str, run_name: str, verdict: Verdict) -> Iterable[RenderableType]:
    """The flip rates of two runs on the same pairs, and whether they rose."""
    yield Text(f"before: {line(baseline_name)} · now: {line(run_name)}", style="bold")
    yield Text("\nFlip rates on the same pairs, in %", style="italic")
    table = grid("", "before", "now", "rise", "+/−", "n", "p")
    last = None
    for check in verdict.checks:
        name = line(check.protocol) + (f" by {check.rule}" if check.rule else "")
        if name != last:
            table.add_row(Text(name, style="bold"))
        table.add_row(
            Text(f" {line(check.attack)}\n") + Text(f"   {_decision_word(check)}", style=COLOURS[check.decision]),
            percent(check.reference),
            percent(check.value),
            f"{_format_rise(check)}\n{interval(check.lower, check.upper)}",
            f"{check.only_here}/{check.only_there}",
            str(check.n),
            p_value(check.p_adjusted),
        )
        last = name
    if verdict.checks:
        yield table
        yield Text(
            f"rise: in points, over its one-sided {100 * verdict.confidence:g}% bounds; "
            "+/−: flips only now, and only before; p: exact one-sided McNemar test, after Holm",
            style="dim",
        )
    decision = Text(verdict.decision.upper(), style=f"bold {COLOURS[verdict.decision]}")
    yield Text("\n") + decision + Text(f": {line(verdict.reason)}")
    for note in verdict.notes:
        yield Text(line(note), style="dim")


def _format_rise(check: Check) -> str:
    if check.value is None or check.reference is None:
        return percent(None)
    points = percent(check.value - check.reference)
    return points if check.value <= check.reference else f"+{points}"


def _decision_word(check: Check) -> str:
    """A decision in words about a rise."""
    if check.decision == "inconclusive":
        return "too few" if check.needed is not None else "open"
    if check.decision == "fail":
        return "worse"
    return "a little worse" if check.lower is not None and check.lower > 0 else "not worse"
