"""Texts that took quadratic time take linear time; tests/slow/test_growth.py looks for others.

The bound is one of the processor, and twenty times what is needed: these texts took ten times the bound and more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from distract import reading, registry
from distract.constraints import parse
from distract.datasets import native, splitting
from distract.fidelity import inspect
from distract.invariants.rewriting import restyled
from distract.minimal import edits
from distract.records import Case, Response

N = 100_000
BLANKS = " " * N
SAID = "So it is. The cat sat there."
RULES = registry.attacks()


def style(text: str) -> object:
    response = Response("x", (text,))
    return restyled(Case("c", ("Why?",), (response,)), response)


SLOW: dict[str, Callable[[], object]] = {
    **{
        f"{name}: leading {what}": partial(RULES[name].rewrite, blank * N + SAID, (), 0)
        for name in ("assertiveness", "prolixity", "sycophancy")
        for what, blank in (("blanks", " "), ("tabs", "\t"))
    },
    "fidelity: capitals": lambda: inspect(("Why?",), (f"so {'A' * N} it is",), ("so it is",)),
    "fidelity: tildes before a backtick": lambda: inspect(("Why?",), (f"{'~' * N}`",), ("so it is",)),
    "restyling: sentences in a line": lambda: style("a. " * (2 * N)),
    "reading: hashes": lambda: reading.BRACKETS.read("#" * N, "AB"),
    "reading: verdicts in a sentence": lambda: reading.BRACKETS.read("[[A]]" * (N // 5), "AB"),
    "reading: verdicts in a row": lambda: reading.BRACKETS.read("|[[A]]" * (N // 6), "AB"),
    "reading: a fence that never closes": lambda: reading.BRACKETS.read("~" * N, "AB"),
    "reading: digits": lambda: reading.BRACKETS.read(f"[[{'7' * N}", "AB"),
    "reading: dots before a verdict": lambda: reading.BRACKETS.read(f"{',' * N}[[A]]", "AB"),
    "reading: outputs of a cut answer": lambda: reading.OUTPUT.read("output (a) better " * (N // 18), "ab", cut=True),
    "reading: braces": lambda: reading.JSON.read("{" * (3 * N), "AB"),
    "data: lines of a prompt": lambda: splitting.split("a\n" * (3 * N), [parse({"kind": "punctuation:no_comma"})]),
    "data: two": lambda: splitting.split(f"Make sure {'two ' * N}", [parse({"kind": "combination:two_responses"})]),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_long_text_takes_linear_time(name: str) -> None:
    begun = time.process_time()
    SLOW[name]()
    assert time.process_time() - begun < 8


def test_many_responses_of_one_case_are_read() -> None:
    responses = [{"author": f"x{i}", "text": "a"} for i in range(20_000)]
    begun = time.process_time()
    (case,) = native.read(json.dumps({"id": "c", "prompt": "Why?", "responses": responses}), "cases.jsonl")
    assert time.process_time() - begun < 8
    assert len(case.responses) == 20_000


def test_texts_of_too_many_words_are_compared_at_their_ends_only() -> None:
    # All common words of these would be sought in 500 MB.
    old, new = (" ".join(["start", *([word] * 40_000), "end"]) for word in ("a", "b"))
    found = edits((f"{old} c",), (f"{new} c",))
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
    assert reading.BRACKETS.read(text, "AB") == expected
