"""Rows of published sets: either JSON form, ids, labels, and field names to recognise a format by.

Sets come as one JSON array, as JSON Lines, or both; rows from the hub come as lines. Fields that no reader uses are
ignored, because published sets keep their sources.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from distract.core.errors import DataError
from distract.core.records import Case, Response
from distract.data.fields import Item, describe
from distract.data.json_stream import read_array, read_lines

DISAGREE = "the annotators do not agree"

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
_BEGINNING = 20_000
"""Characters to search for field names in a row that cannot be decoded."""


def read_rows(text: str, path: str) -> Iterator[Item]:
    return read_array(text, path) if text.lstrip().startswith("[") else read_lines(text, path)


def field_names(text: str) -> frozenset[str]:
    """The field names of the first row, for recognising a format.

    For a broken row it returns the names found so far, so that the format's reader can report the fault.
    """
    begin = text.lstrip()
    if begin.startswith("["):
        begin = begin[1:].lstrip()
    if not begin.startswith("{"):
        return frozenset()
    try:
        first, _ = json.JSONDecoder().raw_decode(begin)
    except (ValueError, RecursionError):
        return frozenset(match[1] for match in _NAME.finditer(begin[:_BEGINNING].split("\n{", 1)[0]))
    return frozenset(first)


def has_any(*names: str) -> Callable[[str], bool]:
    return lambda text: not field_names(text).isdisjoint(names)


def has_all(*names: str) -> Callable[[str], bool]:
    return lambda text: field_names(text).issuperset(names)


def make_ids(items: Sequence[Item], field: str | None = None) -> list[str]:
    """Ids of cases: ``item-`` and the field if it is unique, else the 1-based position."""
    if field is not None:
        names = [name for item in items if (name := _identity(item, field)) is not None]
        if len(set(names)) == len(items):
            return names
    return [f"item-{number:04d}" for number, _ in enumerate(items, 1)]


def _identity(item: Item, field: str) -> str | None:
    value = item.value.get(field)
    if type(value) not in (str, int):
        return None
    try:
        return item.check_name(item.checked(f"item-{value}", field), field)
    except DataError:
        return None  # use the position instead of an id that cannot be printed


def read_number(item: Item, field: str) -> str:
    """A required id, a whole number in most files and text in some."""
    value = item.value.get(field)
    return str(value) if type(value) is int else item.name(field)


def read_label(item: Item, field: str, meanings: Mapping[str | int, str]) -> str:
    known = [repr(label) if isinstance(label, str) else str(label) for label in meanings]
    expected = f"{', '.join(known[:-1])} or {known[-1]}"
    if field not in item.value:
        item.fail(f"missing; expected {expected}", field)
    value = item.value[field]
    # True equals 1 in Python, but is not a number in JSON.
    if type(value) in (str, int) and value in meanings:
        return meanings[value]
    actual = json.dumps(value)[:40] if type(value) in (str, int) else describe(value)
    item.fail(f"expected {expected}, found {actual}", field)


def plurality(votes: Counter[str]) -> str | None:
    """The most frequent of at least one vote; None for a draw."""
    first, *others = votes.most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def make_case(item: Item, name: str, prompt: str, fields: tuple[str, str], preferred: str, source: str) -> Case:
    """A case of two responses, possibly blank, with their fields as authors."""
    responses = tuple(Response(field, (item.text(field, empty=True),)) for field in fields)
    return Case(name, (prompt,), responses, preferred, source=source)


def read_author(path: str) -> str:
    return Item({}, path, 1).check_author(Path(path).stem, "file name")
