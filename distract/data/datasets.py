"""Load data sets: find them by name, path, folder or hub name, or take an object, and read their cases.

A reader turns the text of a file into cases, and raises ``DataError`` with the file, line and field of a fault. The
content of the file determines the reader, unless the user names it as ``FORMAT:PATH``. A format with prompts only gets
the responses from further files; ``load_prompts`` reads it without them. Sets of any size are read in bounded memory.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.records import Case, Response
from distract.data.formats import READERS, detect_format, native
from distract.data.formats.reader import BetterFirst, ConstrainedPrompt, Omission
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
        from distract.data.frames import load_hub_table

        source = _make_source(load_hub_table(place, expected), place.removeprefix(f"{HUB}:"), form, roles)
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


__all__ = ["BUILT_IN", "READERS", "DataSet", "collect_cases", "load", "load_prompts"]

MOST = 10_000
"""Number of cases to keep of a large set for a caller that draws fewer."""

CASES_NAME = "cases"
"""Name of a data set of the caller's own cases."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Cases and their origin.

    ``checksum`` is the SHA-256 (hex) of the file, or of the checksums of several. ``left_out`` counts entries
    without a case, by reason; ``size`` counts all prompts, with and without a case. ``columns`` says which columns of
    a table hold them.
    """

    name: str
    format: str
    checksum: str
    cases: tuple[Case, ...]
    left_out: Counter[str]
    size: int
    columns: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        record = {"name": self.name, "format": self.format, "sha256": self.checksum, "cases": self.size}
        optional = {"columns": self.columns, "map": dict(sorted(self.roles.items()))}
        return {**record, **{name: value for name, value in optional.items() if value}}


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts without responses and their origin; the other fields are those of ``DataSet``."""

    name: str
    format: str
    checksum: str
    prompts: tuple[ConstrainedPrompt, ...]
    left_out: Counter[str]
    size: int


def load(
    data: object,
    responses: Sequence[str] = (),
    seed: int = 0,
    roles: Mapping[str, str] = MappingProxyType({}),
    limit: int | None = None,
) -> DataSet:
    """Read cases from a name, a path, a data frame or a list.

    Args:
        data: name or path, else an object in memory.
        responses: files of responses, for formats with prompts only.
        seed: seed for the order of a better and a worse response, and for the draw from a large set.
        roles: columns by role, for tables (``--map``).
        limit: number of cases that the caller will draw; of a larger set than ``MOST``, only that many are kept.
    """
    if isinstance(data, Iterable) and not isinstance(data, str | Mapping) and not _is_frame(data):
        data = list(data)
        if not data or not all(isinstance(case, Mapping) for case in data):
            if responses or roles:
                advice = "put them into the cases"
                raise UsageError(f"responses and columns need data with a name, a path or columns; {advice}")
            return collect_cases(data)
    source = locate(data, "cases", roles)
    answers = {path: open_table(Path(path), "responses") for path in responses}
    left_out = Counter[str]()
    sample = _Sample(None if limit is None else max(limit, MOST), seed)
    size = 0
    is_shipped = isinstance(data, str) and data in BUILT_IN and not answers
    for entry in _read_shipped(data) if is_shipped else _read_entries(source, answers):
        if isinstance(entry, Omission):
            size += entry.prompt
            left_out[entry.reason] += 1
        else:
            sample.add(_draw_order(entry.case, seed) if isinstance(entry, BetterFirst) else entry)
            size += 1
    if not sample.cases:
        raise DataError(f"holds no cases{_format_reasons(left_out)}", path=source.where)
    if sample.passed_over:
        left_out[f"not among the {len(sample.cases):,} drawn from this large set"] = sample.passed_over
    columns = ""
    if source.format == TABLE:
        from distract.data.formats.table import find_columns

        is_labelled = any(case.preferred is not None or case.passed is not None for case in sample.cases.values())
        columns = find_columns(source.table).describe(is_labelled)
    checksum = _checksum(source, answers)
    named = source.table.roles if columns else {}
    return DataSet(source.name, source.format, checksum, sample.list_cases(), left_out, size, columns, named)


def _is_frame(data: object) -> bool:
    from distract.data.frames import LIBRARIES

    return type(data).__module__.partition(".")[0] in LIBRARIES


@cache
def _read_shipped(name: str) -> tuple[Case, ...]:
    return tuple(native.read(locate(name, "cases").table))


