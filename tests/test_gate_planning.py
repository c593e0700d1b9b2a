"""How many comparisons a gate needs: published figures, brute force by scipy's binomial, and the gate's own monitor."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from looping import each
from scipy.stats import binom

from distract import statistics
from distract.errors import UsageError
from distract.studies.gate import monitor as gate
from distract.studies.gate.boundary import LONGEST, boundary
from distract.studies.gate.course import course, decided
from distract.studies.gate.plan_view import plan_report
from distract.studies.gate.planning import plan
from distract.studies.gate.power import Tail, at_most
from distract.studies.gate.records import Decision

ALPHA = 0.05
PASSES, FAILS = Tail(0.1, ALPHA), Tail(1 - 0.1, ALPHA)

thresholds = st.floats(0.02, 0.95)
levels = st.sampled_from([0.2, 0.05, 0.01])


def limit(tail: Tail, n: int) -> int:
    return int(tail.limit(np.array([n]))[0])


def chance(tail: Tail, n: int, rate: float) -> float:
    return float(tail.power(np.array([n]), rate)[0])


def pass_power(n: int, threshold: float, rate: float, alpha: float) -> float:
    """By scipy: the largest count whose distribution function at the threshold is below alpha, and its chance."""
    return float(binom.cdf(binom.ppf(alpha, n, threshold) - 1, n, rate))


def fail_power(n: int, threshold: float, rate: float, alpha: float) -> float:
    """By scipy: the smallest count with as many or more having at most alpha at the threshold, and its chance."""
    return float(binom.sf(binom.isf(alpha, n, threshold), n, rate))


def played(test: gate.Test, outcomes: tuple[int, ...]) -> tuple[Decision, int]:
    """What the gate's own monitor says of these outcomes, and after how many."""
    monitor = gate.Monitor(test)
    taken = 0
    for taken, flip in enumerate(outcomes, 1):  # noqa: B007
        monitor.add(gate.Prompt(1, (float(flip),), (float(flip),), n=1, k=flip))
        if monitor.decision is not None:
            break
    monitor.end()
    assert monitor.decision is not None
    return monitor.decision, taken


@each(("n", "passing", "failing"), [(50, 1, 10), (100, 4, 16), (200, 12, 28), (400, 29, 51)])
def test_published_limits_at_a_tenth(n: int, passing: int, failing: int) -> None:
    assert limit(PASSES, n) == passing
    assert n - limit(FAILS, n) == failing


@each(("flips", "n"), [(0, 29), (1, 46), (2, 61), (3, 76), (5, 103), (10, 167)])
def test_published_numbers_that_can_pass(flips: int, n: int) -> None:
    assert limit(PASSES, n) == flips
    assert limit(PASSES, n - 1) == flips - 1


@given(thresholds, levels, st.integers(1, 300))
def test_limits_are_those_of_the_exact_bounds(threshold: float, level: float, n: int) -> None:
    k = limit(Tail(threshold, level), n)
    # Fractions of counts stand for numbers next to the limit, where rounding does not matter.
    assert k < 0 or statistics.upper_bound(k, n, 1 - level) < threshold * (1 + 1e-9)
    assert statistics.upper_bound(k + 1, n, 1 - level) > threshold * (1 - 1e-9)
    failing = n - limit(Tail(1 - threshold, level), n)
    assert failing > n or statistics.p_above(failing, n, threshold) < level * (1 + 1e-9)
    assert statistics.p_above(failing - 1, n, threshold) > level * (1 - 1e-9)


@given(st.integers(1, 200), st.floats(0, 1))
def test_at_most_agrees_with_scipy(n: int, rate: float) -> None:
    k = np.arange(-1, n + 2)
    assert at_most(k, np.full_like(k, n), rate) == pytest.approx(binom.cdf(k, n, rate), abs=1e-12)


@given(thresholds, st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.9, 0.99]), levels)
def test_the_number_is_that_of_brute_force(threshold: float, share: float, power: float, level: float) -> None:
    rate = share * threshold * 0.8
    n = Tail(threshold, level).least(rate, power, 2000)
    assume(n is not None)
    assert n is not None
    many = np.arange(1, 2 * n + 400)
    powers = binom.cdf(binom.ppf(level, many, threshold) - 1, many, rate)
    short = np.flatnonzero(powers < power)
    assert n == (many[short[-1]] + 1 if len(short) else 1)


