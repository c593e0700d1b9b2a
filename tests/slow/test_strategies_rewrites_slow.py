"""Test drawn rewrites: strength, shrinking, and replay of a failure without the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from drawing import draw_examples, simplest
from hypothesis import given, settings
from test_strategies_rewrites import ATTACKS, TWEAKSET, rewritten_pairs

from distract.core import registry
from distract.core.attack import Attack
from distract.core.backend import Batch
from distract.core.plugin import Comparison
from distract.core.records import Case, Request
from distract.judging.judge import Judge
from distract.models.scripted import make_planted
from distract.studies.attack.minimal.edits import find_edits
from distract.testing import strategies
from distract.testing.strategies import drawn_rewrites


def test_rewrites_range_from_weak_to_whole() -> None:
    counts = set()
    for case in draw_examples(strategies.rewrites("assertiveness", data=TWEAKSET[:1]), 60):
        for original, rewrite in rewritten_pairs(case):
            whole = drawn_rewrites._full_rewrite(
                registry.get_attack("assertiveness"), drawn_rewrites.strip_rewrites(case), original, 0
            )
            most = len(find_edits(original.turns, whole.turns))
            counts.add(len(find_edits(original.turns, rewrite.turns)) / most)
    assert min(counts) < 0.2
    assert max(counts) >= 0.9
    assert len(counts) > 8


def test_all_parts_of_a_case_shrink() -> None:
    case = simplest(strategies.rewrites("assertiveness"), lambda case: True)
    assert case.prompt == ("How do I make tea?",)
    assert [len(find_edits(old.turns, new.turns)) for old, new in rewritten_pairs(case)] == [1, 1]


@pytest.mark.parametrize("attack", [None, *ATTACKS, "severity-3"])
def test_few_draws_are_rejected(attack: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[bool] = []
    changed = drawn_rewrites._is_changed

    def counted(attack: Attack, case: Case, seed: int) -> bool:
        attempts.append(changed(attack, case, seed))
        return attempts[-1]

    monkeypatch.setattr(drawn_rewrites, "_is_changed", counted)
    kinds = None if attack == "severity-3" else ["prose"]
    assert len(draw_examples(strategies.rewrites(attack, kinds=kinds), 30)) == 30
    # Controls and `prose` change little or nothing in plain prose, so a sentence that they change is added, at one more
    # try or two.
    most = {"null": 0.5, None: 0.5, "prose": 0.5, "placebo": 0.75}.get(attack, 0.1)
    assert attempts.count(False) <= len(attempts) * most


class Counting:
    """A planted judge that counts its requests."""

    def __init__(self) -> None:
        self.planted = make_planted("bold")
        self.identity, self.reads_slots = self.planted.identity, self.planted.reads_slots
        self.asked = 0

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        self.asked += len(wanted)
        return self.planted.reply(requests, wanted)


def run_failing_test(chosen: settings) -> tuple[str, int]:
    """The message and the number of requests of a failing test, run without memory of earlier runs."""
    backend = Counting()
    with Judge("bold", backend) as judge:

        @chosen
        @given(strategies.rewrites("assertiveness", data=TWEAKSET))
        def is_not_distracted(case: Case) -> None:
            first, second = case.originals
            before = judge.judgments(Comparison(case, first, second))[0].preferred
            losers = {"a": second, "b": first}
            for old, new in rewritten_pairs(case):
                if before in losers and old == losers[before]:
                    pair = (new, second) if old == first else (first, new)
                    assert judge.judgments(Comparison(case, *pair))[0].preferred == before, (old.text, new.text)

        with pytest.raises(AssertionError) as raised:
            is_not_distracted()
    return str(raised.value), backend.asked


# Hypothesis either keeps the failing example and tries it first, or draws the same examples again.
@pytest.mark.parametrize("again", [False, True], ids=["kept", "drawn again"])
def test_failing_example_replays_without_the_model(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = strategies.unhurried(derandomize=again)
    message, arguments = run_failing_test(chosen)
    assert arguments > 0
    assert (tmp_path / ".distract/examples").exists() != again
    assert run_failing_test(chosen) == (message, 0)
    assert not (tmp_path / ".hypothesis/examples").exists()
