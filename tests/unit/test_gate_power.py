"""Test the required number of comparisons: published figures, brute force by scipy, the gate's own monitor."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each
from scipy.stats import binom

from distract.core.errors import UsageError
from distract.stats import intervals
from distract.studies.gate.boundary import boundary
from distract.studies.gate.power import TailTest, binomial_cdf, compute_path
from distract.studies.gate.power_plan import analyse_power, power_report

ALPHA = 0.05
PASSES, FAILS = TailTest(0.1, ALPHA), TailTest(1 - 0.1, ALPHA)

thresholds = st.floats(0.02, 0.95)
levels = st.sampled_from([0.2, 0.05, 0.01])


def limit(tail: TailTest, n: int) -> int:
    return int(tail.limit(np.array([n]))[0])


def chance(tail: TailTest, n: int, rate: float) -> float:
    return float(tail.power(np.array([n]), rate)[0])


@each("n, passing, failing", (50, 1, 10), (100, 4, 16), (200, 12, 28), (400, 29, 51))
def test_limits_at_a_tenth_match_published_values(n: int, passing: int, failing: int) -> None:
    assert limit(PASSES, n) == passing
    assert n - limit(FAILS, n) == failing


@each("flips, n", (0, 29), (1, 46), (2, 61), (3, 76), (5, 103), (10, 167))
def test_passing_numbers_match_published_values(flips: int, n: int) -> None:
    assert limit(PASSES, n) == flips
    assert limit(PASSES, n - 1) == flips - 1


@given(thresholds, levels, st.integers(1, 300))
def test_limits_equal_the_exact_bounds(threshold: float, level: float, n: int) -> None:
    k = limit(TailTest(threshold, level), n)
    # Fractions of counts stand for numbers next to the limit, where rounding does not matter.
    assert k < 0 or intervals.upper_bound(k, n, 1 - level) < threshold * (1 + 1e-9)
    assert intervals.upper_bound(k + 1, n, 1 - level) > threshold * (1 - 1e-9)
    failing = n - limit(TailTest(1 - threshold, level), n)
    assert failing > n or intervals.p_above(failing, n, threshold) < level * (1 + 1e-9)
    assert intervals.p_above(failing - 1, n, threshold) > level * (1 - 1e-9)


@given(st.integers(1, 200), st.floats(0, 1))
def test_at_most_agrees_with_scipy(n: int, rate: float) -> None:
    k = np.arange(-1, n + 2)
    assert binomial_cdf(k, np.full_like(k, n), rate) == pytest.approx(binom.cdf(k, n, rate), abs=1e-12)


@given(thresholds, st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.9, 0.99]), levels)
def test_required_number_agrees_with_brute_force(threshold: float, share: float, power: float, level: float) -> None:
    rate = share * threshold * 0.8
    n = TailTest(threshold, level).least(rate, power)
    assume(n is not None)
    assert n is not None
    many = np.arange(1, 2 * n + 400)
    powers = binom.cdf(binom.ppf(level, many, threshold) - 1, many, rate)
    short = np.flatnonzero(powers < power)
    assert n == (many[short[-1]] + 1 if len(short) else 1)


def test_power_is_not_monotonic_in_n() -> None:
    n = analyse_power(0.1, 0.05, 0.9, 0.95).finished.n
    smaller = [less for less in range(1, n) if chance(PASSES, less, 0.05) >= 0.9]
    assert smaller
    assert chance(PASSES, n - 1, 0.05) < 0.9


@each("rate, power, checks", (0.02, 0.9, 1), (0.05, 0.8, 3), (0.25, 0.9, 1), (0.25, 0.9, 5))
def test_live_cap_is_the_smallest_that_reaches_the_power(rate: float, power: float, checks: int) -> None:
    power_plan = analyse_power(0.1, rate, power, 0.95, checks)
    assert power_plan.live is not None
    alphas = (1 - 0.95) / checks, 1 - 0.95
    for cap, enough in ((power_plan.live.cap, True), (power_plan.live.cap - 1, False)):
        there = compute_path(boundary(0.1, *alphas, cap), rate)
        assert ((there.passed if rate < 0.1 else there.failed) >= power_plan.each) is enough
    assert power_plan.live.mean < power_plan.finished.n


@each(
    "arguments, words",
    ((0.0, 0.05, 0.9, 0.95), "--max-flip-rate 0: expected a share"),
    ((1.0, 0.05, 0.9, 0.95), "--max-flip-rate 1: expected a share"),
    ((0.1, -0.1, 0.9, 0.95), "--true-rate -0.1: expected a share from 0 to 1"),
    ((0.1, 1.1, 0.9, 0.95), "--true-rate 1.1: expected"),
    ((0.1, float("nan"), 0.9, 0.95), "--true-rate nan: expected"),
    ((0.1, 0.05, 0.49, 0.95), "--power 0.49: expected a share from 0.5 to below 1"),
    ((0.1, 0.05, 1.0, 0.95), "--power 1: expected"),
    ((0.1, 0.05, float("nan"), 0.95), "--power nan: expected"),
    ((0.1, 0.05, 0.9, 1.0), "--confidence 1: expected"),
    ((0.1, 0.05, 0.9, 0.95, 0), "--checks 0: expected a number of checks from 1"),
    ((0.1, 0.05, 0.9, 0.95, 10**9), "--checks 1000000000: expected"),
    ((0.1, 0.1, 0.9, 0.95), "is the threshold itself"),
    ((0.1, 0.10001, 0.9, 0.95), "needs more than 5,000 eligible comparisons"),
    ((0.1, np.nextafter(0.1, 0), 0.9, 0.95), "more than 5,000"),
    ((0.5, 0.49, 0.9, 0.95), "more than 5,000"),
    ((1e-6, 0.0, 0.9, 0.95), "more than 5,000"),
)
def test_unplannable_gate_is_one_line(arguments: tuple[float, float, float, float], words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        analyse_power(*arguments)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "n"),
    [
        ((0.1, 0.0, 0.9, 0.95), 29),
        ((0.1, 1.0, 0.9, 0.95), 2),
        ((1e-6, 1.0, 0.5, 0.5), 1),
        ((0.001, 0.0, 0.9, 0.95), 2995),
    ],
)
def test_ends_of_the_range_are_handled(arguments: tuple[float, float, float, float], n: int) -> None:
    assert analyse_power(*arguments).finished.n == n


def test_plan_prints_as_expected() -> None:
    lines = list(power_report(analyse_power(0.1, 0.02, 0.9, 0.95, 2)))
    assert lines[0] == (
        "A judge whose true flip rate is 0.02 should pass at a threshold of 0.1 with a chance of 90%, "
        "at 95% confidence."
    )
    assert "103 eligible comparisons or more. With 103, at most 5 flips pass: a chance of 98.2%" in lines[1]
    assert lines[2].startswith("A live gate: ")
    assert "not eligible comparisons" in lines[3]
    assert "does not grow steadily" in lines[4]
    assert "each is planned for 95%" in lines[5]
    failing = " ".join(power_report(analyse_power(0.1, 1.0, 0.9, 0.95, 2)))
    assert "With 2, at least 2 flips fail" in failing
    assert "A gate fails with any of its 2 checks" in failing


def test_document_is_json() -> None:
    document = json.loads(json.dumps(analyse_power(0.1, 0.05, 0.9, 0.95).document(), allow_nan=False))
    assert document["finished"] == {"n": 263, "limit": 18, "power": 0.9292, "wrong": 0.0}
    assert set(document["live"]) == {"cap", "passed", "failed", "inconclusive", "mean", "median"}
    assert replace(analyse_power(0.1, 0.05, 0.9, 0.95), live=None).document()["live"] is None
