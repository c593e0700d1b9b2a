"""Test signs of a changed meaning on long hostile texts."""

from __future__ import annotations

import pytest
from test_fidelity import PIECES

from distract.rewriting.fidelity.meaning_signs import signs


@pytest.mark.parametrize("piece", [*PIECES, "not ", "if a ", "then a b. ", "more than ", "A ", "a, "])
def test_long_hostile_text_ends(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a superlinear search would not end within any acceptable wait.
    assert isinstance(signs(text, f"{text}x"), list)
