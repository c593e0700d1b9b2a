"""Test how several checks combine: nothing passes unless every check does."""

from __future__ import annotations

from itertools import product

from gate_builders import check, skipped
from loops import each

from distract.studies.gate.verdict import Decision, combine_checks

DECISIONS: tuple[Decision, ...] = ("pass", "fail", "inconclusive")


@each("decisions", *(case for size in (1, 2, 3) for case in product(DECISIONS, repeat=size)))
def test_any_failure_fails_and_all_passes_pass(decisions: tuple[Decision, ...]) -> None:
    checks = [check(one, attack=f"f{index}") for index, one in enumerate(decisions)]
    decision, reason = combine_checks(checks, None)
    expected = "fail" if "fail" in decisions else "inconclusive" if "inconclusive" in decisions else "pass"
    assert decision == expected
    if expected == "pass":
        below = f"all {len(checks)} flip rates are" if len(checks) > 1 else "the flip rate is"
        assert reason == f"{below} below 0.1"
    else:
        more = decisions.count(decision) - 1
        message = f"pairwise under f{decisions.index(decision)}: it is a {decision}"
        assert reason == message + (f" (and {more} more)" if more else "")


def test_combined_gate_fails_closed() -> None:
    nothing = "no attack was measured (controls are not checked)"
    assert combine_checks([], None) == ("inconclusive", nothing)
    assert combine_checks([check("pass")], "unfinished") == ("inconclusive", "unfinished")
    assert combine_checks([check("fail")], "unfinished") == ("inconclusive", "unfinished")


def test_skipped_checks_do_not_count_beside_a_failure() -> None:
    assert combine_checks([skipped(), check("fail")], None) == ("fail", "pairwise under prolixity: it is a fail")
    assert combine_checks([skipped(), check("pass")], None)[0] == "inconclusive"
