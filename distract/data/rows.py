"""What the readers of published sets share: rows of a file in either JSON form, ids, labels and how a file is told.

Sets are published as one JSON array, as JSON Lines, or as both; rows of the hub arrive as lines. A row may hold more
fields than a reader asks for, because published sets carry what they were made from. It knows no format.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from distract.core.errors import DataError
from distract.core.records import Case, Response
from distract.data.fields import Item, describe
from distract.data.json_stream import read_array, read_lines

DISAGREE = "the annotators do not agree"
"""Why a case without a most frequent vote is left out."""

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
_BEGINNING = 20_000
"""Characters in which the names of a row are looked for that cannot be decoded."""


def read_rows(text: str, path: str) -> Iterator[Item]:
    """The objects of a JSON array or of JSON Lines, whichever the text is."""
    return read_array(text, path) if text.lstrip().startswith("[") else read_lines(text, path)


def field_names(text: str) -> frozenset[str]:
    """The names of the fields of the first row, by which a format is told.

    A first row that is cut off or wrong inside gives the names that it holds so far: its reader says what is wrong.
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


def make_ids(items: Sequence[Item], field: str | None = None) -> list[str]:
    """Ids of cases: ``item-`` and the field where every row has one of its own, else the 1-based position."""
    if field is not None:
        found = [_identity(item, field) for item in items]
        named = [name for name in found if name is not None]
        if len(set(named)) == len(items):
            return named
    return [f"item-{number:04d}" for number, _ in enumerate(items, 1)]


def _identity(item: Item, field: str) -> str | None:
    value = item.value.get(field)
    if type(value) not in (str, int):
        return None
    try:
        return item.check_name(item.checked(f"item-{value}", field), field)
    except DataError:
        return None  # a position serves as well as an id that cannot be shown


def read_number(item: Item, field: str) -> str:
    """A required id that is a whole number in most files and text in some."""
    value = item.value.get(field)
    return str(value) if type(value) is int else item.name(field)


def read_label(item: Item, field: str, meanings: Mapping[str | int, str]) -> str:
    """What a required label means."""
    known = [repr(one) if isinstance(one, str) else str(one) for one in meanings]
    expected = f"{', '.join(known[:-1])} or {known[-1]}"
    if field not in item.value:
        item.fail(f"missing; expected {expected}", field)
    value = item.value[field]
    # True equals 1 in Python, and is no number in JSON.
    if type(value) in (str, int) and value in meanings:
        return meanings[value]
    shown = json.dumps(value)[:40] if type(value) in (str, int) else describe(value)
    item.fail(f"expected {expected}, found {shown}", field)


def plurality(votes: Counter[str]) -> str | None:
    """What has more votes than anything else, None where nothing has; at least one vote is expected."""
    first, *others = votes.most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def make_case(item: Item, name: str, prompt: str, fields: tuple[str, str], preferred: str, source: str) -> Case:
    """A case of two responses, blank ones included, whose authors are the fields that hold them."""
    responses = tuple(Response(field, (item.text(field, empty=True),)) for field in fields)
    return Case(name, (prompt,), responses, preferred, source=source)
