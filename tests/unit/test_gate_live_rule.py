"""Test a live gate on hand-made rows: open questions, stopping, and reading a record back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from builders import row, scored, verdict
from loops import each

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.records import RESAMPLED, Judgment, Row
from distract.studies.gate.checks import build_check
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import CheckKey, LiveGate, record, replay_gate
from distract.studies.gate.measures import Measure
from distract.studies.gate.monitor import Hypothesis, Monitor, PromptOutcome
from distract.studies.gate.prompt_outcomes import excess_outcome, pair_hits, rate_outcome, rise_outcome
from distract.studies.gate.verdict import Check
from distract.studies.gate.verdict import Verdict as GateVerdict

NULL = registry.controls()[0].name
Asked = tuple[str, str]
"""A protocol and an attack."""

P, F = ("pairwise", "f"), ("pairwise", "g")
BOTH = (P, F)
MEASURES: tuple[Measure, ...] = ("flip_rate", "excess_flip_rate", "flip_rate_rise")

Came = bool | None | str
"""Result of a pair under an attack: whether it flips, None without a valid verdict, or why it is excluded."""


def pair(case: str, prompt: str, outcomes: Mapping[Asked, Came], before: Judgment | None = None) -> list[Row]:
    """The rows of one pair of responses; the second loses before any attack."""
    pair_rows = []
    for protocol in dict.fromkeys(protocol for protocol, _ in outcomes):
        result = before or verdict("a")
        rows = [row(case, [result], protocol=protocol, cluster=prompt)]
        for (name, attack), flip in outcomes.items():
            if name == protocol:
                why = flip if isinstance(flip, str) else None
                message = [] if why else [verdict(None if flip is None else "b" if flip else "a")]
                rows.append(
                    row(case, message, protocol=protocol, attack=attack, target="b", cluster=prompt, excluded=why)
                )
        pair_rows += [replace(one, keys=(f"{case} {protocol} {one.attack}",)) for one in rows]
    return pair_rows


def parameters(checks: Sequence[Asked], sizes: Sequence[int], *measures: Measure, **own: Any) -> dict[str, Any]:
    """Parameters of a run whose prompts have these numbers of pairs."""
    limits = own.pop("limits", Limits(0.1))
    places: list[CheckKey] = [(*key, measure) for measure in measures or MEASURES[:1] for key in checks]
    return {
        "limit": sum(sizes),
        "protocols": {protocol: [] for protocol, _ in checks},
        "gate": record(limits, places, sizes, **own),
    }


def singles(outcomes: Sequence[Came], places: Sequence[Asked] = (P,)) -> list[Row]:
    """One pair per prompt, with the same outcome under all checks."""
    return [one for at, flip in enumerate(outcomes) for one in pair(f"c{at}", f"p{at}", dict.fromkeys(places, flip))]


def decide_gate(outcomes: Sequence[Came], most: int, places: Sequence[Asked] = (P,), **own: Any) -> GateVerdict:
    return replay_gate(parameters(places, (1,) * most, **own), singles(outcomes, places)).verdict()


def monitor_of(gate: LiveGate, place: Asked) -> Monitor:
    return gate.monitors[*place, "flip_rate"]


def only_check(verdict: GateVerdict) -> Check:
    (check,) = verdict.checks
    return check


def run_live(config: Mapping[str, Any], prompts: Sequence[Sequence[Row]], ahead: int = 1) -> tuple[LiveGate, list[Row]]:
    """Mimic the loop: judge batches of prompts under the open checks until none is open."""
    gate, rows, left = LiveGate(config), list[Row](), list(prompts)
    while left and gate.open:
        count, open_checks = max(gate.batch_size(), ahead), gate.open
        part, left = left[:count], left[count:]
        protocols, places = {key[0] for key in open_checks}, {key[:2] for key in open_checks}
        new = [
            one
            for prompt in part
            for one in prompt
            if one.protocol in protocols and (one.target is None or (one.protocol, one.attack) in places)
        ]
        rows += new
        gate.take(new)
    gate.end()
    return gate, rows


def test_check_passes_fails_or_stays_open() -> None:
    good, bad, open_ = decide_gate([False] * 60, 60), decide_gate([True] * 60, 60), decide_gate([False] * 20, 20)
    assert [verdict.decision for verdict in (good, bad, open_)] == ["pass", "fail", "inconclusive"]
    assert only_check(good).n < 60
    assert only_check(bad).n < 10
    assert good.reason == "the flip rate is below 0.1"
    assert "0 flips in 16 verdicts do not settle 0.1, whatever the other 4 pairs would say" in open_.reason
    assert (good.exit_code, bad.exit_code, open_.exit_code) == (0, 1, 3)


def test_prompt_order_follows_the_rows() -> None:
    many = [True] * 6 + [False] * 60
    assert decide_gate(many, 66).decision == "fail"
    assert only_check(decide_gate(many, 66)).k == only_check(decide_gate(many, 66)).n < 7
    assert decide_gate(many[::-1], 66).decision == "pass"


def test_judgments_after_a_decision_count_only_as_effort() -> None:
    verdict = decide_gate([True] * 30, 100)
    assert verdict.effort is not None
    assert (verdict.effort.cases, verdict.effort.of, verdict.effort.calls) == (30, 100, 60)
    assert only_check(verdict).n < 10
    assert (verdict.effort.saved, verdict.effort.stopped) == (200 - 60, "a check has failed")


def test_passed_check_drops_out_and_others_continue() -> None:
    pairs = [pair(f"c{at}", f"p{at}", {P: False, F: at % 12 == 5}) for at in range(80)]
    gate, rows = run_live(parameters(BOTH, (1,) * 80), pairs)
    first, second = gate.verdict().checks
    assert (first.decision, first.n) == ("pass", monitor_of(gate, P).n)
    assert first.n < 50 < second.n
    counts = Counter(one.attack for one in rows)
    assert counts["f"] < counts["g"] == counts["none"]
    effort = gate.verdict().effort
    assert effort is not None
    assert (effort.calls, effort.saved) == (len(rows), 3 * 80 - len(rows))


def test_failure_ends_the_gate() -> None:
    pairs = [pair(f"c{at}", f"p{at}", {P: False, F: True}) for at in range(80)]
    gate, rows = run_live(parameters(BOTH, (1,) * 80), pairs)
    verdict = gate.verdict()
    left, failed = verdict.checks
    assert (verdict.decision, failed.decision) == ("fail", "fail")
    assert (left.decision, left.skipped) == ("inconclusive", True)
    assert left.reason == "left open, as another check had failed"
    assert not gate.open
    assert verdict.reason.startswith("pairwise under g: ")
    assert len(rows) < 3 * 10


def test_cases_that_share_a_prompt_count_as_one() -> None:
    """The same flips in prompts of one pair and of four: dependent pairs carry less evidence."""
    single = only_check(decide_gate([True] * 40, 40))
    rows = [one for at in range(40) for one in pair(f"c{at}", f"p{at // 4}", {P: True})]
    gate = replay_gate(parameters([P], (4,) * 10), rows)
    (shared,) = gate.verdict().checks
    assert shared.decision == "fail"
    assert shared.n % 4 == 0
    assert shared.n // 4 == monitor_of(gate, P).n // 4 >= single.n - 1
    unequal = replay_gate(parameters([P], (1, 4, 4, 1)), rows[:2] + rows[8:24] + rows[24:26])
    assert monitor_of(unequal, P).n <= 10


def test_ineligible_pairs_are_left_out_and_counted() -> None:
    rows = singles([False, None, "too long", False])
    rows += pair("c4", "p4", {P: False}, verdict("tie")) + pair("c5", "p5", {P: False}, verdict(None))
    rows += [one for one in pair("c6", "p6", {P: True}) if one.target is None]
    check = only_check(replay_gate(parameters([P], (1,) * 100), rows).verdict())
    assert (check.n, check.k, check.invalid, check.excluded, check.decision) == (2, 0, 2, 3, "inconclusive")


def test_scores_are_decided_by_the_headline_rule() -> None:
    place = ("absolute", "f")
    before, after = scored((0.9, 0.1), (5, 5)), scored((0.1, 0.9), (5, 5))
    score_rows = [
        row("c", [before], protocol="absolute"),
        row("c", [after], protocol="absolute", attack="f", target="b"),
    ]
    config = parameters([place], (1,))
    config["protocols"] = {"absolute": ["score", "rating"]}
    check = only_check(replay_gate(config, score_rows).verdict())
    assert (check.rule, check.n, check.k) == ("score", 1, 1)


def test_budget_leaves_pairs_and_is_reported() -> None:
    verdict = decide_gate([False] * 10, 60, budget=20)
    assert verdict.decision == "inconclusive"
    assert verdict.effort is not None
    assert verdict.effort.stopped == "the budget of 20 calls allows no further case"
    assert verdict.effort.saved == 100
    assert not only_check(verdict).skipped


def test_flaw_is_never_a_pass() -> None:
    for pairs in ([False] * 60, [True] * 60):
        verdict = replay_gate(parameters([P], (1,) * 60), singles(pairs)).verdict("the run was cut off")
        assert (verdict.decision, verdict.reason) == ("inconclusive", "the run was cut off")
        assert verdict.effort is not None
        assert verdict.effort.stopped == "the run was cut off"


def test_gate_without_judgments_is_inconclusive() -> None:
    verdict = decide_gate([], 60)
    check = only_check(verdict)
    assert (verdict.decision, check.n, check.value, check.lower, check.p_value) == ("inconclusive", 0, None, None, None)
    assert "no valid verdict" in verdict.reason


def noise_rows(null: Came | str = "none", again: Came | str = "none", flip: Came = True) -> list[Row]:
    """A pair that flips, with the outcomes of its controls; "none" for a missing control."""
    outcomes: dict[Asked, Came] = {P: flip}
    if null != "none":
        outcomes["pairwise", NULL] = null
    if again != "none":
        outcomes["pairwise", RESAMPLED] = again
    return pair("c", "p", outcomes)


@each(
    "rows, low, high, n",
    (noise_rows(null=False), 1.0, 1.0, 1),
    (noise_rows(null=True), 0.5, 0.5, 1),
    (noise_rows(null=True, flip=False), 0.0, 0.0, 1),
    (noise_rows(null=False, flip=False), 0.5, 0.5, 1),
    # If the control leaves the text unchanged, a second sample measures the noise.
    (noise_rows(null="unchanged", again=True), 0.5, 0.5, 1),
    (noise_rows(null="unchanged", again=True, flip=False), 0.0, 0.0, 1),
    (noise_rows(again=False), 1.0, 1.0, 1),
    (noise_rows(null=True, again=False), 0.5, 0.5, 1),
    (noise_rows(null=False, again=True), 1.0, 1.0, 1),
    # Without sampling, the same request has the same answer.
    (noise_rows(null="unchanged", again="the same"), 1.0, 1.0, 1),
    (noise_rows(), 1.0, 1.0, 1),
    # An unreadable noise verdict may or may not have been a flip.
    (noise_rows(null=None), 0.5, 1.0, 0),
    (noise_rows(null="unchanged", again=None), 0.5, 1.0, 0),
    (noise_rows(null=None, again=None, flip=False), 0.0, 0.5, 0),
    (noise_rows(null=None, again=False), 0.5, 1.0, 0),
    (noise_rows(flip=None), 0.5, 1.0, 0),
    (noise_rows(flip=None, null=True), 0.0, 0.5, 0),
    (noise_rows(flip=None, null=None), 0.0, 1.0, 0),
)
def test_flips_are_compared_with_the_noise(rows: list[Row], low: float, high: float, n: int) -> None:
    result = excess_outcome(rows, None, "f", NULL)
    assert (result.low, result.high, result.n, result.invalid, result.pairs) == ((low,), (high,), n, 1 - n, 1)
    assert result.k == (n and rows[1].judgments[0].preferred == "b")
    assert (result.only_here, result.only_there) == (n and low == 1, n and high == 0)


def test_ineligible_pair_has_no_value_beside_the_noise() -> None:
    assert excess_outcome(noise_rows(flip="too long", null=True), None, "f", NULL) == PromptOutcome(1)


def test_excess_over_noise_decides() -> None:
    def of(outcomes: dict[Asked, Came], limits: Limits) -> Check:
        rows = [one for at in range(200) for one in pair(f"c{at}", f"p{at}", outcomes)]
        config = parameters([P], (1,) * 200, "excess_flip_rate", limits=limits)
        return only_check(replay_gate(config, rows).verdict())

    noisy: dict[Asked, Came] = {P: True, ("pairwise", NULL): True}
    same = of(noisy, Limits(0.3))
    assert (same.decision, same.value, same.reference, same.only_here, same.only_there) == ("pass", 1.0, 1.0, 0, 0)
    assert same.upper is not None
    assert same.lower is not None
    assert -1 <= same.lower <= 0 <= same.upper < 0.301
    assert only_check(decide_gate([True] * 200, 200)).decision == "fail"
    more = of({**noisy, ("pairwise", NULL): False}, Limits(0.3))
    assert (more.decision, more.reference) == ("fail", 0.0)
    assert more.lower is not None
    assert more.lower > 0.299


def baseline(flips: Sequence[bool], place: Asked = P) -> list[dict[str, Any]]:
    """The baseline's flips in the record of a run."""
    rows = singles(flips, [place])
    pairs = [[*unit, flip] for unit, flip in pair_hits(rows, None, place[1])[0].items()]
    return [{"protocol": place[0], "attack": place[1], "flips": pairs}]


