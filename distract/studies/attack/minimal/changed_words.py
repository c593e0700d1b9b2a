"""Describe the edits of one flip, and find the words that flip a judge most often."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from distract.core.printable import line
from distract.core.records import Edit, MinimalFlip
from distract.studies.attack.minimal.edits import group_edits

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
    counts = Counter[tuple[str, ChangeKind]](part for flip in smallest for part in _changed_words(flip.edits))
    words = (FlipWord(text, change, flips) for (text, change), flips in counts.items())
    return tuple(sorted(words, key=lambda word: (-word.flips, word.text, word.change)))


def describe_edits(edits: Iterable[Edit], width: int = WIDTH) -> tuple[str, ...]:
    """Describe edits, adjacent ones as one change: ``"might be" → "is"``, ``+ "very"``, ``− "perhaps"``."""
    return tuple(_describe_phrase(phrase, width) for phrase in group_edits(edits))


def _describe_phrase(phrase: tuple[Edit, ...], width: int) -> str:
    old, new = (line(text) for text in _join_texts(phrase))
    if old == new:
        return "white space"
    quoted = [f'"{text if len(text) <= width else text[: width - 1] + "…"}"' for text in (old, new)]
    return f"{quoted[0]} → {quoted[1]}" if old and new else f"+ {quoted[1]}" if new else f"− {quoted[0]}"


def _join_texts(phrase: Iterable[Edit]) -> tuple[str, str]:
    parts = list(phrase)
    return "".join(edit.old for edit in parts), "".join(edit.new for edit in parts)


def _changed_words(edits: Iterable[Edit]) -> set[tuple[str, ChangeKind]]:
    """Return the words added by one flip; for a phrase that adds none, the words removed."""
    words = set[tuple[str, ChangeKind]]()
    for phrase in group_edits(edits):
        old, new = (dict.fromkeys(map(_strip_punctuation, text.split())) for text in _join_texts(phrase))
        added, removed = [word for word in new if word not in old], [word for word in old if word not in new]
        change: ChangeKind = "added" if added else "removed"
        words |= {(word.casefold(), change) for word in added or removed}
    return words


def _strip_punctuation(word: str) -> str:
    inside = [at for at, sign in enumerate(word) if unicodedata.category(sign)[0] in "LN"]
    return word[inside[0] : inside[-1] + 1] if inside else word
