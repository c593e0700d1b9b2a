"""Test that a gate passes only where verdicts say something about quality, and otherwise decides as before."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from builders import row
from builders import verdict as verdict_of
from gate_builders import A, B, make_run, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import each

from distract.core.records import Row
from distract.studies.attack.briefs import CompactRows
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import LiveGate, record, replay_gate
from distract.studies.gate.usability import AT_ONCE, DiscernmentMonitor, assess_run, conclude
from distract.studies.gate.verdict import Verdict

Decide = Callable[[Sequence[Row]], Verdict]

CANNOT = "this judge cannot tell good from bad here"
NOT_SHOWN = "this judge is not shown to tell good from bad: judge more labelled cases"
LIMITS = Limits(0.1)
UNLABELLED = "no response is labelled better, so this does not show that the judge can tell good from bad"


def label_rows(parts: Sequence[Row], right: int) -> list[Row]:
    """Label the pairs so that the first ``right`` verdicts before any rewrite are right and the others wrong."""
    order = {name: at for at, name in enumerate(dict.fromkeys(one.case for one in parts))}
    return [one if one.target else replace(one, label="a" if order[one.case] < right else "b") for one in parts]


def decide_finished(parts: Sequence[Row], limits: Limits = LIMITS) -> Verdict:
    return decide(make_run(parts), limits)


def decide_live(parts: Sequence[Row], limits: Limits = LIMITS) -> Verdict:
    labelled = len({one.case for one in parts if one.label})
    prompts = len({one.case for one in parts})
    own = record(limits, [("pairwise", "f", "flip_rate")], [1] * prompts, labelled=labelled)
    return replay_gate({"limit": prompts, "protocols": {"pairwise": []}, "gate": own}, parts).verdict()


@each(
    "flips, right, decision, usable, reason",
    ("0" * 100, 100, "pass", "yes", "the flip rate is below 0.1"),
    ("0" * 100, 70, "pass", "yes", "the flip rate is below 0.1"),
    ("0" * 100, 50, "inconclusive", "not shown", NOT_SHOWN),
    ("0" * 100, 10, "inconclusive", "no", CANNOT),
    ("1" * 100, 10, "fail", "no", "lower bound"),
    ("1" * 100, 50, "fail", "not shown", "lower bound"),
    ("0" * 9, 9, "inconclusive", "yes", "do not settle 0.1|at least 29 are needed"),
)
def test_only_a_pass_needs_discernment(flips: str, right: int, decision: str, usable: str, reason: str) -> None:
    # A live gate takes prompts in a random order.
    parts = sorted(label_rows(rows(flips), right), key=lambda one: int(one.case[1:]) * 37 % 101)
    for verdict in (decide_finished(parts), decide_live(parts)):
        if decision != "fail" or usable == verdict.usable["pairwise"]:  # a failure may stop before anything is shown
            assert verdict.usable == {"pairwise": usable}
        assert verdict.decision == verdict.checks[0].decision == decision
        assert any(part in verdict.reason for part in reason.split("|"))
        assert verdict.document()["usable"] == dict(verdict.usable)
        assert verdict.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3}[decision]
        assert replace(verdict, certify=True).exit_code == (0 if decision == "pass" else 1)


def test_failure_of_a_useless_judge_says_so_in_a_note() -> None:
    verdict = decide_finished(label_rows(rows("1" * 100), 10))
    assert verdict.notes == (f"pairwise: {CANNOT} (clean accuracy is at most 0.164)",)


MOVED = (verdict_of("a", (0.9, 0.1, 0.0)), verdict_of("b", (0.4, 0.6, 0.0)))
"""A verdict that changes with the order, though a wins on average."""


@each("decided", decide_finished, decide_live)
@each(
    "moved, orders, decision, usable",
    (0, 2, "pass", "not shown"),
    (20, 2, "pass", "not shown"),
    (50, 2, "inconclusive", "no"),
    (0, 1, "pass", None),
)
def test_without_labels_only_the_order_stops_a_pass(
    decided: Decide, moved: int, orders: int, decision: str, usable: str | None
) -> None:
    parts = [
        replace(
            one,
            judgments=MOVED if not one.target and int(one.case[1:]) * 37 % 60 < moved else one.judgments[:orders],
        )
        for one in rows("0" * 60)
    ]
    verdict = decided(parts)
    assert (verdict.decision, verdict.usable) == (decision, {"pairwise": usable})
    assert (UNLABELLED in verdict.notes) == (decision == "pass")
    assert (f"{CANNOT} (most verdicts change with the order)" in verdict.reason) == (usable == "no")


@settings(max_examples=6)
@given(st.lists(st.sampled_from("000001?x"), min_size=40, max_size=40), st.integers(0, 40), st.booleans())
def test_labels_never_turn_anything_into_a_pass_or_hide_a_failure(signs: list[str], right: int, live: bool) -> None:
    decided = decide_live if live else decide_finished
    plain, labelled = rows("".join(signs)), label_rows(rows("".join(signs)), right)
    before, after = decided(plain, Limits(0.3)), decided(labelled, Limits(0.3))
    assert after.decision == before.decision or (before.decision, after.decision) == ("pass", "inconclusive")
    if after.decision == "pass":
        assert after.usable == {"pairwise": "yes"}


def test_run_without_pairs_never_passes_a_labelled_gate() -> None:
    (one,) = assess_run(CompactRows((), {"pairwise": []}), {"pairwise": []})
    assert one.usable is None
    assert "no pair was judged before a rewrite" in (one.doubt or "")


# A live gate.


def baselines(outcomes: str) -> list[list[Row]]:
    """The rows of one prompt each, labelled ``a``, without any rewrite."""
    signs = {"1": A, "0": B, "t": verdict_of("tie"), "?": verdict_of(None)}
    return [[replace(row(f"c{at}", [signs[sign]] * 2), label="a")] for at, sign in enumerate(outcomes)]


def monitor_of(outcomes: str) -> DiscernmentMonitor:
    monitor = DiscernmentMonitor("pairwise", None, labelled=True)
    for part in baselines(outcomes):
        monitor.add(part)
    return monitor


@each(
    "outcomes, usable, reason",
    ("", None, "no labelled pair was judged"),
    ("1" * 5, "not shown", "5 of 5 labelled pairs right"),
    ("1" * 6, "yes", "6 of 6 labelled pairs right"),
    ("1t" * 9, "yes", "13.5 of 18 labelled pairs right"),
    ("10" * 50, "not shown", "50 of 100 labelled pairs right"),
    ("t" * 100, "not shown", "50 of 100 labelled pairs right"),
    ("?" * 100, "no", "0 of 100 labelled pairs right"),
    ("0" * 30, "no", "0 of 30 labelled pairs right"),
    ("1" * 6 + "0" * 3, "yes", "6 of 9 labelled pairs right"),  # shown once is shown
)
def test_bets_show_discernment(outcomes: str, usable: str | None, reason: str) -> None:
    one = monitor_of(outcomes).assess()
    assert (one.usable, one.reason) == (usable, reason)
    assert monitor_of(outcomes).is_open == (usable in (None, "not shown"))


@given(st.text("10t?", max_size=40))
def test_batch_ends_where_the_first_bet_could(outcomes: str) -> None:
    monitor = monitor_of(outcomes)
    if monitor.is_open:
        size = monitor.batch_size()
        assert 1 <= size <= AT_ONCE
        assert monitor_of(outcomes + "1" * (size - 1)).is_open


def run_live(parts: Sequence[Row], ahead: int = 1) -> tuple[LiveGate, int]:
    """Mimic the loop: judge prompts under the check while it is open, then only before any rewrite."""
    prompts = [[one for one in parts if one.case == name] for name in dict.fromkeys(one.case for one in parts)]
    own = record(Limits(0.1), [("pairwise", "f", "flip_rate")], [1] * len(prompts), labelled=len(prompts))
    gate, used = LiveGate({"limit": len(prompts), "protocols": {"pairwise": []}, "gate": own}), 0
    while used < len(prompts) and (gate.open or gate.doubtful):
        is_open = bool(gate.open)
        for prompt in prompts[used : used + max(gate.batch_size(), ahead)]:
            gate.take([one for one in prompt if is_open or one.target is None])
            used += 1
    gate.end()
    return gate, used


@each(
    "right, used, decision, stopped",
    (lambda at: True, 29, "pass", "every check has passed"),
    (lambda at: at % 4 > 0, 47, "pass", "every check has passed"),
    (lambda at: at % 2 > 0, 100, "inconclusive", "all cases are judged"),
    (lambda at: False, 29, "inconclusive", "the rest cannot change the decision"),
)
def test_passed_gate_goes_on_until_labels_show_something(
    right: Callable[[int], bool], used: int, decision: str, stopped: str
) -> None:
    parts = [
        one if one.target else replace(one, label="a" if right(int(one.case[1:])) else "b") for one in rows("0" * 100)
    ]
    gate, judged = run_live(parts)
    verdict = gate.verdict()
    assert verdict.effort
    assert verdict.effort.cases == judged
    assert abs(judged - used) <= AT_ONCE
    assert (verdict.decision, verdict.effort.stopped) == (decision, stopped)
    assert run_live(parts, ahead=7)[0].verdict().decision == decision


def test_exhausted_budget_is_named_where_labels_are_still_open() -> None:
    parts = [replace(one, label="a" if int(one.case[1:]) % 2 else "b") for one in rows("0" * 40)]
    own = record(Limits(0.1), [("pairwise", "f", "flip_rate")], [1] * 100, labelled=100, budget=9)
    verdict = replay_gate({"limit": 100, "protocols": {"pairwise": []}, "gate": own}, parts).verdict()
    assert verdict.decision == "inconclusive"
    assert verdict.effort
    assert verdict.effort.cut
    assert verdict.effort.stopped == "the budget of 9 calls allows no further case"


def test_checks_of_usable_protocols_still_pass() -> None:
    good, bad = (
        label_rows(rows("0" * 60, protocol=name), right) for name, right in (("pairwise", 60), ("absolute", 30))
    )
    verdict = decide_finished([*good, *bad])
    assert verdict.usable == {"absolute": "not shown", "pairwise": "yes"}
    assert {check.protocol: check.decision for check in verdict.checks} == {
        "absolute": "inconclusive",
        "pairwise": "pass",
    }
    assert verdict.decision == "inconclusive"


def test_verdict_without_checks_needs_no_discernment() -> None:
    verdict = conclude([], Limits(0.1), [monitor_of("").assess()], None)
    assert (verdict.decision, verdict.usable, verdict.threshold) == ("inconclusive", {}, None)
