"""Test the error rates of gates and the number of comparisons they need against exact sums, and Holm's adjustment."""

import math
import random
import runpy
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import case, near, row, verdict as verdict_of
from command_result import Run
from gate_builders import place_rows
from hypothesis import assume, given, settings, strategies as st
from loops import each
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests
from test_gate_exact import SIDES, as_hits, chance, count_paths, is_enough, log_counted
from test_gate_regression import compare
from test_gate_settings import ALPHA

from distract.core.errors import UsageError
from distract.core.plugin import Comparison
from distract.core.records import MIRROR
from distract.core.registry import protocols
from distract.judging.comparison import leading_sides
from distract.judging.orders import Manner
from distract.stats.intervals import holm, upper_bound
from distract.studies.attack.ranks import check_protocols
from distract.studies.gate import monitor as gate
from distract.studies.gate.exact import clustered_hits_reason, few_prompts_reason, shrink_counts
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.monitor import LONGEST, Bets, Direction, boundary, end_probability, log_mean, outcome_gains
from distract.studies.gate.power import analyse_power, compute_path, decision_chances
from distract.studies.gate.verdict import DiscernmentMonitor
from distract.studies.measures.compact_rows import CompactRows

UNEVEN = (1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 9, 10, 12, 14, 17, 22, 45) * 3


@pytest.mark.parametrize(
    ("sizes", "threshold"),
    [((45,) * 24, 0.05), ((45,) * 16, 0.20), ((4,) * 50, 0.05), ((4,) * 50, 0.20), ((20,) * 30, 0.10), (UNEVEN, 0.05)],
)
def test_dependent_pairs_pass_no_more_often_than_allowed(sizes: tuple[int, ...], threshold: float) -> None:
    """The rate lies at the threshold; prompts either have mixed outcomes or mostly flip as a whole."""
    rng, trials, limits = random.Random(3), 200, Limits.of()
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
            is_held_up = few_prompts_reason(len(sizes), threshold, limits)
            is_held_up = is_held_up or clustered_hits_reason(values, clusters, threshold, limits)
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
        bets.add(hit - threshold)
        if n in (1, 2, 7, 50, 400, 1500, 5000):
            exact = log_counted(threshold, side, k, n)
            assert log_mean(k * ones + (n - k) * zeros) == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
            assert bets.evidence == pytest.approx(exact, rel=1e-10, abs=1e-9), (k, n)
    # These values lie far below the range of floats and must not underflow.
    assert math.isfinite(bets.evidence)


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
                expected = pytest.approx(float(decided + sum(left[k:])), rel=1e-9, abs=1e-15)
                assert end_probability(threshold, limits.fail_at, n, k) == expected


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


def pass_power(n: int, threshold: float, rate: float, alpha: float) -> float:
    """The chance of at most the largest count that scipy's binomial puts below alpha at the threshold."""
    return float(binom.cdf(binom.ppf(alpha, n, threshold) - 1, n, rate))


def fail_power(n: int, threshold: float, rate: float, alpha: float) -> float:
    """The chance of at least the smallest count whose upper tail at the threshold is at most alpha in scipy."""
    return float(binom.sf(binom.isf(alpha, n, threshold), n, rate))


def play(test: gate.Hypothesis, outcomes: tuple[int, ...]) -> tuple[Decision, int]:
    """The decision of the gate's monitor on these outcomes, and the number it used."""
    monitor, taken = gate.Monitor(test), 0
    while monitor.decision is None and taken < len(outcomes):
        flip = outcomes[taken]
        monitor.add(gate.PromptOutcome(1, (float(flip),), (float(flip),), n=1, k=flip))
        taken += 1
    monitor.end()
    assert monitor.decision is not None
    return monitor.decision, taken


