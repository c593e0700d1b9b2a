"""The edits between a response and its rewrite: words that match, groups that belong together, and how to show them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Literal

from distract.core.printable import line
from distract.core.records import Case


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one turn: about a word replaced, inserted or deleted, with the white space around it."""

    turn: int  # index of the turn
    start: int  # range of characters of the original turn that it replaces; empty for an insertion
    end: int
    new: str  # empty for a deletion
    old: str


@dataclass(frozen=True, slots=True)
class MinimalFlip:
    """A flip, and the smallest subset of its edits that was found to be sufficient."""

    case: Case
    protocol: str
    rule: str | None  # the rule by which a scoring protocol is decided
    attack: str
    rewritten: str  # author of the rewritten response
    severity: int | None  # of that response
    other: str  # author of the response that had won, which is unchanged
    edits: tuple[Edit, ...]  # the sufficient subset
    of: int  # number of single edits between the original and the whole rewrite
    original: tuple[str, ...]  # the turns before
    turns: tuple[str, ...]  # the original with only ``edits`` applied
    before: tuple[float, float]  # strengths of the rewritten and the other response in the original pair
    after: tuple[float, float]  # the same with only ``edits`` applied
    comparisons: int  # number of different texts judged in the search
    requests: int  # number of different requests, those of the original and of the whole rewrite included
    invalid: int  # number of those texts without a valid verdict, which counts as no flip
    minimal: bool  # without any single edit the verdict is valid and no flip; False if the search ended before that


def apply_edits(original: Sequence[str], edits: Iterable[Edit]) -> tuple[str, ...]:
    """Apply edits to turns; edits that insert at the same place keep their order."""
    parts: list[list[str]] = [[] for _ in original]
    done = [0] * len(original)
    for edit in sorted(edits, key=attrgetter("turn", "start", "end")):
        parts[edit.turn] += [original[edit.turn][done[edit.turn] : edit.start], edit.new]
        done[edit.turn] = edit.end
    return tuple("".join([*part, text[at:]]) for part, text, at in zip(parts, original, done, strict=True))


MOST = 1 << 29
"""Maximum number of pairs of words, without common start and end, for which to find the longest common sequence."""

Spans = Sequence[tuple[int, int]]
"""The places of the words of a text, between an empty word at either end."""

WordMatches = Sequence[tuple[int, int]]
"""Words that two texts have in common, in order, as pairs of word numbers."""

_SENTENCE, _CLAUSE = ".!?…。！？", ",;:—，、；："  # characters that end one


def match_words(old: Sequence[str], new: Sequence[str]) -> WordMatches:
    """Find the longest sequence of words that both texts have in common.

    Bit-parallel (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): one addition of long integers per old
    word. All sums are kept, one bit per pair of words; beyond ``MOST`` pairs only the common start and end count.
    """
    shorter = min(len(old), len(new))
    head = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    tail = next((k for k in range(shorter - head) if old[-1 - k] != new[-1 - k]), shorter - head)
    middle = new[head : len(new) - tail]
    if len(middle) * (len(old) - head - tail) > MOST:
        middle = []
    places: dict[str, int] = {}
    for column, word in enumerate(middle):
        places[word] = places.get(word, 0) | 1 << column
    # A bit is 0 if the longest sequence grows with that column.
    row = every = (1 << len(middle)) - 1
    rows = [row]
    for word in old[head : len(old) - tail]:
        hit = row & places.get(word, 0)
        row = (row + hit | row - hit) & every
        rows.append(row)
    matches = []
    at, column = len(rows) - 1, len(middle)
    while at and column:
        if rows[at] >> column - 1 & 1:
            column -= 1
            continue
        at -= 1
        if rows[at] >> column - 1 & 1:
            column -= 1
            matches.append((head + at, head + column))
    ends = ((len(old) - k, len(new) - k) for k in range(tail, 0, -1))
    return [*((k, k) for k in range(head)), *reversed(matches), *ends]


def settle_edges(texts: tuple[str, str], spans: tuple[Spans, Spans], same: WordMatches) -> WordMatches:
    """Move insertions and deletions so that they begin and end with a sentence or line, if possible.

    A sentence added at the end of a text ends in a full stop, and so does the one before it: which of the two is new is
    open. Here it is the last.
    """
    words = [[text[start:end] for start, end in places] for text, places in zip(texts, spans, strict=True)]
    matches = list(same)
    for at in range(len(matches) - 1):
        (i, j), (k, m) = matches[at : at + 2]
        if (k == i + 1) == (m == j + 1):
            continue
        # Find the text with the extra words, and their place.
        side = int(k == i + 1)
        start, end = matches[at][side] + 1, matches[at + 1][side]
        lowest = -_count_moves(words[side], matches, at, end - 1, start - 1, -1)
        highest = _count_moves(words[side], matches, at + 1, start, end, 1)
        place, block = (texts[side], spans[side]), (start, end)
        scores = {move: sum(_score_edge(*place, word + move) for word in block) for move in range(lowest, highest + 1)}
        best = max(scores, key=lambda move: (scores[move], -abs(move)))
        size = end - start if best < 0 else start - end
        for moved in range(at + 1 + min(best, 0), at + 1 + max(best, 0)):
            old, new = matches[moved]
            matches[moved] = (old, new + size) if side else (old + size, new)
    return matches


