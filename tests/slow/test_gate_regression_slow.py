"""Test whether a judge got worse: error rates of the decision, and real runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from command_result import Run
from test_gate_regression import compare, decide

from distract.core.runs import LoadedRun, load
from distract.studies.gate.limits import Limits


@pytest.mark.parametrize(
    ("n", "before", "now", "most"),
    [(42, 0.05, 0.10, 0.05), (42, 0.05, 0.15, 0.02), (42, 0.10, 0.30, 0.02), (100, 0.05, 0.10, 0.07),
     (100, 0.05, 0.15, 0.02)],
)  # fmt: skip
def test_actual_rise_seldom_passes(n: int, before: float, now: float, most: float) -> None:
    """At most 5% of judges pass whose rate rises by the largest accepted amount, with outcomes correlated by half."""
    rng, passed, trials = random.Random(4), 0, 250
    for _ in range(trials):
        pairs = []
        for _ in range(n):
            one, other = rng.random(), rng.random()
            pairs.append((one < before, (one if rng.random() < 0.5 else other) < now))
        old, new = ("".join("01"[pair[at]] for pair in pairs) for at in (0, 1))
        passed += compare(old, new).decision == "pass"
    assert passed / trials <= most


@pytest.mark.parametrize("prompts", [None, 25])
def test_unchanged_judge_fails_no_more_often_than_allowed(prompts: int | None) -> None:
    """All pairs of a prompt share a rate, which is the same in both runs."""
    rng, failed, trials = random.Random(5), 0, 1000
    for _ in range(trials):
        rates = [rng.choice((0.05, 0.3, 0.7)) for _ in range(prompts or 50)]
        old, new = ("".join("01"[rng.random() < rates[i % len(rates)]] for i in range(50)) for _ in range(2))
        failed += compare(old, new, prompts=prompts).decision == "fail"
    assert failed / trials <= 0.05


def test_real_runs_of_planted_judges_decide_correctly(run: Run) -> None:
    def attack(judge: str, out: str, limit: str = "all", generator: str = "rules") -> LoadedRun:
        basic = ("--protocol", "pairwise", "--protocol", "absolute")
        options = ("--generator", generator, "--attack", "prolixity", *basic, "--limit", limit, "--json")
        assert run("attack", "--judge", judge, "--measure", "flip_rate", "--out", out, *options).code == 0
        return load(Path(out))

    fair, longer = attack("planted:fair", "fair"), attack("planted:longer", "longer")
    verdict = decide(fair, longer, Limits())
    assert verdict.decision == "fail"
    assert [check.decision for check in verdict.checks] == ["fail", "fail"]
    assert [(check.protocol, check.rule, check.reference) for check in verdict.checks] == [
        ("absolute", "score", 0.0),
        ("pairwise", None, 0.0),
    ]
    assert "judge: planted:fair, then planted:longer" in verdict.notes
    assert not [note for note in verdict.notes if note.startswith(("versions", "code", "prompts"))]
    assert decide(longer, fair, Limits()).decision == "pass"
    again = decide(fair, attack("planted:fair", "again"), Limits())
    # 200 cases show the absence of a rise.
    assert (again.decision, again.notes) == ("pass", ())
    lenient = Limits(max_rise=0.2)
    assert decide(fair, load(Path("again")), lenient).decision == "pass"
    weaker = decide(fair, attack("planted:longer=0.05", "weaker"), lenient)
    assert weaker.decision == "pass"
    # The run in memory and the run read back give the same verdict.
    assert decide(load(Path("fair")), load(Path("longer")), Limits()).document() == verdict.document()
    few = decide(fair, attack("planted:fair", "few", limit="3"), Limits())
    assert few.decision == "inconclusive"
    assert any(note.startswith("limit: ") for note in few.notes)
    recorded = decide(fair, attack("planted:fair", "recorded", generator="recorded"), Limits())
    assert any(note.startswith("generator: rules, then recorded") for note in recorded.notes)
    assert any("rewrites of both runs differ in their texts" in note for note in recorded.notes)