@each("rate", [0.0, 0.02, 0.05, 0.07, 0.15, 0.2, 0.35, 0.9])
@each("power", [0.5, 0.8, 0.95])
@each("checks", [1, 6])
def test_the_power_stays_from_the_number_on(rate: float, power: float, checks: int) -> None:
    found = plan(0.1, rate, power, 0.95, checks)
    n, passes = found.finished.n, rate < 0.1
    by_scipy, alpha = (pass_power, ALPHA) if passes else (fail_power, ALPHA / checks)
    assert found.decision == ("pass" if passes else "fail")
    assert found.finished.power == pytest.approx(by_scipy(n, 0.1, rate, alpha))
    assert all(by_scipy(more, 0.1, rate, alpha) >= found.each for more in range(n, n + 300))
    assert n == 1 or by_scipy(n - 1, 0.1, rate, alpha) < found.each
    other = fail_power if passes else pass_power
    assert found.finished.wrong == pytest.approx(other(n, 0.1, rate, ALPHA), abs=1e-12)
    told = binom.cdf(found.finished.limit, n, rate) if passes else binom.sf(found.finished.limit - 1, n, rate)
    assert found.finished.power == pytest.approx(told)


def test_power_has_teeth() -> None:
    n = plan(0.1, 0.05, 0.9, 0.95).finished.n
    smaller = [less for less in range(1, n) if chance(PASSES, less, 0.05) >= 0.9]
    assert smaller
    assert chance(PASSES, n - 1, 0.05) < 0.9


def test_all_checks_have_to_pass_but_one_is_enough_to_fail() -> None:
    assert plan(0.1, 0.05, 0.9, 0.95, 4).each == pytest.approx(0.975)
    assert plan(0.1, 0.2, 0.9, 0.95, 4).each == 0.9
    assert plan(0.1, 0.05, 0.9, 0.95, 4).finished == plan(0.1, 0.05, 0.975, 0.95).finished
    alone, together = plan(0.1, 0.2, 0.9, 0.95), plan(0.1, 0.2, 0.9, 0.95, 4)
    assert together.finished.n > alone.finished.n
    assert together.finished.n == plan(0.1, 0.2, 0.9, 1 - 0.05 / 4).finished.n


@given(st.floats(0.05, 0.95), st.sampled_from([0.4, 0.2, 0.05]), st.sampled_from([0.4, 0.1]), st.integers(1, 8))
def test_a_live_gate_goes_as_its_monitor_does_on_every_way(
    threshold: float, alpha_fail: float, alpha_pass: float, cap: int
) -> None:
    test = gate.Test(threshold, alpha_fail, alpha_pass, (1,) * cap)
    limits = boundary(threshold, alpha_fail, alpha_pass, cap)
    ways = [(sum(way), *played(test, way)) for way in product((0, 1), repeat=cap)]
    for rate in (0.0, threshold, 0.3, 1.0):
        weights = [rate**flips * (1 - rate) ** (cap - flips) for flips, _, _ in ways]
        told = {"pass": 0.0, "fail": 0.0, "inconclusive": 0.0}
        for weight, (_, decision, _) in zip(weights, ways, strict=True):
            told[decision] += weight
        found = course(limits, rate)
        assert (found.passed, found.failed, found.inconclusive) == pytest.approx(tuple(told.values()), abs=1e-12)
        assert found.mean == pytest.approx(sum(w * taken for w, (_, _, taken) in zip(weights, ways, strict=True)))
        soon = sum(w for w, (_, _, taken) in zip(weights, ways, strict=True) if taken <= found.median)
        assert soon >= 0.5 - 1e-12


@each("threshold", [0.02, 0.1, 0.3, 0.5, 0.9])
def test_a_set_that_ends_earlier_has_the_limits_of_a_longer_one(threshold: float) -> None:
    long = boundary(threshold, 0.01, ALPHA, 400)
    for rate in (0.0, threshold / 2, threshold, 0.95):
        passes, fails = decided(long, rate)
        for most in (1, 7, 29, 100, 211, 400):
            short = boundary(threshold, 0.01, ALPHA, most)
            for name in ("fail_at", "pass_at", "fail_end", "pass_end"):
                assert np.array_equal(getattr(short, name), getattr(long, name)[: most + 1])
            found = course(short, rate)
            assert (passes[most], fails[most]) == pytest.approx((found.passed, found.failed), abs=1e-12)
            assert found.passed + found.failed + found.inconclusive == pytest.approx(1)


@each(("rate", "power", "checks"), [(0.02, 0.9, 1), (0.05, 0.8, 3), (0.25, 0.9, 1), (0.25, 0.9, 5)])
def test_the_live_cap_is_the_smallest_with_the_power(rate: float, power: float, checks: int) -> None:
    found = plan(0.1, rate, power, 0.95, checks)
    assert found.live is not None
    alphas = (1 - 0.95) / checks, 1 - 0.95
    for cap, enough in ((found.live.cap, True), (found.live.cap - 1, False)):
        there = course(boundary(0.1, *alphas, cap), rate)
        assert ((there.passed if rate < 0.1 else there.failed) >= found.each) is enough
    assert found.live.mean < found.finished.n


