"""JSON that is one object around its rows: a list under a usual name, rows by id, or columns as pandas writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, BinaryIO

from distract.core.errors import DataError
from distract.data.fields import DECODER, flaw
from distract.data.json_stream import decode_lines

_HOLDERS = (
    *("samples", "data", "rows", "examples", "instances", "items", "records", "results", "cases", "pairs", "entries"),
    *("comparisons", "annotations", "logs", "dataset", "train", "test", "validation"),
)
"""Names under which one JSON object holds a list of rows."""


def read_object(open_file: Callable[[], BinaryIO], where: str) -> list[dict[str, Any]] | None:
    """The rows of a file that is one object around them, or objects over several lines; None if each line is a row."""
    with open_file() as file:
        lines = (line for line in decode_lines(file, where) if line.strip())
        first, second = next(lines), next(lines, None)
    try:
        value = DECODER.decode(first.strip())
    except (ValueError, RecursionError):
        if second is None or not first.rstrip().endswith(("{", "[", ",")) or second.lstrip().startswith("{"):
            return None  # the reader of lines reports the fault
        return _decode_objects(open_file, where)
    return None if second is not None else find_rows(value)


def _decode_objects(open_file: Callable[[], BinaryIO], where: str) -> list[dict[str, Any]]:
    with open_file() as file:
        text = "".join(decode_lines(file, where)).strip()
    values: list[dict[str, Any]] = []
    at = 0
    try:
        while at < len(text):
            value, end = DECODER.raw_decode(text, at)
            if not isinstance(value, dict):
                raise json.JSONDecodeError("Extra data", text, at)
            values.append(value)
            at = end + len(text[end:]) - len(text[end:].lstrip())
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise DataError(f"not valid JSON ({flaw(error)})", path=where, line=line) from error
    return (find_rows(values[0]) if len(values) == 1 else None) or values


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
        # Names of columns are outside or inside; numbers of rows, or the more numerous names, are ids.
        is_inside = not all(map(str.isdecimal, parts[0])) and len(parts) >= len(parts[0])
        if all(map(str.isdecimal, value)) or is_inside:
            return parts
        return [{name: column[key] for name, column in value.items()} for key in parts[0]]
    if all(isinstance(part, list) and len(part) == len(parts[0]) for part in parts):
        return [dict(zip(value, cells, strict=True)) for cells in zip(*parts, strict=True)]
    return None
