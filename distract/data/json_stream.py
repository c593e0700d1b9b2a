"""JSON Lines, arrays and objects around rows as objects with their lines: from a text, or streamed from a file."""

from __future__ import annotations

import codecs
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BufferedReader, RawIOBase, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from distract.core.errors import DataError
from distract.data.fields import DECODER, Item, describe, flaw

CHUNK = 1 << 20
MOST_LINE = 1 << 26
"""Maximum number of characters of a line, a row, a cell or a value; a file of a few megabytes may hold gigabytes."""

_NEAR = 12
"""Number of characters at the end of the buffer in which an error may only mean that there is more to read."""

_SPACE = re.compile(r"[ \t\r\n]*")

Object = tuple[int, dict[str, Any]]
"""A line number, from 1, and the object that begins there."""


def read_lines(text: str, path: str) -> Iterator[Item]:
    # Without this newline, or with str.splitlines, lines would also end at characters that JSON strings may hold.
    lines = StringIO(text, newline="\n")
    return (Item(value, path, line) for line, value in _parse_lines(lines, path))


def stream_lines(file: BinaryIO, path: str) -> Iterator[Object]:
    return _parse_lines(decode_lines(file, path), path)


def stream_array(file: BinaryIO, path: str) -> Iterator[Object]:
    text = _JsonText(path, file)
    if text.next_char() != "[":
        text.fail("expected a JSON array")
    yield from _read_items(text)
    if text.next_char():
        text.fail("unexpected text after the end of the array")


def stream_objects(file: BinaryIO, path: str) -> Iterator[Object]:
    """Read objects one after the other, each over any number of lines."""
    text = _JsonText(path, file)
    while text.next_char():
        line = text.line()
        yield line, _check_object(text.value(), path, line)


def stream_list(file: BinaryIO, path: str, place: Sequence[str]) -> Iterator[Object]:
    """Read the list at a place inside an object, such as ``{"results": {"results": [...]}}``."""
    text = _JsonText(path, file)

    def enter(depth: int) -> Iterator[Object]:
        for name in _read_names(text):
            if name != place[depth]:
                text.value()
            elif depth + 1 < len(place):
                yield from enter(depth + 1)
            else:
                yield from _read_items(text)

    return enter(0)


def find_list(
    file: BinaryIO, path: str, names: Collection[str], header: dict[str, object]
) -> tuple[tuple[str, ...] | None, int, bool]:
    """The place of the first list of objects under ``names`` in an object, its last line, and whether it is the last.

    The line is 0 if the object is damaged. Adds the values under other names to ``header``.
    """
    text = _JsonText(path, file)
    places: list[tuple[str, ...]] = []

    def walk(place: tuple[str, ...]) -> None:
        for name in _read_names(text):
            mark = text.next_char() if name in names and not places else ""
            if mark == "{":
                walk((*place, name))
            elif mark == "[":
                kinds = {isinstance(value, dict) for value in _read_values(text)}
                places.extend([(*place, name)] if kinds == {True} else [])
            else:
                begin = text.passed + text.at
                value = text.value()
                if not place and name not in names:
                    header[name] = value
                    text.kept += text.passed + text.at - begin
                    text.check_size(text.kept)

    try:
        walk(())
        return next(iter(places), None), text.line(), not text.next_char()
    except DataError:
        return None, 0, text.line() == 1


def decode_lines(file: BinaryIO, path: str, newline: str = "\n") -> Iterator[str]:
    """Decode the lines of a file with their ends; if ``newline`` is empty, a carriage return ends a line too."""
    buffer = file if isinstance(file, BufferedReader) else BufferedReader(cast(RawIOBase, file))
    text = TextIOWrapper(buffer, find_encoding(buffer.peek(2)), newline=newline)
    number = 1
    try:
        while line := text.readline(MOST_LINE + 1):
            if len(line) > MOST_LINE:
                problem = f"has more than {MOST_LINE >> 20} MB on a line; shorten it, or leave it out"
                raise DataError(problem, path=path, line=number)
            yield line
            number += 1
    except UnicodeError as error:
        raise _report_encoding(error, path, number) from error
    finally:
        with suppress(ValueError):  # the caller has closed the file
            text.detach()


def _report_encoding(error: UnicodeError, path: str, line: int) -> DataError:
    """The error for a text in another encoding; ``line`` is the first that is not decoded yet."""
    if not isinstance(error, UnicodeDecodeError) or error.encoding != "utf-8":
        return DataError("not valid UTF-16; convert the file to UTF-8", path=path, line=line)
    line += error.object.count(b"\n", 0, error.start)
    name = Path(path)
    target = shlex.quote(f"{name.stem}-utf8{name.suffix}")
    advice = f"convert the file to UTF-8, from Windows by: iconv -f cp1252 -t utf-8 {shlex.quote(path)} > {target}"
    return DataError(f"not UTF-8; {advice}", path=path, line=line)


