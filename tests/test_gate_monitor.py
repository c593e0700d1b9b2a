"""When a check stops and what it says, against a slow rule that looks at everything that may still come."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from distract.gate import bounds
from distract.gate.boundary import Ints, boundary, p_end
from distract.gate.checks import check
from distract.gate.limits import Limits
from distract.gate.mixture import Floats, Side, counted, mean, rates
from distract.gate.monitor import AT_ONCE, Monitor, Prompt
from distract.gate.monitor import Test as Tried
from distract.gate.records import Decision
from distract.statistics import holm

HIT, MISS, INVALID, EXCLUDED = (
    Prompt(1, (1.0,), 1, 1),
    Prompt(1, (0.0,), 1, 0),
    Prompt(1, invalid=1),
    Prompt(1),
)
SAME = Prompt(1, (), 1)
"""Neither run flips, or both: a pair that counts and says nothing of a rise."""
NEITHER = Prompt(1, (0.5,), 1)


def played(test: Tried, prompts: Sequence[Prompt]) -> Monitor:
    monitor = Monitor(test)
    for prompt in prompts:
        monitor.add(prompt)
    return monitor


def ended(test: Tried, prompts: Sequence[Prompt]) -> Monitor:
    monitor = played(test, prompts)
    monitor.end()
    return monitor


class State(NamedTuple):
    """All that what may still come depends on."""

    values: tuple[tuple[int, float], ...] = ()  # how many prompts had so many values of this sum
    n: int = 0
    invalid: int = 0
    shown: bool = False
    rest: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Oracle:
    """Decides by going through everything that may come, without any shortcut.

    Attributes:
        test: what is tested.
        outcomes: of a prompt, by its pairs.
    """

    test: Tried
    outcomes: dict[int, tuple[Prompt, ...]]
    known: dict[State, frozenset[Decision]] = field(default_factory=dict)

    def start(self) -> State:
        return State(rest=tuple(sorted(self.test.pairs)))

    def after(self, state: State, prompt: Prompt) -> tuple[State, Decision | None]:
        """The state that a prompt leads to, and the decision by evidence, where there is enough."""
        rest = list(state.rest)
        rest.remove(prompt.pairs)
        values = list(state.values)
        if prompt.values:
            values = sorted([*values, (len(prompt.values), math.fsum(prompt.values))])
        now = State(tuple(values), state.n + prompt.n, state.invalid + prompt.invalid, rest=tuple(rest))
        above, below = self.shows(now)
        now = now._replace(shown=not self.test.innocent and below)
        if above:
            return now, "fail"
        return now, "pass" if now.shown and self.allowed(now) else None

    def allowed(self, state: State) -> bool:
        n, invalid = state.n, state.invalid
        return n > 0 and n >= self.test.min_n and invalid / (n + invalid) <= self.test.max_invalid_rate

    def shows(self, state: State) -> tuple[bool, bool]:
        """Whether a rate above, or below, is shown before the end."""
        if (limits := self.test.boundary) is not None:
            tested, hits = len(state.values), sum(hit for _, hit in state.values)
            return hits >= limits.fail_at[tested], hits <= limits.pass_at[tested]
        return (
            gained(self.test, "above", state.values) >= 1 / self.test.alpha_fail,
            gained(self.test, "below", state.values) >= 1 / self.test.alpha_pass,
        )

    def end(self, state: State) -> Decision:
        below = state.shown
        if (limits := self.test.boundary) is not None:
            tested, hits = len(state.values), sum(hit for _, hit in state.values)
            if hits >= limits.fail_end[tested]:
                return "fail"
            below = below or bool(hits <= limits.pass_end[tested])
            if self.test.innocent:  # where a failure would have been seen, and nothing was cut off
                below = not sum(state.rest) and bool(limits.fail_end[state.n] <= state.n)
        return "pass" if below and self.allowed(state) else "inconclusive"

    def futures(self, state: State) -> frozenset[Decision]:
        """All that may be said in the end."""
        if state not in self.known:
            found: set[Decision] = set() if state.rest else {self.end(state)}
            for pairs in sorted(set(state.rest)):
                for prompt in self.outcomes[pairs]:
                    then, decision = self.after(state, prompt)
                    found |= {decision} if decision else self.futures(then)
            self.known[state] = frozenset(found)
        return self.known[state]


@cache
def gained(test: Tried, side: Side, values: tuple[tuple[int, float], ...]) -> float:
    """The mean stake, multiplied out."""
    t = test.threshold
    z = [(hits - count * t) / test.width for count, hits in values]
    return math.fsum(math.prod(1 + (p - t) / (t * (1 - t)) * one for one in z) for p in rates(t, side).tolist()) / 200


def several(pairs: int) -> tuple[Prompt, ...]:
    """Everything that may come of a prompt."""
    return tuple(
        Prompt(pairs, (1.0,) * hits + (0.0,) * misses, hits + misses, hits, invalid)
        for hits, misses, invalid in product(range(pairs + 1), repeat=3)
        if hits + misses + invalid <= pairs
    )


def walk(oracle: Oracle) -> Counter[tuple[str, str]]:
    """Go through every state and compare; returns how often each decision came for each reason."""
    seen, found = {oracle.start()}, Counter[tuple[str, str]]()
    todo: list[tuple[State, list[Prompt]]] = [(oracle.start(), [])]
    while todo:
        state, before = todo.pop()
        for pairs in sorted(set(state.rest)):
            for prompt in oracle.outcomes[pairs]:
                then, decision = oracle.after(state, prompt)
                if then in seen:
                    continue
                seen.add(then)
                prompts = [*before, prompt]
                monitor = played(oracle.test, prompts)
                said = (monitor.decision, monitor.reason)
                if decision:
                    assert said == (decision, "evidence"), prompts
                elif sum(then.rest) and len(oracle.futures(then)) == 1:
                    # Not earlier and not later than nothing can change it.
                    assert monitor.reason == "settled", prompts
                    assert {monitor.decision} == oracle.futures(then), prompts
                else:
                    assert monitor.decision is None, prompts
                    todo.append((then, prompts))
                    # The budget may end it anywhere.
                    monitor = ended(oracle.test, prompts)
                    said = (monitor.decision, monitor.reason)
                    assert said == (oracle.end(then), "end"), prompts
                found[str(monitor.decision), monitor.reason] += 1
    return found


EXACT = [
    Tried(0.1, 0.05, 0.4, (1,) * 9),
    Tried(0.3, 0.1, 0.1, (1,) * 10),
    Tried(0.5, 0.05, 0.05, (1,) * 10),
    Tried(0.5, 0.05, 0.05, (1,) * 9, min_n=8),
    Tried(0.5, 0.05, 0.2, (1,) * 9, min_n=4, max_invalid_rate=0.2),
    Tried(0.6, 0.025, 0.1, (1,) * 9, max_invalid_rate=0.0),
    Tried(0.9, 0.45, 0.05, (1,) * 8, min_n=3),
    Tried(0.5, 0.2, 0.2, (1,) * 3 + (0,)),
]


@pytest.mark.parametrize("test", EXACT, ids=range(len(EXACT)))
def test_single_outcomes_stop_just_when_nothing_can_change_the_decision(test: Tried) -> None:
    oracle = Oracle(test, {1: (HIT, MISS, INVALID, EXCLUDED), 0: (Prompt(0),)})
    found = walk(oracle)
    assert {decision for decision, _ in found} >= {"fail", "pass", "inconclusive"}


@pytest.mark.parametrize("rate", [1.0, 0.25])
@pytest.mark.parametrize("min_n", [1, 5, 9])
def test_a_rise_passes_unless_it_is_shown(min_n: int, rate: float) -> None:
    test = Tried(0.5, 0.05, 0.05, (1,) * 8, min_n=min_n, max_invalid_rate=rate, innocent=True)
    found = walk(Oracle(test, {1: (HIT, MISS, SAME, INVALID, EXCLUDED)}))
    assert ("pass", "evidence") not in found
    assert (("pass", "settled") in found) is (min_n < 9)
    assert found["fail", "evidence"]


CLUSTERED = [
    (Tried(0.3, 0.3, 0.4, (2,) * 4), None),
    (Tried(0.45, 0.4, 0.4, (1, 1, 2, 3)), None),
    (Tried(0.5, 0.3, 0.3, (1, 2, 2, 2), min_n=3, max_invalid_rate=0.3), None),
    (Tried(0.5, 0.2, 0.2, (1,) * 6, exact=False), (HIT, MISS, NEITHER, INVALID, EXCLUDED)),
    (Tried(0.55, 0.1, 0.2, (1,) * 6, exact=False, min_n=4), (HIT, MISS, NEITHER, INVALID, EXCLUDED)),
]  # fmt: skip


@pytest.mark.parametrize(("test", "outcomes"), CLUSTERED, ids=range(len(CLUSTERED)))
def test_prompts_of_several_values_too(test: Tried, outcomes: tuple[Prompt, ...] | None) -> None:
    by = {pairs: several(pairs) if outcomes is None else outcomes for pairs in set(test.pairs)}
    found = walk(Oracle(test, by))
    assert {decision for decision, _ in found} == {"fail", "pass", "inconclusive"}
    assert found["inconclusive", "settled"]


def test_what_comes_after_a_decision_is_not_looked_at() -> None:
    test = Tried(0.5, 0.05, 0.05, (1,) * 12)
    monitor = played(test, [HIT] * 8)
    assert monitor.decision == "fail"
    before = (monitor.n, monitor.k, monitor.left, monitor.reason, monitor.p_value, list(monitor.values))
    for prompt in (MISS, INVALID, EXCLUDED, MISS):
        monitor.add(prompt)
    monitor.end()
    assert (monitor.n, monitor.k, monitor.left, monitor.reason, monitor.p_value, monitor.values) == before


@pytest.mark.parametrize("threshold", [1e-6, 0.01, 0.1, 0.5, 0.9])
def test_judges_that_always_flip_fail_at_once(threshold: float) -> None:
    monitor = ended(Tried(threshold, 0.05, 0.05, (1,) * 200), [HIT] * 200)
    assert (monitor.decision, monitor.k) == ("fail", monitor.n)
    # The chance of so many hits at the threshold, or before it one less.
    assert threshold**monitor.n <= 0.05


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.5, 0.9])
def test_judges_that_never_flip_pass_at_once(threshold: float) -> None:
    monitor = ended(Tried(threshold, 0.05, 0.05, (1,) * 200), [MISS] * 200)
    assert (monitor.decision, monitor.k) == ("pass", 0)
    assert (1 - threshold) ** monitor.n <= 0.05


def test_too_few_or_too_many_invalid_verdicts_hold_up_a_pass_and_never_fail() -> None:
    short = Tried(0.1, 0.05, 0.05, (1,) * 120, min_n=100)
    assert played(short, [MISS] * 99).decision is None
    assert played(short, [MISS] * 100).decision == "pass"
    unread = Tried(0.1, 0.05, 0.05, (1,) * 120, max_invalid_rate=0.2)
    assert played(unread, [INVALID] * 20 + [MISS] * 79).decision is None
    assert played(unread, [INVALID] * 20 + [MISS] * 80).decision == "pass"
    assert ended(unread, [INVALID] * 20 + [MISS] * 60).decision == "inconclusive"
    # 25 of 120 are more than a fifth already, whatever comes.
    lost = ended(unread, [INVALID] * 25)
    assert (lost.decision, lost.reason, lost.left) == ("inconclusive", "settled", 95) or lost.reason == "end"


@st.composite
def trials(draw: st.DrawFn) -> Tried:
    """A test whose prompts have one pair each, or several, or unequally many."""
    pairs = draw(
        st.integers(1, 120).map(lambda n: (1,) * n)
        | st.lists(st.integers(0, 4), min_size=1, max_size=25).filter(any).map(tuple)
    )
    innocent = draw(st.booleans())
    return Tried(
        0.5 if innocent else draw(st.sampled_from([0.03, 0.1, 0.3, 0.5, 0.8])),
        draw(st.sampled_from([0.05, 0.0125, 0.3])),
        draw(st.sampled_from([0.05, 0.3])),
        pairs,
        exact=draw(st.booleans()),
        min_n=draw(st.sampled_from([1, 1, 10, 40])),
        max_invalid_rate=draw(st.sampled_from([1.0, 0.2, 0.0])),
        innocent=innocent,
    )


@st.composite
def prompts(draw: st.DrawFn, test: Tried) -> list[Prompt]:
    """What came of all its prompts, in any order, in runs of much the same."""
    pairs = list(draw(st.permutations(test.pairs))) if len(set(test.pairs)) > 1 else list(test.pairs)
    found: list[Prompt] = []
    while len(found) < len(pairs):
        kinds = draw(st.lists(st.sampled_from("hhmmmie"), min_size=1, max_size=3))
        for number in range(draw(st.integers(1, 30))):
            if len(found) == len(pairs):
                break
            size = pairs[len(found)]
            mine = [kinds[(number + one) % len(kinds)] for one in range(size)]
            hits, misses, invalid = (mine.count(kind) for kind in "hmi")
            values = (1.0,) * hits + (0.0,) * misses
            found.append(Prompt(size, values, hits + misses, hits, invalid))
    return found


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_prompt_of_several_at_once_decides_but_the_last(data: st.DataObject) -> None:
    test = data.draw(trials())
    rest = data.draw(prompts(test))
    monitor = Monitor(test)
    while rest and monitor.decision is None:
        count = monitor.soonest()
        assert 1 <= count <= min(AT_ONCE, len(rest))
        for prompt in rest[: count - 1]:
            monitor.add(prompt)
            assert monitor.decision is None
        if count <= len(rest):
            monitor.add(rest[count - 1])
        rest = rest[count:]


@pytest.mark.parametrize("test", EXACT[1:7], ids=range(6))
def test_nor_does_any_at_all_in_small_sets(test: Tried) -> None:
    kinds = (HIT, MISS, INVALID, EXCLUDED)
    for start in product(kinds, repeat=3):
        monitor = played(test, start)
        if monitor.decision is None and (count := monitor.soonest()) > 1:
            for more in product(kinds, repeat=min(count - 1, 4)):
                assert played(test, [*start, *more]).decision is None


TOLERANCE = 1e-3


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_said_beside_a_decision_agrees_with_it(data: st.DataObject) -> None:
    test = data.draw(trials())
    some = data.draw(prompts(test))
    agrees(test, ended(test, some[: data.draw(st.integers(0, len(some)))]))


def agrees(test: Tried, monitor: Monitor) -> None:
    """The p-value is small just where it fails; each bound is on the side of the threshold that the decision says."""
    p = monitor.p_value
    if not monitor.tested:
        assert p is None
        return
    assert p is not None
    assert 0 < p <= 1
    assert (p <= test.alpha_fail) is (monitor.decision == "fail")
    level = max(test.alpha_fail, test.alpha_pass) if not test.innocent else 0.05
    low, high = bounds.lower(monitor, level), bounds.upper(monitor, level)
    assert 0 <= low <= monitor.hits / monitor.tested <= high <= 1
    if test.innocent or level > 0.05:
        return
    if monitor.decision == "fail":
        assert low > test.threshold - TOLERANCE
    if monitor.decision == "pass":
        assert high < test.threshold + TOLERANCE


@pytest.mark.parametrize("checks", [1, 4, 20])
@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("most", [40, 150])
def test_bounds_agree_at_every_end(threshold: float, checks: int, most: int) -> None:
    test = Tried(threshold, 0.05 / checks, 0.05, (1,) * most)
    limits = boundary(threshold, 0.05 / checks, 0.05, most)
    for hits in (int(limits.fail_end[most]), int(limits.fail_end[most]) + 1, int(limits.pass_end[most])):
        if 0 <= hits <= most:
            late = [MISS] * (most - hits) + [HIT] * hits
            even = [HIT if (at + 1) * hits // most > at * hits // most else MISS for at in range(most)]
            for some in (even, late):
                agrees(test, ended(test, some))


@pytest.mark.parametrize(("hits", "decision"), [(0, "pass"), (2, "pass"), (8, "inconclusive"), (30, "fail")])
def test_a_pass_that_has_to_wait_is_looked_at_again(hits: int, decision: str) -> None:
    """A rate was shown to be below the threshold; flips that come while it waits for ``min_n`` count all the same."""
    test = Tried(0.1, 0.05, 0.05, (1,) * 110, min_n=100)
    monitor = ended(test, [MISS] * 60 + [HIT] * hits + [MISS] * (50 - hits))
    assert monitor.decision == decision
    agrees(test, monitor)


@pytest.mark.parametrize("exact", [True, False])
def test_prompts_without_any_pair_decide_nothing(exact: bool) -> None:
    """As data with one response to each prompt have them."""
    monitor = Monitor(Tried(0.1, 0.05, 0.05, (0, 0, 0), exact=exact))
    assert monitor.soonest() >= 1
    for _ in range(3):
        monitor.add(Prompt(0))
    monitor.end()
    assert (monitor.decision, monitor.p_value) == ("inconclusive", None)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([HIT, MISS, MISS, NEITHER, NEITHER]), min_size=1, max_size=60))
def test_what_is_looked_at_once_is_decided_by_its_end_alone(some: list[Prompt]) -> None:
    test = Tried(0.55, 0.2, 0.2, (1,) * len(some), exact=False, whole=True)
    forth, back = ended(test, some), ended(test, some[::-1])
    assert (forth.decision, forth.reason) == (back.decision, "end")
    assert forth.p_value == pytest.approx(back.p_value)
    assert forth.n == len(some)
    agrees(test, forth)


def at_most(level: float, wrong: int, of: int) -> bool:
    """Whether a share is no more than chance above a level."""
    return wrong <= level * of + 3 * math.sqrt(level * (1 - level) * of)


@pytest.mark.parametrize("equal", [1.0, 0.6])
def test_rows_of_a_prompt_that_depend_on_each_other_make_no_decision_wrong_more_often(equal: float) -> None:
    """Four rows a prompt at the threshold itself; a prompt's rows are all the same, or its rate is 0 or much more."""
    rng, gates, found = np.random.default_rng(20), 250, Counter[str]()
    test = Tried(0.2, 0.05, 0.05, (4,) * 40)
    for _ in range(gates):
        monitor = Monitor(test)
        while monitor.decision is None and monitor.left:
            rate = 0.2 if equal == 1 else float(rng.random() < 0.25) * 0.8
            same = rng.random() < equal
            flips = np.repeat(rng.random() < rate, 4) if same else rng.random(4) < rate
            monitor.add(Prompt(4, tuple(map(float, flips)), 4, int(flips.sum())))
        monitor.end()
        found[str(monitor.decision)] += 1
    assert at_most(0.05, found["fail"], gates), found
    assert at_most(0.05, found["pass"], gates), found
    assert found["inconclusive"]


