"""Tables: rows with named columns in a file, an object or a text, to be read row by row any number of times.

A table never lies in memory: JSON, CSV and Parquet are streamed. The first bytes of a file determine its form, not its
name; only what has no form of its own (CSV, damaged files) is judged by its name.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from distract.core.errors import DataError
from distract.core.files import open_input
from distract.data.fields import Item
from distract.data.json_stream import (
    MOST_LINE,
    Object,
    decode_lines,
    find_encoding,
    open_object,
    read_stream,
    stream_array,
    stream_lines,
)

MISSING: Final = object()
"""The value of a field that an object lacks, as opposed to null."""

Row = tuple[int, Sequence[object]]
Opener = Callable[[], BinaryIO]

HEAD = 1 << 16
"""Number of bytes that determine the form of a file."""

_ROWS = 100
"""Number of first rows to know a table by: each column's first value, and the fields of JSON objects."""

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
_BEGINNING = 20_000
"""Characters to search for field names in a row that cannot be decoded."""

_FOREIGN: Mapping[bytes, str] = {
    b"version https://git-lfs": "is a pointer of Git LFS and not the file; fetch it with `git lfs pull`",
    b"SQLite format 3\0": "is an SQLite database; export the table as CSV",
    b"%PDF": "is a PDF; expected a table",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook; save it as CSV",
    b"\x89HDF": "is an HDF5 file; save it as Parquet",
    b"\x80\x04": "is a Python pickle, which could run code; save it as JSON Lines or Parquet",
    b"\x80\x05": "is a Python pickle, which could run code; save it as JSON Lines or Parquet",
    b"FEA1": "is a Feather file of version 1; save it as version 2 or as Parquet",
    b"BZh": "is compressed by bzip2; expand it, or compress it by gzip",
    b"\xfd7zXZ": "is compressed by xz; expand it, or compress it by gzip",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; expand it, or compress it by gzip",
}
"""The advice for forms that are no tables, by their first bytes."""

_PROMPTFOO = re.compile(rb"evalId:|<promptfoo>|.{0,20000}?,Status,Score,Named Scores,", re.DOTALL)
"""The beginning of promptfoo's results in YAML, XML and CSV, which lack texts or structure."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with named columns.

    ``read`` yields the line of each row (its number, where there are no lines) and its values by column; ``select`` the
    values of the columns named, ``MISSING`` where an object lacks one. ``first`` is the first row, and ``sample`` the
    first value of each column that is not empty, among the first rows. Where ``typed`` is False, as in CSV, every value
    is a text. ``checksum`` computes the SHA-256 (hex) of the file, or of the rows as JSON. ``roles`` are the columns
    and labels that the user names (``--map``). ``header`` is what the file says around its rows.
    """

    where: str
    kind: str
    fields: tuple[str, ...]
    first: Mapping[str, object]
    sample: Mapping[str, object]
    typed: bool
    read: Callable[[], Iterator[Object]]
    select: Callable[[Sequence[str]], Iterator[Row]]
    checksum: Callable[[], str]
    roles: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, object] = field(default_factory=dict)

    def items(self) -> Iterator[Item]:
        return (Item(value, self.where, line, typed=self.typed) for line, value in self.read())

    def check_unique(self, names: Iterable[str]) -> None:
        """Raise a DataError if two columns have one of the names."""
        if twice := next((name for name in names if self.fields.count(name) > 1), None):
            raise DataError(f"duplicate column {twice!r}; rename one", path=self.where, line=None if self.typed else 1)

    def fail(self, line: int, field: str, problem: str) -> NoReturn:
        """Raise a DataError for a cell."""
        raise DataError(problem, path=self.where, line=line, field=field)


def open_table(path: Path, expected: str = "a table") -> Table:
    """Open a file; a pipe is read into memory first, since it can be read only once."""
    with open_input(path) as file:
        if not file.seekable():
            return read_table(file.read(), str(path), expected)
    checksum = partial(_hash_file, path)
    return _open(partial(open_input, path), str(path), path.suffixes, checksum, expected)