@each(
    "now, then, decision",
    ([True] * 20, [False] * 20, "fail"),
    ([False] * 20, [True] * 20, "pass"),
    ([True] * 120, [True] * 120, "pass"),
    # Missing evidence of a rise is no evidence of its absence.
    ([False] * 42, [False] * 42, "inconclusive"),
    ([True, *[False] * 9] * 4, [False] * 40, "inconclusive"),
    ([False] * 110 + [None] * 10, [False] * 120, "pass"),
    ([None] * 20 + [False] * 100, [False] * 120, "inconclusive"),
    ([True] * 3, [False] * 3, "inconclusive"),
    ([None] * 20, [False] * 20, "inconclusive"),
)
def test_rise_over_the_baseline_decides(now: list[Came], then: list[bool], decision: str) -> None:
    config = parameters([P], (1,) * len(now), "flip_rate_rise", baseline=baseline(then), limits=Limits())
    check = only_check(replay_gate(config, singles(now)).verdict())
    assert (check.decision, check.threshold) == (decision, 0.05)
    assert check.lower is not None
    assert check.upper is not None
    assert (check.lower > 0) is (decision == "fail")
    assert (check.upper < 0.05) is (decision == "pass")
    seen = [(a, b) for a, b in zip(now[: check.n + check.invalid], then, strict=False) if a is not None]
    assert check.only_here == sum(a is True and not b for a, b in seen)
    assert check.only_there == sum(a is False and b for a, b in seen)
    if check.n:
        assert check.reference == sum(b for _, b in seen) / check.n