T, MOST, CHECKS, ALPHA = 0.1, 120, 5, 0.05


class Together(NamedTuple):
    """Many gates of several checks at once.

    Attributes:
        said: 0 for a check that was left open, 1 for a failure, 2 for a pass, 3 for inconclusive; (gates, checks).
        n: comparisons of each.
        k: flips of each.
        p: of each.
        adjusted: by Holm.
    """

    said: Ints
    n: Ints
    k: Ints
    p: Floats
    adjusted: Floats


def table() -> Ints:
    """What a check says after n comparisons with k flips, all eligible, whatever came before; 0 to go on."""
    limits = boundary(T, ALPHA / CHECKS, ALPHA, MOST)
    found = np.zeros((MOST + 1, MOST + 1), np.int64)
    for n in range(1, MOST + 1):
        k, more = np.arange(n + 1)[:, None], np.arange(MOST - n + 1)
        fails = np.any(k + more >= limits.fail_end[n:], axis=1)
        passes = np.all(k + more <= limits.pass_end[n:], axis=1)
        here = found[n, : n + 1]
        here[~fails & (k[:, 0] > limits.pass_end[MOST])] = 3
        here[~fails & passes] = 2
        here[(k[:, 0] >= limits.fail_end[MOST])] = 1
        here[k[:, 0] <= limits.pass_at[n]] = 2
        here[k[:, 0] >= limits.fail_at[n]] = 1
    return found


