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
from typing import Any

from distract.core.outcomes import FAILS, PASSES
from distract.core.vocabulary import any_of
from distract.judging.parsers.answers import normalise_letters

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


_NUMBER = r"[-+−–]?(?:\d++(?:[.,]\d++)?|\.\d++)"
_OUT_OF = rf"[\s*_`]*\]{{0,2}}[\s*_`]*(?:/|{any_of('of')})\s*\[{{0,2}}"
_SCORE = (
    rf"(?<![\w.,<≥≤~≈])(?<!\W>)(?<!^>)(?:{_NUMBER}(?:{_OUT_OF}\s*{_NUMBER}|\s*(?:%|percent\b))?(?:\s*{any_of('units')})?|"
    r"[★⭐](?:\s?[★⭐☆]){0,9})"
)
_END = r"(?!\w|[.,:⁄]\d|⁄|[+~½])"
_PARTS = re.compile(rf"({_NUMBER})(?:{_OUT_OF}\s*({_NUMBER})|\s*(%|percent))?")
_NOUN = r"(?:(?:response|assistant|answer|output|option|model)[\s_]+|(?:an?|the)\s+(?=\w\w))?"
_EDGES = " \t\n!\"'“”‘’()[]*`"


def fold(word: str) -> str:
    """Return the form in which words are compared: without markup, case, and the kind of white space."""
    return " ".join(remove_markup(normalise_letters(word)).casefold().split())


def strip_edges(word: str) -> str:
    """Return a folded word without the marks around it, unless it is only marks; a number keeps its leading point."""
    text = fold(word)
    return text.strip(_EDGES).rstrip(". ") or text


def remove_markup(text: str) -> str:
    """Remove the marks of bold, italic and code from a text."""
    return re.sub(r"(?<!\d)\*|\*(?!\d)|`|(?<!\w)_+|_+(?!\w)", "", text)


def choices(meanings: Mapping[str, str | float]) -> Words:
    """Words of which each has a meaning, such as ``{"A": "a", "tie": "tie"}`` or ``{"pass": 1, "fail": 0}``."""
    folded = {strip_edges(word): meaning for word, meaning in meanings.items()}
    written = sorted({*folded, *map(normalise_letters, meanings)}, key=len, reverse=True)
    listed = "|".join(r"[\s_]+".join(map(re.escape, word.split())) for word in written)
    unlisted = Unread(f"the verdict is none of {', '.join(folded)}")

    def read(value: object) -> Value | Unread:
        if isinstance(value, bool):
            # A boolean is also what is usually called so: "pass", "yes", "correct".
            kind = str(value).lower()
            known = {folded[word] for word in (PASSES if value else FAILS) if len(word) > 1 and word in folded}
            return folded.get(kind, known.pop() if len(known) == 1 else unlisted)
        if not isinstance(value, str | int):
            return unlisted
        text = strip_edges(str(value)[:1000])
        bare = re.sub(rf"\A{_NOUN}", "", text)
        return folded.get(text, folded.get(bare, folded.get(text.replace("_", " "), unlisted)))

    return Words(rf"(?<!\w){_NOUN}(?P<verdict>{listed})(?!\w|-\w|[.,:]\d|\s?%)", read, tuple(folded))


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
        text = strip_edges(value[:100])
        if not re.fullmatch(f"(?i){_SCORE}", text):
            return Unread("the score is not a number")
        if text[0] in "★⭐":
            stars = re.sub(r"\s", "", text)
            return check(len(stars) - stars.count("☆"), len(stars) if "☆" in stars else max(5, len(stars)))
        match = _PARTS.match(text)
        assert match
        numbers = [_read_float(part, high) for part in match.groups()[:2] if part]
        if None in numbers:
            return Unread("ambiguous: a comma before three digits")
        return check(numbers[0] or 0.0, *([numbers[1] or 0.0] if match[2] else [100.0] if match[3] else []))

    # On a scale from 0, a dash before a number is a list's.
    sign = r"(?<![-−–]\s)" if low < 0 else ""
    return Words(rf"{sign}(?P<verdict>{_SCORE}){_END}", read)


def _read_float(text: str, high: float) -> float | None:
    """Read a number; None where a comma may separate thousands or a fraction."""
    text = re.sub("[−–]", "-", text)
    if re.fullmatch(r"-?[1-9]\d{0,2},\d{3}", text):
        return float(text.replace(",", "")) if high >= 1000 else None
    return float(text.replace(",", "."))


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
    known = {fold_key(name): name for name in names}

    def read_all(value: object) -> Value | Unread:
        whole = read(value)
        inner = [read(part) for part in _list_inner(value)] if isinstance(whole, Absent) else []
        results = {result for result in inner if not isinstance(result, Absent)} or {whole}
        return results.pop() if len(results) == 1 else Unread("ambiguous: it gives scores twice")

    def read(value: object) -> Value | Unread:
        scores: dict[str, float] = {}
        for key, item in _list_items(value):
            if (name := known.get(fold_key(key))) is None:
                continue
            score = number.read(item)
            if not isinstance(score, float | int):
                return Unread(f"{name}: {score}")
            if scores.setdefault(name, score) != score:
                return Unread(f"ambiguous: it gives {name} two scores")
        missing = [name for name in names if name not in scores]
        if not scores:
            return Absent("no JSON object has a score for each criterion")
        return Unread(f"no score for {', '.join(missing)}") if missing else tuple(scores[name] for name in names)

    return Words("(?!)(?P<verdict>)", read_all)


def _list_inner(value: object) -> list[object]:
    """List what an object holds under a usual name of scores."""
    pairs = [pair for pair in value if isinstance(pair, tuple)] if isinstance(value, list) else []
    return [item for key, item in pairs if fold(key) in _KEYS["scores"]]


def fold_key(key: str) -> str:
    """Return the form in which names of criteria are compared."""
    return fold(re.sub(r"[_-]", " ", key))


def _list_items(value: object) -> Iterator[tuple[str, object]]:
    """List names and scores; an object is a list of pairs, and a score may stand in an object of its own."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, tuple):
            yield item[0], _pick(item[1], "score", item[1])
        elif isinstance(name := _pick(item, "name", None), str):
            yield name, _pick(item, "score", None)
        elif isinstance(item, list):
            yield from (pair for pair in item if isinstance(pair, tuple))


_KEYS = {
    "name": ("name", "criterion", "metric", "aspect"),
    "score": ("score", "value", "rating", "grade"),
    "scores": ("scores", "criteria", "ratings", "grades", "evaluation", "assessment", "result", "results"),
}


def _pick(value: object, role: str, otherwise: object) -> object:
    """Return the value that has a role in an object."""
    pairs = [item for item in value if isinstance(item, tuple)] if isinstance(value, list) else []
    return next((item for key, item in pairs if fold(key) in _KEYS[role]), otherwise)
