"""Test that long hostile texts are inspected, examined and broken in linear time."""

from __future__ import annotations

import pytest
from test_constraints_break import (
    HOSTILE,
)
from test_fidelity import PIECES

from distract.data.constraints import breaks, check, list_kinds, parse
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.meaning_signs import signs


@pytest.mark.parametrize("piece", PIECES)
def test_long_hostile_text_is_inspected_quickly(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a backtracking pattern would not end within any acceptable wait.
    _, evidence = inspect((text,), (text,), (text + "x",), marker=len)
    assert dict(evidence)["marker_after"] == len(text) + 1


@pytest.mark.parametrize("piece", [*PIECES, "not ", "if a ", "then a b. ", "more than ", "A ", "a, "])
def test_long_hostile_text_ends(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a superlinear search would not end within any acceptable wait.
    assert isinstance(signs(text, f"{text}x"), list)


PHRASES = (*PIECES, "\n\n", ">\n", "# ", "actually ", "...", "here is a ", "i ", "i have made the ", "note ",
           "all the ", "please provide the ", "user", "very very ", "a b c d e f g h ", "sorry i ", "in a ", "the \n",
)  # fmt: skip


@pytest.mark.parametrize("piece", PHRASES)
def test_long_hostile_text_takes_little_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    # No timing is needed: a backtracking pattern would not end within any acceptable wait.
    assert inspect(("Go on.",), ("It is late.",), (text,), marker=len)[0]
    assert inspect(("Go on.",), (text,), ("It is late.",), marker=len)[0]


EDGES = ["a. ", "*", "* a\n", "***\n", "\n", " ", "[", "<<", '"', "`", "?", "1", "A very ", "\ud800İ", "-", "{", "p."]


@pytest.mark.parametrize("piece", EDGES)
def test_long_hostile_text_breaks_quickly(piece: str) -> None:
    assert {raw["kind"] for raw in HOSTILE} == set(list_kinds())
    text = piece * (200_000 // len(piece))
    # No timing is needed: superlinear code would not end within any acceptable wait.
    for whole in (text, f'"{text} My answer is no. *a* <<b>> [c] P.P.S SECTION 1 end."'):
        for raw in HOSTILE:
            constraint = parse(raw)
            held = check(constraint, whole)
            edits = next(breaks(constraint, whole), None)
            assert (edits is not None) is (held and raw["kind"] != "language:response_language")