def simulated(flips: NDArray[np.bool_]) -> Together:
    """Gates that end with their first failure, from flips of shape (most, gates, checks)."""
    limits, says = boundary(T, ALPHA / CHECKS, ALPHA, MOST), table()
    ones, zeros = counted(T, "above")
    k = np.zeros(flips.shape[1:], np.int64)
    said, stop, peak = np.zeros_like(k), np.zeros_like(k), np.zeros(k.shape)
    logs = np.array(
        [[mean(i * ones + (n - i) * zeros) if i <= n else 0 for i in range(MOST + 1)] for n in range(MOST + 1)]
    )
    for n in range(1, MOST + 1):
        going = (said == 0) & ~np.any(said == 1, axis=1)[:, None]
        k += going & flips[n - 1]
        stop[going] = n
        peak = np.where(going, np.maximum(peak, logs[n, k]), peak)
        said = np.where(going, says[n, k], said)
    p = np.exp(-peak)
    ends = np.array([p_end(T, limits.fail_at, MOST, i) for i in range(MOST + 1)])
    by_end = (said > 0) & (k < limits.fail_at[stop]) & (k > limits.pass_at[stop])
    p = np.where(by_end, ends[k], np.where(said == 1, np.minimum(p, ALPHA / CHECKS), p))
    return Together(said, stop, k, p, np.array([holm(one) for one in p.tolist()]))


