"""Test harmless changes: every word, all code and the format stay."""

from __future__ import annotations

import re

from builders import case
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Case, Constraint, Response
from distract.data import datasets
from distract.data.constraints import check
from distract.rewriting.fidelity.facts import code_spans
from distract.testing.invariants.changes import restyle_response

TWEAKS = datasets.load("tweakset").cases


def restyle(text: str, *constraints: Constraint) -> list[str]:
    response = Case("c", ("?",), (Response("x", (text,)),), constraints=constraints)
    return [one.text for one in restyle_response(response, response.responses[0])]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


@each(
    "text, expected",
    ("Plain.", []),
    ("Some words.", ["**Some** words."]),
    ("**Bold** and *slanted*, *too*.", ["Bold and slanted, too."]),
    ("Call __init__ on *.txt,*.py, (*2*) and {*a*, *b*}", ["**Call** __init__ on *.txt,*.py, (*2*) and {*a*, *b*}"]),
    ("# a comment\nimport os", []),
    ("    - name", []),
    ("# Head\n\n* one\n* two", ["Head\n\n- one\n- two", "## Head\n\n\n* one\n* two"]),
    ("- one\n- two", ["* one\n* two"]),
    ("One is one. Two is two.", ["**One** is one.  Two is two."]),
    ("“Quoted”,  they said.", ['"Quoted", they said.']),
    ("2 * 3 * 4 = 2*3*4, a_b_c", []),
    ("* * *", []),
    ("| a | b |\n|---|---|\n| One. Two | x |", []),
    ("`**code**  - x`\n```\n# not a head\n* x\n```", []),
)
def test_changes_match_their_descriptions(text: str, expected: list[str]) -> None:
    assert restyle(text) == expected


def test_change_that_breaks_the_format_is_left_out() -> None:
    bold = Constraint("detectable_format:number_highlighted_sections", (("num_highlights", 1),))
    assert restyle("*This* is it. That too.", bold) == ["*This* is it.  That too."]
    assert restyle("*This* is it. That too.")[0] == "This is it. That too."


@given(st.text(alphabet="ab.,!?*_#-+• \n`|“”é1漢", max_size=60))
def test_words_and_code_stay_whatever_the_text(text: str) -> None:
    for changes in restyle(text):
        assert changes != text
        assert words(changes) == words(text)
        assert [changes[a:b] for a, b in code_spans(changes)] == [text[a:b] for a, b in code_spans(text)]


def test_embedded_cases_keep_their_format_and_change() -> None:
    several = 0
    for one in TWEAKS[:20]:
        for response in one.originals:
            held = [check(constraint, response.text) for constraint in one.constraints]
            changes = restyle_response(one, response)
            several += bool(changes)
            for other in changes:
                assert [check(constraint, other.text) for constraint in one.constraints] == held
                assert (other.author, other.severity, other.attack) == (response.author, response.severity, None)
    assert several > 60


def test_every_turn_is_changed() -> None:
    two = Response("x", ("One two.", "Three four."))
    (changes,) = restyle_response(case(responses=(two,)), two)
    assert changes.turns == ("**One** two.", "**Three** four.")
