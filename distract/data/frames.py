"""Data in memory as tables: frames of pandas and polars, tables of pyarrow and ``datasets``, lists of dicts.

None of these libraries is imported: the module of its class tells what an object is. Only data sets of the Hugging Face
hub come through the optional library ``datasets``. Loading them runs no code of their author: the library stopped doing
so in version 4.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.errors import DataError, UsageError, install_command
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


FORM = "hub:ORG/NAME[:CONFIG[:SPLIT]]"
_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
PATIENCE = 10.0
"""Seconds to wait for the hub's first answer."""


def load_hub_table(where: str, expected: str) -> Table:
    name = where.removeprefix("hub:")
    path, config, split = _split_name(name, where)
    api, library = _import_library(where)
    if not Path(path).is_dir():
        _reach(api, path, where)
    try:
        splits: Mapping[str, Any] = library.load_dataset(path, config)
        if split is None and len(splits) == 1:
            split = next(iter(splits))
        if split is None or split not in splits:
            known = ", ".join(sorted(map(str, splits)))
            wrong = "has several splits" if split is None else f"has no split {split!r}"
            raise UsageError(f"{where}: {wrong} (known: {known}); name one as {path}:{config or ''}:SPLIT")
        table = read_dicts(splits[split], "a data set of the hub", where)
    except UsageError:
        raise
    except Exception as error:  # the library passes on the exceptions of its many parts
        choose = f" (expected {FORM})" if isinstance(error, ValueError) else ""
        raise UsageError(f"{where}: cannot be loaded: {_describe_error(error)}{choose}") from error
    if not table.first:
        raise DataError(f"is empty; expected {expected}", path=where)
    return table


def _split_name(name: str, where: str) -> tuple[str, str | None, str | None]:
    path, *rest = name.split(":")
    if len(rest) > 2 or not _NAME.fullmatch(path):
        raise UsageError(f"{where}: expected {FORM}")
    config, split = (*rest, "", "")[:2]
    return path, config or None, split or None


def _import_library(where: str) -> tuple[Any, Any]:
    spec = importlib.util.find_spec("datasets")
    if spec is None or spec.origin is None:  # only a folder of that name
        raise UsageError(f"{where}: needs the library datasets, which is not installed: {install_command('hub')}")
    try:
        api, library = importlib.import_module("huggingface_hub"), importlib.import_module("datasets")
        library.disable_progress_bars()
    except Exception as error:
        raise UsageError(f"{where}: the library datasets cannot be used: {_describe_error(error)}") from error
    return api, library


def _reach(api: Any, path: str, where: str) -> None:
    """Ask the hub once for the data set, because loading it would retry, with messages."""
    if api.constants.HF_HUB_OFFLINE:
        return  # use the local copy
    try:
        api.HfApi().dataset_info(path, timeout=PATIENCE)
    except api.errors.RepositoryNotFoundError as error:
        raise DataError("no such data set on the hub, or it is not public", path=where) from error
    except Exception as error:
        advice = "download the data set elsewhere and name its file"
        raise UsageError(f"{where}: the hub cannot be reached ({_describe_error(error)}); {advice}") from error


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
