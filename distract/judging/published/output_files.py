"""Files of published outputs: their texts with checksums, their first object, and names taken from them.

It knows no format.
"""

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
    """A file that was read.

    Attributes:
        path: of it.
        text: of it.
        sha256: (hex) of its bytes.
    """

    path: Path
    text: str
    sha256: str

    def items(self) -> Iterator[Item]:
        """The objects of a JSON Lines file; raises DataError for what is none."""
        return read_lines(self.text, str(self.path))


def read_output(path: Path) -> OutputFile:
    """Read a file."""
    raw = read_bytes(path)
    text = decode(raw, str(path))
    if not text.strip():
        raise DataError("is empty; expected judgments", path=path)
    return OutputFile(path, text, hashlib.sha256(raw).hexdigest())


def checksum(sources: Iterable[OutputFile]) -> str:
    """SHA-256 (hex) of one file, or of the checksums of several."""
    found = [source.sha256 for source in sources]
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


HEAD = 1 << 16
"""Bytes by which a file is told."""


def head(path: Path) -> bytes:
    """The beginning of a file, enough to tell an array of objects by the names of its fields."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error


def first_object(path: Path) -> Mapping[str, Any] | None:
    """The first object of a JSON Lines file, by reading no more than it; None where the file begins with none."""
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
    """A part of a path or a number as a name."""
    return Item({}, str(path), 1).check_name(value, what)


def read_choice(item: Item, field: str, known: Mapping[Any, Any]) -> Any:
    """What one of the values that a field may have stands for; null stands for nothing where ``known`` has it."""
    value = item.value.get(field)
    listed = ", ".join(json.dumps(key) for key in known)
    if field not in item.value:
        item.fail(f"missing; expected one of {listed}", field)
    # A list cannot be looked up, and True would be found as 1.
    if not isinstance(value, str | int | None) or isinstance(value, bool) or value not in known:
        shown = json.dumps(value)
        item.fail(f"expected one of {listed}, found {shown if len(shown) < 60 else shown[:57] + '...'}", field)
    return known[value]


def read_answer(item: Item, field: str) -> str | None:
    """A judge's text, which may be anything; None where there is none."""
    value = item.value.get(field)
    if value is not None and not isinstance(value, str):
        item.fail("expected text", field)
    return value
