"""Find data by name, path, folder or hub name, as texts in a known format."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.files import decode, read_bytes
from distract.data import hub
from distract.data.formats import READERS, detect_format

BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"tweakset": ("tweakset.jsonl", "questions with three format constraints, good and broken answers, rewrites")}
)
HUB = "hub"


@dataclass(frozen=True, slots=True)
class DataSource:
    """A data set in a known format (a key of ``READERS``).

    ``text`` and ``checksum`` (SHA-256, hex) belong to the only or first file. Its bytes are not kept, which would
    double the memory for a large file. ``where`` names the file in messages, and ``further`` holds the bytes of the
    other files by path.
    """

    text: str
    checksum: str
    where: str
    name: str
    format: str
    further: Mapping[str, bytes] = field(default_factory=dict)


def locate(spec: str, expected: str) -> DataSource:
    if spec in BUILT_IN:
        raw = (resources.files("distract.data") / BUILT_IN[spec][0]).read_bytes()
        return _make_source(raw, spec, spec, "native", expected)
    form, place = None, spec
    prefix, colon, rest = spec.partition(":")
    # An existing path takes precedence over a format, so that users can reach every file.
    if colon and prefix != HUB and not _exists(spec):
        if prefix not in READERS:
            raise UnknownName("data format", prefix, [*READERS, HUB])
        form, place = prefix, rest
    if place.startswith(f"{HUB}:") and not _exists(place):
        name = place.removeprefix(f"{HUB}:")
        source = _make_source(hub.load_rows(name).encode(), place, name, form, expected)
        if READERS[source.format].gather:
            raise UsageError(f"{place}: {source.format} is a folder of files; download it and name the folder")
        return source
    if form is None and not _exists(place):
        raise DataError(f"no such file (built-in data sets: {', '.join(BUILT_IN)})", path=spec)
    return _read_path(Path(place), form, expected)


def _read_path(path: Path, form: str | None, expected: str) -> DataSource:
    if _exists(str(path)) and path.is_dir():
        for name in READERS if form is None else (form,):
            if files := _gather_files(name, path):
                return _read_folder(files, name, expected)
        advice = f"is not {READERS[form].summary}" if form and READERS[form].gather else "name a file in it"
        raise DataError(f"is a directory; {advice}", path=path)
    source = _make_source(read_bytes(path), str(path), path.name, form, expected)
    files = _gather_files(source.format, path)
    return _read_folder(files, source.format, expected) if files else source


def _gather_files(form: str, path: Path) -> tuple[Path, ...]:
    gather = READERS[form].gather
    return gather(path) if gather else ()


def _read_folder(files: tuple[Path, ...], form: str, expected: str) -> DataSource:
    first, *others = files
    source = _make_source(read_bytes(first), str(first), first.parent.resolve().name, form, expected)
    further = {str(path): read_bytes(path) for path in others}
    return replace(source, further=further)


def _make_source(raw: bytes, where: str, name: str, form: str | None, expected: str) -> DataSource:
    text = decode(raw, where)
    if not text or text.isspace():
        raise DataError(f"is empty; expected {expected}", path=where)
    form = form or detect_format(text)
    if form is None:
        raise DataError(
            f"unknown format (known: {', '.join(READERS)}); `distract list data` describes each",
            path=where,
        )
    return DataSource(text, hashlib.sha256(raw).hexdigest(), where, name, form)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # the name is too long or has an illegal character
        return False