@each("rate", 0.0, 0.02, 0.05, 0.07, 0.15, 0.2, 0.35, 0.9)
@each("power", 0.5, 0.8, 0.95)
@each("checks", 1, 6)
def test_power_stays_at_the_target_from_the_planned_number_on(rate: float, power: float, checks: int) -> None:
    power_plan = analyse_power(0.1, rate, power, 0.95, checks)
    n, passes = power_plan.finished.n, rate < 0.1
    by_scipy, alpha = (pass_power, ALPHA) if passes else (fail_power, ALPHA / checks)
    assert power_plan.decision == ("pass" if passes else "fail")
    assert power_plan.finished.power == pytest.approx(by_scipy(n, 0.1, rate, alpha))
    assert all(by_scipy(more, 0.1, rate, alpha) >= power_plan.each for more in range(n, n + 300))
    assert n == 1 or by_scipy(n - 1, 0.1, rate, alpha) < power_plan.each
    other = fail_power if passes else pass_power
    assert power_plan.finished.wrong == pytest.approx(other(n, 0.1, rate, ALPHA), abs=1e-12)
    limit = power_plan.finished.limit
    expected = binom.cdf(limit, n, rate) if passes else binom.sf(limit - 1, n, rate)
    assert power_plan.finished.power == pytest.approx(expected)


def test_all_checks_must_pass_but_one_failure_is_enough() -> None:
    passing, failing = (analyse_power(0.1, rate, 0.9, 0.95, 4) for rate in (0.05, 0.2))
    assert (passing.each, failing.each) == (near(0.975), 0.9)
    assert passing.finished == analyse_power(0.1, 0.05, 0.975, 0.95).finished
    assert failing.finished.n > analyse_power(0.1, 0.2, 0.9, 0.95).finished.n
    assert failing.finished.n == analyse_power(0.1, 0.2, 0.9, 1 - 0.05 / 4).finished.n


@given(st.floats(0.05, 0.95), st.sampled_from([0.4, 0.2, 0.05]), st.sampled_from([0.4, 0.1]), st.integers(1, 8))
def test_live_plan_follows_the_monitor_on_every_path(
    threshold: float, alpha_fail: float, alpha_pass: float, cap: int
) -> None:
    test = gate.Hypothesis(threshold, alpha_fail, alpha_pass, (1,) * cap)
    limits = boundary(threshold, alpha_fail, alpha_pass, cap)
    ways = [(sum(way), *play(test, way)) for way in product((0, 1), repeat=cap)]
    for rate in (0.0, threshold, 0.3, 1.0):
        weights = [rate**flips * (1 - rate) ** (cap - flips) for flips, _, _ in ways]
        chances = {"pass": 0.0, "fail": 0.0, "inconclusive": 0.0}
        for weight, (_, decision, _) in zip(weights, ways, strict=True):
            chances[decision] += weight
        path = compute_path(limits, rate)
        assert (path.passed, path.failed, path.inconclusive) == pytest.approx(tuple(chances.values()), abs=1e-12)
        assert path.mean == pytest.approx(sum(w * taken for w, (_, _, taken) in zip(weights, ways, strict=True)))
        soon = sum(w for w, (_, _, taken) in zip(weights, ways, strict=True) if taken <= path.median)
        assert soon >= 0.5 - 1e-12


def test_unplannable_live_gate_states_the_reason() -> None:
    sure = analyse_power(0.1, 0.05, 0.9999, 0.95)
    assert sure.live is None
    assert "it stops early with the wrong decision too often" in sure.notes[-1]


@given(st.floats(1e-6, 0.999), st.floats(0, 1), st.floats(0.5, 0.999), st.floats(0.5, 0.999), st.integers(1, 20))
def test_any_plan_meets_its_targets_or_is_refused(
    threshold: float, rate: float, power: float, confidence: float, checks: int
) -> None:
    assume(abs(threshold - rate) > 0.03)
    try:
        power_plan = analyse_power(threshold, rate, power, confidence, checks)
    except UsageError as error:
        assert f"more than {LONGEST:,}" in str(error)  # noqa: PT017
        return
    assert power_plan.finished.power >= power_plan.each >= power
    if (live := power_plan.live) is not None:
        assert (live.passed if power_plan.decision == "pass" else live.failed) >= power_plan.each
        assert 1 <= live.median <= live.cap
        assert 0 < live.mean <= live.cap


