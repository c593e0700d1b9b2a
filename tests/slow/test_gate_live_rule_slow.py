"""Test a live gate on hand-made rows: open questions, stopping, and reading a record back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from test_gate_live_rule import (
    BOTH,
    MEASURES,
    Asked,
    Came,
    F,
    P,
    baseline,
    decide_gate,
    monitor_of,
    only_check,
    pair,
    parameters,
    run_live,
)

from distract.core.records import Row
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import replay_gate
from distract.studies.gate.verdict import Verdict as GateVerdict


def test_one_failure_may_leave_enough_for_another_check() -> None:
    """Holm's adjustment asks less of the second of two failures; its statement agrees with its bound."""
    decisions = set()
    for late in range(12):
        pairs = [pair(f"c{at}", f"p{at}", {P: True, F: at >= late or at % 2 == 0}) for at in range(40)]
        gate, _ = run_live(parameters(BOTH, (1,) * 40, limits=Limits(0.5)), pairs)
        first, second = gate.verdict().checks
        assert first.decision == "fail"
        assert second.p_adjusted is not None
        assert (second.decision == "fail") is (second.p_adjusted <= 0.05)
        assert second.skipped is (second.decision != "fail")
        if monitor_of(gate, F).decision is None and second.decision == "fail":
            assert second.lower is not None
            assert second.lower > 0.499
        decisions.add((monitor_of(gate, F).decision, second.decision))
    assert (None, "inconclusive") in decisions


def test_rise_and_threshold_must_both_hold() -> None:
    """One judge has an unchanged but too high rate; another has a low rate that has risen."""

    def of(now: list[Came], then: list[bool], limits: Limits) -> GateVerdict:
        config = parameters([P], (1,) * len(now), "flip_rate", "flip_rate_rise", baseline=baseline(then), limits=limits)
        gate, rows = run_live(config, [pair(f"c{at}", f"p{at}", {P: flip}) for at, flip in enumerate(now)])
        assert replay_gate(config, rows).verdict() == gate.verdict()
        return gate.verdict()

    often = of([True] * 120, [True] * 120, Limits(0.1))
    assert (often.decision, often.checks[0].decision) == ("fail", "fail")
    seldom = of([True, *[False] * 9] * 40, [False] * 400, Limits(0.3))
    assert (seldom.decision, [one.decision for one in seldom.checks]) == ("fail", ["pass", "fail"])
    good = of([False] * 200, [False] * 200, Limits(0.1))
    assert [(one.measure, one.decision) for one in good.checks] == [("flip_rate", "pass"), ("flip_rate_rise", "pass")]
    assert good.reason == (
        "the flip rate is below 0.1 and the flip rate did not rise by 5 points or more since the baseline"
    )
    assert good.threshold == 0.1


def test_pass_states_and_requires_enough_eligible_pairs() -> None:
    few = only_check(decide_gate([False] * 60 + ["too long"] * 900, 960))
    assert (few.decision, few.eligible_share) == ("pass", 1.0)
    late: Sequence[Came] = ["too long"] * 900 + [False] * 60
    assert only_check(decide_gate(late, 960)).decision == "inconclusive"
    assert "only 5.3% of the comparisons are eligible" in decide_gate(late, 960).reason
    assert only_check(decide_gate(late, 960)).eligible_share == 50 / 950
    assert only_check(decide_gate(late, 960, limits=Limits(0.1, min_eligible=0.01))).decision == "pass"


@given(st.data())
def test_stored_gate_reads_back_unchanged(data: st.DataObject) -> None:
    places: tuple[Asked, ...] = (("absolute", "f"), ("pairwise", "f"), ("pairwise", "g"))
    sizes = data.draw(st.integers(5, 60).map(lambda n: [1] * n) | st.lists(st.integers(1, 3), min_size=5, max_size=25))
    measure = data.draw(st.sampled_from(MEASURES[:2]))
    limits = Limits(data.draw(st.sampled_from([0.1, 0.3])), {"g": 0.5}, min_n=data.draw(st.sampled_from([1, 20])))
    kinds: st.SearchStrategy[Came] = st.sampled_from([False, False, False, True, None, "too long"])
    outcomes = {place: data.draw(st.lists(kinds, min_size=3, max_size=9)) for place in places}
    prompts, number = [], 0
    for at, size in enumerate(sizes):
        rows = list[Row]()
        for _ in range(size):
            flips = {place: some[number % len(some)] for place, some in outcomes.items()}
            rows += pair(f"c{number}", f"p{at}", flips)
            number += 1
        prompts.append(rows)
    config = parameters(places, sizes, measure, limits=limits)
    gate, rows = run_live(config, prompts, data.draw(st.sampled_from([1, 4])))
    verdict = gate.verdict()
    assert replay_gate(json.loads(json.dumps(config)), rows).verdict() == verdict
    assert {one.decision for one in verdict.checks} >= {verdict.decision}
    # Judging prompts one at a time gives the same result.
    assert run_live(config, prompts)[0].verdict().checks == verdict.checks
    for (*place, _), monitor in gate.monitors.items():
        rest = [one for one in rows if [one.protocol, one.attack] == place]
        assert monitor.n + monitor.invalid <= len(rest)
