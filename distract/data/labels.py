"""Labels in tables of the user's own: which of two responses is better, or whether the only response is good.

A label names a response by its place (``A``, ``[[B]]``, ``Response 1 is better``, ``left``), its column, its model or
its text. Labels that could mean either response are refused, with an option that says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from distract.core.errors import DataError, UsageError
from distract.core.outcomes import FAILS, FIRST, NO_VERDICTS, PASSES, SECOND, TIES
from distract.core.records import Response
from distract.data.columns import SHAPES, WINNERS, Columns, MapError, normalise
from distract.data.fields import Item, describe
from distract.data.tables import Table

_TIES = frozenset((*TIES, "c"))  # [[C]] is a tie where [[A]] and [[B]] are responses
_FILLERS = frozenset(
    ("the", "is", "was", "and", "bit", "far", "much", "slightly", "significantly", "strongly", "clearly", "better",
     "best", "response", "answer", "output", "completion", "candidate", "generation", "reply", "text", "conversation",
     "model", "assistant", "option", "choice", "chosen", "winner", "prefer", "preferred", "wins", "won")
)  # fmt: skip
"""Words of a label that do not say which response it means; any other word makes it unknown."""

_WORD = re.compile(r"[^\W_]+")
_GRADED = re.compile(r"\W*([^\W_]+)\s*([<>]+|[=~≈])\s*([^\W_]+)\W*")
_ASIDE = re.compile(r"\b(?:than|over)\b.*|\ba (?=tie|draw)")
_SCORE = re.compile(r"-?\d+(\.5)?")
_LABEL = re.compile(r"(?!-?\d*\.\d)[^,=]{1,30}")
_NUMBERS = ["0", "1"], ["1", "2"]
_MOST_VALUES = 50
_MOST_NUMBERS = 11

Label = Callable[[Item, Sequence[Response]], str | None]
"""Reads the label of a row: one of the authors, ``tie``, or None."""


def make_label(table: Table, columns: Columns) -> Label | None:
    """Choose how to read which of two responses is better, by all values of the column."""
    if columns.responses != SHAPES[1]:
        return None
    if "label" not in columns.names:
        return _read_flags if columns.has_flags else None
    column = columns.names["label"]
    values = _list_values(table, column)
    sides = _find_sides([columns.names[role] for role in SHAPES[1]])
    own = _read_own(columns, values)
    numbers = {value for value in values if value not in own and _is_number(value)}
    meanings = _find_numbers(numbers, sides) | own
    places = _find_places([columns.names[role] for role in SHAPES[1]], sides, values)

    @cache
    def read_word(word: str) -> str | None:
        return meanings[word] if word in meanings else None if _is_number(word) else _read_word(word, places)

    def suggest(problem: str, *more: str, line: int | None = None) -> MapError:
        outcomes = {word: read_word(word) for word in {*values, *more} - NO_VERDICTS}
        roles = _suggest([word for word in outcomes if outcomes[word] is None], {*outcomes.values()})
        lead = "leave labels out by" if "label" in roles else "say which is which:" if line else "say it, as in"
        return MapError(f"{problem}; {lead}", roles, path=table.where, line=line, field=column if line else None)

    if numbers - meanings.keys():
        listed = " and ".join(sorted(numbers, key=int)[:4])
        raise suggest(f"column {column!r} holds {listed}, which may mean either response")

    def read_label(item: Item, responses: Sequence[Response]) -> str | None:
        value = item.value.get(column)
        if value is None or value != value:
            return None
        if not isinstance(value, str | int | float):
            item.fail(f"expected a or b or tie, found {describe(value)}", column)
        authors = [response.author for response in responses]
        if value in authors:
            return str(value)
        outcome = read_word(make_word(value))
        if outcome is None and make_word(value) not in NO_VERDICTS:
            texts = [response.text.strip() for response in responses]
            if texts.count(str(value).strip()) == 1:
                return authors[texts.index(str(value).strip())]
            problem = f"expected a, b, tie or a response's name, found {str(value)[:40]!r}"
            raise suggest(problem, make_word(value), line=item.line)
        return {"a": authors[0], "b": authors[1], "tie": "tie", None: None}[outcome]

    return read_label


def read_passes(table: Table, columns: Columns) -> Mapping[str, bool]:
    """What each label of a single response means; empty if the column holds something else, as a rating or a topic."""
    if columns.responses != SHAPES[2] or "label" not in columns.names:
        return {}
    values = _list_values(table, columns.names["label"]) - NO_VERDICTS
    own = {word: outcome == "pass" for word, outcome in _read_own(columns, values).items()}
    # With one of the two named, all other labels mean the other.
    rest = dict.fromkeys(values, "fail" in columns.labels) if len({*own.values()}) == 1 else {}
    if rest and not own.keys() & values:
        listed = ", ".join(map(repr, sorted(values)[:4]))
        problem = f"no label is {', '.join(map(repr, own))} in column {columns.names['label']!r} (it holds {listed})"
        raise DataError(problem, path=table.where)
    meanings = {**dict.fromkeys(PASSES, True), **dict.fromkeys(FAILS, False), **rest, **own}
    if unknown := sorted(values - meanings.keys()):
        if "label" in table.roles:
            problem = f"column {columns.names['label']!r} holds {', '.join(map(repr, unknown[:4]))}, not pass or fail"
            raise MapError(f"{problem}; say which pass, as in", {"pass": unknown[-1]}, path=table.where)
        return {}
    return meanings


def make_word(value: object) -> str:
    """A label in lower case; whole numbers become floats in a column with gaps."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip().casefold()
    return text.removesuffix(".0") if _is_number(text.removesuffix(".0")) else text


