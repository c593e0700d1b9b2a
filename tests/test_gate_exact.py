"""The decisions of a gate on a finished run, and that it fails closed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.errors import UsageError
from distract.figure import Figure
from distract.gate.exact import decide, least_n, needed
from distract.gate.limits import Limits
from distract.statistics import p_above, upper_bound

RULES: dict[str, tuple[str, ...]] = {"pairwise": (), "absolute": ("score", "rating")}


def rate(
    k: int, n: int, *, protocol: str = "pairwise", rule: str | None = None, attack: str = "f", **more: int
) -> Figure:
    value = k / n if n else None
    effective = float(n) if n else None
    return Figure(
        "flip_rate",
        protocol,
        rule,
        attack,
        value=value,
        k=k,
        n=n,
        effective_n=effective,
        invalid=more.get("invalid", 0),
    )


def gate(*figures: Figure, threshold: float = 0.10, flaw: str | None = None) -> tuple[str, str]:
    verdict = decide(figures, RULES, frozenset({"null", "none"}), Limits(threshold), flaw)
    return verdict.decision, verdict.reason


@pytest.mark.parametrize(
    ("k", "n", "decision"),
    [
        (0, 40, "pass"), (1, 40, "inconclusive"), (7, 40, "inconclusive"), (8, 40, "fail"),
        (0, 28, "inconclusive"), (0, 29, "pass"), (4, 100, "pass"), (5, 100, "inconclusive"), (16, 100, "fail"),
        (3, 3, "fail"), (1, 1, "inconclusive"), (0, 0, "inconclusive"),
    ],
)  # fmt: skip
def test_a_single_check(k: int, n: int, decision: str) -> None:
    assert gate(rate(k, n))[0] == decision


def test_all_must_pass() -> None:
    good, open_, bad = rate(0, 100), rate(8, 100, attack="g"), rate(60, 100, attack="h")
    assert gate(good, rate(0, 60, attack="g"))[0] == "pass"
    assert gate(good, open_)[0] == "inconclusive"
    assert gate(good, open_, bad)[0] == "fail"


def test_failures_are_adjusted_for_their_number() -> None:
    barely = rate(8, 40)
    assert gate(barely)[0] == "fail"
    assert gate(barely, *(rate(4, 40, attack=f"g{i}") for i in range(3)))[0] == "inconclusive"


def test_only_headline_rules_and_real_attacks_are_checked() -> None:
    controls = [rate(40, 40, attack="null"), rate(40, 40, attack="none")]
    rating = rate(40, 40, protocol="absolute", rule="rating")
    assert gate(*controls, rating, rate(0, 40, protocol="absolute", rule="score"))[0] == "pass"
    assert gate(*controls, rating) == (
        "inconclusive",
        "no flip rate of an attack was measured (controls are not checked)",
    )


def test_it_fails_closed() -> None:
    assert gate() == ("inconclusive", "no flip rate of an attack was measured (controls are not checked)")
    assert gate(rate(0, 0, invalid=40))[0] == "inconclusive"
    assert gate(rate(0, 400), flaw="the run is unfinished") == ("inconclusive", "the run is unfinished")
    assert "no n below 29 can pass" in gate(rate(0, 10))[1]


def test_dependent_cases_count_for_less() -> None:
    figure = Figure("flip_rate", "pairwise", None, "f", value=0.0, k=0, n=80, effective_n=20.0)
    assert gate(figure)[0] == "inconclusive"


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.9))
def test_a_lower_threshold_never_turns_a_failure_into_a_pass(k: int, rest: int, threshold: float) -> None:
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    strict, lenient = (
        gate(rate(k, k + rest), threshold=threshold),
        gate(rate(k, k + rest), threshold=threshold + 0.09),
    )
    assert order[strict[0]] <= order[lenient[0]]


@pytest.mark.parametrize(("threshold", "n"), [(0.10, 29), (0.05, 59), (0.01, 299), (0.5, 5)])
def test_least_n(threshold: float, n: int) -> None:
    assert least_n(threshold, 0.95) == n


def whole(*figures: Figure, limits: Limits) -> tuple[str, str, int | None]:
    verdict = decide(figures, RULES, frozenset(), limits)
    return verdict.decision, verdict.reason, verdict.checks[0].needed


def test_each_check_has_the_threshold_that_is_named_for_it() -> None:
    two = (rate(8, 100), rate(8, 100, protocol="absolute", rule="score"))
    assert gate(*two)[0] == "inconclusive"
    limits = Limits(0.10, {"pairwise": 0.2, "absolute/f": 0.03})
    found = decide(two, RULES, frozenset(), limits)
    assert [(check.threshold, check.decision) for check in found.checks] == [(0.2, "pass"), (0.03, "fail")]
    with pytest.raises(UsageError, match="absolute under f has no threshold"):
        decide(two, RULES, frozenset(), Limits(None, {"pairwise": 0.2}))


@pytest.mark.parametrize(
    ("invalid", "limits", "decision", "reason"),
    [
        (10, Limits(0.1), "pass", "is below 0.1"),
        (10, Limits(0.1, max_invalid_rate=0.05), "inconclusive", "10 of 110 verdicts are invalid"),
        (0, Limits(0.1, max_invalid_rate=0.0), "pass", "is below 0.1"),
        (0, Limits(0.1, min_n=101), "inconclusive", "fewer valid verdicts (100) than --min-n 101"),
    ],
)
def test_too_few_or_too_many_invalid_verdicts_never_pass(
    invalid: int, limits: Limits, decision: str, reason: str
) -> None:
    found = whole(rate(0, 100, invalid=invalid), limits=limits)
    assert (found[0], reason in found[1]) == (decision, True)
    # What they do not hide is a failure.
    assert whole(rate(100, 100, invalid=invalid), limits=limits)[0] == "fail"


def test_an_open_check_says_how_many_verdicts_would_settle_it() -> None:
    assert whole(rate(0, 10), limits=Limits(0.10))[2] == 29
    assert whole(rate(0, 10), limits=Limits(0.10, min_n=50))[2] == 50
    decision, reason, more = whole(rate(5, 100), limits=Limits(0.10))
    assert (decision, more) == ("inconclusive", 129)
    assert reason.endswith("do not settle 0.1; at this rate about 129 verdicts would")
    assert whole(rate(10, 100), limits=Limits(0.10))[2] is None
    # Beside another check a failure needs more than alone.
    assert whole(rate(29, 200), limits=Limits(0.10))[0] == "fail"
    assert whole(rate(29, 200), rate(14, 100, attack="g"), limits=Limits(0.10))[2] == 235
    # Dependent ones are worth less: more of them are needed.
    worth = Figure("flip_rate", "pairwise", None, "f", value=0.05, k=5, n=100, effective_n=50.0)
    assert whole(worth, limits=Limits(0.10))[2] == 2 * 129


@given(st.floats(0, 1), st.sampled_from([0.02, 0.1, 0.3, 0.5]), st.integers(1, 8))
def test_what_is_needed_does_settle_it(observed: float, threshold: float, checks: int) -> None:
    limits = Limits(threshold)
    n = needed(observed, threshold, limits, checks)
    if n is None:
        assert abs(observed - threshold) < 0.01
    elif observed < threshold:
        assert upper_bound(math.ceil(observed * n), n) < threshold
    else:
        assert checks * p_above(math.floor(observed * n), n, threshold) <= limits.alpha + 1e-12


def test_certify_makes_an_open_gate_fail() -> None:
    for certify, code in ((False, 3), (True, 1)):
        assert decide([rate(5, 100)], RULES, frozenset(), Limits(0.1, certify=certify)).exit_code == code
        assert decide([rate(0, 100)], RULES, frozenset(), Limits(0.1, certify=certify)).exit_code == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_flip_rate", 0.0), ("max_flip_rate", 1.0), ("max_flip_rate", math.nan), ("others", {"f": 2.0}),
        ("max_invalid_rate", -0.1), ("max_invalid_rate", 1.1), ("min_n", 0), ("confidence", 0.4), ("confidence", 1.0),
    ],
)  # fmt: skip
def test_limits_are_checked(field: str, value: object) -> None:
    given: dict[str, Any] = {field: value}
    with pytest.raises(UsageError, match="expected a"):
        Limits(**given)