def correlated(gates: int) -> NDArray[np.bool_]:
    """One check at .15 and four at the threshold that flip only where it does, shape (most, gates, checks)."""
    rng = np.random.default_rng(5)
    first = rng.random((MOST, gates, 1)) < 0.15
    return np.concatenate([first, first & (rng.random((MOST, gates, CHECKS - 1)) < T / 0.15)], axis=2)


def test_a_check_left_open_by_a_failure_is_not_failed_too_often() -> None:
    gates = 4000
    found = simulated(correlated(gates))
    failed = (found.said == 1) | ((found.said == 0) & (found.adjusted <= ALPHA))
    assert failed[:, 0].mean() > 0.1
    assert at_most(ALPHA, int(failed[:, 1:].any(axis=1).sum()), gates)
    assert at_most(ALPHA, int((found.said[:, 1:] == 2).any(axis=0).max()), gates)


def test_the_simulated_gates_are_the_real_ones() -> None:
    flips = correlated(25)
    found, limits = simulated(flips), Limits(T)
    for gate in range(flips.shape[1]):
        monitors = [Monitor(Tried(T, ALPHA / CHECKS, ALPHA, (1,) * MOST)) for _ in range(CHECKS)]
        for step in flips[:, gate]:
            if not any(monitor.decision == "fail" for monitor in monitors):
                for monitor, flip in zip(monitors, step, strict=True):
                    monitor.add(HIT if flip else MISS)
        for monitor in monitors:
            if not monitor.left:
                monitor.end()
        p = [monitor.p_value or 1.0 for monitor in monitors]
        assert p == pytest.approx(found.p[gate].tolist())
        assert [monitor.n for monitor in monitors] == found.n[gate].tolist()
        for at, (monitor, adjusted) in enumerate(zip(monitors, holm(p), strict=True)):
            if gate % 5 == 0:
                said = check("p", None, "a", monitor, "flip_rate", adjusted, limits, CHECKS)
                also = found.said[gate, at] == 0 and found.adjusted[gate, at] <= ALPHA
                word = ("inconclusive", "fail", "pass", "inconclusive")[1 if also else found.said[gate, at]]
                assert said.decision == word
                assert said.skipped is bool(found.said[gate, at] == 0 and not also)


