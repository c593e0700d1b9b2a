"""Test edits between two texts: all make the rewrite, any subset makes a text, each covers a word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Edit, apply_edits
from distract.studies.attack.minimal.alignment import match_words, settle_edges
from distract.studies.attack.minimal.edits import find_edits, group_edits

ALPHABET = [
    "a",
    "b",
    "the",
    " ",
    "  ",
    "\n",
    "\t",
    ".",
    ",",
    "**",
    "'",
    "-",
    "1",
    "é",
    "\u0301",
    "字",
    "かな",
    "क",
    "ि",
]
HOSTILE = ["\ud800", "\x00", "\u2028", "\u200d", "\U0001f469", "\r\n", "_", "[[A]]", "<|im_end|>", "{output_2}"]

texts = st.lists(st.sampled_from(ALPHABET + HOSTILE), max_size=14).map("".join) | st.text(max_size=20)


def changes(original: str, rewrite: str) -> list[list[tuple[str, str]]]:
    """Pairs of old and new text, grouped by phrase."""
    return [[(edit.old, edit.new) for edit in phrase] for phrase in group_edits(find_edits([original], [rewrite]))]


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", []),
    ("", "", []),
    # Equal numbers of words are replaced, and the punctuation stays.
    ("It might be, so.", "It would be, so.", [[("might", "would")]]),
    ("It may be so.", "It will become so.", [[("may", "will"), (" be", " become")]]),
    # Otherwise old words are removed and new ones added, each with the white space on one side.
    ("It might be so.", "It is so.", [[(" might", ""), (" be", ""), ("", " is")]]),
    ("Perhaps we think it.", "Now think it.", [[("", "Now "), ("Perhaps ", ""), ("we ", "")]]),
    ("it is so", "it is so, now and then", [[("", ","), ("", " now"), ("", " and"), ("", " then")]]),
    # Punctuation belongs to its word.
    ("it is so", "Definitely, it is so", [[("", "Definitely, ")]]),
    ("Certainly, it is so", "it is so", [[("Certainly, ", "")]]),
    ("so it is (or was) now", "so it is now", [[(" (or", ""), (" was)", "")]]),
    # Sentences and lines are added whole.
    ("It rains.", "It rains. So be it.", [[("", " So"), ("", " be"), ("", " it.")]]),
    ("The sun sets.", "The point. The sun sets.", [[("", "The "), ("", "point. ")]]),
    ("a\nb\nd", "a\nb\nc\nb\nd", [[("", "\nc"), ("", "\nb")]]),
    ("Say\nwhat it is\nnow", "Say\nthat\nnow", [[("\nwhat", ""), (" it", ""), (" is", ""), ("", "\nthat")]]),
    ("Say:\nwhat it is", "Say:\nthat is", [[("", "that "), ("what ", ""), ("it ", "")]]),
    ("one, the cat sat", "one, the dog ran, the cat sat", [[("", " the"), ("", " dog"), ("", " ran,")]]),
    ("x. y", "x. z. z", [[(" y", ""), ("", " z."), ("", " z")]]),
    # Markup, white space.
    ("very good", "**very** good", [[("", "**")], [("", "**")]]),
    ("a  b\n", "a b", [[("  ", " ")], [("\n", "")]]),
    ("", "Hello you", [[("", "Hello"), ("", " you")]]),
    ("gone now", "", [[("gone", ""), (" now", "")]]),
    # Scripts without spaces, and letters of several signs.
    ("这是好的。", "这是很好的！", [[("", "很")], [("。", "！")]]),
    ("हिन्दी भाषा", "हिन्दी की भाषा", [[("", " की")]]),
    ("don’t well-known 3.14", "do well-known 3.15", [[("don’t", "do")], [("3.14", "3.15")]]),
)
def test_edit_covers_a_word(original: str, rewrite: str, expected: list[list[tuple[str, str]]]) -> None:
    assert changes(original, rewrite) == expected


def test_edit_states_its_position() -> None:
    edits = find_edits(["Yes.", "It may be."], ["Yes.", "It is not."])
    assert edits == (Edit(1, 3, 6, "is", "may"), Edit(1, 6, 9, " not", " be"))
    assert apply_edits(["Yes.", "It may be."], edits[1:]) == ("Yes.", "It may not.")


def test_unequal_numbers_of_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="1 turns and 2: expected a rewrite with as many turns"):
        find_edits(["a"], ["a", "b"])


@given(st.lists(st.tuples(texts, texts), max_size=3))
def test_all_edits_give_the_rewrite_and_none_the_original(turns: list[tuple[str, str]]) -> None:
    original, rewrite = (tuple(pair[side] for pair in turns) for side in (0, 1))
    edits = find_edits(original, rewrite)
    assert apply_edits(original, edits) == rewrite
    assert apply_edits(original, ()) == original
    for edit in edits:
        assert original[edit.turn][edit.start : edit.end] == edit.old != edit.new
    for one, other in pairwise(edits):
        assert (one.turn, one.end) <= (other.turn, other.start)


@given(texts, texts, st.data())
def test_any_subset_of_edits_applies_in_any_order(original: str, rewrite: str, data: st.DataObject) -> None:
    edits = find_edits([original], [rewrite])
    subset = [edit for edit in edits if data.draw(st.booleans())]
    (text,) = apply_edits([original], subset)
    naive = original
    for edit in reversed(subset):
        naive = naive[: edit.start] + edit.new + naive[edit.end :]
    assert text == naive
    if len({edit.start for edit in subset}) == len(subset):
        assert apply_edits([original], data.draw(st.permutations(subset))) == (text,)


@given(texts, texts)
def test_phrases_join_adjacent_edits(original: str, rewrite: str) -> None:
    edits = find_edits([original], [rewrite])
    grouped = group_edits(edits)
    assert tuple(edit for phrase in grouped for edit in phrase) == edits
    for one, other in pairwise(grouped):
        assert one[-1].end < other[0].start


words = st.lists(st.sampled_from("abc"), max_size=12)


@given(words, words)
def test_as_many_words_match_as_possible(old: list[str], new: list[str]) -> None:
    matches = match_words(old, new)
    assert [old[i] for i, _ in matches] == [new[j] for _, j in matches]
    for side in (0, 1):
        places = [pair[side] for pair in matches]
        assert places == sorted(set(places))
    assert len(matches) == common_length(old, new)


def common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence, by dynamic programming."""
    above = [0] * (len(new) + 1)
    for word in old:
        row = [0]
        for column, other in enumerate(new):
            row.append(above[column] + 1 if word == other else max(row[column], above[column + 1]))
        above = row
    return above[-1]


