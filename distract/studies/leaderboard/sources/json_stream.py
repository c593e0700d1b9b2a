"""Objects of JSON files one by one, so that a file need not fit into memory.

It reads the same JSON as ``distract.data.fields`` reads from a text, with the same strictness. It knows no field.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from distract.core.errors import DataError
from distract.data.fields import DECODER, describe, flaw

CHUNK = 1 << 20
_NEAR = 12
"""Characters before the end of what was read in which an error may only mean that there is more to read."""

_SPACE = re.compile(r"[ \t\r\n]*")

Object = dict[str, Any]


def decode_lines(file: BinaryIO, path: Path) -> Iterator[str]:
    """The lines of a file with their ends; a byte order mark is dropped."""
    for number, raw in enumerate(file, 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8; convert the file to UTF-8", path=path, line=number) from error


def read_lines(path: Path) -> Iterator[tuple[int, Object]]:
    """The objects of JSON Lines with their lines, from 1; blank lines are skipped."""
    with path.open("rb") as file:
        for number, line in enumerate(decode_lines(file, path), 1):
            if not (text := line.strip(" \t\r\n")):
                continue
            try:
                value = DECODER.decode(text)
            except (ValueError, RecursionError) as error:
                # Only the last line of a file can lack its end.
                cut = "" if line.endswith("\n") else "; the file may be truncated"
                raise DataError(f"not valid JSON ({flaw(error)}){cut}", path=path, line=number) from error
            yield number, _check_object(value, path, number)


def read_array(path: Path) -> Iterator[tuple[int, Object]]:
    """The objects of one JSON array, each with the line on which it begins."""
    with path.open("rb") as file:
        text = _JsonText(file, path)
        if text.next_char() != "[":
            text.fail("expected a JSON array")
        text.at += 1
        if text.next_char() != "]":
            while True:
                line = text.line()
                yield line, _check_object(text.value(), path, line)
                following = text.next_char()
                if following == "]":
                    break
                if following != ",":
                    text.fail("expected ',' or ']' after an item; is it truncated?")
                text.at += 1
                if text.next_char() == "]":
                    text.fail("a comma after the last item")
        text.at += 1
        if text.next_char():
            text.fail("more text after the end of the array")


class _JsonText:
    """A text that is read on as it is used up: ``at`` is the place in ``buffer``."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.buffer, self.at = "", 0
        self._file, self._path = file, path
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._line, self._counted = 1, 0

    def next_char(self) -> str:
        """The next character that is no space, empty at the end."""
        while True:
            space = _SPACE.match(self.buffer, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.buffer) or not self._read_more():
                return self.buffer[self.at : self.at + 1]

    def value(self) -> object:
        """The JSON value that begins here."""
        while True:
            try:
                value, self.at = DECODER.raw_decode(self.buffer, self.at)
                return value
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > len(self.buffer) - _NEAR
                if cut and self._read_more():
                    continue
                where = self.line() + self.buffer.count("\n", self.at, error.pos)
                tail = "; the file may be truncated" if cut else ""
                raise DataError(f"not valid JSON ({error.msg}){tail}", path=self._path, line=where) from error
            except (ValueError, RecursionError) as error:
                raise DataError(f"not valid JSON ({flaw(error)})", path=self._path, line=self.line()) from error

    def line(self) -> int:
        """The line of the place, from 1."""
        self._line += self.buffer.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def fail(self, problem: str) -> NoReturn:
        raise DataError(problem, path=self._path, line=self.line())

    def _read_more(self) -> bool:
        """Drop what is used up and read on, by as much again where one value fills it all; False at the end."""
        self.line()
        self.buffer, self.at, self._counted = self.buffer[self.at :], 0, 0
        raw = self._file.read(max(CHUNK, len(self.buffer)))
        try:
            self.buffer += self._decoder.decode(raw, not raw)
        except UnicodeDecodeError as error:
            line = self._line + self.buffer.count("\n") + bytes(error.object).count(b"\n", 0, error.start)
            raise DataError("not UTF-8; convert the file to UTF-8", path=self._path, line=line) from error
        return bool(raw)


def _check_object(value: object, path: Path, line: int) -> Object:
    if not isinstance(value, dict):
        raise DataError(f"expected an object, found {describe(value)}", path=path, line=line)
    return value
