"""Test when a check stops and what it reports, against a slow rule that examines every possible future."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from builders import near
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from numpy.typing import NDArray

from distract.stats.intervals import holm
from distract.studies.gate.boundary import Ints, boundary, end_probability
from distract.studies.gate.checks import lower_bound, upper_bound
from distract.studies.gate.limits import least_n
from distract.studies.gate.mixture import Floats, log_mean, outcome_gains
from distract.studies.gate.monitor import AT_ONCE, Hypothesis, Monitor, PromptOutcome


def make_outcome(pairs: int, hits: int = 0, misses: int = 0, unread: int = 0, lost: int = 0) -> PromptOutcome:
    """A prompt with these numbers of flips, stable pairs, and verdicts invalid after and before the rewrite."""
    low, high = (1.0,) * hits + (0.0,) * (misses + unread), (1.0,) * (hits + unread) + (0.0,) * misses
    return PromptOutcome(pairs, low, high, hits + misses, hits, unread + lost)


HIT, MISS, EXCLUDED = make_outcome(1, 1), make_outcome(1, 0, 1), make_outcome(1)
UNREAD, LOST = make_outcome(1, unread=1), make_outcome(1, lost=1)
NEITHER = PromptOutcome(1, (0.5,), (0.5,), 1)


def play(test: Hypothesis, prompts: Sequence[PromptOutcome]) -> Monitor:
    monitor = Monitor(test)
    for prompt in prompts:
        monitor.add(prompt)
    return monitor


def play_to_end(test: Hypothesis, prompts: Sequence[PromptOutcome]) -> Monitor:
    monitor = play(test, prompts)
    monitor.end()
    return monitor


def test_outcomes_after_a_decision_are_ignored() -> None:
    monitor = play(Hypothesis(0.5, 0.05, 0.05, (1,) * 12), [HIT] * 8)
    assert monitor.decision == "fail"
    before = (monitor.n, monitor.k, monitor.left, monitor.reason, monitor.p_value, list(monitor.lows))
    for prompt in (MISS, UNREAD, LOST, EXCLUDED, MISS):
        monitor.add(prompt)
    monitor.end()
    assert (monitor.n, monitor.k, monitor.left, monitor.reason, monitor.p_value, monitor.lows) == before


@each("threshold", 1e-6, 0.01, 0.1, 0.5, 0.9)
def test_always_flipping_judge_fails_at_once(threshold: float) -> None:
    monitor = play_to_end(Hypothesis(threshold, 0.05, 0.05, (1,) * 200), [HIT] * 200)
    assert (monitor.decision, monitor.k) == ("fail", monitor.n)
    # The chance of that many hits in a row at the threshold.
    assert threshold**monitor.n <= 0.05


@each("threshold", 0.05, 0.1, 0.5, 0.9)
def test_never_flipping_judge_passes_at_once(threshold: float) -> None:
    monitor = play_to_end(Hypothesis(threshold, 0.05, 0.05, (1,) * 200), [MISS] * 200)
    assert (monitor.decision, monitor.k) == ("pass", 0)
    assert (1 - threshold) ** monitor.n <= 0.05


def test_invalid_verdict_limits_delay_a_pass_and_never_fail() -> None:
    short = Hypothesis(0.1, 0.05, 0.05, (1,) * 120, min_n=100)
    assert play(short, [MISS] * 99).decision is None
    assert play(short, [MISS] * 100).decision == "pass"
    unread = Hypothesis(0.1, 0.05, 0.05, (1,) * 120, max_invalid_rate=0.2)
    assert play(unread, [LOST] * 20 + [MISS] * 79).decision is None
    assert play(unread, [LOST] * 20 + [MISS] * 80).decision == "pass"
    assert play_to_end(unread, [LOST] * 20 + [MISS] * 60).decision == "inconclusive"
    # 25 of 120 already exceed a fifth, whatever follows.
    lost = play_to_end(unread, [LOST] * 25)
    assert (lost.decision, lost.reason, lost.left) == ("inconclusive", "settled", 95) or lost.reason == "end"


@st.composite
def trials(draw: st.DrawFn) -> Hypothesis:
    """A hypothesis whose prompts have one pair each, several, or different numbers."""
    pairs = draw(
        st.integers(1, 120).map(lambda n: (1,) * n)
        | st.lists(st.integers(0, 4), min_size=1, max_size=25).filter(any).map(tuple)
    )
    rises = draw(st.booleans())
    return Hypothesis(
        0.5 if rises else draw(st.sampled_from([0.03, 0.1, 0.3, 0.5, 0.8])),
        draw(st.sampled_from([0.05, 0.0125, 0.3])),
        draw(st.sampled_from([0.05, 0.3])),
        pairs,
        ceiling=draw(st.sampled_from([0.525, 0.7])) if rises else None,
        exact=not rises and draw(st.booleans()),
        min_n=draw(st.sampled_from([1, 1, 10, 40])),
        max_invalid_rate=draw(st.sampled_from([1.0, 0.2, 0.0])),
        min_eligible=draw(st.sampled_from([0.0, 0.2, 0.7])),
    )


@st.composite
def prompts(draw: st.DrawFn, test: Hypothesis) -> list[PromptOutcome]:
    """Outcomes of all prompts, in any order, in runs of similar outcomes."""
    pairs = list(draw(st.permutations(test.pairs))) if len(set(test.pairs)) > 1 else list(test.pairs)
    outcomes: list[PromptOutcome] = []
    while len(outcomes) < len(pairs):
        kinds = draw(st.lists(st.sampled_from("hhmmmule"), min_size=1, max_size=3))
        for number in range(draw(st.integers(1, 30))):
            if len(outcomes) == len(pairs):
                break
            size = pairs[len(outcomes)]
            run_kinds = [kinds[(number + one) % len(kinds)] for one in range(size)]
            outcomes.append(make_outcome(size, *(run_kinds.count(kind) for kind in "hmul")))
    return outcomes


@given(st.data())
def test_only_the_last_prompt_of_a_batch_decides(data: st.DataObject) -> None:
    test = data.draw(trials())
    rest = data.draw(prompts(test))
    monitor = Monitor(test)
    while rest and monitor.decision is None:
        count = monitor.batch_size()
        assert 1 <= count <= min(AT_ONCE, len(rest))
        for prompt in rest[: count - 1]:
            monitor.add(prompt)
            assert monitor.decision is None
        if count <= len(rest):
            monitor.add(rest[count - 1])
        rest = rest[count:]


TOLERANCE = 1e-3


@given(st.data())
def test_statements_beside_a_decision_agree_with_it(data: st.DataObject) -> None:
    test = data.draw(trials())
    some = data.draw(prompts(test))
    assert_agrees(test, play_to_end(test, some[: data.draw(st.integers(0, len(some)))]))


def assert_agrees(test: Hypothesis, monitor: Monitor) -> None:
    """The p-value is small only for failures; each bound is on the side of the threshold that fits the decision."""
    p = monitor.p_value
    if not monitor.prompt_count:
        assert p is None
        return
    assert p is not None
    assert 0 < p <= 1
    assert (p <= test.alpha_fail) is (monitor.decision == "fail")
    level = max(test.alpha_fail, test.alpha_pass)
    low, high = lower_bound(monitor, level), upper_bound(monitor, level)
    assert 0 <= low <= monitor.low / monitor.prompt_count + 1e-9
    assert monitor.high / monitor.prompt_count - 1e-9 <= high <= 1
    if level > 0.05:
        return
    if monitor.decision == "fail":
        assert low > test.threshold - TOLERANCE
    if monitor.decision == "pass":
        assert high < (test.ceiling or test.threshold) + TOLERANCE


@each("hits, decision", (0, "pass"), (2, "pass"), (8, "inconclusive"), (30, "fail"))
def test_delayed_pass_is_reconsidered(hits: int, decision: str) -> None:
    """The rate is shown to be below the threshold; flips observed before ``min_n`` is reached still count."""
    test = Hypothesis(0.1, 0.05, 0.05, (1,) * 110, min_n=100)
    monitor = play_to_end(test, [MISS] * 60 + [HIT] * hits + [MISS] * (50 - hits))
    assert monitor.decision == decision
    assert_agrees(test, monitor)


@each("exact", True, False)
def test_prompts_without_pairs_decide_nothing(exact: bool) -> None:
    """Data with one response per prompt have such prompts."""
    monitor = Monitor(Hypothesis(0.1, 0.05, 0.05, (0, 0, 0), exact=exact))
    assert monitor.batch_size() >= 1
    for _ in range(3):
        monitor.add(PromptOutcome(0))
    monitor.end()
    assert (monitor.decision, monitor.p_value) == ("inconclusive", None)


@given(st.lists(st.sampled_from([HIT, MISS, MISS, NEITHER, NEITHER]), min_size=1, max_size=60))
def test_single_batch_is_decided_at_its_end_in_any_order(some: list[PromptOutcome]) -> None:
    test = Hypothesis(0.55, 0.2, 0.2, (1,) * len(some), exact=False, whole=True)
    forth, back = play_to_end(test, some), play_to_end(test, some[::-1])
    assert (forth.decision, forth.reason, forth.p_value) == (back.decision, "end", near(back.p_value))
    assert forth.n == len(some)
    assert_agrees(test, forth)


def is_at_most(level: float, wrong: int, of: int) -> bool:
    """Whether a share exceeds a level by no more than chance."""
    return wrong <= level * of + 3 * math.sqrt(level * (1 - level) * of)


T, MOST, CHECKS, ALPHA = 0.1, 120, 5, 0.05


class Together(NamedTuple):
    """Many gates of several checks at once.

    Attributes:
        decisions: 0 for open, 1 for a failure, 2 for a pass, 3 for inconclusive; (gates, checks).
        n: comparisons of each check.
        k: flips of each check.
        p: p-value of each check.
        adjusted: p-values adjusted by Holm.
    """

    decisions: Ints
    n: Ints
    k: Ints
    p: Floats
    adjusted: Floats


def table() -> Ints:
    """The decision after n eligible comparisons with k flips, whatever came before; 0 means continue."""
    limits = boundary(T, ALPHA / CHECKS, ALPHA, MOST)
    result = np.zeros((MOST + 1, MOST + 1), np.int64)
    for n in range(1, MOST + 1):
        k, more = np.arange(n + 1)[:, None], np.arange(MOST - n + 1)
        fails = np.any(k + more >= limits.fail_end[n:], axis=1)
        passes = np.all(k + more <= limits.pass_end[n:], axis=1)
        here = result[n, : n + 1]
        here[~fails & (k[:, 0] > limits.pass_end[MOST])] = 3
        here[~fails & passes] = 2
        here[(k[:, 0] >= limits.fail_end[MOST])] = 1
        here[k[:, 0] <= limits.pass_at[n]] = 2
        here[k[:, 0] >= limits.fail_at[n]] = 1
    return result


def simulate(flips: NDArray[np.bool_]) -> Together:
    """Gates that end with their first failure, computed from flips of shape (most, gates, checks)."""
    limits, says = boundary(T, ALPHA / CHECKS, ALPHA, MOST), table()
    ones, zeros = outcome_gains(T, "above")
    k = np.zeros(flips.shape[1:], np.int64)
    decisions, stop, peak = np.zeros_like(k), np.zeros_like(k), np.zeros(k.shape)
    logs = np.array(
        [[log_mean(i * ones + (n - i) * zeros) if i <= n else 0 for i in range(MOST + 1)] for n in range(MOST + 1)]
    )
    for n in range(1, MOST + 1):
        going = (decisions == 0) & ~np.any(decisions == 1, axis=1)[:, None]
        k += going & flips[n - 1]
        stop[going] = n
        peak = np.where(going, np.maximum(peak, logs[n, k]), peak)
        decisions = np.where(going, says[n, k], decisions)
    p = np.exp(-peak)
    ends = np.array([end_probability(T, limits.fail_at, MOST, i) for i in range(MOST + 1)])
    by_end = (decisions > 0) & (k < limits.fail_at[stop]) & (k > limits.pass_at[stop])
    p = np.where(by_end, ends[k], np.where(decisions == 1, np.minimum(p, ALPHA / CHECKS), p))
    return Together(decisions, stop, k, p, np.array([holm(one) for one in p.tolist()]))


def draw_correlated_flips(gates: int) -> NDArray[np.bool_]:
    """One check at .15 and four at the threshold that flip only together with it, shape (most, gates, checks)."""
    rng = np.random.default_rng(5)
    first = rng.random((MOST, gates, 1)) < 0.15
    return np.concatenate([first, first & (rng.random((MOST, gates, CHECKS - 1)) < T / 0.15)], axis=2)


def test_check_left_open_by_a_failure_keeps_its_error_rate() -> None:
    gates = 4000
    simulation = simulate(draw_correlated_flips(gates))
    failed = (simulation.decisions == 1) | ((simulation.decisions == 0) & (simulation.adjusted <= ALPHA))
    assert failed[:, 0].mean() > 0.1
    assert is_at_most(ALPHA, int(failed[:, 1:].any(axis=1).sum()), gates)
    assert is_at_most(ALPHA, int((simulation.decisions[:, 1:] == 2).any(axis=0).max()), gates)


@each(
    "threshold, sizes, flips_in, decision",
    (0.20, (45,) * 24, 50, "pass"),  # .02 of their pairs flip
    (0.10, (2, 3, 5, 8, 13, 60) * 10, 50, "pass"),
    (0.10, (2, 3, 5, 8, 13, 60) * 10, 3, "fail"),
    (0.10, (45,) * 24, 10**9, "inconclusive"),  # a few prompts may all be equal by chance
)
def test_prompts_of_uneven_size_are_decided(
    threshold: float, sizes: tuple[int, ...], flips_in: int, decision: str
) -> None:
    """Pairs flip at regular intervals in a random order of prompts; the value of a prompt is the mean of its pairs."""
    monitor = Monitor(Hypothesis(threshold, 0.05, 0.05, sizes))
    pairs = 0
    for size in np.random.default_rng(1).permutation(sizes).tolist():
        hits = (pairs + size) // flips_in - pairs // flips_in
        monitor.add(make_outcome(size, hits, size - hits))
        pairs += size
    monitor.end()
    assert monitor.decision == decision
    assert monitor.value is not None


@each("pairs", 1, 2, 45)
@each("threshold", 0.05, 0.1, 0.2, 0.5)
def test_no_flip_rate_passes_on_fewer_prompts_than_a_count(threshold: float, pairs: int) -> None:
    least = least_n(threshold, 0.95)

    def play_misses(prompts: int) -> Monitor:
        test = Hypothesis(threshold, 0.05, 0.05, (pairs,) * prompts)
        return play_to_end(test, [make_outcome(pairs, 0, pairs)] * prompts)

    assert play_misses(least - 1).decision == "inconclusive"
    many = play_misses(10 * least)
    assert many.decision == "pass"
    assert many.prompt_count >= least


@each("pairs", 1, 4)
def test_unread_verdicts_count_against_either_decision(pairs: int) -> None:
    """They count as flips against a pass, and as none against a failure; pairs unread at baseline are ineligible."""
    test = Hypothesis(0.1, 0.05, 0.05, (pairs,) * 40)
    clean = [make_outcome(pairs, 0, pairs)]
    assert play_to_end(test, clean * 40).decision == "pass"
    assert play_to_end(test, clean * 36 + [make_outcome(pairs, lost=pairs)] * 4).decision == "pass"
    assert play_to_end(test, [make_outcome(pairs, unread=pairs)] * 10 + clean * 30).decision == "inconclusive"
    bad = [make_outcome(pairs, pairs)]
    assert play_to_end(test, bad * 40).decision == "fail"
    assert play_to_end(test, bad * 2 + [make_outcome(pairs, unread=pairs)] * 38).decision == "inconclusive"


def test_few_eligible_pairs_delay_a_pass_and_never_a_failure() -> None:
    test = Hypothesis(0.1, 0.05, 0.05, (1,) * 400, min_eligible=0.2)
    assert play_to_end(test, [EXCLUDED] * 340 + [MISS] * 60).decision == "inconclusive"
    assert play_to_end(test, [EXCLUDED] * 300 + [MISS] * 100).decision == "pass"
    assert play_to_end(test, [EXCLUDED] * 390 + [HIT] * 10).decision == "fail"
    assert play_to_end(test, [EXCLUDED] * 399).reason == "settled"


@each(
    "here, there, of, decision",
    (0, 0, 120, "pass"),
    (4, 4, 200, "pass"),
    (0, 0, 42, "inconclusive"),
    (4, 0, 42, "inconclusive"),
    (40, 0, 400, "fail"),
)
def test_rise_has_a_threshold_for_either_side(here: int, there: int, of: int, decision: str) -> None:
    """A rise fails above 0 and passes below .05; between them the check continues."""
    up, down = PromptOutcome(1, (1.0,), (1.0,), 1, 1, 0, 1, 0), PromptOutcome(1, (0.0,), (0.0,), 1, 0, 0, 0, 1)
    kinds = [up] * here + [down] * there + [NEITHER] * (of - here - there)
    some = [kinds[at] for at in np.random.default_rng(3).permutation(of)]
    test = Hypothesis(0.5, 0.05, 0.05, (1,) * of, ceiling=0.525, exact=False)
    assert play_to_end(test, some).decision == decision
