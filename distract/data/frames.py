"""Data in memory as tables: frames of pandas and polars, tables of pyarrow and ``datasets``, lists of dicts.

None of these libraries is imported: the module of its class tells what an object is.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from distract.core.errors import UsageError
from distract.data.json_stream import find_rows
from distract.data.tables import Table, from_rows

EXPECTED = "expected a name, a path, a data frame, or a list of cases or dicts"
LIBRARIES = ("pandas", "polars", "pyarrow", "datasets")
NAME = "data"
"""The name of data in memory, in messages and in the record of a run."""


def convert_frame(data: object) -> Table:
    """Convert an object in memory to a table; raise UsageError for other objects."""
    library, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if library == "datasets" and isinstance(data, dict):
        if len(data) == 1:
            return convert_frame(*data.values())
        raise UsageError(
            f"data: holds the splits {', '.join(map(str, data))}; pass one, as in data[{next(iter(data), '')!r}]"
        )
    rows: Callable[[], Iterator[Sequence[Any]]]
    frame: Any = data
    if library == "pandas" and kind == "DataFrame":
        if any(name is not None and name not in frame.columns for name in frame.index.names):
            frame = frame.reset_index()
        names, rows = [*frame.columns], lambda: frame.itertuples(index=False, name=None)
    elif library == "polars" and kind == "DataFrame":
        names, rows = [*frame.columns], frame.iter_rows
    elif library == "polars" and kind == "LazyFrame":
        raise UsageError("data: is a LazyFrame; pass data.collect()")
    elif library == "pyarrow" and kind in ("Table", "RecordBatch"):
        names, rows = [*frame.column_names], lambda: _read_batches(frame)
    elif library == "datasets":
        return read_dicts(frame.with_format(None), f"a {kind}")
    elif isinstance(data, Mapping) and (dicts := find_rows(convert_value(data))):  # type: ignore[arg-type]
        return read_dicts(dicts, "a dict")
    elif isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        return read_dicts(frame, "a list")
    else:
        raise UsageError(f"data: {EXPECTED}, found {reprlib.repr(data) if library == 'builtins' else f'a {kind}'}")
    names = [
        ".".join(str(part) for part in name if part != "") if isinstance(name, tuple) else str(name) for name in names
    ]

    def read() -> Iterator[dict[str, Any]]:
        return ({name: convert_value(value) for name, value in zip(names, values, strict=True)} for values in rows())

    return from_rows(NAME, f"a {kind}", names, read)


def read_dicts(rows: Any, kind: str, where: str = NAME) -> Table:
    """Make a table of rows that are mappings; classes of ``datasets`` become their names."""
    classes = {
        name: [*feature.names]
        for name, feature in (getattr(rows, "features", None) or {}).items()
        if type(feature).__name__ == "ClassLabel"
    }

    def read() -> Iterator[dict[str, Any]]:
        for row in rows:
            values = {str(name): convert_value(value) for name, value in row.items()}
            for name, words in classes.items():
                number = values.get(name)
                values[name] = words[number] if isinstance(number, int) and 0 <= number < len(words) else None
            yield values

    columns = getattr(rows, "column_names", None)
    if columns is None:
        columns = (
            dict.fromkeys(str(name) for row in rows for name in row) if isinstance(rows, Sequence) else next(read(), {})
        )
    return from_rows(where, kind, [*columns], read)


def _read_batches(table: Any) -> Iterator[Sequence[Any]]:
    for batch in table.to_batches() if hasattr(table, "to_batches") else (table,):
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)


def convert_value(value: object) -> object:
    """Convert a cell to a JSON value; tables write NaN and the like for empty cells."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Mapping):
        return {str(key): convert_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [convert_value(part) for part in value]
    if callable(convert := getattr(value, "tolist", None)):  # an array or a number of NumPy
        return convert_value(convert())
    return str(value)
