"""Files of published outputs: their texts and checksums, their first object, and names taken from their paths."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.files import decode, read_bytes
from distract.data.fields import Item
from distract.data.json_stream import read_lines


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file's text, and the SHA-256 (hex) of its bytes."""

    path: Path
    text: str
    sha256: str

    def items(self) -> Iterator[Item]:
        """Read the objects of a JSON Lines file; raise DataError for any other line."""
        return read_lines(self.text, str(self.path))


def read_output(path: Path) -> OutputFile:
    """Read a file that is not empty."""
    raw = read_bytes(path)
    text = decode(raw, str(path))
    if not text.strip():
        raise DataError("is empty; expected judgments", path=path)
    return OutputFile(path, text, hashlib.sha256(raw).hexdigest())


def checksum(sources: Iterable[OutputFile]) -> str:
    """Return the SHA-256 (hex) of one file, or of the checksums of several."""
    checksums = [source.sha256 for source in sources]
    return checksums[0] if len(checksums) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest()


HEAD = 1 << 16
"""Bytes from which a file's format is recognised."""


def head(path: Path, size: int = HEAD) -> bytes:
    """Read the beginning of a file, enough to recognise an array of objects by its field names."""
    try:
        with path.open("rb") as file:
            return file.read(size).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error


def first_object(path: Path) -> Mapping[str, Any] | None:
    """Read only the first object of a JSON Lines file; None if the file begins with something else."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if line := raw.removeprefix(b"\xef\xbb\xbf").strip():
                    return _parse_object(line, path, number)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error
    return None


def _parse_object(line: bytes, path: Path, number: int) -> Mapping[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        value: Mapping[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = "does not begin with a JSON object on one line; repair the file, or move it out of the folder"
        raise DataError(problem, path=path, line=number) from error
    return value


def check_name(value: str, path: Path, what: str) -> str:
    """Check that a part of a path can be a name."""
    return Item({}, str(path), 1).check_name(value, what)


def check_names(names: tuple[str, str, str], path: Path, what: str) -> tuple[str, str, str]:
    """Check the names of a judge, protocol and data set."""
    judge, protocol, data = (check_name(name, path, what) for name in names)
    return judge, protocol, data


def read_choice(item: Item, field: str, meanings: Mapping[Any, Any]) -> Any:
    """Look a field's value up in ``meanings``; null is a value only if ``meanings`` has None."""
    value = item.value.get(field)
    listed = ", ".join(json.dumps(key) for key in meanings)
    if field not in item.value:
        item.fail(f"missing; expected one of {listed}", field)
    # A list is not hashable, and True would match 1.
    if not isinstance(value, str | int | None) or isinstance(value, bool) or value not in meanings:
        text = json.dumps(value)
        item.fail(f"expected one of {listed}, found {text if len(text) < 60 else text[:57] + '...'}", field)
    return meanings[value]


def read_answer(item: Item, field: str) -> str | None:
    """Read a judge's text; None if there is none."""
    value = item.value.get(field)
    if value is not None and not isinstance(value, str):
        item.fail("expected text", field)
    return value
