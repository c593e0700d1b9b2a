"""Files of votes as tables: JSON Lines, a JSON array, CSV or Parquet, read row by row and only the columns needed."""

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
from typing import Final, NoReturn

from distract.core.errors import DataError, UsageError, install_command
from distract.data.json_stream import Object, decode_lines, stream_array, stream_lines
from distract.judging.published.output_files import head

MISSING: Final = object()
"""The value of a field that an object lacks, as opposed to null."""

PARQUET = b"PAR1"
_BATCH = 1 << 13
_CELL = 1 << 27
"""Maximum number of characters in a cell; an unclosed quotation mark must not swallow a whole file."""

VoteRow = tuple[int, Sequence[object]]


@dataclass(frozen=True, slots=True)
class VoteTable:
    """A file of rows."""

    path: Path
    fields: tuple[str, ...]  # column names; those of the first object in JSON
    first: Mapping[str, object]  # values of the first row; empty where there is none
    typed: bool  # False for CSV, where everything is text
    # Yields each row's line (its number, in Parquet) and its values in the columns named.
    rows: Callable[[Sequence[str]], Iterator[VoteRow]]

    def fail(self, line: int, field: str, problem: str) -> NoReturn:
        """Raise a DataError for a cell."""
        raise DataError(problem, path=self.path, line=line, field=field)


def open_table(path: Path) -> VoteTable:
    """Detect the form of a file by its beginning, and read its columns."""
    begin = head(path)
    if begin.startswith(PARQUET) or path.suffix == ".parquet":
        return _open_parquet(path)
    if not begin.strip():
        raise DataError("is empty; expected matches", path=path)
    if begin.startswith(b"["):
        return _open_objects(path, stream_array)
    if begin.startswith(b"{") or path.suffix in (".json", ".jsonl"):
        return _open_objects(path, stream_lines)
    return _open_csv(path)


def _open_objects(path: Path, stream: Callable[[Path], Iterator[Object]]) -> VoteTable:
    def rows(names: Sequence[str]) -> Iterator[VoteRow]:
        for line, value in stream(path):
            yield line, [value.get(name, MISSING) for name in names]

    first = next((value for _, value in stream(path)), {})
    return VoteTable(path, tuple(first), first, True, rows)


def _open_csv(path: Path) -> VoteTable:
    def rows(names: Sequence[str]) -> Iterator[VoteRow]:
        places = [header.index(name) for name in names]
        # itemgetter gives no tuple for a single place.
        select = itemgetter(*places) if len(places) > 1 else lambda cells: [cells[place] for place in places]
        for line, cells in islice(_read_cells(path), 1, None):
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells, the header has {len(header)}; quote cells that hold commas"
                raise DataError(problem, path=path, line=line)
            yield line, select(cells)

    with closing(_read_cells(path)) as beginning:
        line, header = next(beginning, (1, []))
        _check_unique(path, header, line)
        _, cells = next(beginning, (0, []))
    return VoteTable(path, tuple(header), dict(zip(header, cells, strict=False)), False, rows)


def _check_unique(path: Path, names: Sequence[str], line: int | None = None) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"duplicate column {twice!r}", path=path, line=line)


def _read_cells(path: Path) -> Generator[tuple[int, list[str]]]:
    """Yield the records of a CSV file with the line on which each begins; skip blank lines."""
    # The limit holds for the whole process, and its default is too small for a conversation.
    before = csv.field_size_limit(_CELL)
    line = 1
    try:
        with path.open("rb") as file:
            reader = csv.reader(decode_lines(file, path), strict=True)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", path=path, line=line) from error
    finally:
        csv.field_size_limit(before)


def _open_parquet(path: Path) -> VoteTable:
    try:
        library = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(f"{path}: needs pyarrow, which is not installed: {install_command('parquet')}") from error

    def rows(names: Sequence[str], size: int = _BATCH) -> Iterator[VoteRow]:
        number = 0
        with _translate_errors(path):
            batches = library.ParquetFile(path).iter_batches(batch_size=size, columns=[*dict.fromkeys(names)])
        while True:
            with _translate_errors(path, number + 1):
                batch = next(batches, None)
                if batch is None:
                    return
                columns = [batch.column(name).to_pylist() for name in names]
            for values in zip(*columns, strict=True):
                number += 1
                yield number, values

    with _translate_errors(path):
        fields = tuple(library.ParquetFile(path).schema_arrow.names)
    _check_unique(path, fields)
    # Read columns one by one, so that a damaged one affects only its readers.
    first: dict[str, object] = {}
    for name in fields:
        with suppress(DataError):
            first.update((name, value) for _, (value,) in islice(rows((name,), 1), 1))
    return VoteTable(path, fields, first, True, rows)


@contextmanager
def _translate_errors(path: Path, row: int | None = None) -> Iterator[None]:
    errors = sys.modules["pyarrow"].ArrowException
    try:
        yield
    except (errors, ValueError, OverflowError, OSError) as error:
        problem = "is not a readable Parquet file" if row is None else "cannot be read from this row on"
        raise DataError(f"{problem} ({next(iter(str(error).splitlines()), 'damaged')})", path=path, line=row) from error
