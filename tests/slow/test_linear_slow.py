"""Test that texts that once took quadratic time take linear time; test_growth.py looks for others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from distract.core import registry
from distract.core.records import Case, Response
from distract.data import prompt_parts
from distract.data.constraints import parse
from distract.data.formats import native
from distract.data.tables import read_table
from distract.judging import parsers
from distract.rewriting.fidelity import inspect
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