def read_table(raw: bytes, where: str, expected: str = "a table") -> Table:
    """Open bytes in memory."""
    return _open(partial(BytesIO, raw), where, [], lambda: hashlib.sha256(raw).hexdigest(), expected)


def from_rows(where: str, kind: str, fields: Sequence[str], read: Callable[[], Iterator[dict[str, Any]]]) -> Table:
    """Make a table of rows in memory."""

    def objects() -> Iterator[Object]:
        return enumerate(read(), 1)

    def checksum() -> str:
        digest = hashlib.sha256()
        for row in read():
            digest.update(f"{json.dumps(row)}\n".encode())
        return digest.hexdigest()

    begin, _ = _read_begin(objects)
    return Table(where, kind, tuple(fields), *begin, True, objects, partial(_select, objects), checksum)


def open_folder(path: Path) -> Table | None:
    """Open the Arrow or Parquet files of a folder as one table; None if it holds none."""
    if (path / "dataset_dict.json").is_file():
        splits = sorted(folder.name for folder in path.iterdir() if (folder / "state.json").is_file())
        if len(splits) == 1:
            return open_folder(path / splits[0])
        raise DataError(f"holds the splits {', '.join(splits) or 'none'}; name the folder of one", path=path)
    files = sorted(path.glob("*.arrow")) if (path / "state.json").is_file() else sorted(path.glob("*.parquet"))
    files = files or sorted(path.glob("data/*.parquet"))
    if not files:
        return None
    splits = sorted({file.name.split("-", 1)[0].removesuffix(".parquet") for file in files})
    if len(splits) > 1:
        raise DataError(f"holds Parquet files of {', '.join(splits)}; name one file", path=path)
    parts = [open_table(file) for file in files]
    first = parts[0]
    if other := next((part for part in parts if part.fields != first.fields), None):
        raise DataError(f"has other columns than {files[0].name}; name one file", path=other.where)

    def number(rows: Callable[[Table], Iterator[tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
        return ((number, row) for number, (_, row) in enumerate(chain.from_iterable(map(rows, parts)), 1))

    return replace(
        first,
        where=str(path),
        read=lambda: number(lambda part: part.read()),
        select=lambda names: number(lambda part: part.select(names)),
        checksum=lambda: hashlib.sha256("".join(part.checksum() for part in parts).encode()).hexdigest(),
    )


def _recognise_columns(begin: bytes, suffix: str) -> str | None:
    """The form of a file of columns by its first bytes or, where it is damaged, its suffix."""
    if begin.startswith(b"PAR1"):
        return "Parquet"
    # A stream begins with a continuation mark and the size of its schema.
    if begin.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "Arrow"
    return {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow"}.get(suffix)


def _open(
    open_file: Opener, where: str, suffixes: Sequence[str], checksum: Callable[[], str], expected: str, layers: int = 0
) -> Table:
    with open_file() as file:
        begin = file.read(HEAD)
    if begin.startswith(b"\x1f\x8b"):
        from distract.data.archives import MOST_LAYERS, expand

        if layers == MOST_LAYERS:
            raise DataError(f"is compressed by gzip more than {MOST_LAYERS} times; expand it", path=where)
        return _open(partial(expand, open_file, where), where, suffixes[:-1], checksum, expected, layers + 1)
    if _PROMPTFOO.match(begin):
        raise DataError("is no JSON of promptfoo; write it: promptfoo eval -o results.json", path=where)
    suffix = suffixes[-1].lower() if suffixes else ""
    if problem := next((problem for mark, problem in _FOREIGN.items() if begin.startswith(mark)), None):
        raise DataError(problem, path=where)
    if (form := _recognise_columns(begin, suffix)) is not None:
        from distract.data import arrow

        fields, select = arrow.open_file(open_file, where, form)
        return _make_columns(where, form, fields, select, checksum)
    if begin.startswith(b"PK\x03\x04"):
        if b"xl/" in begin or suffix == ".xlsx":
            raise DataError("is an Excel workbook; save it as CSV", path=where)
        from distract.data import archives

        if (log := archives.open_log(open_file, where)) is not None:
            return replace(_hold_objects(log[0], where, archives.KIND, checksum), header=log[1])
        raise DataError("is a ZIP archive; name a file in it", path=where)
    text = begin.decode(find_encoding(begin), "replace").lstrip()
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        problem = f"is a binary file (a NUL byte on line {line}); expected {expected} as text or Parquet"
        raise DataError(problem, path=where)
    if not text:
        raise DataError(f"is empty; expected {expected}", path=where)
    read = partial(read_stream, open_file, where)
    if text.startswith("["):
        return _hold_objects(partial(read, stream_array), where, "a JSON array", checksum, text)
    if text.startswith("{"):
        if (value := open_object(open_file, where)) is not None:
            return replace(_hold_objects(value[0], where, "a JSON object", checksum), header=value[1])
        return _hold_objects(partial(read, stream_lines), where, "JSON Lines", checksum, text)
    if suffix in (".json", ".jsonl", ".ndjson"):
        start = text.split("\n", 1)[0]
        raise DataError(f"not valid JSON (begins with {start[:40]!r}); expected {{ or [", path=where, line=1)
    if text.startswith("<"):
        raise DataError(f"is HTML or XML; expected {expected} as CSV, JSON Lines or Parquet", path=where)
    return _open_csv(open_file, where, checksum)


def _hash_file(path: Path) -> str:
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _select(objects: Callable[[], Iterator[Object]], names: Sequence[str]) -> Iterator[Row]:
    for line, value in objects():
        yield line, [value.get(name, MISSING) for name in names]


def _make_columns(
    where: str, kind: str, fields: tuple[str, ...], select: Callable[..., Iterator[Row]], checksum: Callable[[], str]
) -> Table:
    """A table that is stored column by column."""
    if len({*fields}) < len(fields):
        twice = next(name for name in fields if fields.count(name) > 1)
        raise DataError(f"duplicate column {twice!r}; rename one", path=where)

    def read(names: tuple[str, ...], *size: int) -> Iterator[Object]:
        return ((number, dict(zip(names, values, strict=True))) for number, values in select(names, *size))

    def begin(names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        (first, sample), is_damaged = _read_begin(partial(read, names, _ROWS))
        if not is_damaged or len(names) < 2:
            return first, sample
        # A damaged column affects only its readers; halves find it without reading a wide table once per column.
        left, right = begin(names[: len(names) // 2]), begin(names[len(names) // 2 :])
        return left[0] | right[0], left[1] | right[1]

    return Table(where, kind, fields, *begin(fields), True, partial(read, fields), select, checksum)


def _hold_objects(
    objects: Callable[[], Iterator[Object]], where: str, kind: str, checksum: Callable[[], str], text: str = ""
) -> Table:
    """A table of objects that may lack fields; ``text`` is the beginning of a file, for a damaged first row."""
    begin, fault = _read_begin(objects)
    # The reader of the rows reports a fault; the names before it tell the format.
    names = (match[1] for match in _NAME.finditer(text[:_BEGINNING].split("\n{", 1)[0])) if fault else ()
    fields = tuple(begin[1]) or tuple(dict.fromkeys(names))
    return Table(where, kind, fields, *begin, True, objects, partial(_select, objects), checksum)


def _read_begin(objects: Callable[[], Iterator[Object]]) -> tuple[tuple[dict[str, Any], dict[str, Any]], bool]:
    """The first row and the first values of the first rows, and whether a fault ends them."""
    first: dict[str, Any] = {}
    sample: dict[str, Any] = {}
    try:
        for number, (_, row) in enumerate(islice(objects(), _ROWS)):
            first = first if number else row
            sample |= {name: cell for name, cell in row.items() if sample.get(name) in (None, "")}
    except DataError:
        return (first, sample), True
    return (first, sample), False


def _open_csv(open_file: Opener, where: str, checksum: Callable[[], str]) -> Table:
    text = _CsvFile(open_file, where)
    fields = text.fields

    def select(names: Sequence[str]) -> Iterator[Row]:
        places = [fields.index(name) for name in names]
        # itemgetter gives no tuple for a single place.
        choose = itemgetter(*places) if len(places) > 1 else lambda cells: [cells[place] for place in places]
        return ((line, choose(cells)) for line, cells in text.read())

    def objects() -> Iterator[Object]:
        return ((line, dict(zip(fields, cells, strict=True))) for line, cells in text.read())

    kind = "TSV" if text.mark == "\t" else "CSV"
    return Table(where, kind, fields, *_read_begin(objects)[0], False, objects, select, checksum)


_MARKS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_FIRST_LINE = re.compile(r"sep=(.)\s*")
"""Excel's own first line, which names the separator."""


class _CsvFile:
    """Records of text with a header, as Excel, pandas and databases write them."""

    def __init__(self, open_file: Callable[[], BinaryIO], where: str) -> None:
        self._open_file, self._where = open_file, where
        with open_file() as file:
            start = next((line for line in decode_lines(file, where, "") if line.strip()), "")
        self._skip = _FIRST_LINE.fullmatch(start)
        plain = re.sub(r'"[^"]*"', "", start)
        self.mark = self._skip[1] if self._skip else max(_MARKS, key=plain.count)
        # A space after each separator is no part of the cells.
        self._is_spaced = plain.count(self.mark) == plain.count(f"{self.mark} ") > 0
        _, header = next(self._read_records(), (1, []))
        names = [name.strip() for name in header]
        # A nameless first column is the index of a data frame.
        self.fields = tuple(name or ("index" if place == 0 else name) for place, name in enumerate(names))

    def read(self) -> Generator[tuple[int, list[str]]]:
        """Yield the cells of each row with the line on which it begins."""
        records = self._read_records()
        next(records, None)
        width = len(self.fields)
        for line, cells in records:
            if len(cells) != width:
                if len(cells) < width or any(cells[width:]):
                    self._fail_width(line, cells)
                del cells[width:]
            yield line, cells

    def _fail_width(self, line: int, cells: Sequence[str]) -> None:
        width, mark = len(self.fields), _MARKS.get(self.mark, repr(self.mark))
        advice = f"quote cells that hold {mark}" if len(cells) > width else "write the missing ones, empty if need be"
        problem = f"has {len(cells)} cells, the header has {width}; {advice}"
        raise DataError(problem, path=self._where, line=line)

    def _read_records(self) -> Generator[tuple[int, list[str]]]:
        """Yield the records with the line on which each begins; skip those without any text."""
        # The limit holds for the whole process, and its default is too small for a conversation.
        before = csv.field_size_limit(MOST_LINE)
        line, size = 1, 0

        def bound(lines: Iterable[str]) -> Iterator[str]:
            """Pass lines on; an unclosed quotation mark must not swallow a whole file."""
            nonlocal size
            for text in lines:
                size += len(text)
                if size > MOST_LINE:
                    problem = f"has a row of more than {MOST_LINE >> 20} MB; is a quotation mark left open?"
                    raise DataError(problem, path=self._where, line=line)
                yield text

        try:
            with self._open_file() as file:
                lines = decode_lines(file, self._where, "")
                if self._skip:
                    first = next((text for text in lines if text.strip()), "")
                    lines = chain(() if _FIRST_LINE.fullmatch(first) else (first,), lines)
                reader = csv.reader(bound(lines), strict=True, delimiter=self.mark, skipinitialspace=self._is_spaced)
                for cells in reader:
                    if any(cells):
                        yield line + bool(self._skip), cells
                    line, size = reader.line_num + 1, 0
        except csv.Error as error:
            hint = '; write " inside a quoted cell as ""' if "expected after" in str(error) else ""
            raise DataError(f"not valid CSV ({error}){hint}", path=self._where, line=line) from error
        finally:
            csv.field_size_limit(before)
