"""Test the error rates of gates: dependent pairs, bets in sixty digits, boundaries of single outcomes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from loops import each
from test_gate_boundary import SIDES, Step, as_hits, chance, is_enough
from test_gate_mixture import log_counted

from distract.stats.intervals import upper_bound
from distract.studies.gate.boundary import LONGEST, boundary, end_probability
from distract.studies.gate.dependence import clustered_hits_reason, few_prompts_reason, shrink_counts
from distract.studies.gate.limits import Limits
from distract.studies.gate.mixture import Bets, Direction, log_mean, outcome_gains

UNEVEN = (1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 9, 10, 12, 14, 17, 22, 45) * 3


@pytest.mark.parametrize(
    ("sizes", "threshold"),
    [((45,) * 24, 0.05), ((45,) * 16, 0.20), ((4,) * 50, 0.05), ((4,) * 50, 0.20), ((20,) * 30, 0.10), (UNEVEN, 0.05)],
)
def test_dependent_pairs_pass_no_more_often_than_allowed(sizes: tuple[int, ...], threshold: float) -> None:
    """The rate lies at the threshold; prompts either have mixed outcomes or mostly flip as a whole."""
    rng, trials, limits = random.Random(3), 200, Limits()
    a, b = threshold * 7 / 3, (1 - threshold) * 7 / 3  # their correlation is .3
    for is_whole, most in ((False, 0.05), (True, 0.065)):
        wrong = 0
        for _ in range(trials):
            values, clusters = list[float](), list[int]()
            for prompt, pairs in enumerate(sizes):
                share = rng.betavariate(a, b)
                if is_whole:
                    share = float(rng.random() < threshold) if rng.random() < 0.7 else threshold
                values += [float(rng.random() < share) for _ in range(pairs)]
                clusters += [prompt] * pairs
            is_below = upper_bound(*shrink_counts(values, clusters, limits)) < threshold
            is_held_up = few_prompts_reason(len(sizes), threshold, limits) or clustered_hits_reason(
                values, clusters, threshold, limits
            )
            wrong += is_below and not is_held_up
        assert wrong / trials <= most


@each("side", *SIDES)
@each("share", 0.0, 0.1, 0.5, 1.0)
@each("threshold", 0.01, 0.1, 0.5, 0.9)
def test_counts_match_sixty_digit_arithmetic(threshold: float, share: float, side: Direction) -> None:
    bets = Bets(threshold, side)
    ones, zeros = outcome_gains(threshold, side)
    k = 0
    for n in range(1, 5001):
        hit = math.floor(n * share) > k
        k += hit
        bets.add((1 if hit else 0) - threshold)
        if n in (1, 2, 7, 50, 400, 1500, 5000):
            exact = log_counted(threshold, side, k, n)
            assert log_mean(k * ones + (n - k) * zeros) == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
            assert bets.evidence == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
    # These values lie far below the range of floats and must not underflow.
    assert math.isfinite(bets.evidence)


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
