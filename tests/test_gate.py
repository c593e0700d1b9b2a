"""The gate's decisions, and that it fails closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.figure import Figure
from distract.gate import decide, least_n

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
    verdict = decide(figures, RULES, frozenset({"null", "none"}), threshold, flaw=flaw)
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
        "the run measured no flip rate of an attack (controls are not checked)",
    )


def test_it_fails_closed() -> None:
    assert gate() == ("inconclusive", "the run measured no flip rate of an attack (controls are not checked)")
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
