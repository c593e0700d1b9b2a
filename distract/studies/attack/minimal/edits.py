"""The edits between two texts, about a word each; any of them can be applied without the others.

All together make the rewrite exactly. A text with only some applied should still read well, so white space belongs to
an adjacent word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from distract.core.records import Edit
from distract.studies.attack.minimal.alignment import Spans, gap, match_words, settle_edges

_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u200c\u200d\ufe0f"
"""Marks that belong to a letter: accents, vowel signs, joiners."""

_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: each sign counts as a word."""

_LETTERS = f"(?:(?![{_ALONE}])[\\w{_MARKS}])+"
_WORD = re.compile(rf"[{_ALONE}]|{_LETTERS}(?:['’-]{_LETTERS}|[.,]\d+)*|([^\w\s])\1*")


def find_edits(original: Sequence[str], rewrite: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits that turn one text into another."""
    if len(original) != len(rewrite):
        raise ValueError(f"{len(original)} turns and {len(rewrite)}: expected a rewrite with as many turns as it had")
    pairs = enumerate(zip(original, rewrite, strict=True))
    return tuple(edit for turn, (old, new) in pairs if old != new for edit in _edit_turn(turn, old, new))


def group_edits(edits: Iterable[Edit]) -> tuple[tuple[Edit, ...], ...]:
    """Group adjacent edits: a reader sees them as one change."""
    grouped: list[list[Edit]] = []
    for edit in edits:
        last = grouped[-1][-1] if grouped else None
        if last is not None and (last.turn, last.end) == (edit.turn, edit.start):
            grouped[-1].append(edit)
        else:
            grouped.append([edit])
    return tuple(map(tuple, grouped))


def _edit_turn(turn: int, original: str, rewrite: str) -> Iterator[Edit]:
    texts = original, rewrite
    # Add an empty word at either end, so that every change lies between two unchanged words.
    old, new = ([(0, 0), *(word.span() for word in _WORD.finditer(text)), (len(text),) * 2] for text in texts)
    words = ([text[start:end] for start, end in spans[1:-1]] for text, spans in zip(texts, (old, new), strict=True))
    same = [(0, 0), *((i + 1, j + 1) for i, j in match_words(*words)), (len(old) - 1, len(new) - 1)]
    for (i, j), (k, m) in pairwise(settle_edges(texts, (old, new), same)):
        yield from _edit_gap(turn, texts, old[i : k + 1], new[j : m + 1])


def _edit_gap(turn: int, texts: tuple[str, str], old: Spans, new: Spans) -> Iterator[Edit]:
    if len(old) != len(new):
        old, new = _chunks(texts[0], old), _chunks(texts[1], new)
    yield from (_replace_words if len(old) == len(new) else _delete_and_insert)(turn, texts, old, new)


def _replace_words(turn: int, texts: tuple[str, str], old: Spans, new: Spans) -> Iterator[Edit]:
    """Replace word by word, each with the white space before it; the last also with that after it."""
    last = len(old) - 1
    head, tail = (gap(texts[0], old, at) == gap(texts[1], new, at) for at in (1, last))
    if last == 1 and head:
        return

    def place(spans: Spans, k: int) -> tuple[int, int]:
        start = spans[k][0] if k == 1 and head else spans[k - 1][1]
        return start, spans[k][1] if k < last - 1 or tail else spans[last][0]

    # Replace the white space if no word is between the two unchanged ones.
    for k in range(1, max(last, 2)):
        yield _make_edit(turn, texts, place(old, k), place(new, k))


def _delete_and_insert(turn: int, texts: tuple[str, str], old: Spans, new: Spans) -> Iterator[Edit]:
    """Delete old words and insert new ones, all with the white space on the same side."""
    original, rewrite = texts
    before, after = gap(original, old, 1), gap(original, old, len(old) - 1)
    head, tail = before == gap(rewrite, new, 1), after == gap(rewrite, new, len(new) - 1)
    if head and (not tail or (_is_boundary(before) and not _is_boundary(after))):
        at = old[1][0]
        yield from (_make_edit(turn, texts, (at, at), (one[0], two[0])) for one, two in pairwise(new[1:]))
        yield from (_make_edit(turn, texts, (one[0], two[0]), (0, 0)) for one, two in pairwise(old[1:]))
        return
    at = old[-2][1]
    deletions = [((one[1], two[1]), (0, 0)) for one, two in pairwise(old[:-1])]
    insertions = [((at, at), (one[1], two[1])) for one, two in pairwise(new[:-1])]
    places = [*deletions, *insertions]
    if not tail:
        # The last edit also changes the white space after it.
        (start, _), (first, _) = places.pop()
        places.append(((start, old[-1][0]), (first if insertions else new[0][1], new[-1][0])))
    yield from (_make_edit(turn, texts, *place) for place in places)


def _is_boundary(space: str) -> bool:
    """Return whether a gap should stay untouched: no white space, or the end of a line."""
    return not space or "\n" in space


def _make_edit(turn: int, texts: tuple[str, str], old: tuple[int, int], new: tuple[int, int]) -> Edit:
    return Edit(turn, *old, texts[1][slice(*new)], texts[0][slice(*old)])


def _chunks(text: str, spans: Spans) -> Spans:
    """Attach punctuation to words."""
    chunks = [spans[0]]
    for start, end in spans[1:-1]:
        before, last = chunks[-1]
        if len(chunks) > 1 and last == start and not (text[last - 1].isalnum() and text[start].isalnum()):
            chunks[-1] = before, end
        else:
            chunks.append((start, end))
    return [*chunks, spans[-1]]
