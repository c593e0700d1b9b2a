"""Find data by name, path, folder or hub name, or take an object, as tables in a known format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from distract.core.errors import DataError, UnknownName, UsageError
from distract.data.formats import READERS, detect_format
from distract.data.tables import Table, open_folder, open_table, read_table

BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"tweakset": ("tweakset.jsonl", "questions with three format constraints, good and broken answers, rewrites")}
)
HUB = "hub"
TABLE = "table"


@dataclass(frozen=True, slots=True)
class DataSource:
    """A data set in a known format (a key of ``READERS``): its only or first table, and the others by path."""

    table: Table
    name: str
    format: str
    further: Mapping[str, Table] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The name of the file in messages."""
        return self.table.where


def locate(data: object, expected: str, roles: Mapping[str, str] = MappingProxyType({})) -> DataSource:
    """Find data; ``roles`` are the columns that the user names, for tables only."""
    if not isinstance(data, str):
        from distract.data.frames import convert_frame

        table = convert_frame(data)
        return _make_source(table, table.where, None, roles)
    if data in BUILT_IN:
        raw = (resources.files("distract.data") / BUILT_IN[data][0]).read_bytes()
        return _make_source(read_table(raw, data), data, "native", roles)
    form, place = None, data
    prefix, colon, rest = data.partition(":")
    # An existing path takes precedence over a format, so that users can reach every file.
    if colon and prefix != HUB and not _exists(data):
        if prefix not in READERS:
            raise UnknownName("data format", prefix, [*READERS, HUB])
        form, place = prefix, rest
    if place.startswith(f"{HUB}:") and not _exists(place):
        from distract.data import hub

        source = _make_source(hub.load_table(place, expected), place.removeprefix(f"{HUB}:"), form, roles)
        if READERS[source.format].gather:
            raise UsageError(f"{place}: {source.format} is a folder of files; download it and name the folder")
        return source
    if form is None and not _exists(place):
        raise DataError(f"no such file (built-in data sets: {', '.join(BUILT_IN)})", path=data)
    return _read_path(Path(place), form, expected, roles)


def _read_path(path: Path, form: str | None, expected: str, roles: Mapping[str, str]) -> DataSource:
    if _exists(str(path)) and path.is_dir():
        for name in READERS if form is None else (form,):
            if files := _gather_files(name, path):
                return _read_folder(files, name, expected)
        if table := open_folder(path):
            return _make_source(table, path.resolve().name, form, roles)
        advice = f"is not {READERS[form].summary}" if form and READERS[form].gather else "name a file in it"
        raise DataError(f"is a directory; {advice}", path=path)
    source = _make_source(open_table(path, expected), path.name, form, roles)
    files = _gather_files(source.format, path)
    return _read_folder(files, source.format, expected) if files else source


def _gather_files(form: str, path: Path) -> tuple[Path, ...]:
    gather = READERS[form].gather
    return gather(path) if gather else ()


def _read_folder(files: tuple[Path, ...], form: str, expected: str) -> DataSource:
    first, *others = files
    further = {str(path): open_table(path, expected) for path in others}
    return DataSource(open_table(first, expected), first.parent.resolve().name, form, further)


def _make_source(table: Table, name: str, form: str | None, roles: Mapping[str, str]) -> DataSource:
    if roles:
        if form not in (None, TABLE):
            raise UsageError(f"--map: {form} data have fixed names; leave {form}: or --map out")
        form, table = TABLE, replace(table, roles=roles)
    form = form or detect_format(table)
    if form is None:
        _report_unknown(table)
    return DataSource(table, name, form)


def _report_unknown(table: Table) -> NoReturn:
    """Say what a table holds, and what would make it readable."""
    from distract.data.formats.table import find_columns

    next(table.read(), None)  # a fault in the first row comes first
    if not table.fields:
        raise DataError(f"{table.kind} without rows; expected cases", path=table.where)
    columns = {name: {*re.findall(r"\w+", reader.summary.partition("{")[2])} for name, reader in READERS.items()}
    shared = {name: len(columns[name] & {*table.fields}) for name in READERS}
    nearest = max(shared, key=lambda name: shared[name])
    find_columns(table, nearest if shared[nearest] > 1 else TABLE)
    raise AssertionError(table.fields)  # else the table would have a format


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # the name is too long or has an illegal character
        return False
