"""Words and numbers for people. It knows no terminal library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distract.printable import count as count
from distract.printable import line


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal, or a dash."""
    return "–" if value is None else f"{100 * value:.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares in percent, or nothing."""
    if low is None or high is None:
        return ""
    return f"{percent(low)} to {percent(high)}" if low < 0 else f"{percent(low)}–{percent(high)}"


def p_value(p: float | None) -> str:
    """A p-value with three decimals; one that would read 0.000 says what it is below."""
    return "" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


def digits(pairs: Iterable[tuple[float, float]]) -> int:
    """How many decimals show that the numbers of each pair differ: from 2, and at most 6."""
    found = [pair for pair in pairs if pair[0] != pair[1]]
    return next((few for few in range(2, 6) if all(f"{a:.{few}f}" != f"{b:.{few}f}" for a, b in found)), 6)


def set_aside(what: str, counts: Mapping[str, int]) -> str:
    """What was set aside, how often and why: ``excluded: no rewrite (3); rewrite rejected (1)``."""
    return f"{what}: " + "; ".join(f"{line(reason)} ({n})" for reason, n in sorted(counts.items()))


def bar(share: float | None, width: int = 10) -> str:
    """A share as a bar of that many characters: full blocks, then dots."""
    if share is None:
        return ""
    full = round(share * width)
    return "█" * full + "·" * (width - full)
