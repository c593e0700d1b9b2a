"""Test that decisions of invariants at the threshold are seldom wrong."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from test_invariants_planted import Test, biased_cases, failure

from distract.judging.judge import Judge
from distract.models.scripted import make_planted
from distract.testing import invariants


def test_decisions_at_the_threshold_are_seldom_wrong(tmp_path: Path) -> None:
    with Judge("j", make_planted("bold=0.2"), store=tmp_path / "s") as judge:
        for number in range(20):
            cases = biased_cases(f"s{number}-", 40)
            rate: Test = partial(invariants.distractor_invariant, cases=cases, max_violation_rate=0.2, confidence=0.9)
            failure(rate, judge)
        decisions = [finding.decision for finding in judge.findings]
    # A tenth of 20 each way; more than 6 of them has a chance of about 0.002.
    assert max(decisions.count("pass"), decisions.count("fail")) <= 6
    assert len(decisions) == 20
