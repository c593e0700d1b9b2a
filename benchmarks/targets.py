"""One line of a table for each figure that has a target; what the benchmarks beside it print."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

HEADER = "| what | measured | least to most | target | |\n|---|---|---|---|---|"


def row(
    what: str, values: Sequence[float], target: float, unit: str = "", *, at_most: bool = False, digits: int = 2
) -> str:
    """A line of a Markdown table: the median of several rounds against what was aimed at.

    Args:
        what: was measured.
        values: one of each round.
        target: the least that the median should be, or the most.
        unit: behind each number.
        at_most: whether the target is the most.
        digits: after the point.
    """
    middle = statistics.median(values)
    met = middle <= target if at_most else middle >= target

    def shown(value: float) -> str:
        # Deviations are tiny: a fixed number of digits would show none of them.
        return f"{value:.1e}" if 0 < abs(target) < 1e-3 else f"{value:,.{digits}f}{unit}"

    spread = f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
    bound = "at most" if at_most else "at least"
    return f"| {what} | {shown(middle)} | {spread} | {bound} {shown(target)} | {'met' if met else '**missed**'} |"
