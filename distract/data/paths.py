"""Cells inside objects, such as ``inputs.question`` or ``answers.0.text``, as columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from distract.data.conversations import find_messages
from distract.data.json_stream import Object
from distract.data.tables import Row, Table


def list_paths(value: object, depth: int = 4) -> list[str]:
    """The names of the cells inside objects, as ``inputs.question`` or ``answers.0.text``, except conversations."""
    if depth == 0 or (depth < 4 and find_messages(value) is not None):
        return []
    parts = value.items() if isinstance(value, Mapping) else enumerate(value[:4]) if isinstance(value, list) else ()
    paths = [f"{name}.{path}" for name, part in parts for path in list_paths(part, depth - 1)]
    return [*map(str, dict(parts)), *paths] if depth < 4 else paths


def read_path(row: Mapping[str, object], path: str) -> object:
    """The cell of a column or inside one; None if there is none."""
    name = max((name for name in row if path == name or path.startswith(f"{name}.")), key=len, default=None)
    if name is None:
        return None
    value = row[name]
    for part in path[len(name) + 1 :].split(".") if path != name else ():
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def add_paths(table: Table, names: Collection[str]) -> Table:
    """Add cells inside objects as columns."""
    paths = [name for name in names if name not in table.fields]
    if not paths:
        return table
    outer = [name for name in table.fields if any(path.startswith(f"{name}.") for path in paths)]

    def objects() -> Iterator[Object]:
        return ((line, {**row, **{path: read_path(row, path) for path in paths}}) for line, row in table.read())

    def select(names: Sequence[str]) -> Iterator[Row]:
        inner = [*dict.fromkeys((*outer, *(name for name in names if name not in paths)))]
        for line, values in table.select(inner):
            row = dict(zip(inner, values, strict=True))
            yield line, [read_path(row, name) if name in paths else row[name] for name in names]

    return replace(table, fields=(*table.fields, *paths), read=objects, select=select)
