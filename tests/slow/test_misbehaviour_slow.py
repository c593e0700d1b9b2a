"""Test detection of misbehaviour on long hostile texts."""

from __future__ import annotations

import pytest
from test_fidelity import PIECES

from distract.rewriting.fidelity import inspect

HOSTILE = (*PIECES, "\n\n", ">\n", "# ", "actually ", "...", "here is a ", "i ", "i have made the ", "note ",
           "all the ", "please provide the ", "user", "very very ", "a b c d e f g h ", "sorry i ", "in a ", "the \n",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_hostile_text_takes_little_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    # No timing is needed: a backtracking pattern would not end within any acceptable wait.
    assert inspect(("Go on.",), ("It is late.",), (text,), marker=len)[0]
    assert inspect(("Go on.",), (text,), ("It is late.",), marker=len)[0]