class _Sample:
    """A random sample of cases in their order, drawn while they are read; ``most`` None keeps all."""

    def __init__(self, most: int | None, seed: int) -> None:
        self.cases: dict[int, Case] = {}
        self.passed_over = 0
        self._most, self._seed, self._number = most, seed, 0
        self._ranks: list[tuple[int, int]] = []

    def add(self, case: Case) -> None:
        number = self._number = self._number + 1
        self.cases[number] = case
        if self._most is None:
            return
        digest = hashlib.sha256(f"{self._seed}\x1e{number}".encode()).digest()
        heapq.heappush(self._ranks, (int.from_bytes(digest[:8], "big"), number))
        if len(self._ranks) > self._most:
            del self.cases[heapq.heappop(self._ranks)[1]]
            self.passed_over += 1

    def list_cases(self) -> tuple[Case, ...]:
        """List the sample in the order of the data; a later case replaces an earlier one of the same id."""
        return tuple({case.id: case for case in self.cases.values()}.values())


def collect_cases(cases: Iterable[Case]) -> DataSet:
    """Make a data set of the caller's cases, with the same checks as a file in the native format."""
    cases = list(cases)
    if wrong := [case for case in cases if not isinstance(case, Case)]:
        raise DataError(f"expected cases, found {reprlib.repr(wrong[0])}", path=CASES_NAME)
    if not cases:
        raise DataError("holds no cases", path=CASES_NAME)
    for place, case in enumerate(cases, 1):
        if field := next((field for field, turns in _list_turns(case) if isinstance(turns, str)), None):
            problem = "expected a tuple of turns, found a string; write (text,)"
            raise DataError(problem, path=CASES_NAME, line=place, field=field)
    try:
        raw = "".join(f"{native.format_line(case)}\n" for case in cases).encode()
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"a case cannot be written to a file ({error})", path=CASES_NAME) from error
    read = tuple(native.read(read_table(raw, CASES_NAME)))
    return DataSet(CASES_NAME, "native", hashlib.sha256(raw).hexdigest(), read, Counter(), len(read))


def _list_turns(case: Case) -> Iterator[tuple[str, object]]:
    yield "prompt", case.prompt
    yield "reference", case.reference
    for index, response in enumerate(case.responses):
        yield f"responses[{index}].turns", getattr(response, "turns", ())


def load_prompts(spec: str) -> PromptSet:
    source = locate(spec, "prompts")
    reader = READERS[source.format].prompts
    if reader is None:
        able = ", ".join(key for key, other in READERS.items() if other.prompts)
        raise UsageError(
            f"{source.where}: {source.format} data hold no prompts with format requirements (these do: {able})"
        )
    entries = list(reader(source.table))
    left_out = Counter(entry.reason for entry in entries if isinstance(entry, Omission))
    prompts = tuple(entry for entry in entries if isinstance(entry, ConstrainedPrompt))
    if not prompts:
        raise DataError(f"holds no prompts{_format_reasons(left_out)}", path=source.where)
    return PromptSet(source.name, source.format, _checksum(source, {}), prompts, left_out, len(entries))


def _read_entries(source: DataSource, answers: Mapping[str, Table]) -> Iterator[Case | BetterFirst | Omission]:
    reader = READERS[source.format]
    if answers and not reader.needs:
        able = ", ".join(key for key, other in READERS.items() if other.needs)
        raise UsageError(f"--responses: {source.format} data hold their responses; use it with {able}")
    if reader.needs and not answers:
        raise UsageError(f"{source.where}: {source.format} data hold no responses; add --responses with {reader.needs}")
    if reader.join is not None:
        return reader.join(source.table, {**source.further, **answers})
    assert reader.read is not None
    return reader.read(source.table)


def _draw_order(case: Case, seed: int) -> Case:
    """Shuffle two responses by a hash of the case id; the author names denote positions, so they are not moved."""
    if hashlib.sha256(f"{seed}\x1e{case.id}".encode()).digest()[0] % 2:
        return case
    first, second = case.responses
    other = {first.author: second.author, second.author: first.author}
    responses = (Response(first.author, second.turns), Response(second.author, first.turns))
    return replace(case, responses=responses, preferred=other.get(case.preferred or "", case.preferred))


def _checksum(source: DataSource, answers: Mapping[str, Table]) -> str:
    """SHA-256 (hex) of the file, or of all files, names of authors and code that affect the cases."""
    code = READERS[source.format].code
    first = source.table.checksum()
    if not source.further and not answers:
        return first
    digests = [first, *([_hash(Path(str(code.__file__)).read_bytes())] if code else ())]
    for path, table in source.further.items():
        digests += [_hash("/".join(Path(path).parts[-2:]).encode()), table.checksum()]
    for path, table in answers.items():
        digests += [_hash(Path(path).stem.encode()), table.checksum()]
    return _hash("".join(digests).encode())


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _format_reasons(left_out: Counter[str]) -> str:
    reasons = "; ".join(f"{reason} ({n})" for reason, n in left_out.most_common())
    return f": {reasons}" if reasons else ""