def _count_moves(words: Sequence[str], same: WordMatches, match: int, leaves: int, enters: int, step: int) -> int:
    """Count by how many words a block can move one way without touching another change.

    It can move if the word it leaves equals the one it takes in.
    """
    moved = 0
    while 0 < match < len(same) - 1 and words[leaves] == words[enters]:
        (i, j), (k, m) = same[match], same[match + step]
        if (k, m) != (i + step, j + step):
            break
        moved, match, leaves, enters = moved + 1, match + step, leaves + step, enters + step
    return moved


def _score_edge(text: str, spans: Spans, word: int) -> int:
    """Score a place before a word as the edge of a change: 4 for a line, 3 a sentence, 2 a clause, 1 a word."""
    before, last = gap(text, spans, word), text[max(0, spans[word - 1][1] - 1)]
    if word in (1, len(spans) - 1) or "\n" in before:
        return 4
    return 3 if last in _SENTENCE else 2 if last in _CLAUSE else int(before != "")


def gap(text: str, spans: Spans, word: int) -> str:
    """Return the text before a word."""
    return text[spans[word - 1][1] : spans[word][0]]


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
        if grouped and (grouped[-1][-1].turn, grouped[-1][-1].end) == (edit.turn, edit.start):
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
        places: tuple[Spans, Spans] = (old[i : k + 1], new[j : m + 1])
        if len(places[0]) != len(places[1]):
            places = _chunks(original, places[0]), _chunks(rewrite, places[1])
        edit = _replace_words if len(places[0]) == len(places[1]) else _delete_and_insert
        yield from edit(turn, texts, *places)


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
    chunks = [spans[0]]
    for start, end in spans[1:-1]:
        before, last = chunks[-1]
        if len(chunks) > 1 and last == start and not (text[last - 1].isalnum() and text[start].isalnum()):
            chunks[-1] = before, end
        else:
            chunks.append((start, end))
    return [*chunks, spans[-1]]


WIDTH = 80
"""Maximum number of characters of a phrase to show."""

ChangeKind = Literal["added", "removed"]


@dataclass(frozen=True, slots=True)
class FlipWord:
    """A word that flips verdicts: lower case, without punctuation around it, with its number of smallest flips."""

    text: str
    change: ChangeKind
    flips: int


def count_words(smallest: Iterable[MinimalFlip]) -> tuple[FlipWord, ...]:
    """Count in how many of the smallest flips each word plays a part."""
    counts = Counter[tuple[str, ChangeKind]]()
    for flip in smallest:
        changed = set[tuple[str, ChangeKind]]()
        for texts in _join_phrases(flip.edits):
            old, new = (dict.fromkeys(map(_strip_punctuation, text.split())) for text in texts)
            added, removed = [word for word in new if word not in old], [word for word in old if word not in new]
            # Of a phrase that adds no word, count those removed.
            change: ChangeKind = "added" if added else "removed"
            changed |= {(word.casefold(), change) for word in added or removed}
        counts.update(changed)
    words = (FlipWord(text, change, flips) for (text, change), flips in counts.items())
    return tuple(sorted(words, key=lambda word: (-word.flips, word.text, word.change)))


def describe_edits(edits: Iterable[Edit], width: int = WIDTH) -> tuple[str, ...]:
    """Describe edits, adjacent ones as one change: ``"might be" → "is"``, ``+ "very"``, ``− "perhaps"``."""
    phrases = list[str]()
    for old, new in (map(line, texts) for texts in _join_phrases(edits)):
        one, other = (f'"{text if len(text) <= width else text[: width - 1] + "…"}"' for text in (old, new))
        change = f"{one} → {other}" if old and new else f"+ {other}" if new else f"− {one}"
        phrases.append("white space" if old == new else change)
    return tuple(phrases)


def _join_phrases(edits: Iterable[Edit]) -> Iterator[tuple[str, str]]:
    for phrase in group_edits(edits):
        yield "".join(edit.old for edit in phrase), "".join(edit.new for edit in phrase)


def _strip_punctuation(word: str) -> str:
    inside = [at for at, sign in enumerate(word) if unicodedata.category(sign)[0] in "LN"]
    return word[inside[0] : inside[-1] + 1] if inside else word
