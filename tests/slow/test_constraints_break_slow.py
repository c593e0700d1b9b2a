"""Test breaking edits on long hostile texts."""

from __future__ import annotations

import pytest
from test_constraints_break import (
    HOSTILE,
)

from distract.data.constraints import breaks, check, list_kinds, parse

PIECES = ["a. ", "*", "* a\n", "***\n", "\n", " ", "[", "<<", '"', "`", "?", "1", "A very ", "\ud800İ", "-", "{", "p."]


@pytest.mark.parametrize("piece", PIECES)
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
