"""Test that long hostile texts take linear time, also those that once took more; test_growth.py looks for others."""

import json
import time
from collections.abc import Callable
from functools import partial

import pytest
from loops import each
from test_constraints_break import HOSTILE
from test_fidelity import PIECES
from test_parsers import FORMATS, LABELS, load_texts, read

from distract.core import registry
from distract.core.records import Case, Response
from distract.data import prompt_parts
from distract.data.constraints import breaks, check, list_kinds, parse
from distract.data.formats import native
from distract.data.tables import read_table
from distract.judging import parsers
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.claims import find_changes
from distract.testing.invariants.changes import restyle_response

N = 100_000
SAID = "So it is. The cat sat there."
RULES = registry.attacks()


def style(text: str) -> object:
    response = Response("x", (text,))
    return restyle_response(Case("c", ("Why?",), (response,)), response)


def lead(name: str, blank: str, n: int) -> object:
    return RULES[name].rewrite(blank * n + SAID, (), 0)


SLOW: dict[str, Callable[[int], object]] = {
    **{
        f"{name}: leading {what}": partial(lead, name, blank)
        for name in ("assertiveness", "prolixity", "sycophancy")
        for what, blank in (("blanks", " "), ("tabs", "\t"))
    },
    "fidelity: capitals": lambda n: inspect(("Why?",), (f"so {'A' * n} it is",), ("so it is",)),
    "fidelity: tildes before a backtick": lambda n: inspect(("Why?",), (f"{'~' * n}`",), ("so it is",)),
    "restyling: sentences in a line": lambda n: style("a. " * (2 * n)),
    "reading: hashes": lambda n: parsers.BRACKETS.read("#" * n, "AB"),
    "reading: verdicts in a sentence": lambda n: parsers.BRACKETS.read("[[A]]" * (n // 5), "AB"),
    "reading: verdicts in a row": lambda n: parsers.BRACKETS.read("|[[A]]" * (n // 6), "AB"),
    "reading: a fence that never closes": lambda n: parsers.BRACKETS.read("~" * n, "AB"),
    "reading: digits": lambda n: parsers.BRACKETS.read(f"[[{'7' * n}", "AB"),
    "reading: dots before a verdict": lambda n: parsers.BRACKETS.read(f"{',' * n}[[A]]", "AB"),
    "reading: outputs of a cut answer": lambda n: parsers.OUTPUT.read("output (a) better " * (n // 18), "ab", cut=True),
    "reading: braces": lambda n: parsers.JSON.read("{" * (3 * n), "AB"),
    "data: lines of a prompt": lambda n: prompt_parts.split_prompt(
        "a\n" * (3 * n), [parse({"kind": "punctuation:no_comma"})]
    ),
    "data: two": lambda n: prompt_parts.split_prompt(
        f"Make sure {'two ' * n}", [parse({"kind": "combination:two_responses"})]
    ),
    "data: responses of a case": lambda n: read_responses(n // 5),
}


def read_responses(count: int) -> None:
    responses = [{"author": f"x{i}", "text": "a"} for i in range(count)]
    (case,) = native.read(
        read_table((json.dumps({"id": "c", "prompt": "Why?", "responses": responses})).encode(), "cases.jsonl")
    )
    assert len(case.responses) == count


def cost(name: str, size: int) -> float:
    """Processor seconds."""
    begun = time.process_time()
    SLOW[name](size)
    return time.process_time() - begun


@pytest.mark.parametrize("name", SLOW)
def test_long_text_takes_linear_time(name: str) -> None:
    # Both sizes are timed together, so that quadratic growth gives a factor of 16 on any machine.
    assert cost(name, N) < 9 * max(cost(name, N // 4), 0.1)


@pytest.mark.parametrize("piece", PIECES)
def test_long_hostile_text_is_inspected_quickly(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a backtracking pattern would not end within any acceptable wait.
    assert inspect((text,), (text,), (text + "x",), marker=len).evidence


@pytest.mark.parametrize("piece", [*PIECES, "not ", "if a ", "then a b. ", "more than ", "A ", "a, "])
def test_long_hostile_text_ends(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    # No timing is needed: a superlinear search would not end within any acceptable wait.
    assert isinstance(find_changes(text, f"{text}x", text), list)


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


OPEN = load_texts("open_verdicts.jsonl")
"""Sets of 120 by writers who never saw the reader; each led to corrections. The last six of the first eighteen were
sealed: on their first runs 2, 1, 0, 1, 0 and 2 texts were read wrong, and 1, 1, 4, 2, 2 and 2 of 72 verdicts each
missed. Seven more, of the one reader for all prompts, follow; the last two were sealed: 0 wrong, 7 of 196 missed."""


def test_open_texts_are_never_misread_and_seldom_missed() -> None:
    readings = [(read(case), case["reading"], case["text"]) for case in OPEN]
    assert [text for reading, truth, text in readings if reading not in (None, truth)] == []
    missed = [text for reading, truth, text in readings if reading is None and truth]
    assert len(missed) <= 0.03 * sum(case["reading"] is not None for case in OPEN), missed


LENGTH = 20_000
MATERIAL = "So the verdict is [[A]] for them. " * 500


@each(
    "name, text, expected",
    ("brackets", "[[A]] " + "and/or " * LENGTH + "[[B]]", None),
    ("brackets", "x" + " " * LENGTH + "x", None),
    ("output", "_" * LENGTH, None),
    ("output", "*" * LENGTH, None),
    ("brackets", "“a " * LENGTH, None),
    ("brackets", ' "a' * LENGTH, None),
    ("brackets", " 'a" * LENGTH, None),
    ("brackets", "[[A]]. " * 2000, "A"),
    ("output", "Therefore, Output (a) is better. " * 2000, "a"),
    ("brackets", "".join(f'"[[A]] {number}" ' for number in range(1000)), None),
    ("brackets", "So the verdict is [[B]], for now. " * 1000, "B"),
    ("json", "{" * LENGTH, None),
    ("json", '{"a":' * LENGTH, None),
    ("brackets", "<think> " * LENGTH, None),
    ("brackets", "x </think> " * LENGTH, None),
    ("brackets", "(" * LENGTH, None),
    ("brackets", "[[" * LENGTH, None),
    ("brackets", "not " * LENGTH + "[[A]]", None),
    ("brackets", "I ignore it, " * LENGTH + "[[A]]", None),
    ("brackets", "*\n" * LENGTH + "[[A]]", "A"),
    ("brackets", "[[A]]" + "\n*" * LENGTH, "A"),
    ("brackets", "| a " * LENGTH + "| [[A]] |", None),
    ("brackets", "|" * LENGTH + "\n" + "|" * LENGTH + " [[A]] |", "A"),
    ("brackets", "Question:\n" * LENGTH + "[[A]]", None),
    ("brackets", "final " * LENGTH + "[[A]]", None),
    ("brackets", "[[A]] " + "is the " * LENGTH + "loser", None),
    ("output", "Output (a)\n" * 2000 + "Output (b)", None),
    ("json", 'Rejected: {"choice": "A"}\n' * 1000, None),
)
def test_long_texts_parse_quickly(name: str, text: str, expected: str | None) -> None:
    assert FORMATS[name].read(text, LABELS[name], [MATERIAL]) == expected
