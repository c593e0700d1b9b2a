"""What the text of a verdict means: a label, one of several words, a number on a scale, an order, several criteria.

``Words.pattern`` matches a verdict that stands alone, and ``Words.read`` says what it means. The words of every format
and of every user's prompt are values of ``Words``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from distract.core.vocabulary import any_of

Value = str | float | tuple[float, ...]
"""A label or an outcome; a score; the score of each criterion."""


class Unread(str):
    """The reason why a text has no verdict."""


class Absent(Unread):
    """The reason why a text is about something else than a verdict."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a verdict.

    Attributes:
        pattern: an expression for a verdict that stands alone, case aside; its group ``verdict`` is what ``read`` gets.
        read: says what such a text or a JSON value means.
        labels: the labels that a judge may write; empty for numbers on a scale.
    """

    pattern: str
    read: Callable[[Any], Value | Unread]
    labels: tuple[str, ...] = ()


_NUMBER = r"[-+−]?(?:\d++(?:[.,]\d++)?|\.\d++)"
_OUT_OF = rf"[\s*_`]*\]{{0,2}}[\s*_`]*(?:/|{any_of('of')})\s*\[{{0,2}}"
_SCORE = (
    rf"(?<![\w.,])(?:{_NUMBER}(?:{_OUT_OF}\s*{_NUMBER}|\s*(?:%|percent\b))?(?:\s*{any_of('units')})?|"
    r"[★⭐]{1,10}☆{0,9})"
)
_END = r"(?!\w|[.,]\d)"
_PARTS = re.compile(rf"({_NUMBER})(?:{_OUT_OF}\s*({_NUMBER})|\s*(%|percent))?")
_NOUN = r"(?:(?:response|assistant|answer|output|option|model)[\s_]+|(?:an?|the)\s+)?"
_EDGES = " \t\n.!\"'“”‘’()[]*`"


def fold(word: str) -> str:
    """Return the form in which words are compared: without markup, case, and the kind of white space."""
    return " ".join(remove_markup(word).casefold().split())


def remove_markup(text: str) -> str:
    """Remove the marks of bold, italic and code from a text."""
    return re.sub(r"(?<!\d)\*|\*(?!\d)|`|(?<!\w)_+|_+(?!\w)", "", text)


def choices(meanings: Mapping[str, str | float]) -> Words:
    """Words of which each has a meaning, such as ``{"A": "a", "tie": "tie"}`` or ``{"pass": 1, "fail": 0}``."""
    folded = {fold(word).strip(_EDGES) or fold(word): meaning for word, meaning in meanings.items()}
    listed = "|".join(r"[\s_]+".join(map(re.escape, word.split())) for word in sorted(folded, key=len, reverse=True))
    grades = {meaning for meaning in meanings.values() if not isinstance(meaning, str)}
    unlisted = Unread(f"the verdict is none of {', '.join(folded)}")

    def read(value: object) -> Value | Unread:
        if isinstance(value, bool):
            # A boolean is the best or the worst of two grades, whatever they are called.
            word, grade = str(value).lower(), max(grades, default=0) if value else min(grades, default=0)
            return folded.get(word, grade if len(grades) == 2 else unlisted)
        if not isinstance(value, str | int):
            return unlisted
        text = fold(str(value)[:1000]).strip(_EDGES)
        bare = re.sub(rf"\A{_NOUN}", "", text)
        return folded.get(text, folded.get(bare, unlisted))

    return Words(rf"(?<!\w){_NOUN}(?P<verdict>{listed})(?!\w)", read, tuple(folded))


def scale(low: float, high: float) -> Words:
    """Numbers from the lowest to the highest score: alone, of a whole (``7/10``), in percent, with a unit, as stars."""
    ends = f"{low:g} to {high:g}"

    def check(score: float, whole: float = high) -> float | Unread:
        if whole == 100 and (low, high) == (0, 1):
            score, whole = score / 100, high
        if whole != high:
            return Unread(f"out of another scale: expected {ends}")
        return score if low <= score <= high else Unread(f"out of scale: expected {ends}")

    def read(value: object) -> float | Unread:
        if isinstance(value, bool) and (low, high) == (0, 1):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return Unread("the score is not a number")
        if not isinstance(value, str):
            try:
                return check(float(value))
            except OverflowError:
                return check(math.inf)
        text = remove_markup(value[:100]).strip(_EDGES)
        if not re.fullmatch(f"(?i){_SCORE}", text):
            return Unread("the score is not a number")
        if text[0] in "★⭐":
            return check(text.count(text[0]), len(text) if "☆" in text else high)
        match = _PARTS.match(text.lower())
        assert match
        whole = _float(match[2]) if match[2] else 100.0 if match[3] else high
        return check(_float(match[1]), whole)

    return Words(rf"(?P<verdict>{_SCORE}){_END}", read)


def _float(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "."))


Labels = tuple[str, ...]


def _match_label(text: str, labels: Labels) -> str | None:
    label = re.sub(r"(?i)\A(?:response|assistant)\s+", "", text.strip(" *_\"'`"))
    return next((known for known in labels if known.lower() == label.lower()), None)


def _read_label(text: str, labels: Labels) -> str | None:
    rating = re.fullmatch(
        r"(?:(?:rating|score)[:\s]\s*)?(\d+)(?:\.0+)?(?:\s*(?:/|out of)\s*(\d+))?", text, re.IGNORECASE
    )
    return _match_label(rating[1] if rating and rating[2] in (None, labels[-1]) else text, labels)


def _read_grade(text: str, labels: Labels) -> str | None:
    sides = re.fullmatch(r"([A-Za-z])\s*([<>]{1,2})\s*([A-Za-z])", text)
    if not sides or len(set(sides[2])) > 1:
        return None
    better, worse = (sides[1], sides[3]) if sides[2][0] == ">" else (sides[3], sides[1])
    is_pair = {better.upper(), worse.upper()} == {label.upper() for label in labels}
    return _match_label(better, labels) if is_pair else None


def _read_ranking(text: str, labels: Labels) -> str | None:
    """Read an order such as ``b > A = C`` as ``B>A=C``; None unless it has every label once."""
    tiers = [[part.strip().upper() for part in tier.split("=")] for tier in text.split(">")]
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return None
    return ">".join("=".join(sorted(tier)) for tier in tiers)


def _make(pattern: str, read: Callable[[str, Labels], str | None], labels: Labels) -> Words:
    """Make the words of a format of ours, which are texts."""
    unlisted = Unread(f"the verdict is none of {', '.join(labels)}")
    return Words(pattern, lambda text: (isinstance(text, str) and read(text, labels)) or unlisted, labels)


@lru_cache(maxsize=64)
def labels(names: Labels) -> Words:
    """Letters, of responses or for a tie; or whole numbers, the highest last."""
    number = rf"(?P<verdict>\d+)(?:\s*(?:/|out of)\s*{names[-1]})?"
    return _make(number if names[0].isdigit() else r"(?:response |assistant )?(?P<verdict>[a-z])", _read_label, names)


@lru_cache(maxsize=64)
def outputs(names: Labels) -> Words:
    """Outputs (a) and (b)."""
    return _make(r"(?:output\s*)?\(?\s*(?P<verdict>[ab])\s*\)?", _match_label, names)


@lru_cache(maxsize=64)
def grades(names: Labels) -> Words:
    """``A>B`` and ``A>>B``: the better of two."""
    return _make(r"(?P<verdict>[a-z]\s*>{1,2}\s*[a-z])", _read_grade, names)


@lru_cache(maxsize=64)
def letters(names: Labels) -> Words:
    """Letters of which the case counts."""
    return _make("(?P<verdict>[a-z])", lambda text, names: text if text in names else None, names)


@lru_cache(maxsize=64)
def ranking(names: Labels) -> Words:
    """An order of all, such as ``B>A=C``."""
    return _make(r"(?P<verdict>[a-z](?:\s*[>=]\s*[a-z])+)", _read_ranking, names)


def criteria(names: Sequence[str], number: Words) -> Words:
    """A number for each criterion: in an object, or in a list of objects with a name; read in the order of names."""
    known = {_fold_key(name): name for name in names}

    def read(value: object) -> Value | Unread:
        scores: dict[str, float] = {}
        for key, item in _list_items(value):
            if (name := known.get(_fold_key(key))) is None:
                continue
            score = number.read(item)
            if not isinstance(score, float | int):
                return Unread(f"{name}: {score}")
            if scores.setdefault(name, score) != score:
                return Unread(f"ambiguous: it gives {name} two scores")
        missing = [name for name in names if name not in scores]
        for inner in [item for _, item in value if isinstance(item, list)] if not scores and _is_object(value) else ():
            if not isinstance(result := read(inner), Absent):
                return result
        if not scores:
            return Absent("no JSON object has a score for each criterion")
        return Unread(f"no score for {', '.join(missing)}") if missing else tuple(scores[name] for name in names)

    return Words("(?!)(?P<verdict>)", read)


def _is_object(value: object) -> TypeGuard[list[tuple[str, object]]]:
    return isinstance(value, list) and all(isinstance(item, tuple) for item in value)


def _fold_key(key: str) -> str:
    return fold(re.sub(r"[_-]", " ", key))


def _list_items(value: object) -> Iterator[tuple[str, object]]:
    """List names and scores; an object is a list of pairs, and a score may stand in an object of its own."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, tuple):
            yield item[0], _pick(item[1], "score", item[1])
        elif isinstance(name := _pick(item, "name", None), str):
            yield name, _pick(item, "score", None)


_KEYS = {"name": ("name", "criterion", "metric", "aspect"), "score": ("score", "value", "rating", "grade")}


def _pick(value: object, role: str, otherwise: object) -> object:
    """Return the value that has a role in an object."""
    pairs = [item for item in value if isinstance(item, tuple)] if isinstance(value, list) else []
    return next((item for key, item in pairs if fold(key) in _KEYS[role]), otherwise)
