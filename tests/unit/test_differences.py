"""Test the difference of two texts: both can be read from it, long ones are cut, and its cost is bounded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.printable import clean_text
from distract.rewriting.fidelity import facts
from distract.studies.differences import mark_difference

WORDS = [f"w{number}" for number in range(8000)]
TEXT = " ".join(WORDS)


def rebuild(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Put both sequences together again from their edits."""
    first, second = list[str](), list[str]()
    for what, a, b, c, d in facts.opcodes(old, new):
        assert (what == "equal") == (old[a:b] == new[c:d])
        first += old[a:b]
        second += new[c:d]
    return first, second


@given(st.text("ab c\n.\x1bé", max_size=60), st.text("ab c\n.\x1bé", max_size=60))
def test_difference_holds_both_texts(before: str, after: str) -> None:
    spans = mark_difference(before, after).spans
    for text, gone in ((before, "added"), (after, "removed")):
        left = "".join(one.text for one in spans if one.tone != gone)
        assert left.split() == clean_text(text).split()


def test_long_difference_shows_what_is_near_changes() -> None:
    middle = " ".join(WORDS[:300])
    shown = str(mark_difference(f"a {middle} b {middle}", f"c {middle} d {middle}", near=20))
    assert shown.count("[…]") == 2
    assert len(shown) < 200
    assert "[-a-]{+c+}" in shown


def test_long_change_is_cut() -> None:
    shown = str(mark_difference("a" * 100_000, "b " * 50_000, near=20))
    assert shown.startswith("[-aaa")
    assert (shown.count(" […] "), len(shown) < 300) == (2, True)


@each(
    "before, after",
    (TEXT, " ".join(f"{word}," for word in WORDS)),
    (TEXT, " ".join(f"{word} y{word}" for word in WORDS)),
    (TEXT, " ".join(WORDS[::-1])),
    (TEXT, "".join(WORDS)),
)
def test_difference_of_long_texts_is_bounded(before: str, after: str) -> None:
    # No timing is needed: an unbounded search takes a quarter of a minute for each.
    spans = mark_difference(before, after).spans
    assert "".join(one.text for one in spans if one.tone != "added") == before
    assert "".join(one.text for one in spans if one.tone != "removed") == after


@given(st.lists(st.sampled_from("abcdefgh"), max_size=24), st.lists(st.sampled_from("abcdefgh"), max_size=24))
def test_edits_lead_from_one_sequence_to_the_other(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for most in (0, 20, 10**6):
            patch.setattr(facts, "MOST_CELLS", most)
            assert rebuild(old, new) == (old, new)
