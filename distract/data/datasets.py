"""Load data sets: read cases from names, paths and formats.

A reader turns the text of a file into cases, and raises ``DataError`` with the file, line and field of a fault. The
content of the file determines the reader, unless the user names it as ``FORMAT:PATH``. A format with prompts only gets
the responses from further files; ``load_prompts`` reads it without them.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract.core.errors import DataError, UsageError
from distract.core.files import decode, read_bytes
from distract.core.records import Case, Response
from distract.data.formats import READERS, native
from distract.data.formats.reader import ConstrainedPrompt, Omission
from distract.data.sources import BUILT_IN, DataSource, locate

__all__ = ["BUILT_IN", "READERS", "DataSet", "collect_cases", "load", "load_prompts"]

CASES_NAME = "cases"
"""Name of a data set of the caller's own cases."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Cases and their origin.

    ``checksum`` is the SHA-256 (hex) of the file, or of the checksums of several. ``left_out`` counts entries
    without a case, by reason; ``size`` counts all prompts, with and without a case.
    """

    name: str
    format: str
    checksum: str
    cases: tuple[Case, ...]
    left_out: Counter[str]
    size: int

    @property
    def record(self) -> dict[str, Any]:
        return {"name": self.name, "format": self.format, "sha256": self.checksum, "cases": self.size}


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts without responses and their origin; the other fields are those of ``DataSet``."""

    name: str
    format: str
    checksum: str
    prompts: tuple[ConstrainedPrompt, ...]
    left_out: Counter[str]
    size: int


def load(spec: str, responses: Sequence[str] = (), seed: int = 0) -> DataSet:
    source = locate(spec, "cases")
    reader = READERS[source.format]
    answers = {path: read_bytes(Path(path)) for path in responses}
    left_out = Counter[str]()
    cases: dict[str, Case] = {}
    size = 0
    for entry in _read_entries(source, answers):
        if isinstance(entry, Case):
            case = _draw_order(entry, seed) if reader.better_first else entry
            cases[case.id] = case
            size += 1
        else:
            size += entry.prompt
            left_out[entry.reason] += 1
    if not cases:
        raise DataError(f"holds no cases{_format_reasons(left_out)}", path=source.where)
    return DataSet(source.name, source.format, _checksum(source, answers), tuple(cases.values()), left_out, size)


def collect_cases(cases: Iterable[Case]) -> DataSet:
    """Make a data set of the caller's cases, with the same checks as a file in the native format."""
    cases = list(cases)
    if wrong := next((case for case in cases if not isinstance(case, Case)), None):
        raise DataError(f"expected cases, found {reprlib.repr(wrong)}", path=CASES_NAME)
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
    read = tuple(native.read(raw.decode(), CASES_NAME))
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
    entries = list(reader(source.text, source.where))
    left_out = Counter(entry.reason for entry in entries if isinstance(entry, Omission))
    prompts = tuple(entry for entry in entries if isinstance(entry, ConstrainedPrompt))
    if not prompts:
        raise DataError(f"holds no prompts{_format_reasons(left_out)}", path=source.where)
    return PromptSet(source.name, source.format, _checksum(source, {}), prompts, left_out, len(entries))


def _read_entries(source: DataSource, answers: dict[str, bytes]) -> Iterator[Case | Omission]:
    reader = READERS[source.format]
    if answers and not reader.needs:
        able = ", ".join(key for key, other in READERS.items() if other.needs)
        raise UsageError(f"--responses: {source.format} data hold their responses; use it with {able}")
    if reader.needs and not answers:
        raise UsageError(f"{source.where}: {source.format} data hold no responses; add --responses with {reader.needs}")
    if reader.join is not None:
        files = {path: decode(raw, path) for path, raw in {**source.further, **answers}.items()}
        return reader.join(source.text, source.where, files)
    assert reader.read is not None
    return reader.read(source.text, source.where)


def _draw_order(case: Case, seed: int) -> Case:
    """Shuffle two responses by a hash of the case id; the author names denote positions, so they are not moved."""
    if hashlib.sha256(f"{seed}\x1e{case.id}".encode()).digest()[0] % 2:
        return case
    first, second = case.responses
    other = {first.author: second.author, second.author: first.author}
    responses = (Response(first.author, second.turns), Response(second.author, first.turns))
    return replace(case, responses=responses, preferred=other.get(case.preferred or "", case.preferred))


def _checksum(source: DataSource, answers: dict[str, bytes]) -> str:
    """SHA-256 (hex) of the file, or of all files, names of authors and code that affect the cases."""
    code = READERS[source.format].code
    if not source.further and not answers:
        return source.checksum
    parts = [Path(str(code.__file__)).read_bytes()] if code else []
    for path, raw in source.further.items():
        parts += ["/".join(Path(path).parts[-2:]).encode(), raw]
    for path, raw in answers.items():
        parts += [Path(path).stem.encode(), raw]
    digests = [source.checksum, *(hashlib.sha256(part).hexdigest() for part in parts)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _format_reasons(left_out: Counter[str]) -> str:
    reasons = "; ".join(f"{reason} ({n})" for reason, n in left_out.most_common())
    return f": {reasons}" if reasons else ""
