"""Test the limits of a live gate against an exact enumeration of every path."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.studies.gate import boundary as module
from distract.studies.gate.boundary import Boundary, boundary, end_probability
from distract.studies.gate.mixture import BETS, Direction, bet_rates

SIDES: tuple[Direction, ...] = ("above", "below")
SMALL = [(threshold, alpha) for threshold in (0.02, 0.1, 0.3, 0.5, 0.85) for alpha in (0.004, 0.05, 0.2, 0.5)]
ARRAYS = ("fail_at", "pass_at", "fail_end", "pass_end")

thresholds = st.one_of(st.sampled_from([1e-6, 0.05, 0.1, 0.5, 0.9, 1 - 1e-6]), st.floats(1e-6, 1 - 1e-6))
alphas = st.one_of(st.sampled_from([0.05, 0.0125, 1e-6, 0.5]), st.floats(1e-9, 0.5))


@cache
def as_integers(threshold: float, side: Direction) -> tuple[int, tuple[int, ...], int]:
    """The rates and the threshold as whole numbers over one denominator, so that arithmetic on floats is exact."""
    parts = [Fraction(rate) for rate in bet_rates(threshold, side).tolist()]
    below = max(part.denominator for part in [*parts, Fraction(threshold)])
    return below, tuple(int(part * below) for part in parts), int(Fraction(threshold) * below)


@cache
def evidence(threshold: float, side: Direction, ones: int, zeros: int) -> Fraction:
    """The mean likelihood ratio of these counts."""
    below, parts, t = as_integers(threshold, side)
    total = sum(part**ones * (below - part) ** zeros for part in parts)
    return Fraction(total, BETS * t**ones * (below - t) ** zeros)


def is_enough(threshold: float, side: Direction, alpha: float, hits: int, others: int) -> bool:
    """Whether this number of hits is sufficient evidence."""
    pair = (hits, others) if side == "above" else (others, hits)
    return evidence(threshold, side, *pair) * Fraction(alpha) >= 1


def chance(threshold: float, side: Direction) -> Fraction:
    """The chance of a hit at the threshold."""
    return Fraction(threshold) if side == "above" else 1 - Fraction(threshold)


Step = tuple[Fraction, list[Fraction]]
"""The chance at the threshold of a decision so far, and of each number of hits without a decision."""


def by_paths(threshold: float, side: Direction, alpha: float, n: int) -> Step:
    """The step computed by enumerating all sequences of n outcomes."""
    rate, decided, left = chance(threshold, side), Fraction(0), [Fraction(0)] * (n + 1)
    for way in product((0, 1), repeat=n):
        weight = rate ** sum(way) * (1 - rate) ** (n - sum(way))
        if any(is_enough(threshold, side, alpha, sum(way[:m]), m - sum(way[:m])) for m in range(n + 1)):
            decided += weight
        else:
            left[sum(way)] += weight
    return decided, left


def least_end(step: Step, alpha: float) -> int:
    """The minimum number of hits for a decision at the end that keeps the total error within alpha."""
    decided, left = step
    return next(hits for hits in range(len(left) + 1) if decided + sum(left[hits:]) <= Fraction(alpha))


def as_hits(limits: Boundary, side: Direction, name: str) -> list[int]:
    """The limits of one side as the smallest number of hits."""
    if side == "above":
        return [int(one) for one in getattr(limits, f"fail_{name}")]
    return [n - int(one) for n, one in enumerate(getattr(limits, f"pass_{name}"))]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("threshold", "alpha"), SMALL)
def test_boundary_matches_exact_paths(threshold: float, alpha: float, side: Direction) -> None:
    limits = boundary(threshold, alpha, alpha, 9)
    at, ends = as_hits(limits, side, "at"), as_hits(limits, side, "end")
    for n in range(10):
        step = by_paths(threshold, side, alpha, n)
        assert [hits >= at[n] for hits in range(n + 1)] == [
            is_enough(threshold, side, alpha, hits, n - hits) for hits in range(n + 1)
        ]
        assert ends[n] == least_end(step, alpha)
        assert step[0] <= Fraction(alpha)


@given(thresholds, alphas, alphas, st.integers(0, 120))
def test_limits_never_fall_nor_outgrow_the_count(t: float, a: float, b: float, most: int) -> None:
    limits = boundary(t, a, b, most)
    assert limits.most == most
    for name in ARRAYS:
        steps = np.diff(getattr(limits, name))
        assert len(steps) == most
        assert np.all((steps >= 0) & (steps <= 1)), name
    assert np.all(limits.pass_at < limits.fail_at)
    assert np.all(limits.fail_end <= limits.fail_at)
    assert np.all(limits.pass_end >= limits.pass_at)


@given(thresholds, alphas, alphas, st.integers(0, 150), st.integers(0, 150))
def test_limits_do_not_depend_on_the_horizon(t: float, a: float, b: float, one: int, other: int) -> None:
    short, long = sorted((one, other))
    for name in ARRAYS:
        limits = getattr(boundary(t, a, b, long), name)[: short + 1]
        assert np.array_equal(limits, getattr(boundary(t, a, b, short), name)), name


@given(thresholds, alphas, alphas, st.integers(0, 150))
def test_no_count_both_passes_and_fails(t: float, a: float, b: float, n: int) -> None:
    limits = boundary(t, a, b, 150)
    assert limits.pass_end[n] < limits.fail_end[n]


@given(st.floats(0.01, 0.99), alphas, st.integers(0, 80), st.data())
def test_end_p_value_agrees_with_the_limit(t: float, alpha: float, n: int, data: st.DataObject) -> None:
    limits = boundary(t, alpha, alpha, n)
    k = data.draw(st.integers(0, n))
    p = end_probability(t, limits.fail_at, n, k)
    assert 0 <= p <= 1
    assert p <= end_probability(t, limits.fail_at, n, max(0, k - 1)) + 1e-12
    assert k < limits.fail_at[n] or p <= alpha + 1e-12
    assert abs(p - alpha) < 1e-12 or (p <= alpha) is bool(k >= limits.fail_end[n])


def test_beyond_the_longest_only_the_bets_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 60)
    inside, beyond = boundary(0.1, 0.021, 0.05, 60), boundary(0.1, 0.021, 0.05, 61)
    assert (inside.inexact, beyond.inexact) == (False, True)
    assert not np.array_equal(inside.fail_end, inside.fail_at)
    assert np.array_equal(beyond.fail_end, beyond.fail_at)
    assert np.array_equal(beyond.pass_end, beyond.pass_at)
    assert np.array_equal(beyond.fail_at[:61], inside.fail_at)
