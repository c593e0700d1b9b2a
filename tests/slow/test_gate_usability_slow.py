"""Test on LLMBar and tweakset that a gate passes no planted judge that cannot tell good from bad."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from builders import row
from builders import verdict as verdict_of
from command_result import Run

from distract.studies.gate.usability import DiscernmentMonitor

NATURAL = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "Natural" / "dataset.json"
needs_llmbar = pytest.mark.skipif(not NATURAL.is_file(), reason=f"LLMBar is not in {NATURAL}")
RULES = ("--generator", "rules", "--limit", "all")


@needs_llmbar
@pytest.mark.parametrize(
    ("judge", "limits", "code"),
    [
        ("fair", ("--max-flip-rate", "0.1"), 3),  # a coin for each author, which never flips
        ("random", ("--max-flip-rate", "0.99"), 3),
        ("first", ("--max-flip-rate", "0.99"), 3),
        ("garbage", ("--max-flip-rate", "0.99"), 3),
        ("longer", ("--max-flip-rate", "0.1"), 1),
        ("bold", ("--max-flip-rate", "0.1"), 1),
    ],
)
def test_llmbar_passes_no_planted_judge(run: Run, judge: str, limits: tuple[str, ...], code: int) -> None:
    options = ("--judge", f"planted:{judge}", "--data", str(NATURAL), *RULES)
    live = run("gate", *options, *limits, "--json")
    assert live.code == code, live.err
    assert "yes" not in live.document["usable"].values()
    assert run("attack", *options, "--out", "r").code in (0, 3)
    assert run("gate", "r", *limits).code == code
    assert run("gate", "r", "--certify", *limits).code == 1
    # Even the largest shift is nothing if the judge is a coin.
    assert run("gate", "r", "--max-shift", "1000").code == 3


@pytest.mark.parametrize(
    ("judge", "limits", "code"),
    [
        ("fair", ("--max-flip-rate", "0.1"), 0),
        ("fair", ("--max-shift", "0.01", "--max-exchange-rate", "0.01"), 0),
        ("longer=0.3", ("--max-flip-rate", "0.5"), 0),
        ("longer=0.3", ("--max-flip-rate", "0.1"), 1),
        ("longer=0.3", ("--max-shift", "0.05"), 1),
        ("longer=0.3", ("--max-shift", "0.5"), 0),
        ("longer=0.3", ("--max-exchange-rate", "0.5"), 1),
        ("longer=0.3", ("--max-exchange-rate", "1.4"), 3),
        ("longer=0.3", ("--max-exchange-rate", "3"), 0),
        ("random", ("--max-exchange-rate", "1000"), 3),
    ],
)
def test_tweakset_is_decided_by_what_a_judge_knows(run: Run, judge: str, limits: tuple[str, ...], code: int) -> None:
    options = ("--judge", f"planted:{judge}", "--attack", "prolixity", *RULES)
    basic = ("--protocol", "pairwise", "--protocol", "absolute", "--measure", "flip", "--measure", "exchange_rate")
    assert run("attack", *options, *basic, "--out", "r").code == 0
    ran = run("gate", "r", *limits, "--json")
    assert ran.code == code, ran.out
    if "--max-flip-rate" in limits:
        assert run("gate", *options, *limits).code == code


def test_coins_are_called_usable_in_at_most_five_percent_of_gates() -> None:
    """However long they are watched; the worst time to stop is the best one for the judge."""
    draw, judgments = random.Random(0), (verdict_of("a"), verdict_of("b"), verdict_of("tie"))
    usable = 0
    for _ in range(300):
        monitor = DiscernmentMonitor("pairwise", None, labelled=True)
        for at in range(150):
            monitor.add([replace(row(f"c{at}", [draw.choice(judgments)]), label="a")])
        usable += monitor.assess().usable == "yes"
    assert usable / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5
