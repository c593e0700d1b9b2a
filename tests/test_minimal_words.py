"""Edits in words: as a reader says them, and which of them flip most often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.minimal import Edit, Smallest, Word, applied, counts, edits, said
from distract.printable import line
from distract.records import Case


@pytest.mark.parametrize(
    ("original", "rewrite", "expected"),
    [
        ("It is so.", "It is so.", ()),
        ("It might be so.", "It is so.", ('"might be" → "is"',)),
        ("It is so.", "It is definitely so.", ('+ "definitely"',)),
        ("Maybe it is so.", "it is so.", ('− "Maybe"',)),
        ("It is so.", "It was so!", ('"is" → "was"', '"." → "!"')),
        ("It  is", "It is", ("white space",)),
        ("It is [bold]so", "It is \x1b[1mso", ('"bold]so" → "1mso"', '+ "\\x1b"')),
    ],
)
def test_changes_are_said(original: str, rewrite: str, expected: tuple[str, ...]) -> None:
    assert sorted(said(edits([original], [rewrite]))) == sorted(expected)


def test_a_part_of_a_phrase_is_said_as_it_stands() -> None:
    found = edits(["It might be so."], ["It is so."])
    assert said(found[:1]) == ('− "might"',)
    assert said([found[0], found[2]]) == ('− "might"', '+ "is"')


def test_long_phrases_are_cut() -> None:
    (phrase,) = said([Edit(0, 0, 0, "word " * 40, "")])
    assert len(phrase) == 84
    assert phrase.endswith('word…"')
    assert said([Edit(0, 0, 3, "abcdef", "abc")], width=5) == ('"abc" → "abcd…"',)


@given(st.text(max_size=30), st.text(max_size=30))
def test_whatever_is_said_is_one_line(original: str, rewrite: str) -> None:
    for phrase in said(edits([original], [rewrite])):
        assert phrase == line(phrase)


def small(original: str, rewrite: str) -> Smallest:
    found = edits([original], [rewrite])
    turns = applied([original], found)
    return Smallest(
        case=Case("c", ("?",), ()),
        protocol="p",
        rule=None,
        attack="f",
        rewritten="y",
        severity=None,
        other="x",
        edits=found,
        of=len(found),
        original=(original,),
        turns=turns,
        before=(0.0, 1.0),
        after=(1.0, 0.0),
        comparisons=1,
        requests=2,
        minimal=True,
    )


def test_words_are_counted_once_a_flip() -> None:
    flips = [
        small("It might be so.", 'It IS "definitely" so, definitely.'),
        small("It might, so.", "It is so."),
        small("good", "**good**"),
    ]
    assert counts(flips) == (
        Word("is", "added", 2),
        Word("might", "removed", 2),
        Word("**", "added", 1),
        Word(",", "added", 1),
        Word("be", "removed", 1),
        Word("definitely", "added", 1),
    )
    assert counts([]) == ()


def test_a_word_on_both_sides_of_a_change_is_no_part_of_it() -> None:
    whole = small("a b", "c d")
    both = [Edit(0, 0, 3, "is: so.", "so, it")]
    assert counts([whole])[0] == Word("a", "removed", 1)
    kept = Smallest(**{name: getattr(whole, name) for name in Smallest.__slots__} | {"edits": tuple(both)})
    assert counts([kept]) == (Word("is", "added", 1), Word("it", "removed", 1))
