"""Test severity attacks: the exact number of constraints breaks, facts stay, impossible ones change nothing."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.registry import attacks
from distract.data.constraints import check, parse
from distract.data.datasets import load
from distract.rewriting.fidelity import inspect

CASES = load("tweakset").cases
EVERY_OTHER = CASES[::2]
LOWER = {s: attacks()[f"severity-{s}"] for s in (1, 2, 3)}
GOOD = "the trip takes 3 hours and costs 9 euros"
THREE = tuple(
    parse({"kind": kind})
    for kind in ("punctuation:no_comma", "change_case:english_lowercase", "detectable_format:title")
)


@pytest.mark.parametrize("severity", LOWER)
def test_nearly_every_embedded_answer_can_be_made_worse_by_any_amount(severity: int) -> None:
    refused = []
    for case in EVERY_OTHER:
        good = case.responses[0]
        worse = LOWER[severity].rewrite(good.text, case.constraints, 0)
        reasons, _ = inspect(case.prompt, good.turns, (worse,), case.constraints, severity=severity)
        refused += [case.id] if reasons else []
        assert LOWER[severity].rewrite(good.text, case.constraints, 0) == worse
    assert len(refused) <= 0.05 * len(EVERY_OTHER)


def test_seed_chooses_the_constraint_to_break() -> None:
    case = CASES[0]
    broken = set()
    for seed in range(12):
        worse = LOWER[1].rewrite(case.responses[0].text, case.constraints, seed)
        broken |= {c.kind for c in case.constraints if not check(c, worse)}
    assert len(broken) == 3


@each("severity", *LOWER)
def test_broken_constraints_count_and_too_few_leave_the_text(severity: int) -> None:
    # The title is missing, so one constraint is broken before the attack.
    worse = LOWER[severity].rewrite(GOOD, THREE, 0)
    assert sum(not check(c, worse) for c in THREE) == severity
    assert LOWER[severity].rewrite(GOOD, (), 0) == GOOD


@given(st.text(), st.integers(0, 9), st.sampled_from(sorted(LOWER)))
def test_any_text_is_made_worse_or_left_alone(text: str, seed: int, severity: int) -> None:
    worse = LOWER[severity].rewrite(text, THREE, seed)
    assert worse == text or sum(not check(c, worse) for c in THREE) == severity


def test_severities_are_no_distractors() -> None:
    assert not any(attack.default or attack.control for attack in LOWER.values())
    raw = (resources.files("distract.data") / "tweakset.jsonl").read_text(encoding="utf-8")
    assert "severity-" not in {r.get("attack", "") for line in raw.splitlines() for r in json.loads(line)["responses"]}
