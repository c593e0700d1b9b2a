"""Responses whose rewrite is on the other side of the pass mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distract.stats import intervals
from distract.stats.figure import Figure
from distract.studies.attack.briefs import CompactRow
from distract.studies.attack.outcomes import pair_unit

Sides = dict[tuple[str, str, int | None], tuple[bool, bool, str]]
"""Whether each response passes before and after its rewrite, and its prompt, by case, author and severity."""


def crossing_figures(
    empty: Figure, fixed: Sequence[CompactRow], flips: Sequence[CompactRow], confidence: float
) -> list[Figure]:
    """Compute the share that crosses the mark either way, and of those that failed the share lifted over it."""
    sides, invalid = _find_sides(fixed, flips, empty.attack)
    prompts = [prompt for *_, prompt in sides.values()]
    crossed = [float(before != after) for before, after, _ in sides.values()]
    lifted = [(float(after), prompt) for before, after, prompt in sides.values() if not before]
    empty = replace(empty, unit="share", invalid=invalid)
    return [
        _fill_rate(replace(empty, measure="crossing_rate"), crossed, prompts, confidence),
        _fill_rate(
            replace(empty, measure="lifted_rate"), [k for k, _ in lifted], [prompt for _, prompt in lifted], confidence
        ),
    ]


def _fill_rate(figure: Figure, values: Sequence[float], prompts: Sequence[str], confidence: float) -> Figure:
    if not values:
        return figure
    low, high = intervals.rate_interval(values, prompts, confidence)
    k = int(sum(values))
    return replace(figure, value=k / len(values), low=low, high=high, k=k, n=len(values))


def _find_sides(fixed: Sequence[CompactRow], flips: Sequence[CompactRow], attack: str) -> tuple[Sides, int]:
    """Find every response judged before and after, once each; a response in several comparisons has one score."""
    sides, invalid = Sides(), 0
    before = {pair_unit(row): row.passes for row in flips if row.target is None}
    for row in (*fixed, *flips):
        if row.attack != attack or row.excluded is not None:
            continue
        is_flip = row.target is not None and pair_unit(row) in before
        at = "ab".index(row.target) if is_flip else 0
        response = (row.a, row.b)[at]
        start, end = (before[pair_unit(row)][at], row.passes[at]) if is_flip else row.passes
        if start is None or end is None:
            invalid += 1
        else:
            sides.setdefault((row.case, response.author, response.severity), (start, end, row.cluster))
    return sides, invalid
