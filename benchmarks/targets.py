"""Table rows that compare a measured figure with its target, for all benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

HEADER = "| figure | measured | range | target | |\n|---|---|---|---|---|"


def row(
    what: str, values: Sequence[float], target: float, unit: str = "", *, at_most: bool = False, digits: int = 2
) -> str:
    """Return a line of a Markdown table that compares the median of several rounds with its target.

    Args:
        what: what was measured.
        values: one measurement per round.
        target: lower bound for the median, or upper bound with ``at_most``.
        unit: suffix of each number.
        at_most: whether the target is an upper bound.
        digits: number of decimals.
    """
    middle = statistics.median(values)
    met = middle <= target if at_most else middle >= target

    def shown(value: float) -> str:
        # A fixed number of digits would show tiny deviations as 0.
        return f"{value:.1e}" if 0 < abs(target) < 1e-3 else f"{value:,.{digits}f}{unit}"

    spread = f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
    bound = "at most" if at_most else "at least"
    return f"| {what} | {shown(middle)} | {spread} | {bound} {shown(target)} | {'met' if met else '**missed**'} |"