def find_encoding(begin: bytes) -> str:
    """The encoding of a text by its byte order mark."""
    return "utf-16" if begin.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"


def _parse_lines(lines: Iterable[str], path: str) -> Iterator[Object]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = DECODER.decode(line.strip())
        except (ValueError, RecursionError) as error:
            # Only the last line of a file can lack its end.
            hint = "" if line.endswith("\n") else "; the file may be truncated"
            raise DataError(f"not valid JSON ({flaw(error)}){hint}", path=path, line=number) from error
        yield number, _check_object(value, path, number)


def _read_items(text: _JsonText) -> Iterator[Object]:
    for value in _read_values(text):
        yield text.start, _check_object(value, text.path, text.start)


def _read_values(text: _JsonText) -> Iterator[object]:
    """Read the values of an array; ``start`` is the line of each."""
    text.at += 1
    if text.next_char() != "]":
        while True:
            text.start = text.line()
            yield text.value()
            following = text.next_char()
            if following == "]":
                break
            if following != ",":
                text.fail("expected ',' or ']' after an item; is it truncated?")
            text.at += 1
            if text.next_char() == "]":
                text.fail("unexpected comma after the last item")
    text.at += 1


def _read_names(text: _JsonText) -> Iterator[str]:
    """Read the names of an object; the caller reads the value after each."""
    mark = text.next_char()
    while mark in ("{", ","):
        text.at += 1
        if text.next_char() == "}" and mark == "{":
            break
        name = text.value()
        if not isinstance(name, str) or text.next_char() != ":":
            text.fail("expected a name and ':'")
        text.at += 1
        text.next_char()
        yield name
        mark = text.next_char()
    if text.next_char() != "}":
        text.fail("expected ',' or '}' after a value; is it truncated?")
    text.at += 1


class _JsonText:
    """The unread part of a file; ``at`` is the position in ``buffer``."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.path, self.buffer, self.at = path, "", 0
        self._file = file
        self._decoder: codecs.IncrementalDecoder | None = None
        self._line, self._counted = 1, 0
        self.start = 1
        self.passed = self.kept = 0  # characters before the buffer, and of the values that a caller keeps

    def next_char(self) -> str:
        """Skip space and return the next character, empty at the end."""
        while True:
            space = _SPACE.match(self.buffer, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.buffer) or not self._read_more():
                return self.buffer[self.at : self.at + 1]

    def value(self) -> object:
        while True:
            try:
                value, self.at = DECODER.raw_decode(self.buffer, self.at)
                return value
            except json.JSONDecodeError as error:
                unterminated = error.msg.startswith("Unterminated")
                if (unterminated or error.pos > len(self.buffer) - _NEAR) and self._read_more():
                    continue
                line = self.line() + self.buffer.count("\n", self.at, error.pos)
                cut = unterminated or error.pos >= len(self.buffer.rstrip()) - 1
                hint = "; the file may be truncated" if cut else ""
                raise DataError(f"not valid JSON ({error.msg}){hint}", path=self.path, line=line) from error
            except (ValueError, RecursionError) as error:
                raise DataError(f"not valid JSON ({flaw(error)})", path=self.path, line=self.line()) from error

    def line(self) -> int:
        self._line += self.buffer.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def fail(self, problem: str) -> NoReturn:
        raise DataError(problem, path=self.path, line=self.line())

    def check_size(self, size: int) -> None:
        if size > MOST_LINE:
            self.fail(f"has a value of more than {MOST_LINE >> 20} MB; write one row on each line (JSON Lines)")

    def _read_more(self) -> bool:
        """Drop parsed text and read on, twice as much if one value fills the buffer; False at the end."""
        self.line()
        self.passed += self.at
        self.buffer, self.at, self._counted = self.buffer[self.at :], 0, 0
        self.check_size(len(self.buffer))
        raw = self._file.read(max(CHUNK, min(len(self.buffer), MOST_LINE - len(self.buffer))))
        self._decoder = self._decoder or codecs.getincrementaldecoder(find_encoding(raw))()
        try:
            self.buffer += self._decoder.decode(raw, not raw)
        except UnicodeError as error:
            raise _report_encoding(error, self.path, self._line + self.buffer.count("\n")) from error
        return bool(raw)


def _check_object(value: object, path: str, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"expected an object, found {describe(value)}", path=path, line=line)
    return value


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
    return partial(read_stream, open_file, where, stream), header if place else {}


def read_stream(
    open_file: Callable[[], BinaryIO], where: str, stream: Callable[[BinaryIO, str], Iterator[Object]]
) -> Iterator[Object]:
    """Open a file and read its objects."""
    with open_file() as file:
        yield from stream(file, where)


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
