"""Data sets: names, paths and formats to cases.

A reader turns the text of a file into cases and raises ``DataError`` with the file, line and field of what is wrong.
Which reader reads a file is found from the file's content, or named as ``FORMAT:PATH``. A format that holds prompts
only takes the responses from further files, or is read without any by ``load_prompts``. It knows nothing of attacks,
protocols or measures.
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
from distract.core.files import decode, read_bytes, read_text
from distract.core.records import Case, Response
from distract.data.formats import native
from distract.data.formats.answers import Omission
from distract.data.formats.ifeval import ConstrainedPrompt
from distract.data.readers import READERS, Reader
from distract.data.sources import BUILT_IN, DataSource, locate

__all__ = [
    "BUILT_IN",
    "READERS",
    "DataSet",
    "PromptSet",
    "Reader",
    "collect_cases",
    "load",
    "load_prompts",
    "read_text",
]

CASES_NAME = "cases"
"""What a data set is called that a caller has put together."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Cases with where they come from.

    Attributes:
        checksum: SHA-256 (hex) of the file, or of the checksums of several.
        left_out: how many entries are no case, by reason.
        size: number of prompts in the data, those without a case included.
    """

    name: str
    format: str
    checksum: str
    cases: tuple[Case, ...]
    left_out: Counter[str]
    size: int

    @property
    def record(self) -> dict[str, Any]:
        """Which data these are, for the record of a run."""
        return {"name": self.name, "format": self.format, "sha256": self.checksum, "cases": self.size}


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts without responses, with where they come from.

    Attributes:
        checksum: SHA-256 (hex) of the file.
        left_out: how many prompts cannot be used, by reason.
        size: number of prompts in the file, those left out included.
    """

    name: str
    format: str
    checksum: str
    prompts: tuple[ConstrainedPrompt, ...]
    left_out: Counter[str]
    size: int


def load(spec: str, responses: Sequence[str] = (), seed: int = 0) -> DataSet:
    """Read a data set."""
    source = locate(spec, "cases")
    reader = READERS[source.format]
    given = {path: read_bytes(Path(path)) for path in responses}
    left_out = Counter[str]()
    cases: dict[str, Case] = {}
    size = 0
    for entry in _read_entries(source, given):
        if isinstance(entry, Case):
            case = _draw_order(entry, seed) if reader.better_first else entry
            cases[case.id] = case
            size += 1
        else:
            size += entry.prompt
            left_out[entry.reason] += 1
    if not cases:
        raise DataError(f"holds no case{_format_reasons(left_out)}", path=source.where)
    return DataSet(source.name, source.format, _checksum(source, given), tuple(cases.values()), left_out, size)


def collect_cases(cases: Iterable[Case]) -> DataSet:
    """Cases of a caller as a data set: checked like a file of the native format, whose lines they would be."""
    cases = list(cases)
    if wrong := next((one for one in cases if not isinstance(one, Case)), None):
        raise DataError(f"expected cases, found {reprlib.repr(wrong)}", path=CASES_NAME)
    if not cases:
        raise DataError("holds no case", path=CASES_NAME)
    for place, case in enumerate(cases, 1):
        if field := next((field for field, turns in _list_turns(case) if isinstance(turns, str)), None):
            problem = "expected a tuple of turns, found a text; write (text,)"
            raise DataError(problem, path=CASES_NAME, line=place, field=field)
    try:
        raw = "".join(f"{native.format_line(case)}\n" for case in cases).encode()
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"a case holds what no file can ({error})", path=CASES_NAME) from error
    read = tuple(native.read(raw.decode(), CASES_NAME))
    return DataSet(CASES_NAME, "native", hashlib.sha256(raw).hexdigest(), read, Counter(), len(read))


def _list_turns(case: Case) -> Iterator[tuple[str, object]]:
    """What holds turns in a case, by field."""
    yield "prompt", case.prompt
    yield "reference", case.reference
    for index, response in enumerate(case.responses):
        yield f"responses[{index}].turns", getattr(response, "turns", ())


def load_prompts(spec: str) -> PromptSet:
    """Read prompts without their responses."""
    source = locate(spec, "prompts")
    reader = READERS[source.format].prompts
    if reader is None:
        able = ", ".join(key for key, other in READERS.items() if other.prompts)
        raise UsageError(
            f"{source.where}: {source.format} data hold no prompts with format requirements (these do: {able})"
        )
    entries = list(reader(source.text, source.where))
    left_out = Counter(entry.reason for entry in entries if isinstance(entry, Omission))
    found = tuple(entry for entry in entries if isinstance(entry, ConstrainedPrompt))
    if not found:
        raise DataError(f"holds no prompt{_format_reasons(left_out)}", path=source.where)
    return PromptSet(source.name, source.format, _checksum(source, {}), found, left_out, len(entries))


def _read_entries(source: DataSource, given: dict[str, bytes]) -> Iterator[Case | Omission]:
    """What the reader makes of the files; ``given`` are those named with ``--responses``."""
    reader = READERS[source.format]
    if given and not reader.needs:
        able = ", ".join(key for key, other in READERS.items() if other.needs)
        raise UsageError(f"--responses: {source.format} data hold their responses; it goes with {able}")
    if reader.needs and not given:
        raise UsageError(
            f"{source.where}: {source.format} data need the responses of others; name {reader.needs} with --responses"
        )
    if reader.join is not None:
        files = {path: decode(raw, path) for path, raw in {**source.further, **given}.items()}
        return reader.join(source.text, source.where, files)
    assert reader.read is not None
    return reader.read(source.text, source.where)


def _draw_order(case: Case, seed: int) -> Case:
    """A case of two responses in an order drawn by its id; the authors are places and stay."""
    if hashlib.sha256(f"{seed}\x1e{case.id}".encode()).digest()[0] % 2:
        return case
    first, second = case.responses
    other = {first.author: second.author, second.author: first.author}
    responses = (Response(first.author, second.turns), Response(second.author, first.turns))
    return replace(case, responses=responses, preferred=other.get(case.preferred or "", case.preferred))


def _checksum(source: DataSource, given: dict[str, bytes]) -> str:
    """SHA-256 (hex) of the one file, or of everything that decides what is judged: names of authors, code."""
    code = READERS[source.format].code
    if not source.further and not given:
        return source.checksum
    parts = [Path(str(code.__file__)).read_bytes()] if code else []
    for path, raw in source.further.items():
        parts += ["/".join(Path(path).parts[-2:]).encode(), raw]
    for path, raw in given.items():
        parts += [Path(path).stem.encode(), raw]
    digests = [source.checksum, *(hashlib.sha256(part).hexdigest() for part in parts)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _format_reasons(left_out: Counter[str]) -> str:
    why = "; ".join(f"{reason} ({n})" for reason, n in left_out.most_common())
    return f": {why}" if why else ""
