"""Texts that took quadratic time take linear time; tests/slow/test_growth.py looks for others."""

from __future__ import annotations

import pytest

from distract.judging import parsers
from distract.studies.attack.minimal.edits import find_edits


def test_texts_of_too_many_words_are_compared_at_their_ends_only() -> None:
    # All common words of these would be sought in 500 MB.
    old, new = (" ".join(["start", *([word] * 40_000), "end"]) for word in ("a", "b"))
    found = find_edits((f"{old} c",), (f"{new} c",))
    assert "".join(edit.new for edit in found).count("b") == 40_000
    assert not any("start" in edit.old or "end" in edit.old for edit in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[A]]" * 2, "A"),
        ("| a | b |\n|---|---|\n| " + "x | " * 900 + "[[A]] |", None),
        ("# user\n[[A]]", None),
        ("[[A]]\n### instruction\n[[B]]", "A"),
        ("[[A]]\n[user]\n[[B]]", "A"),
        ("[[A]]\n<user>\n[[B]]", "A"),
        ("[[A]]\n- [/INST]\n[[B]]", "A"),
    ],
)
def test_what_is_read_in_linear_time_is_read_as_before(text: str, expected: str | None) -> None:
    assert parsers.BRACKETS.read(text, "AB") == expected
