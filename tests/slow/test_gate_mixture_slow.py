"""Slow tests of ``test_gate_mixture``."""

from __future__ import annotations

import math

import pytest
from loops import each
from test_gate_mixture import SIDES, log_counted

from distract.studies.gate.mixture import Bets, Direction, log_mean, outcome_gains


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