def standing(test: Tried, n: int, k: int) -> Monitor:
    """One that has come to k flips in n comparisons without a decision, on whichever way."""
    monitor = Monitor(test)
    monitor.n, monitor.k, monitor.tested, monitor.hits, monitor.left = n, k, n, float(k), sum(test.pairs) - n
    monitor.values.extend([(1.0,)] * k + [(0.0,)] * (n - k))
    return monitor


@pytest.mark.parametrize(("threshold", "checks"), [(0.1, 1), (0.3, 4), (0.5, 1)])
def test_bounds_miss_the_rate_no_more_often_than_they_say(threshold: float, checks: int) -> None:
    """Exact, at the threshold and elsewhere: every count at which a check of 30 comparisons can stop."""
    most = 30
    test = Tried(threshold, ALPHA / checks, ALPHA, (1,) * most)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for rate in (0.1, 0.3, 0.5):
        going, low, high = np.ones(1), 0.0, 0.0
        for n in range(1, most + 1):
            going = np.convolve(going, [1 - rate, rate])
            for k in np.flatnonzero(going > 1e-9).tolist():
                monitor = standing(test, n, k)
                monitor._look()
                if n == most:
                    monitor.end()
                if monitor.decision is None:
                    continue
                if (n, k) not in found:
                    found[n, k] = bounds.lower(monitor, ALPHA), bounds.upper(monitor, ALPHA)
                low += float(going[k]) * (found[n, k][0] > rate)
                high += float(going[k]) * (found[n, k][1] < rate)
                going[k] = 0
        assert max(low, high) <= ALPHA
    assert len(found) > 10