@given(st.lists(st.sampled_from(["a", "b", "."]), max_size=12), st.lists(st.sampled_from(["a", "b", "."]), max_size=12))
def test_settling_keeps_matches_and_merges_no_changes(old: list[str], new: list[str]) -> None:
    ends = ["", *old, ""], ["", *new, ""]
    same = [(0, 0), *((i + 1, j + 1) for i, j in match_words(old, new)), (len(old) + 1, len(new) + 1)]
    texts = " ".join(old), " ".join(new)
    spans = tuple(
        [(0, 0), *((2 * at, 2 * at + 1) for at in range(len(words))), (len(text),) * 2]
        for words, text in zip((old, new), texts, strict=True)
    )
    settled = settle_edges(texts, (spans[0], spans[1]), same)
    assert [ends[0][i] for i, _ in settled] == [ends[1][j] for _, j in settled] == [ends[0][i] for i, _ in same]
    for matches in (settled, same):
        assert all(i < k and j < m for (i, j), (k, m) in pairwise(matches))
    counts = [sum((k - i, m - j) != (1, 1) for (i, j), (k, m) in pairwise(matches)) for matches in (settled, same)]
    assert counts[0] == counts[1]


@each("old, new", ("x " * 3000, "x y " * 2500), ("x y " * 1500, "x z " * 1500), ("z " + "x " * 3000, "x " * 6000))
def test_repeated_words_are_handled(old: str, new: str) -> None:
    assert apply_edits([old], find_edits([old], [new])) == (new,)
