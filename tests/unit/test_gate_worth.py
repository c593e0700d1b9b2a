"""Test the limits on what a style is worth to a judge: shift and exchange rate of finished runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import near, row, scored
from gate_builders import make_run, rows
from loops import each
from test_gate_view import render_gate

from distract.core.errors import UsageError
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.studies.gate import github, junit
from distract.studies.gate.finished import decide, decide_excess
from distract.studies.gate.limits import LARGEST, Limits
from distract.studies.gate.verdict import Verdict

USUAL = [0.2, 0.3, 0.4] * 20
"""Gains of the rewrites of 60 prompts, 0.3 on average."""


def gain_rows(gains: Sequence[float], losses: Sequence[float] = (), attack: str = "f") -> list[Row]:
    """A labelled pair for each gain of its good response by a rewrite, and for each loss by broken requirements."""
    parts = [
        replace(one, label="a") if one.target is None else one for one in rows("0" * len(gains), protocol="absolute")
    ]
    parts = [replace(one, attack=attack) if one.target else one for one in parts]
    for at, gain in enumerate(gains):
        judged = [scored((4, 4 + gain), (4, 4))]
        parts.append(row(f"c{at}", judged, design="fixed", attack=attack, target="b", protocol="absolute"))
    for at, loss in enumerate(losses):
        for severity in (1, 2, 3):
            judged = [scored((4, 4 - loss * severity), (4, 4))]
            parts.append(row(f"c{at}", judged, design="severity", target="b", protocol="absolute", severity=severity))
    return parts


def run_of(*parts: Sequence[Row], **more: Any) -> LoadedRun:
    usual: dict[str, Any] = {"attacks": ["f"], "protocols": {"absolute": ["score", "rating"]}}
    return make_run([one for part in parts for one in part], **{**usual, **more})


def gate(gains: Sequence[float], losses: Sequence[float] = (), **limits: Any) -> Verdict:
    return decide(run_of(gain_rows(gains, losses)), Limits(**limits))


@each(
    "gains, limit, decision, reason",
    (USUAL, 0.5, "pass", "the shift is below 0.5"),
    (USUAL, 0.2, "fail", "absolute under f: lower bound of the shift 0.282 is above 0.2"),
    (USUAL, 0.3, "inconclusive", "the bounds of the shift 0.282 to 0.318 do not settle 0.3"),
    ([-3, -2, -4] * 20, 0, "pass", "the shift is below 0"),  # a loss is never too large
    ([0.0] * 60, 0.01, "pass", "the shift is below 0.01"),
    ([0.0] * 60, 0, "inconclusive", "do not settle 0"),
    ([0.0] * 29, 0.5, "inconclusive", "only 29 prompts; at least 30 are needed for a mean"),
    ([2.0] * 29, 0.5, "inconclusive", "only 29 prompts"),
    ([], 0.5, "inconclusive", "no response was compared with its rewrite"),
)
def test_shift_is_bounded(gains: list[float], limit: float, decision: str, reason: str) -> None:
    verdict = gate(gains, max_shift=limit)
    assert (verdict.decision, verdict.threshold) == (decision, None)
    assert reason in verdict.reason
    (check,) = verdict.checks
    assert (check.measure, check.unit, check.k, check.n) == ("shift", "points", None, len(gains))


@each(
    "losses, limit, decision, reason",
    ([0.2] * 60, 2, "pass", "the exchange rate is below 2"),
    ([0.2] * 60, 1, "fail", "lower bound of the exchange rate 1.408"),
    ([0.2] * 60, 1.5, "inconclusive", "do not settle 1.5"),
    ([], 2, "inconclusive", "no broken requirements were judged"),
    ([0.0] * 60, 2, "inconclusive", "broken requirements are not shown to cost anything"),
    ([-0.1] * 60, 2, "inconclusive", "broken requirements are not shown to cost anything"),
    ([0.5, -0.45] * 30, 1000, "inconclusive", "to ∞ do not settle 1000"),
)
def test_exchange_rate_is_bounded(losses: list[float], limit: float, decision: str, reason: str) -> None:
    verdict = gate(USUAL, losses, max_exchange_rate=limit)
    assert verdict.decision == decision
    assert reason in verdict.reason


def test_failure_allows_for_the_number_of_checks() -> None:
    gains, limits = [0.1, 0.3, 0.4] * 20, Limits(max_shift=0.235)
    assert decide(run_of(gain_rows(gains)), limits).decision == "fail"
    parts = [gain_rows(gains if name == "f" else [0.0] * 60, attack=name) for name in "fghijklm"]
    verdict = decide(run_of(*parts, attacks=list("fghijklm")), limits)
    assert verdict.decision == "inconclusive"
    assert "is above 0.235, but may be so by chance among 8 checks" in verdict.reason
    assert verdict.checks[0].lower is not None
    assert verdict.checks[0].lower > 0.235


def test_confidence_sets_the_bounds() -> None:
    bounds = [gate(USUAL, max_shift=0.5, confidence=sure).checks[0] for sure in (0.5, 0.9, 0.95, 0.999)]
    widths = [check.upper - check.lower for check in bounds if check.upper is not None and check.lower is not None]
    assert (widths, widths[0]) == (sorted(widths), near(0))


def test_unreadable_and_few_verdicts_do_not_pass() -> None:
    parts = gain_rows(USUAL)
    lost = [
        replace(one, judgments=(replace(one.judgments[0], failure="no verdict"),))
        if one.design == "fixed" and int(one.case[1:]) < 20
        else one
        for one in parts
    ]
    assert "20 of 60 verdicts are invalid" in decide(run_of(lost), Limits(max_shift=0.5)).reason
    assert "--min-n 61" in decide(run_of(parts), Limits(max_shift=0.5, min_n=61)).reason


def test_worths_join_the_other_checks() -> None:
    both = Limits(0.1, max_shift=0.2, max_exchange_rate=9)
    verdict = decide(run_of(gain_rows(USUAL, [0.2] * 60)), both)
    assert [(check.measure, check.decision) for check in verdict.checks] == [
        ("flip_rate", "pass"),
        ("shift", "fail"),
        ("exchange_rate", "pass"),
    ]
    assert (verdict.decision, verdict.threshold) == ("fail", 0.1)
    passed = decide(run_of(gain_rows(USUAL, [0.2] * 60)), replace(both, max_shift=0.5))
    assert passed.reason == "the flip rate is below 0.1 and the shift is below 0.5 and the exchange rate is below 9"


def test_judge_without_discernment_never_passes() -> None:
    parts = [
        replace(one, label="a" if int(one.case[1:]) % 2 else "b") if one.label else one for one in gain_rows([0.0] * 60)
    ]
    assert decide(run_of(parts), Limits(max_shift=1)).decision == "inconclusive"
    # Without pairs, nothing shows whether it has any.
    alone = [one for one in parts if one.design == "fixed"]
    assert "no pair was judged before a rewrite" in decide(run_of(alone), Limits(max_shift=1)).reason
    assert decide(run_of(parts, flaw="the run is unfinished"), Limits(max_shift=1)).decision == "inconclusive"


def test_noise_and_worths_are_gated_together() -> None:
    run = run_of(gain_rows(USUAL), rows("0" * 60, protocol="absolute", attack="null"), controls=["null"])
    verdict = decide_excess(run, Limits(0.3, max_shift=0.5))
    assert [check.measure for check in verdict.checks] == ["excess_flip_rate", "shift"]
    assert verdict.decision == "pass"


@each("name", "margin", "max_shift", "max_exchange_rate")
@each("amount", -0.1, float("nan"), float("inf"), LARGEST + 1)
def test_wrong_amounts_are_refused(name: str, amount: float) -> None:
    with pytest.raises(UsageError, match=rf"^--{name.replace('_', '-')} .*: expected a number from 0 to 1000"):
        Limits(**{name: amount})  # type: ignore[arg-type]


def test_worths_are_in_every_output() -> None:
    verdict = decide(run_of(gain_rows(USUAL, [0.5, -0.45] * 30)), Limits(0.1, max_shift=0.2, max_exchange_rate=1000))
    text = render_gate(verdict)
    assert ["absolute", "by", "score,", "f", "0.30", "0.28", "to", "0.32", "60", "0.2", "fail"] in [
        one.split() for one in text.splitlines()
    ]
    assert "∞" in text
    document = verdict.document()
    assert [check["unit"] for check in document["checks"]] == ["share", "points", "requirements"]
    summary = github.summary(verdict, {}, judge="j")
    assert "| <code>f (shift)</code> | 0.30 points | 0.28 to 0.32 | 60 | 0.2 | **FAIL** |" in summary
    assert any("largest shift: 0.2" in one for one in github.annotations(verdict, {}))
    root = ElementTree.fromstring(
        junit.format_junit(verdict, {}, judge="j", began=datetime.fromtimestamp(0, UTC), seconds=1)
    )
    faults = {case.get("name"): [child.get("type") for child in case] for case in root.iter("testcase")}
    assert faults == {"f": [], "f (shift)": ["shift"], "f (exchange rate)": ["inconclusive"]}
