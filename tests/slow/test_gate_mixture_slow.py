"""What takes long of ``test_gate_mixture``."""

from __future__ import annotations

import math

import pytest
from looping import each
from test_gate_mixture import SIDES, log_counted

from distract.studies.gate.mixture import Bets, Side, counted, mean


@each("side", SIDES)
@each("share", [0.0, 0.1, 0.5, 1.0])
@each("threshold", [0.01, 0.1, 0.5, 0.9])
def test_counts_against_sixty_digits(threshold: float, share: float, side: Side) -> None:
    bets = Bets(threshold, side)
    ones, zeros = counted(threshold, side)
    k = 0
    for n in range(1, 5001):
        hit = math.floor(n * share) > k
        k += hit
        bets.add((1 if hit else 0) - threshold)
        if n in (1, 2, 7, 50, 400, 1500, 5000):
            exact = log_counted(threshold, side, k, n)
            assert mean(k * ones + (n - k) * zeros) == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
            assert bets.log == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
    # Far below what a float holds: it must neither underflow nor turn into something else.
    assert math.isfinite(bets.log)
