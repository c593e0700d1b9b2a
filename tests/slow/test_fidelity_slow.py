"""Test the first layer of fidelity on long hostile texts."""

from __future__ import annotations

import pytest
from test_fidelity import PIECES

from distract.rewriting.fidelity import inspect


@pytest.mark.parametrize("piece", PIECES)
def test_long_hostile_text_is_inspected_quickly(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a backtracking pattern would not end within any acceptable wait.
    _, evidence = inspect((text,), (text,), (text + "x",), marker=len)
    assert dict(evidence)["marker_after"] == len(text) + 1
