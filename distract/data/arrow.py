"""Parquet and Arrow files through the optional library ``pyarrow``, read batch by batch.

``datasets.save_to_disk`` writes folders of Arrow files, and the hub's data sets come as folders of Parquet files; both
are read as one table.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from distract.core.errors import DataError, import_library
from distract.data.json_stream import MOST_LINE

PARQUET = "Parquet"
_BATCH = 1 << 13

Rows = Iterator[tuple[int, Sequence[object]]]


def open_file(open_input: Callable[[], BinaryIO], where: str, form: str) -> tuple[tuple[str, ...], Callable[..., Rows]]:
    """The names of the columns, and a function that yields number and values of each row in some of them."""
    library = import_library("pyarrow.parquet", "parquet", f"{where}:")

    def select(names: Sequence[str], size: int = _BATCH) -> Rows:
        number = 0
        with _open_native(library, open_input, where) as file:
            with _translate_errors(where, form):
                batches = _read_batches(library, file, form, [*dict.fromkeys(names)], size)
            while True:
                with _translate_errors(where, form, number + 1):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    batch.validate(full=True)  # offsets of a damaged file point anywhere
                    columns = [_read_cells(library, batch.column(name), where, number) for name in names]
                for values in zip(*columns, strict=True):
                    number += 1
                    yield number, values

    with _translate_errors(where, form), _open_native(library, open_input, where) as file:
        schema = (
            library.parquet.ParquetFile(file).schema_arrow if form == PARQUET else _open_arrow(library, file).schema
        )
        return tuple(schema.names), select


def _read_cells(library: Any, column: Any, where: str, before: int) -> list[object]:
    """The cells of a column, after a number of rows before it; some writers mark texts as bytes."""
    if column.nbytes > MOST_LINE and hasattr(column[0], "as_buffer"):
        for line, cell in enumerate(column, before + 1):
            if cell.is_valid and cell.as_buffer().size > MOST_LINE:
                problem = f"has a cell of more than {MOST_LINE >> 20} MB; shorten it, or leave the row out"
                raise DataError(problem, path=where, line=line)
    if library.types.is_binary(column.type):
        with suppress(library.ArrowInvalid):
            return list(column.cast(library.large_string()).to_pylist())
    return list(column.to_pylist())


def _read_batches(library: Any, file: Any, form: str, names: list[str], size: int) -> Iterator[Any]:
    if form == PARQUET:
        yield from library.parquet.ParquetFile(file).iter_batches(batch_size=size, columns=names)
        return
    reader = _open_arrow(library, file)
    numbers = range(reader.num_record_batches) if hasattr(reader, "num_record_batches") else None
    for batch in reader if numbers is None else map(reader.get_batch, numbers):
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


@contextmanager
def _open_native(library: Any, open_input: Callable[[], BinaryIO], where: str) -> Iterator[Any]:
    """Open an input as pyarrow's own file: its threads abort the process if they close Python's own at the exit."""
    with open_input() as file:
        name = getattr(file, "name", None)
        if not file.seekable():
            raise DataError("holds a table of columns, compressed by gzip; expand it", path=where)
        if isinstance(name, str | bytes):
            native = library.OSFile(os.fsencode(name))
        else:
            with library.BufferOutputStream() as memory:
                shutil.copyfileobj(file, memory)
                native = library.BufferReader(memory.getvalue())
    with native:
        yield native


def _open_arrow(library: Any, file: Any) -> Any:
    begin = file.read(6)
    file.seek(0)
    return library.ipc.open_file(file) if begin == b"ARROW1" else library.ipc.open_stream(file)


@contextmanager
def _translate_errors(where: str, form: str, row: int | None = None) -> Iterator[None]:
    errors = sys.modules["pyarrow"].ArrowException
    try:
        yield
    except (errors, ValueError, OverflowError, OSError, MemoryError) as error:
        problem = f"is not a readable {form} file" if row is None else "cannot be read from this row on"
        raise DataError(
            f"{problem} ({next(iter(str(error).splitlines()), 'damaged')})", path=where, line=row
        ) from error
