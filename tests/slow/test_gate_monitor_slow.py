"""Test when a check and a live gate stop and what they report, against a rule that examines every possible future."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pytest
import test_gate_monitor as unit
from hypothesis import given, strategies as st
from test_gate_monitor import ALPHA, CHECKS, HIT, MISS, MOST, F, T, decide_gate, only_check, play, play_to_end, run_live

from distract.core.records import Row
from distract.stats.intervals import holm
from distract.studies.gate.checks import build_check, lower_bound, upper_bound
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.live import replay_gate
from distract.studies.gate.monitor import Direction, Hypothesis, Monitor, PromptOutcome, bet_rates, boundary

SINGLES = (HIT, MISS, unit.UNREAD, unit.LOST, unit.EXCLUDED)
COMPARED = (HIT, MISS, unit.NEITHER, PromptOutcome(1, (0.0,), (0.5,), 0, 0, 1), unit.LOST, unit.EXCLUDED)


class State(NamedTuple):
    """The state on which all possible futures depend."""

    values: tuple[tuple[float, float], ...] = ()  # the means of prompts, low and high
    n: int = 0
    invalid: int = 0
    eligible: int = 0
    shown: bool = False
    rest: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Oracle:
    """Decides by enumerating every possible future."""

    test: Hypothesis
    outcomes: dict[int, tuple[PromptOutcome, ...]]  # of a prompt, by its number of pairs
    known: dict[State, frozenset[Decision]] = field(default_factory=dict)

    def start(self) -> State:
        return State(rest=tuple(sorted(self.test.pairs)))

    def after(self, state: State, prompt: PromptOutcome) -> tuple[State, Decision | None]:
        """The state after a prompt, and the decision if the evidence suffices."""
        rest = list(state.rest)
        rest.remove(prompt.pairs)
        values = list(state.values)
        if prompt.low:
            values = sorted([*values, (fmean(prompt.low), fmean(prompt.high))])
        n, invalid, eligible = state.n + prompt.n, state.invalid + prompt.invalid, state.eligible + len(prompt.low)
        now = State(tuple(values), n, invalid, eligible, rest=tuple(rest))
        above, below = self.shows(now)
        now = now._replace(shown=below)
        if above:
            return now, "fail"
        return now, "pass" if now.shown and self.allowed(now) else None

    def allowed(self, state: State) -> bool:
        n, invalid, seen = state.n, state.invalid, sum(self.test.pairs) - sum(state.rest)
        readable = n > 0 and n >= self.test.min_n and invalid / (n + invalid) <= self.test.max_invalid_rate
        return readable and state.eligible >= self.test.min_eligible * seen

    def shows(self, state: State) -> tuple[bool, bool]:
        """Whether a rate above, or below, is shown before the end."""
        if (limits := self.test.boundary) is not None:
            tested, low, high = counts(state)
            return low >= limits.fail_at[tested], high <= limits.pass_at[tested]
        return (
            mean_stake(self.test, "above", state.values) >= 1 / self.test.alpha_fail,
            mean_stake(self.test, "below", state.values) >= 1 / self.test.alpha_pass,
        )

    def end(self, state: State) -> Decision:
        below = state.shown
        if (limits := self.test.boundary) is not None:
            tested, low, high = counts(state)
            if low >= limits.fail_end[tested]:
                return "fail"
            below = below or bool(high <= limits.pass_end[tested])
        return "pass" if below and self.allowed(state) else "inconclusive"

    def futures(self, state: State) -> frozenset[Decision]:
        """The possible final decisions."""
        if state not in self.known:
            decisions: set[Decision] = set() if state.rest else {self.end(state)}
            for pairs in sorted(set(state.rest)):
                for prompt in self.outcomes[pairs]:
                    then, decision = self.after(state, prompt)
                    decisions |= {decision} if decision else self.futures(then)
            self.known[state] = frozenset(decisions)
        return self.known[state]


def counts(state: State) -> tuple[int, float, float]:
    """Prompts with a value, and the sums of their means."""
    return len(state.values), sum(low for low, _ in state.values), sum(high for _, high in state.values)


@cache
def mean_stake(test: Hypothesis, side: Direction, values: tuple[tuple[float, float], ...]) -> float:
    """The mean stake, multiplied out."""
    t = test.threshold if side == "above" or test.ceiling is None else test.ceiling
    z = [(low if side == "above" else high) - t for low, high in values]
    rates = bet_rates(t, side).tolist()
    return math.fsum(math.prod(1 + (p - t) / (t * (1 - t)) * one for one in z) for p in rates) / 200


def list_outcomes(pairs: int) -> tuple[PromptOutcome, ...]:
    """The possible outcomes of a prompt."""
    return tuple(
        unit.make_outcome(pairs, *kinds) for kinds in product(range(pairs + 1), repeat=4) if sum(kinds) <= pairs
    )


def walk(oracle: Oracle) -> Counter[tuple[str, str]]:
    """Compare in every state; return the number of decisions by reason."""
    seen, counts = {oracle.start()}, Counter[tuple[str, str]]()
    todo: list[tuple[State, list[PromptOutcome]]] = [(oracle.start(), [])]
    while todo:
        state, before = todo.pop()
        for pairs in sorted(set(state.rest)):
            for prompt in oracle.outcomes[pairs]:
                then, decision = oracle.after(state, prompt)
                if then in seen:
                    continue
                seen.add(then)
                prompts = [*before, prompt]
                monitor = play(oracle.test, prompts)
                key = (monitor.decision, monitor.reason)
                if decision:
                    assert key == (decision, "evidence"), prompts
                elif sum(then.rest) and len(oracle.futures(then)) == 1:
                    # The decision comes exactly when no future outcome can change it.
                    assert monitor.reason == "settled", prompts
                    assert {monitor.decision} == oracle.futures(then), prompts
                else:
                    assert monitor.decision is None, prompts
                    todo.append((then, prompts))
                    # The budget may end it anywhere.
                    monitor = play_to_end(oracle.test, prompts)
                    key = (monitor.decision, monitor.reason)
                    assert key == (oracle.end(then), "end"), prompts
                counts[str(monitor.decision), monitor.reason] += 1
    return counts


EXACT = [
    Hypothesis(0.1, 0.05, 0.4, (1,) * 9), Hypothesis(0.3, 0.1, 0.1, (1,) * 10),
    Hypothesis(0.5, 0.05, 0.05, (1,) * 10), Hypothesis(0.5, 0.05, 0.05, (1,) * 9, min_n=8),
    Hypothesis(0.5, 0.05, 0.2, (1,) * 9, min_n=4, max_invalid_rate=0.2),
    Hypothesis(0.6, 0.025, 0.1, (1,) * 9, max_invalid_rate=0.0), Hypothesis(0.9, 0.45, 0.05, (1,) * 8, min_n=3),
    Hypothesis(0.5, 0.2, 0.2, (1,) * 3 + (0,)), Hypothesis(0.5, 0.05, 0.2, (1,) * 8, min_eligible=0.7),
]  # fmt: skip


@pytest.mark.parametrize("test", EXACT, ids=range(len(EXACT)))
def test_single_outcomes_stop_only_when_the_decision_is_fixed(test: Hypothesis) -> None:
    decisions = walk(Oracle(test, {1: SINGLES, 0: (PromptOutcome(0),)}))
    assert {decision for decision, _ in decisions} >= {"fail", "pass", "inconclusive"}


CLUSTERED = [
    (Hypothesis(0.3, 0.3, 0.4, (2,) * 4), None),
    (Hypothesis(0.45, 0.4, 0.4, (1, 1, 2, 3)), None),
    (Hypothesis(0.5, 0.3, 0.3, (1, 2, 2, 2), min_n=3, max_invalid_rate=0.3), None),
    (Hypothesis(0.5, 0.2, 0.2, (1,) * 6, exact=False), COMPARED),
    (Hypothesis(0.55, 0.1, 0.2, (1,) * 6, exact=False, min_n=4), COMPARED),
    (Hypothesis(0.5, 0.1, 0.2, (1,) * 6, ceiling=0.7, exact=False, min_eligible=0.5), COMPARED),
]  # fmt: skip


@pytest.mark.parametrize(("test", "outcomes"), CLUSTERED, ids=range(len(CLUSTERED)))
def test_several_outcomes_stop_only_when_the_decision_is_fixed(test: Hypothesis, outcomes: Any) -> None:
    by = {pairs: list_outcomes(pairs) if outcomes is None else outcomes for pairs in set(test.pairs)}
    decisions = walk(Oracle(test, by))
    assert {decision for decision, _ in decisions} == {"fail", "pass", "inconclusive"}
    assert decisions["inconclusive", "settled"]


@pytest.mark.parametrize("test", EXACT[1:7], ids=range(6))
def test_small_sets_never_decide_within_a_batch(test: Hypothesis) -> None:
    for start in product(SINGLES, repeat=3):
        monitor = play(test, start)
        if monitor.decision is None and (count := monitor.batch_size()) > 1:
            for more in product(SINGLES, repeat=min(count - 1, 4)):
                assert play(test, [*start, *more]).decision is None


@pytest.mark.parametrize("checks", [1, 4, 20])
@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("most", [40, 150])
def test_bounds_agree_at_every_end(threshold: float, checks: int, most: int) -> None:
    test = Hypothesis(threshold, 0.05 / checks, 0.05, (1,) * most)
    limits = boundary(threshold, 0.05 / checks, 0.05, most)
    for hits in (int(limits.fail_end[most]), int(limits.fail_end[most]) + 1, int(limits.pass_end[most])):
        if 0 <= hits <= most:
            late = [MISS] * (most - hits) + [HIT] * hits
            even = [HIT if (at + 1) * hits // most > at * hits // most else MISS for at in range(most)]
            for some in (even, late):
                unit.assert_agrees(test, play_to_end(test, some))


@pytest.mark.parametrize("equal", [1.0, 0.6])
def test_dependent_rows_do_not_raise_the_error_rate(equal: float) -> None:
    """Four rows per prompt at the threshold; the rows of a prompt are equal, or its rate is either 0 or high."""
    rng, gates, counts = np.random.default_rng(20), 250, Counter[str]()
    test = Hypothesis(0.2, 0.05, 0.05, (4,) * 40)
    for _ in range(gates):
        monitor = Monitor(test)
        while monitor.decision is None and monitor.left:
            rate = 0.2 if equal == 1 else float(rng.random() < 0.25) * 0.8
            flips = np.repeat(rng.random() < rate, 4) if rng.random() < equal else rng.random(4) < rate
            monitor.add(unit.make_outcome(4, int(flips.sum()), 4 - int(flips.sum())))
        monitor.end()
        counts[str(monitor.decision)] += 1
    assert unit.is_at_most(0.05, counts["fail"], gates), counts
    assert unit.is_at_most(0.05, counts["pass"], gates), counts
    assert counts["inconclusive"]


def test_simulated_gates_match_real_ones() -> None:
    flips = unit.draw_correlated_flips(25)
    simulation, limits = unit.simulate(flips), Limits.of(max_flip_rate=T)
    for gate in range(flips.shape[1]):
        monitors = [Monitor(Hypothesis(T, ALPHA / CHECKS, ALPHA, (1,) * MOST)) for _ in range(CHECKS)]
        for step in flips[:, gate]:
            if not any(monitor.decision == "fail" for monitor in monitors):
                for monitor, flip in zip(monitors, step, strict=True):
                    monitor.add(HIT if flip else MISS)
        for monitor in monitors:
            if not monitor.left:
                monitor.end()
        p = [monitor.p_value or 1.0 for monitor in monitors]
        assert p == pytest.approx(simulation.p[gate].tolist())
        assert [monitor.n for monitor in monitors] == simulation.n[gate].tolist()
        for at, (monitor, adjusted) in enumerate(zip(monitors, holm(p), strict=True)):
            if gate % 5 == 0:
                message = build_check(("p", None, "a"), monitor, "flip_rate", T, adjusted, limits, CHECKS)
                also = simulation.decisions[gate, at] == 0 and simulation.adjusted[gate, at] <= ALPHA
                word = ("inconclusive", "fail", "pass", "inconclusive")[1 if also else simulation.decisions[gate, at]]
                assert message.decision == word
                assert message.skipped is bool(simulation.decisions[gate, at] == 0 and not also)


def make_monitor(test: Hypothesis, n: int, k: int) -> Monitor:
    """A monitor with k flips in n comparisons and no decision yet, by any path."""
    monitor = Monitor(test)
    monitor.n, monitor.k, monitor.eligible, monitor.low, monitor.high = n, k, n, float(k), float(k)
    monitor.asked, monitor.left = n, sum(test.pairs) - n
    monitor.rest = monitor.left
    monitor.lows = monitor.highs = [1.0] * k + [0.0] * (n - k)
    return monitor


@pytest.mark.parametrize(("threshold", "checks"), [(0.1, 1), (0.3, 4), (0.5, 1)])
def test_bounds_miss_the_rate_no_more_often_than_stated(threshold: float, checks: int) -> None:
    """The bounds are exact at the threshold and elsewhere, at every count where a check of 30 comparisons can stop."""
    most = 30
    test = Hypothesis(threshold, ALPHA / checks, ALPHA, (1,) * most)
    result: dict[tuple[int, int], tuple[float, float]] = {}
    for rate in (0.1, 0.3, 0.5):
        going, low, high = np.ones(1), 0.0, 0.0
        for n in range(1, most + 1):
            going = np.convolve(going, [1 - rate, rate])
            for k in np.flatnonzero(going > 1e-9).tolist():
                monitor = make_monitor(test, n, k)
                monitor._look()
                if n == most:
                    monitor.end()
                if monitor.decision is None:
                    continue
                if (n, k) not in result:
                    result[n, k] = (lower_bound(monitor, ALPHA), upper_bound(monitor, ALPHA))
                low += float(going[k]) * (result[n, k][0] > rate)
                high += float(going[k]) * (result[n, k][1] < rate)
                going[k] = 0
        assert max(low, high) <= ALPHA
    assert len(result) > 10


def test_bounds_hold_for_checks_stopped_by_another() -> None:
    """The limits are .07 and .10, and both attacks flip the same tenth, so the first failure selects a high count."""
    first, second = (Hypothesis(limit, 0.025, 0.05, (1,) * MOST) for limit in (0.07, T))
    boundaries: Any = first.boundary, second.boundary
    strict, loose = boundaries
    going, wrong, failed = np.ones(1), 0.0, 0.0
    for n in range(1, MOST + 1):
        going = np.convolve(going, [1 - T, T])
        k = np.arange(n + 1)
        left = going * ((k <= loose.pass_at[n]) | (k + MOST - n <= loose.pass_end[MOST]))
        stop = (k >= min(int(strict.fail_at[n]), int(strict.fail_end[MOST]))) & (left == 0)
        for hits in np.flatnonzero(stop & (going > 1e-12)).tolist():
            failed += float(going[hits])
            # The other check stays undecided, whatever its path.
            monitor = make_monitor(second, n, hits)
            wrong += float(going[hits]) * (lower_bound(monitor, ALPHA) >= T)
        going = going * ~stop - left
    assert failed > 0.15
    assert wrong <= ALPHA


def test_one_failure_may_leave_enough_for_another_check() -> None:
    """Holm's adjustment asks less of the second of two failures; its statement agrees with its bound."""
    decisions = set()
    for late in range(12):
        pairs = [unit.pair(f"c{at}", f"p{at}", {unit.P: True, F: at >= late or at % 2 == 0}) for at in range(40)]
        gate, _ = run_live(unit.parameters(unit.BOTH, (1,) * 40, limits=Limits.of(max_flip_rate=0.5)), pairs)
        checks: Any = gate.verdict().checks
        first, second = checks
        assert first.decision == "fail"
        assert (second.decision == "fail") is (second.p_adjusted <= 0.05)
        assert second.skipped is (second.decision != "fail")
        if unit.monitor_of(gate, F).decision is None and second.decision == "fail":
            assert second.lower > 0.499
        decisions.add((unit.monitor_of(gate, F).decision, second.decision))
    assert (None, "inconclusive") in decisions