def _is_number(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _list_values(table: Table, column: str) -> set[str]:
    """The first distinct labels of a column, as words."""
    values: set[str] = set()
    for _, (value,) in table.select((column,)):
        if isinstance(value, bool | int | float | str) and len(values) < _MOST_VALUES:
            values.add(make_word(value))
    return values


def _read_own(columns: Columns, values: Collection[str]) -> dict[str, str]:
    """The outcome of each label that the user names: one, or several with commas."""
    own: dict[str, str] = {}
    for outcome, text in columns.labels.items():
        words = [text] if make_word(text) in values else text.split(",")
        for word in (make_word(word) for word in words if word.strip()):
            if own.setdefault(word, outcome) != outcome:
                raise UsageError(f"--map: the label {word!r} means both {own[word]} and {outcome}; name it once")
    return own


def _find_numbers(numbers: set[str], sides: list[str]) -> dict[str, str]:
    """What numbers mean as labels; empty where they may mean either response."""
    if sides == ["0", "1"] and numbers <= {"0", "1"}:
        return {"0": "a", "1": "b"}
    if (
        sides != ["0", "1"]
        and numbers <= {"0", "1", "2"}
        and ("2" in numbers or (sides == ["1", "2"] and numbers == {"1"}))
    ):
        return {"1": "a", "2": "b", "0": "tie"}
    return {}


def _find_sides(names: Sequence[str]) -> list[str]:
    """The words in which the names of two columns differ."""
    words = [_WORD.findall(normalise(name)) for name in names]
    return [" ".join(word for word in words[side] if word not in words[1 - side]) for side in (0, 1)]


def _find_places(names: Sequence[str], sides: list[str], values: Iterable[str]) -> dict[str, str]:
    """The response that each word for a place means; no number where columns and labels number them differently."""
    places = {**dict.fromkeys(FIRST, "a"), **dict.fromkeys(SECOND, "b")}
    for outcome, name, side in zip("ab", names, sides, strict=True):
        places |= dict.fromkeys((make_word(name), normalise(name), side), outcome)
    numbers = {part for value in values if not _is_number(value) for part in _WORD.findall(value)}
    is_from_0, is_from_1 = (sides == given or given[place] in numbers for place, given in enumerate(_NUMBERS))
    places |= dict(zip(_NUMBERS[not is_from_0], "ab", strict=True))
    if is_from_0 and is_from_1:
        places = {word: outcome for word, outcome in places.items() if not word.isdecimal()}
    return places


def _read_word(word: str, places: Mapping[str, str]) -> str | None:
    """The outcome that a label means; None if that is not certain."""
    if word in places:
        return places[word]
    if graded := _GRADED.fullmatch(word):
        first, sign, second = (places.get(part, part) for part in graded.groups())
        if {first, second} == {"a", "b"}:
            return first if ">" in sign else second if "<" in sign else "tie"
    parts = _WORD.findall(_ASIDE.sub("", word))
    if not _TIES.isdisjoint(parts):
        return "tie" if len({places[part] for part in parts if part in places}) != 1 else None
    rest = [part for part in parts if part not in _FILLERS]
    return places.get(rest[0]) if len(rest) == 1 else None


def _suggest(unknown: Collection[str], known: Collection[str | None]) -> dict[str, str]:
    """Outcomes for labels that have none, for the user to check; where there is no likely one, no labels at all."""
    missing = [outcome for outcome in ("a", "b", "tie") if outcome not in known]
    words = sorted(unknown, key=lambda word: (word in FAILS, word))
    if len(missing) == 3 and 2 < len(words) < _MOST_NUMBERS and all(map(_SCORE.fullmatch, words)):
        words.sort(key=float, reverse=float(max(words, key=float)) == 1 and "-1" not in words)
        half = len(words) // 2
        groups = words[:half], words[-half:], words[half : len(words) - half]
        if words == ["1", "2", "3"]:
            groups = ["1"], ["2"], ["3"]
        return {outcome: ",".join(group) for outcome, group in zip(missing, groups, strict=True) if group}
    if len(words) > len(missing) or not all(map(_LABEL.fullmatch, words)):
        return {"label": ""}
    return dict(zip(missing, words, strict=False))


def _read_flags(item: Item, responses: Sequence[Response]) -> str | None:
    flags = [name for name in WINNERS if str(item.value.get(name)).strip() in ("1", "1.0", "True", "true")]
    if len(flags) > 1:
        item.fail(f"is 1 in {len(flags)} columns; expected one", flags[0])
    outcomes = [*(response.author for response in responses), "tie"]
    return outcomes[WINNERS.index(flags[0])] if flags else None
