"""Find words with an opposite, such as *more* and *less*."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from distract.data.lexicon import PARTS
from distract.rewriting.fidelity.facts import READ

_COMPARATIVES = (
    ("more|greater|larger|bigger|higher", "less|fewer|smaller|lower"),
    ("faster|quicker|sooner|swifter", "slower|more slowly"),
    ("longer|taller|wider|deeper", "shorter|narrower|shallower"),
    ("hotter|warmer", "colder|cooler"),
    ("older|oldest", "younger|youngest|newer"),
    ("better|best|stronger|strongest|easier|easiest", "worse|worst|weaker|weakest|harder|hardest|less well"),
    ("most|largest|biggest|highest|maximum", "least|smallest|lowest|minimum"),
    ("cheaper|cheapest", "dearer|costlier|pricier"),
    ("heavier|heaviest|thicker|thickest", "lighter|lightest|thinner|thinnest"),
)
_DIRECTIONS = (
    ("above|over", "below|under|beneath"),
    ("before|prior|preced\\w+|earlier|antecedent|beforehand", "after|afterwards|following|later|subsequent\\w*"),
    (
        "increas\\w*|rises?|rising|rose|climb\\w*|grows?|growing|grew|raises?|augment\\w*",
        "decreas\\w*|falls?|falling|fell|drops?|declin\\w*|shrinks?|lowers?|reduc\\w*|diminish\\w*",
    ),
    ("hot|warm", "cold|cool"),
    ("upwards?|upper|top", "downwards?|bottom"),
    ("left", "right"),
    ("north\\w*", "south\\w*"),
    ("east\\w*", "west\\w*"),
    ("first", "last"),
    ("inside|inner", "outside|outer"),
    ("always", "never"),
    ("gain\\w*|wins?", "lose|loses|losing"),
    ("opens?|opened", "close|closes|closed"),
)
_AXES = [
    (re.compile(rf"\b(?:{plus})\b"), re.compile(rf"\b(?:{minus})\b")) for plus, minus in (*_COMPARATIVES, *_DIRECTIONS)
]
_COMPARATIVE = re.compile(rf"\b(?:{'|'.join(map('|'.join, _COMPARATIVES[1:]))})\b")
_SIDE = {
    word: (axis, side)
    for axis, sides in enumerate(_COMPARATIVES[1:])
    for side, words in enumerate(sides)
    for word in words.split("|")
}
_ON_AN_AXIS = re.compile(rf"\b(?:{'|'.join(map('|'.join, (*_COMPARATIVES, *_DIRECTIONS)))})\b")


@lru_cache(PARTS)
def find_sides(clause: str) -> Sequence[tuple[bool, bool]]:
    """Return for each axis whether a clause names its one side and its other; empty if it names no side of any."""
    if not _ON_AN_AXIS.search(clause):
        return ()
    return [(bool(plus.search(clause)), bool(minus.search(clause))) for plus, minus in _AXES]


@lru_cache(READ)
def find_comparatives(text: str) -> Sequence[tuple[list[str], list[str]]]:
    """Find the comparatives of a text by axis and side."""
    by_axis: list[tuple[list[str], list[str]]] = [([], []) for _ in _COMPARATIVES[1:]]
    for word in _COMPARATIVE.findall(text):
        axis, side = _SIDE[word]
        by_axis[axis][side].append(word)
    return by_axis