def test_pass_states_and_requires_enough_eligible_pairs() -> None:
    few = only_check(decide_gate([False] * 60 + ["too long"] * 900, 960))
    assert (few.decision, few.eligible_share) == ("pass", 1.0)
    late: Sequence[unit.Came] = ["too long"] * 900 + [False] * 60
    verdict, lenient = decide_gate(late, 960), Limits.of(max_flip_rate=0.1, min_eligible=0.01)
    assert "only 5.3% of the comparisons are eligible" in verdict.reason
    assert (only_check(verdict).decision, only_check(verdict).eligible_share) == ("inconclusive", 50 / 950)
    assert only_check(decide_gate(late, 960, limits=lenient)).decision == "pass"


@given(st.data())
def test_stored_gate_reads_back_unchanged(data: st.DataObject) -> None:
    places: tuple[unit.Asked, ...] = (("absolute", "f"), ("pairwise", "f"), ("pairwise", "g"))
    sizes = data.draw(st.integers(5, 60).map(lambda n: [1] * n) | st.lists(st.integers(1, 3), min_size=5, max_size=25))
    measure = data.draw(st.sampled_from(unit.MEASURES[:2]))
    rate, least = data.draw(st.sampled_from([0.1, 0.3])), data.draw(st.sampled_from([1, 20]))
    limits = Limits.of(max_flip_rate=rate, others={"g": 0.5}, min_n=least)
    kinds: st.SearchStrategy[unit.Came] = st.sampled_from([False, False, False, True, None, "too long"])
    outcomes = {place: data.draw(st.lists(kinds, min_size=3, max_size=9)) for place in places}
    prompts, number = [], 0
    for at, size in enumerate(sizes):
        rows = list[Row]()
        for _ in range(size):
            flips = {place: some[number % len(some)] for place, some in outcomes.items()}
            rows += unit.pair(f"c{number}", f"p{at}", flips)
            number += 1
        prompts.append(rows)
    config = unit.parameters(places, sizes, measure, limits=limits)
    gate, rows = run_live(config, prompts, data.draw(st.sampled_from([1, 4])))
    verdict = gate.verdict()
    assert replay_gate(json.loads(json.dumps(config)), rows).verdict() == verdict
    assert {one.decision for one in verdict.checks} >= {verdict.decision}
    # Judging prompts one at a time gives the same result.
    assert run_live(config, prompts)[0].verdict().checks == verdict.checks
    for (*place, _), monitor in gate.monitors.items():
        rest = [one for one in rows if [one.protocol, one.attack] == place]
        assert monitor.n + monitor.invalid <= len(rest)