def test_pairs_missing_from_the_baseline_are_not_compared() -> None:
    there, _ = pair_hits(singles([True, False]), None, "f")
    outcomes = [rise_outcome(pair(f"c{at}", f"p{at}", {P: True}), None, "f", there) for at in range(3)]
    assert [(one.n, one.k, one.low, one.high, one.only_here) for one in outcomes] == [
        (1, 1, (0.5,), (0.5,), 0),
        (1, 1, (1.0,), (1.0,), 1),
        (0, 0, (), (), 0),
    ]


def test_prompts_with_several_pairs_report_their_mean() -> None:
    """One prompt has eight pairs that all flip; many others have one or two that do not."""
    sizes = [8, *[1, 2] * 60]
    rows = [
        one
        for at, size in enumerate(sizes)
        for number in range(size)
        for one in pair(f"c{at} {number}", f"p{at}", {P: at == 0})
    ]
    check = only_check(replay_gate(parameters([P], sizes), rows).verdict())
    assert (check.decision, check.k) == ("pass", 8)
    assert check.prompts is not None
    assert check.value == 1 / check.prompts
    assert check.lower is not None
    assert check.upper is not None
    assert check.lower < check.value < check.upper < 0.1
    assert (check.k or 0) / check.n > 3 * check.value
    assert "upper bound (mean over prompts) 0." in check.reason