@each("threshold", 0.02, 0.1, 0.3, 0.5, 0.9)
def test_early_end_keeps_the_limits_of_a_longer_set(threshold: float) -> None:
    long = boundary(threshold, 0.01, ALPHA, 400)
    for rate in (0.0, threshold / 2, threshold, 0.95):
        passes, fails = decision_chances(long, rate)
        for most in (1, 7, 29, 100, 211, 400):
            short = boundary(threshold, 0.01, ALPHA, most)
            path = compute_path(short, rate)
            assert (passes[most], fails[most]) == pytest.approx((path.passed, path.failed), abs=1e-12)
            assert path.passed + path.failed + path.inconclusive == pytest.approx(1)


@settings(max_examples=10)  # statsmodels collects garbage at every call
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_agrees_with_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


@pytest.mark.parametrize(
    ("n", "before", "now", "most"),
    [(42, 0.05, 0.10, 0.05), (42, 0.05, 0.15, 0.02), (42, 0.10, 0.30, 0.02), (100, 0.05, 0.10, 0.07),
     (100, 0.05, 0.15, 0.02)],
)  # fmt: skip
def test_actual_rise_seldom_passes(n: int, before: float, now: float, most: float) -> None:
    """At most 5% of judges pass whose rate rises by the largest accepted amount, with outcomes correlated by half."""
    rng, passed, trials = random.Random(4), 0, 250
    for _ in range(trials):
        pairs = []
        for _ in range(n):
            one, other = rng.random(), rng.random()
            pairs.append((one < before, (one if rng.random() < 0.5 else other) < now))
        old, new = ("".join("01"[pair[at]] for pair in pairs) for at in (0, 1))
        passed += compare(old, new).decision == "pass"
    assert passed / trials <= most


@pytest.mark.parametrize("prompts", [None, 25])
def test_unchanged_judge_fails_no_more_often_than_allowed(prompts: int | None) -> None:
    """All pairs of a prompt share a rate, which is the same in both runs."""
    rng, failed, trials = random.Random(5), 0, 1000
    for _ in range(trials):
        rates = [rng.choice((0.05, 0.3, 0.7)) for _ in range(prompts or 50)]
        old, new = ("".join("01"[rng.random() < rates[i % len(rates)]] for i in range(50)) for _ in range(2))
        failed += compare(old, new, prompts=prompts).decision == "fail"
    assert failed / trials <= 0.05


NATURAL = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "Natural" / "dataset.json"
needs_llmbar = pytest.mark.skipif(not NATURAL.is_file(), reason=f"LLMBar is not in {NATURAL}")
RULES = ("--generator", "rules", "--limit", "all")


@needs_llmbar
@pytest.mark.parametrize(
    ("judge", "threshold", "code"),  # the fair one is a coin for each author, which never flips
    [("fair", "0.1", 3), ("random", "0.99", 3), ("first", "0.99", 3), ("garbage", "0.99", 3), ("longer", "0.1", 1),
     ("bold", "0.1", 1)],
)  # fmt: skip
def test_llmbar_passes_no_planted_judge(run: Run, judge: str, threshold: str, code: int) -> None:
    options, limits = ("--judge", f"planted:{judge}", "--data", str(NATURAL), *RULES), ("--max-flip-rate", threshold)
    live = run("gate", *options, *limits, "--json")
    assert live.code == code, live.err
    assert "yes" not in live.document["usable"].values()
    assert run("attack", *options, "--out", "r").code in (0, 3)
    assert run("gate", "r", *limits).code == code
    assert run("gate", "r", "--certify", *limits).code == 1
    # Even the largest shift is nothing if the judge is a coin.
    assert run("gate", "r", "--max-shift", "1000").code == 3