def test_the_live_plan_agrees_with_a_simulation_of_the_monitor() -> None:
    found = plan(0.1, 0.25, 0.8, 0.95).live
    assert found is not None
    test, rng = gate.Test(0.1, 1 - 0.95, 1 - 0.95, (1,) * found.cap), np.random.default_rng(7)
    flips = rng.random((400, found.cap)) < 0.25
    played_out = [played(test, tuple(map(int, way))) for way in flips.tolist()]
    failed = np.mean([decision == "fail" for decision, _ in played_out])
    taken = np.array([n for _, n in played_out])
    assert failed == pytest.approx(found.failed, abs=4 * (found.failed * (1 - found.failed) / 400) ** 0.5)
    assert taken.mean() == pytest.approx(found.mean, abs=4 * taken.std() / 20)


def test_a_live_gate_that_is_not_planned_says_why() -> None:
    far = plan(0.5, 0.49, 0.9, 0.95)
    assert far.finished.n > LONGEST
    assert far.live is None
    assert "more than 5,000 eligible comparisons" in far.notes[-1]
    sure = plan(0.1, 0.05, 0.9999, 0.95)
    assert sure.live is None
    assert "decides wrongly on few comparisons more often" in sure.notes[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
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
        ((0.1, 0.10001, 0.9, 0.95), "more than 1,000,000 eligible comparisons would be needed"),
        ((0.1, np.nextafter(0.1, 0), 0.9, 0.95), "more than 1,000,000"),
        ((1e-6, 0.0, 0.9, 0.95), "more than 1,000,000"),
    ],
)
def test_what_cannot_be_planned_is_one_line(arguments: tuple[float, float, float, float], words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        plan(*arguments)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "n"),
    [
        ((0.1, 0.0, 0.9, 0.95), 29),
        ((0.1, 1.0, 0.9, 0.95), 2),
        ((1e-6, 1.0, 0.5, 0.5), 1),
        ((1e-6, 0.0, 0.5, 0.5), 693147),
    ],
)
def test_the_ends_of_the_range(arguments: tuple[float, float, float, float], n: int) -> None:
    assert plan(*arguments).finished.n == n


@given(st.floats(1e-6, 0.999), st.floats(0, 1), st.floats(0.5, 0.999), st.floats(0.5, 0.999), st.integers(1, 20))
def test_any_plan_holds_what_was_asked_for_or_says_no(
    threshold: float, rate: float, power: float, confidence: float, checks: int
) -> None:
    assume(abs(threshold - rate) > 0.03)
    try:
        found = plan(threshold, rate, power, confidence, checks)
    except UsageError:
        pytest.fail("rates this far apart never need a million")
    assert found.finished.power >= found.each >= power
    if found.live is not None:
        right = found.live.passed if found.decision == "pass" else found.live.failed
        assert right >= found.each
        assert 1 <= found.live.median <= found.live.cap
        assert 0 < found.live.mean <= found.live.cap


def test_what_is_printed() -> None:
    lines = list(plan_report(plan(0.1, 0.02, 0.9, 0.95, 2)))
    assert lines[0] == (
        "A judge whose true flip rate is 0.02 shall pass at a threshold of 0.1 with a chance of 90%, at 95% confidence."
    )
    assert "103 eligible comparisons or more. Of 103, at most 5 flips pass: a chance of 98.2%" in lines[1]
    assert lines[2].startswith("A live gate: ")
    assert "no eligible comparisons" in lines[3]
    assert "rises and falls" in lines[4]
    assert "each is planned for 95%" in lines[5]
    failing = " ".join(plan_report(plan(0.1, 1.0, 0.9, 0.95, 2)))
    assert "Of 2, at least 2 flips fail" in failing
    assert "A gate fails with any of its 2 checks" in failing


def test_the_document_is_json() -> None:
    document = json.loads(json.dumps(plan(0.1, 0.05, 0.9, 0.95).document(), allow_nan=False))
    assert document["finished"] == {"n": 263, "limit": 18, "power": 0.9292, "wrong": 0.0}
    assert set(document["live"]) == {"cap", "passed", "failed", "inconclusive", "mean", "median"}
    assert json.loads(json.dumps(plan(0.5, 0.49, 0.9, 0.95).document()))["live"] is None
