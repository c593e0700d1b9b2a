"""Test that texts that once took quadratic time take linear time; test_growth.py looks for others."""

from __future__ import annotations

from loops import each

from distract.judging import parsers
from distract.studies.attack.minimal.edits import find_edits


def test_very_long_texts_are_compared_at_their_ends_only() -> None:
    # A search for all common words of these texts would take 500 MB.
    old, new = (" ".join(["start", *([word] * 40_000), "end"]) for word in ("a", "b"))
    edits = find_edits((f"{old} c",), (f"{new} c",))
    assert "".join(edit.new for edit in edits).count("b") == 40_000
    assert not any("start" in edit.old or "end" in edit.old for edit in edits)


@each(
    "text, expected",
    ("[[A]]" * 2, "A"),
    ("| a | b |\n|---|---|\n| " + "x | " * 900 + "[[A]] |", None),
    ("# user\n[[A]]", None),
    ("[[A]]\n### instruction\n[[B]]", "A"),
    ("[[A]]\n[user]\n[[B]]", "A"),
    ("[[A]]\n<user>\n[[B]]", "A"),
    ("[[A]]\n- [/INST]\n[[B]]", "A"),
)
def test_linear_time_parser_reads_the_same(text: str, expected: str | None) -> None:
    assert parsers.BRACKETS.read(text, "AB") == expected