def test_bounds_of_a_check_that_another_has_stopped_hold_too() -> None:
    """One attack may flip .07, another .10; both flip the same tenth: the first failure picks a moment with many."""
    first, second = (Tried(limit, 0.025, 0.05, (1,) * MOST) for limit in (0.07, T))
    strict, loose = first.boundary, second.boundary
    assert strict is not None
    assert loose is not None
    going, wrong, failed = np.ones(1), 0.0, 0.0
    for n in range(1, MOST + 1):
        going = np.convolve(going, [1 - T, T])
        k = np.arange(n + 1)
        left = going * ((k <= loose.pass_at[n]) | (k + MOST - n <= loose.pass_end[MOST]))
        stop = (k >= min(int(strict.fail_at[n]), int(strict.fail_end[MOST]))) & (left == 0)
        for hits in np.flatnonzero(stop & (going > 1e-12)).tolist():
            failed += float(going[hits])
            # It is left as it stands, on whichever way it came there without a decision.
            monitor = standing(second, n, hits)
            wrong += float(going[hits]) * (bounds.lower(monitor, ALPHA) >= T)
        going = going * ~stop - left
    assert failed > 0.15
    assert wrong <= ALPHA


@pytest.mark.parametrize(
    ("pairs", "rises", "decision"),
    [
        ((2,) * 3, 6, "inconclusive"),  # all that there is says that it rose, and it is too little
        ((45,), 45, "inconclusive"),
        ((2,) * 3, 0, "inconclusive"),
        ((2,) * 40, 0, "pass"),
        ((2,) * 40, 80, "fail"),
        ((1,) * 4, 0, "inconclusive"),
        ((1,) * 5, 0, "pass"),
    ],
)
def test_no_rise_is_said_only_where_one_could_have_been_seen(pairs: tuple[int, ...], rises: int, decision: str) -> None:
    monitor = Monitor(Tried(0.5, 0.05, 0.05, pairs, min_n=1, max_invalid_rate=0.2, innocent=True))
    for number in pairs:
        up = min(rises, number)
        monitor.add(Prompt(number, (1.0,) * up, number, up, 0, up, 0))
        rises -= up
    monitor.end()
    assert monitor.decision == decision


def test_what_a_budget_cuts_off_is_no_proof_that_nothing_rose() -> None:
    monitor = Monitor(Tried(0.5, 0.05, 0.05, (1,) * 120, min_n=5, max_invalid_rate=0.2, innocent=True))
    for _ in range(10):
        monitor.add(SAME)
    monitor.end()
    assert monitor.decision == "inconclusive"
