"""The placebo on every text of the embedded set: faithful, of the same tone and length, and seldom without effect."""

from __future__ import annotations

from functools import cache
from statistics import fmean

import pytest
from test_attacks import DISTRACTORS, PLACEBO
from test_attacks_slow import answers

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.data.constraints import check
from distract.rewriting.fidelity import inspect


@cache
def rewrites() -> list[tuple[str, str, str, tuple[Constraint, ...]]]:
    """Prompt, text, its placebo and constraints; each case has a good text and three low ones."""
    return [(prompt, text, PLACEBO.rewrite(text, given, 0), given) for prompt, text, _, given in answers(None)]


def test_rewrites_are_faithful_and_keep_constraints() -> None:
    rejected = list[str]()
    for prompt, text, new, constraints in rewrites():
        assert [check(c, new) for c in constraints] == [check(c, text) for c in constraints]
        rejected += inspect((prompt,), (text,), (new,), constraints)[0]
    assert len(rejected) <= 2, rejected


def test_length_stays() -> None:
    growth = [len(new) / len(text) - 1 for _, text, new, _ in rewrites()]
    assert max(map(abs, growth)) < 0.03
    assert abs(fmean(growth)) < 0.002


@pytest.mark.parametrize(("attack", "mean", "most"), list(zip(DISTRACTORS, (0, 2, 0), (0, 9, 0), strict=True)))
def test_no_feature_of_a_distractor_moves(attack: Attack, mean: float, most: float) -> None:
    """Recorded distractors move theirs by 7.9, 39 and 4.7 on average."""
    assert attack.marker
    moves = [attack.marker(new) - attack.marker(text) for _, text, new, _ in rewrites()]
    assert max(map(abs, moves)) <= most
    assert abs(fmean(moves)) <= mean


def test_most_texts_change() -> None:
    changed = [new != text for _, text, new, _ in rewrites()]
    assert fmean(changed[::4]) >= 0.85
    assert fmean(changed) >= 0.8
