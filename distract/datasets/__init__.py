"""Data sets: names, paths and formats to cases.

A reader turns one file into cases and raises ``DataError`` with the file, line and field of what is wrong. Which
reader reads a file is found from the file's content, or named as ``FORMAT:PATH``. It knows nothing of attacks,
protocols or measures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from distract.datasets import llmbar, native
from distract.errors import DataError, UnknownName
from distract.records import Case


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format.

    Attributes:
        summary: one line.
        recognise: whether a text is in this format, from its beginning.
        read: the whole text and the file's name to cases; raises DataError.
    """

    summary: str
    recognise: Callable[[str], bool]
    read: Callable[[str, str], Iterator[Case]]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Cases with where they come from; ``checksum`` is the SHA-256 (hex) of the file."""

    name: str
    format: str
    checksum: str
    cases: tuple[Case, ...]


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "native": Reader(native.SUMMARY, native.recognise, native.read),
        "llmbar": Reader(llmbar.SUMMARY, llmbar.recognise, llmbar.read),
    }
)

BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"tweakset": ("tweakset.jsonl", "questions with three format constraints, good and broken answers, rewrites")}
)


def load(spec: str) -> DataSet:
    """Read a data set.

    Args:
        spec: a built-in name, a path, or ``FORMAT:PATH``.

    Raises:
        DataError: the file is missing, empty, not UTF-8, in no known format, or wrong inside.
        UnknownName: no such format.
    """
    if spec in BUILT_IN:
        raw = (resources.files("distract.datasets") / BUILT_IN[spec][0]).read_bytes()
        return _parse(raw, spec, spec, "native")
    prefix, colon, rest = spec.partition(":")
    # A path that exists wins over a format's name, so that no file name is out of reach.
    if colon and not Path(spec).exists():
        if prefix not in READERS:
            raise UnknownName("data format", prefix, READERS)
        return _read(Path(rest), prefix)
    return _read(Path(spec), None)


def _read(path: Path, form: str | None) -> DataSet:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        known = ", ".join(BUILT_IN)
        raise DataError(f"no such file (built-in data sets: {known})", path=path) from None
    except IsADirectoryError:
        raise DataError("is a directory; name a file in it", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error
    return _parse(raw, str(path), path.name, form)


def _parse(raw: bytes, where: str, name: str, form: str | None) -> DataSet:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8; convert the file to UTF-8", path=where, line=line) from error
    if not text.strip():
        raise DataError("is empty; expected cases", path=where)
    if form is None:
        form = next((key for key, reader in READERS.items() if reader.recognise(text)), None)
    if form is None:
        known = "; ".join(f"{key}: {reader.summary}" for key, reader in READERS.items())
        raise DataError(f"in no format that distract knows ({known})", path=where)
    cases: dict[str, Case] = {}
    for case in READERS[form].read(text, where):
        cases[case.id] = case
    if not cases:
        raise DataError("holds no case", path=where)
    return DataSet(name, form, hashlib.sha256(raw).hexdigest(), tuple(cases.values()))
