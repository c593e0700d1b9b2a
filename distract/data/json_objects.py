"""JSON that is one object around its rows: a list under a usual name, rows by id, or columns as pandas writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

from distract.data.json_stream import Object, find_list, stream_list, stream_objects

_HOLDERS = (
    *("samples", "data", "rows", "examples", "instances", "items", "records", "results", "cases", "pairs", "entries"),
    *("comparisons", "annotations", "logs", "dataset", "train", "test", "validation"),
)
"""Names under which one JSON object holds a list of rows."""


def open_object(
    open_file: Callable[[], BinaryIO], where: str
) -> tuple[Callable[[], Iterator[Object]], Mapping[str, object]] | None:
    """A reader of a file that is one object around its rows, or objects over several lines, and what is around them.

    None if a line is a row.
    """
    header: dict[str, object] = {}
    with open_file() as file:
        place, line, is_last = find_list(file, where, _HOLDERS, header)
    if is_last and line and place is None:
        with open_file() as file:
            ((_, value),) = stream_objects(file, where)
        rows = find_rows(value)
        return (partial(enumerate, rows, 1), {}) if rows else None
    if (line == 1 and not is_last) or (line == 0 and is_last):
        return None  # the reader of lines reports a fault in the first
    stream = partial(stream_list, place=place) if is_last and place else stream_objects

    def read() -> Iterator[Object]:
        with open_file() as file:
            yield from stream(file, where)

    return read, header if place else {}


def find_rows(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows that an object holds; None if it is a row itself."""
    match value:
        case {"columns": [str(), *_] as names, "data": [[*_], *_] as rows} if all(len(r) == len(names) for r in rows):
            return [dict(zip(names, row, strict=True)) for row in rows]
    for part in (value[name] for name in _HOLDERS if name in value):
        if isinstance(part, list) and part and all(isinstance(row, dict) for row in part):
            return list(part)
        if isinstance(part, dict) and (rows := find_rows(part)) is not None:
            return rows
    parts = list(value.values())
    if len(parts) < 2:
        return None
    if all(isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts):
        # Numbers inside are an index, and so the names outside are columns; else they are ids of rows.
        if all(map(str.isdecimal, value)) or not all(map(str.isdecimal, parts[0])):
            return parts
        return [{name: column[key] for name, column in value.items()} for key in parts[0]]
    if all(isinstance(part, list) and len(part) == len(parts[0]) for part in parts):
        return [dict(zip(value, cells, strict=True)) for cells in zip(*parts, strict=True)]
    return None
