"""Test the limits of a live gate against an exact enumeration of every path."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from test_gate_boundary import SIDES, Step, as_hits, chance, is_enough

from distract.studies.gate.boundary import LONGEST, boundary, end_probability
from distract.studies.gate.mixture import Direction


def count_paths(threshold: float, side: Direction, alpha: float, most: int) -> Iterator[Step]:
    """Steps for each n, from the number of paths to each count."""
    rate, decided, ways = chance(threshold, side), Fraction(0), [1]
    for n in range(most + 1):
        if n:
            ways = [a + b for a, b in zip([*ways, 0], [0, *ways], strict=True)]
        left = [number * rate**hits * (1 - rate) ** (n - hits) for hits, number in enumerate(ways)]
        for hits in range(n + 1):
            if ways[hits] and is_enough(threshold, side, alpha, hits, n - hits):
                decided += left[hits]
                ways[hits], left[hits] = 0, Fraction(0)
        yield decided, left


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("threshold", "alpha"), [(0.1, 0.05), (0.1, 0.0125), (0.3, 0.1), (0.5, 0.05), (0.03, 0.2)])
def test_wrong_decisions_are_rare_and_limits_are_tight(threshold: float, alpha: float, side: Direction) -> None:
    most = 50
    limits = boundary(threshold, alpha, alpha, most)
    at, ends = as_hits(limits, side, "at"), as_hits(limits, side, "end")
    for n, (decided, left) in enumerate(count_paths(threshold, side, alpha, most)):
        assert decided + sum(left[ends[n] :]) <= Fraction(alpha)
        assert decided + sum(left[ends[n] - 1 :]) > Fraction(alpha)
        assert not any(left[at[n] :])
        assert at[n] > n or is_enough(threshold, side, alpha, at[n], n - at[n])
        assert not is_enough(threshold, side, alpha, at[n] - 1, n - at[n] + 1)
        if side == "above" and n % 7 == 0:
            for k in range(n + 2):
                expected = decided + sum(left[k:])
                assert end_probability(threshold, limits.fail_at, n, k) == pytest.approx(
                    float(expected), rel=1e-9, abs=1e-15
                )


@pytest.mark.parametrize("side", SIDES)
def test_longest_exact_boundary_keeps_its_level(side: Direction) -> None:
    limits = boundary(0.1, 0.05, 0.05, LONGEST)
    assert not limits.inexact
    rate, going, decided = float(chance(0.1, side)), np.ones(1), 0.0
    at, ends = as_hits(limits, side, "at"), as_hits(limits, side, "end")
    for n in range(LONGEST + 1):
        if n:
            going = np.convolve(going, [1 - rate, rate])
        decided += float(going[at[n] :].sum())
        going[at[n] :] = 0
    assert decided + float(going[ends[LONGEST] :].sum()) <= 0.05 + 1e-9
    assert decided + float(going[ends[LONGEST] - 1 :].sum()) > 0.05
    assert decided + float(going.sum()) == pytest.approx(1)
