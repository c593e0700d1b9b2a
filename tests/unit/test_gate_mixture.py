"""Test the bets against exact arithmetic, and that none gains under a rate on the wrong side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.studies.gate.mixture import BETS, Bets, Direction, bet_rates, log_mean, outcome_gains

SIDES: tuple[Direction, ...] = ("above", "below")
THRESHOLDS = (1e-6, 1e-3, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-6)
sides = st.sampled_from(SIDES)
thresholds = st.one_of(st.sampled_from(THRESHOLDS), st.floats(1e-6, 1 - 1e-6))
shares = st.floats(0, 1, allow_subnormal=False)


def stakes(threshold: float, side: Direction, z: Sequence[Fraction]) -> Fraction:
    """The mean stake after these values, exact except for the rounding of the rates."""
    t = Fraction(threshold)
    total = Fraction(0)
    for rate in bet_rates(threshold, side).tolist():
        stake, bet = Fraction(1), (Fraction(rate) - t) / (t * (1 - t))
        for one in z:
            stake *= 1 + bet * one
        total += stake
    return total / BETS


def log_of(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def log_counted(threshold: float, side: Direction, k: int, n: int) -> float:
    """The log of the mean likelihood ratio of k of n, to 60 digits."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**8), 10**8
        t = Decimal(threshold)
        ratios = ((Decimal(p) / t, (1 - Decimal(p)) / (1 - t)) for p in bet_rates(threshold, side).tolist())
        return float((sum((one**k * zero ** (n - k) for one, zero in ratios), Decimal(0)) / BETS).ln())


@each("side", *SIDES)
@each("threshold", *THRESHOLDS)
def test_bet_rates_are_strictly_on_their_side(threshold: float, side: Direction) -> None:
    rates = bet_rates(threshold, side)
    assert rates.shape == (BETS,)
    low, high = (threshold, 1.0) if side == "above" else (0.0, threshold)
    assert low < rates[0]
    assert rates[-1] < high
    assert np.all(np.diff(rates) > 0)


@given(thresholds, sides)
def test_rates_are_sorted_and_finite_at_any_threshold(threshold: float, side: Direction) -> None:
    rates = bet_rates(threshold, side)
    assert np.all(np.diff(rates) >= 0)
    assert np.all((rates > threshold) if side == "above" else (rates < threshold))
    assert rates[0] > 0
    assert rates[-1] < 1
    for gains in outcome_gains(threshold, side):
        assert np.all(np.isfinite(gains))


@given(thresholds, sides, shares)
def test_no_bet_gains_under_a_rate_on_the_wrong_side(threshold: float, side: Direction, share: float) -> None:
    t = Fraction(threshold)
    rate = t * Fraction(share) if side == "above" else t + (1 - t) * Fraction(share)
    for bet in Bets(threshold, side)._lambdas.tolist():
        up, down = 1 + Fraction(bet) * (1 - t), 1 - Fraction(bet) * t
        assert rate * up + (1 - rate) * down <= 1
        assert up >= 0
        assert down >= 0


@given(thresholds, sides, st.lists(shares, min_size=1, max_size=5), st.data())
def test_no_bet_gains_under_dependent_prompt_values(
    threshold: float, side: Direction, values: list[float], data: st.DataObject
) -> None:
    """Any distribution of prompts whose expected value lies on the wrong side, with any dependence between prompts.

    Prompts are mixed with an extreme one so that the mean equals the threshold.
    """
    t, width = Fraction(threshold), data.draw(st.integers(len(values), 8))
    total = sum(map(Fraction, values), Fraction(0)) - len(values) * t
    wrong = total <= 0 if side == "above" else total >= 0
    extreme = len(values) * (Fraction(0) if side == "above" else Fraction(1)) - len(values) * t
    weight = Fraction(1) if wrong else extreme / (extreme - total)
    for bet in Bets(threshold, side)._lambdas.tolist():
        first, second = (1 + Fraction(bet) * one / width for one in (total, extreme))
        assert weight * first + (1 - weight) * second <= 1
        assert first >= 0


@given(
    st.floats(1e-4, 1 - 1e-4),
    sides,
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]) | shares, min_size=1, max_size=3), min_size=1, max_size=5),
)
def test_prompt_evidence_agrees_with_fractions(threshold: float, side: Direction, prompts: list[list[float]]) -> None:
    width = max(map(len, prompts))
    bets, t = Bets(threshold, side), Fraction(threshold)
    for values in prompts:
        bets.add(math.fsum(value - threshold for value in values) / width)
    exact = stakes(threshold, side, [sum((Fraction(v) - t for v in values), Fraction(0)) / width for values in prompts])
    assert exact >= 0
    assert bets.evidence == pytest.approx(log_of(exact), rel=1e-8, abs=1e-8)


@given(thresholds, sides, st.lists(st.booleans(), max_size=12))
def test_evidence_grows_with_favourable_outcomes(threshold: float, side: Direction, hits: list[bool]) -> None:
    logs = []
    for one in (0, 1):
        bets = Bets(threshold, side)
        for hit in [*hits, one]:
            bets.add(hit - threshold)
        logs.append(bets.evidence)
    assert (logs[0] < logs[1]) is (side == "above")


@given(st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=6), st.floats(-1e5, 1e5))
def test_mean_of_logs_is_stable(logs: list[float], shift: float) -> None:
    mean = log_mean(np.array(logs))
    assert max(logs) - math.log(len(logs)) - 1e-9 <= mean <= max(logs) + 1e-9
    assert log_mean(np.array(logs) + shift) == pytest.approx(mean + shift, abs=1e-6)
    assert log_mean(np.array(logs[::-1])) == pytest.approx(mean)
