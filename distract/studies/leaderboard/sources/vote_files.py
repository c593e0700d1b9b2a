"""Files of votes as rows of the columns that are wanted: JSON Lines, a JSON array, CSV or Parquet.

Rows are read one after the other and of each only what is asked for. It does not know what a column means.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from distract.core.errors import DataError, UsageError, install_command
from distract.data import json_stream
from distract.judging.published.output_files import head

MISSING: Final = object()
"""The value of a field that an object lacks; null is another thing."""

PARQUET = b"PAR1"
_BATCH = 1 << 13
_CELL = 1 << 27
"""Characters of the longest cell; a quotation mark that is never closed must not swallow a whole file."""

TableRow = tuple[int, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Table:
    """A file of rows.

    Attributes:
        path: of the file.
        fields: the names of its columns; those of the first object where each row is an object.
        first: the values of the first row; empty where there is none.
        typed: whether values have types; in CSV everything is text.
        rows: called with names of columns: each row's line (its number, in Parquet) and values, in that order.
    """

    path: Path
    fields: tuple[str, ...]
    first: Mapping[str, object]
    typed: bool
    rows: Callable[[Sequence[str]], Iterator[TableRow]]


def open_table(path: Path) -> Table:
    """See what columns a file has; the form is told by its beginning."""
    begin = head(path)
    if begin.startswith(PARQUET) or path.suffix == ".parquet":
        return _open_parquet(path)
    if not begin.strip():
        raise DataError("is empty; expected matches", path=path)
    if begin.startswith(b"["):
        return _open_objects(path, json_stream.stream_array)
    if begin.startswith(b"{") or path.suffix in (".json", ".jsonl"):
        return _open_objects(path, json_stream.stream_lines)
    return _open_csv(path)


def _open_objects(path: Path, read: Callable[[Path], Iterator[tuple[int, dict[str, Any]]]]) -> Table:
    def rows(wanted: Sequence[str]) -> Iterator[TableRow]:
        for line, found in read(path):
            yield line, [found.get(name, MISSING) for name in wanted]

    first = next((found for _, found in read(path)), {})
    return Table(path, tuple(first), first, True, rows)


def _open_csv(path: Path) -> Table:
    def rows(wanted: Sequence[str]) -> Iterator[TableRow]:
        places = [header.index(name) for name in wanted]
        # One name alone would not give a tuple.
        take = itemgetter(*places) if len(places) > 1 else lambda cells: [cells[place] for place in places]
        found = _read_cells(path)
        next(found)
        for line, cells in found:
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells, the header has {len(header)}; quote cells that hold commas"
                raise DataError(problem, path=path, line=line)
            yield line, take(cells)

    with closing(_read_cells(path)) as beginning:
        line, header = next(beginning, (1, []))
        for name in header:
            if header.count(name) > 1:
                raise DataError(f"column {name!r} is there twice", path=path, line=line)
        _, cells = next(beginning, (0, []))
    first = dict(zip(header, cells, strict=False))
    return Table(path, tuple(header), first, False, rows)


def _read_cells(path: Path) -> Generator[tuple[int, list[str]]]:
    """The records of a CSV file with the line on which each begins; blank lines are skipped."""
    # The limit on cells is one for the whole process, and too small for a conversation.
    before = csv.field_size_limit(_CELL)
    line = 1
    try:
        with path.open("rb") as file:
            reader = csv.reader(json_stream.decode_lines(file, path), strict=True)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", path=path, line=line) from error
    finally:
        csv.field_size_limit(before)


def _open_parquet(path: Path) -> Table:
    try:
        library = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(f"{path}: needs pyarrow, which is not installed: {install_command('parquet')}") from error

    def rows(wanted: Sequence[str], batch: int = _BATCH) -> Iterator[TableRow]:
        number = 0
        with _translate_errors(path):
            batches = library.ParquetFile(path).iter_batches(batch_size=batch, columns=[*dict.fromkeys(wanted)])
        while True:
            with _translate_errors(path, number + 1):
                found = next(batches, None)
                if found is None:
                    return
                columns = [found.column(name).to_pylist() for name in wanted]
            for values in zip(*columns, strict=True):
                number += 1
                yield number, values

    with _translate_errors(path):
        fields = tuple(library.ParquetFile(path).schema_arrow.names)
    if twice := next((name for name in fields if fields.count(name) > 1), None):
        raise DataError(f"column {twice!r} is there twice", path=path)
    # One by one: a column that cannot be read is a matter for who asks for it.
    first: dict[str, object] = {}
    for name in fields:
        with suppress(DataError):
            first.update((name, value) for _, (value,) in islice(rows((name,), 1), 1))
    return Table(path, fields, first, True, rows)


@contextmanager
def _translate_errors(path: Path, row: int | None = None) -> Iterator[None]:
    errors = sys.modules["pyarrow"].ArrowException
    try:
        yield
    except (errors, ValueError, OverflowError, OSError) as error:
        problem = "is no Parquet file that can be read" if row is None else "cannot be read from this row on"
        raise DataError(f"{problem} ({next(iter(str(error).splitlines()), 'damaged')})", path=path, line=row) from error
