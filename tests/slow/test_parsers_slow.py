"""Test parsing verdicts in a judge's own words on sealed and long texts."""

from __future__ import annotations

import pytest
from test_parsers import FORMATS, LABELS, load_texts, read

OPEN = load_texts("open_verdicts.jsonl")
"""Eighteen sets of 120 by writers who never saw the parser; each led to corrections. The last six were sealed:
on their first runs 2, 1, 0, 1, 0 and 2 texts were read wrong, and 1, 1, 4, 2, 2 and 2 of 72 verdicts each missed."""


def test_open_texts_are_never_misread_and_seldom_missed() -> None:
    readings = [(read(case), case["reading"], case["text"]) for case in OPEN]
    assert [text for reading, truth, text in readings if reading not in (None, truth)] == []
    missed = [text for reading, truth, text in readings if reading is None and truth]
    assert len(missed) <= 0.02 * sum(case["reading"] is not None for case in OPEN), missed


N = 20_000
MATERIAL = "So the verdict is [[A]] for them. " * 500


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("brackets", "[[A]] " + "and/or " * N + "[[B]]", None),
        ("brackets", "x" + " " * N + "x", None),
        ("output", "_" * N, None),
        ("output", "*" * N, None),
        ("brackets", "“a " * N, None),
        ("brackets", ' "a' * N, None),
        ("brackets", " 'a" * N, None),
        ("brackets", "[[A]]. " * 2000, "A"),
        ("output", "Therefore, Output (a) is better. " * 2000, "a"),
        ("brackets", "".join(f'"[[A]] {number}" ' for number in range(1000)), None),
        ("brackets", "So the verdict is [[B]], for now. " * 1000, "B"),
        ("json", "{" * N, None),
        ("json", '{"a":' * N, None),
        ("brackets", "<think> " * N, None),
        ("brackets", "x </think> " * N, None),
        ("brackets", "(" * N, None),
        ("brackets", "[[" * N, None),
        ("brackets", "not " * N + "[[A]]", None),
        ("brackets", "I ignore it, " * N + "[[A]]", None),
        ("brackets", "*\n" * N + "[[A]]", "A"),
        ("brackets", "[[A]]" + "\n*" * N, "A"),
        ("brackets", "| a " * N + "| [[A]] |", None),
        ("brackets", "|" * N + "\n" + "|" * N + " [[A]] |", "A"),
        ("brackets", "Question:\n" * N + "[[A]]", None),
        ("brackets", "final " * N + "[[A]]", None),
        ("brackets", "[[A]] " + "is the " * N + "loser", None),
        ("output", "Output (a)\n" * 2000 + "Output (b)", None),
        ("json", 'Rejected: {"choice": "A"}\n' * 1000, None),
    ],
    ids=range(28),
)
def test_long_texts_parse_quickly(name: str, text: str, expected: str | None) -> None:
    assert FORMATS[name].read(text, LABELS[name], [MATERIAL]) == expected