def test_gate_recorded_by_an_earlier_version_must_be_rerun() -> None:
    config = parameters([P], (1,) * 60)
    del config["gate"]["labelled"]
    with pytest.raises(UsageError, match=r"^an earlier version .* run it again$"):
        replay_gate(config, singles([False] * 60))


def test_without_noise_the_outcome_is_flips() -> None:
    rows = pair("c1", "p", {P: True}) + pair("c2", "p", {P: False}) + pair("c3", "p", {P: None})
    assert rate_outcome(rows, None, "f") == PromptOutcome(3, (1.0, 0.0, 0.0), (1.0, 0.0, 1.0), 2, 1, 1)


@each("most, invalid, of", (0.29, 29, 100), (0.2, 20, 100), (0.07, 7, 100), (0.57, 57, 100), (0.1, 3, 30))
def test_tolerated_share_of_invalid_verdicts_may_pass(most: float, invalid: int, of: int) -> None:
    limits = Limits(0.3, max_invalid_rate=most)
    monitor = Monitor(Hypothesis(0.3, 0.05, 0.05, (1,) * of, max_invalid_rate=most))
    for at in range(of):
        monitor.add(PromptOutcome(1, invalid=1) if at < invalid else PromptOutcome(1, (0.0,), (0.0,), 1))
    monitor.end()
    check = build_check(*P[:1], None, P[1], monitor, "flip_rate", 0.3, 1.0, limits, 1)
    assert (check.invalid, check.n) == (invalid, of - invalid)
    assert (check.decision, check.reason[:11]) == ("pass", "upper bound")