@pytest.mark.parametrize(
    ("judge", "limits", "code"),
    [("fair", ("--max-flip-rate", "0.1"), 0), ("fair", ("--max-shift", "0.2", "--max-exchange-rate", "0.2"), 0),
     ("longer=0.3", ("--max-flip-rate", "0.5"), 0), ("longer=0.3", ("--max-flip-rate", "0.1"), 1),
     ("longer=0.3", ("--max-shift", "0.05"), 1), ("longer=0.3", ("--max-shift", "0.5"), 0),
     ("longer=0.3", ("--max-exchange-rate", "0.5"), 1), ("longer=0.3", ("--max-exchange-rate", "1.4"), 3),
     ("longer=0.3", ("--max-exchange-rate", "3"), 0), ("random", ("--max-exchange-rate", "1000"), 3)],
)  # fmt: skip
def test_tweakset_is_decided_by_what_a_judge_knows(run: Run, judge: str, limits: tuple[str, ...], code: int) -> None:
    options = ("--judge", f"planted:{judge}", "--attack", "prolixity", *RULES)
    basic = ("--protocol", "pairwise", "--protocol", "absolute", "--measure", "flip", "--measure", "exchange_rate")
    assert run("attack", *options, *basic, "--out", "r").code == 0
    ran = run("gate", "r", *limits, "--json")
    assert ran.code == code, ran.out
    if "--max-flip-rate" in limits:
        assert run("gate", *options, *limits).code == code


def test_coins_are_called_usable_in_at_most_five_percent_of_gates() -> None:
    """However long they are watched; the worst time to stop is the best one for the judge."""
    draw, judgments = random.Random(0), (verdict_of("a"), verdict_of("b"), verdict_of("tie"))
    usable = 0
    for _ in range(300):
        monitor = DiscernmentMonitor("pairwise", None, "labels")
        for at in range(150):
            monitor.add([replace(row(f"c{at}", [draw.choice(judgments)]), label="a")])
        usable += monitor.assess().usable == "yes"
    assert usable / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


PLACERS: dict[str, Any] = {
    "first": lambda better, first: first,
    "second": lambda better, first: MIRROR[first],
    "mostly first": lambda better, first: MIRROR[first] if random.random() < 0.1 else first,
    "perfect": lambda better, first: better,
}
PAIRS = [Comparison(case(f"c{at}"), *case().responses) for at in range(200)]


@pytest.mark.parametrize("prompts", [24, 60, 200])
@pytest.mark.parametrize(("orders", "share"), [("one", 1.0), ("one", 0.5), ("given", 1.0), ("swapped", 0.9)])
@pytest.mark.parametrize("judge", PLACERS)
def test_a_place_is_no_quality(judge: str, orders: Any, share: float, prompts: int) -> None:
    random.seed(1)
    finished, live, seeds = 0, 0, 400 if orders == "one" else 40
    rules: dict[str, tuple[str, ...]] = {"pairwise": ()}
    for manner in (Manner(orders, seed=seed) for seed in range(seeds)):
        firsts = [leading_sides(protocols()["pairwise"], pair, manner)[0] for pair in PAIRS[:prompts]]
        rows = place_rows(["ab"[random.random() >= share] + first for first in firsts], PLACERS[judge])[::2]
        finished += check_protocols(CompactRows(rows, rules), rules)[0].usable == "yes"
        monitor = DiscernmentMonitor("pairwise", None, "labels")
        for row in rows:
            monitor.add([row])
        live += monitor.assess().usable == "yes"
    least, most = (0.95, 1.0) if (judge, orders) == ("perfect", "one") else (0.0, 0.05 * (orders == "one"))
    assert least <= min(finished, live) / seeds <= max(finished, live) / seeds <= most


BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "anchors.py"))
SEEDS = 100

# Number of checks, of 100, that must say so. The stated errors are at most 1%; with flicker, more miss a drift.
LEAST = {
    "the same judge": ("unchanged", 99),
    "10% of verdicts turned": ("drifted", 96),
    "another bias: boosters": ("replaced", 98),
    "another bias: first place": ("replaced", 98),
}


@pytest.mark.parametrize(
    ("noise", "missed"), [("probabilities", 0), ("probabilities, 2% flicker", 5), ("words, 2% flicker", 5)]
)
def test_check_tells_three_kinds_of_judges_apart(noise: str, missed: int) -> None:
    counts = BENCHMARK["count_statuses"](noise, LEAST, SEEDS)
    for change, (status, least) in LEAST.items():
        allowed = missed if change.startswith("10%") else 0
        assert counts[change][status] >= least - allowed, counts
