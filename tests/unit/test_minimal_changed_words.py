"""Test the descriptions of edits, and the words that flip most often."""

from __future__ import annotations

from dataclasses import replace

from builders import small
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.printable import line
from distract.core.records import Edit
from distract.studies.attack.minimal.changed_words import FlipWord, count_words, describe_edits
from distract.studies.attack.minimal.edits import find_edits


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", ()),
    ("It might be so.", "It is so.", ('"might be" → "is"',)),
    ("It is so.", "It is definitely so.", ('+ "definitely"',)),
    ("Maybe it is so.", "it is so.", ('− "Maybe"',)),
    ("It is so.", "It was so!", ('"is" → "was"', '"." → "!"')),
    ("It  is", "It is", ("white space",)),
    ("It is [bold]so", "It is \x1b[1mso", ('"bold]so" → "1mso"', '+ "\\x1b"')),
)
def test_changes_are_described(original: str, rewrite: str, expected: tuple[str, ...]) -> None:
    assert sorted(describe_edits(find_edits([original], [rewrite]))) == sorted(expected)


def test_part_of_a_phrase_is_quoted_verbatim() -> None:
    edits = find_edits(["It might be so."], ["It is so."])
    assert describe_edits(edits[:1]) == ('− "might"',)
    assert describe_edits([edits[0], edits[2]]) == ('− "might"', '+ "is"')


def test_long_phrases_are_cut() -> None:
    (phrase,) = describe_edits([Edit(0, 0, 0, "word " * 40, "")])
    assert len(phrase) == 84
    assert phrase.endswith('word…"')
    assert describe_edits([Edit(0, 0, 3, "abcdef", "abc")], width=5) == ('"abc" → "abcd…"',)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_description_is_one_line(original: str, rewrite: str) -> None:
    for phrase in describe_edits(find_edits([original], [rewrite])):
        assert phrase == line(phrase)


def test_words_are_counted_once_per_flip() -> None:
    flips = [
        small("It might be so.", 'It IS "definitely" so, definitely.'),
        small("It might, so.", "It is so."),
        small("good", "**good**"),
    ]
    assert count_words(flips) == (
        FlipWord("is", "added", 2),
        FlipWord("**", "added", 1),
        FlipWord(",", "added", 1),
        FlipWord("definitely", "added", 1),
    )
    assert count_words([]) == ()


def test_replacement_counts_only_the_new_words() -> None:
    assert count_words([small("It might be so.", "It must be so.")]) == (FlipWord("must", "added", 1),)
    assert count_words([small("It might be so.", "It be so.")]) == (FlipWord("might", "removed", 1),)


def test_word_on_both_sides_of_a_change_is_not_counted() -> None:
    flip = replace(small("a b", "c d"), edits=(Edit(0, 0, 3, "is: so.", "so, it"),))
    assert count_words([flip]) == (FlipWord("is", "added", 1),)
