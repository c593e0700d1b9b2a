"""Data sets: names, paths and formats to cases.

A reader turns one file into cases and raises ``DataError`` with the file, line and field of what is wrong. Which
reader reads a file is found from the file's content, or named as ``FORMAT:PATH``. A format that holds prompts only
takes the responses from further files, or is read without any by ``load_prompts``. It knows nothing of attacks,
protocols or measures.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from distract.datasets import ifeval, llmbar, native, splitting
from distract.datasets.answers import Answers, LeftOut, read_answers
from distract.datasets.ifeval import Prompted
from distract.errors import DataError, UnknownName, UsageError
from distract.records import Case


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format.

    Attributes:
        summary: one line.
        recognise: whether a text is in this format, from its beginning.
        read: the whole text and the file's name to cases; raises DataError. None for a format of prompts only.
        join: the same with the responses from other files; None for a format that holds its responses.
        prompts: the same without responses; None for a format whose prompts hold no verifiable requirements.
    """

    summary: str
    recognise: Callable[[str], bool]
    read: Callable[[str, str], Iterator[Case]] | None = None
    join: Callable[[str, str, Sequence[Answers]], Iterator[Case | LeftOut]] | None = None
    prompts: Callable[[str, str], Iterator[Prompted | LeftOut]] | None = None


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
    prompts: tuple[Prompted, ...]
    left_out: Counter[str]
    size: int


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "native": Reader(native.SUMMARY, native.recognise, native.read),
        "llmbar": Reader(llmbar.SUMMARY, llmbar.recognise, llmbar.read),
        "ifeval": Reader(ifeval.SUMMARY, ifeval.recognise, join=ifeval.join, prompts=ifeval.prompts),
    }
)

BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"tweakset": ("tweakset.jsonl", "questions with three format constraints, good and broken answers, rewrites")}
)


def load(spec: str, responses: Sequence[str] = ()) -> DataSet:
    """Read a data set.

    Args:
        spec: a built-in name, a path, or ``FORMAT:PATH``.
        responses: paths of files of ``{prompt, response}``, for a format that holds prompts only.

    Raises:
        DataError: a file is missing, empty, not UTF-8, in no known format, or wrong inside.
        UnknownName: no such format.
        UsageError: responses are given for a format that has its own, or lack where they are needed.
    """
    return _parse(_located(spec, "cases"), responses)


def load_prompts(spec: str) -> PromptSet:
    """Read prompts without their responses.

    Args:
        spec: a path, or ``FORMAT:PATH``.

    Raises:
        DataError: the file is missing, empty, not UTF-8, in no known format, or wrong inside, or holds no prompt.
        UnknownName: no such format.
        UsageError: the format does not hold prompts with verifiable requirements.
    """
    file = _located(spec, "prompts")
    reader = READERS[file.format].prompts
    if reader is None:
        able = ", ".join(key for key, other in READERS.items() if other.prompts)
        raise UsageError(
            f"{file.where}: {file.format} data hold no prompts with format requirements (these do: {able})"
        )
    entries = list(reader(file.text, file.where))
    left_out = Counter(entry.reason for entry in entries if isinstance(entry, LeftOut))
    found = tuple(entry for entry in entries if isinstance(entry, Prompted))
    if not found:
        raise DataError(f"holds no prompt{_why(left_out)}", path=file.where)
    return PromptSet(file.name, file.format, hashlib.sha256(file.raw).hexdigest(), found, left_out, len(entries))


@dataclass(frozen=True, slots=True)
class _File:
    """A file whose format is known."""

    raw: bytes
    text: str
    where: str
    name: str
    format: str


def _located(spec: str, expected: str) -> _File:
    """The file that a spec means; see ``load``."""
    if spec in BUILT_IN:
        raw = (resources.files("distract.datasets") / BUILT_IN[spec][0]).read_bytes()
        return _told(raw, spec, spec, "native", expected)
    prefix, colon, rest = spec.partition(":")
    # A path that exists wins over a format's name, so that no file name is out of reach.
    if colon and not Path(spec).exists():
        if prefix not in READERS:
            raise UnknownName("data format", prefix, READERS)
        return _told(_bytes(Path(rest)), rest, Path(rest).name, prefix, expected)
    if not Path(spec).exists():
        raise DataError(f"no such file (built-in data sets: {', '.join(BUILT_IN)})", path=spec)
    return _told(_bytes(Path(spec)), spec, Path(spec).name, None, expected)


def _told(raw: bytes, where: str, name: str, form: str | None, expected: str) -> _File:
    """A file in the format given, or told from its beginning."""
    text = _decoded(raw, where)
    if not text.strip():
        raise DataError(f"is empty; expected {expected}", path=where)
    if form is None:
        # The native format is told by the least and asked last.
        form = next((key for key in reversed(tuple(READERS)) if READERS[key].recognise(text)), None)
    if form is None:
        known = "; ".join(f"{key}: {reader.summary}" for key, reader in READERS.items())
        raise DataError(f"in no format that distract knows ({known})", path=where)
    return _File(raw, text, where, name, form)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None
    except IsADirectoryError:
        raise DataError("is a directory; name a file in it", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error


def text(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: it is missing or not UTF-8.
    """
    return _decoded(_bytes(path), str(path))


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8; convert the file to UTF-8", path=where, line=line) from error


def _why(left_out: Counter[str]) -> str:
    why = "; ".join(f"{reason} ({n})" for reason, n in left_out.most_common())
    return f": {why}" if why else ""


def _parse(file: _File, responses: Sequence[str]) -> DataSet:
    checksum, left_out = hashlib.sha256(file.raw).hexdigest(), Counter[str]()
    cases: dict[str, Case] = {}
    size = 0
    files = {path: _bytes(Path(path)) for path in responses}
    for entry in _entries(file, files):
        if isinstance(entry, Case):
            cases[entry.id] = entry
            size += 1
        else:
            size += entry.prompt
            left_out[entry.reason] += 1
    if not cases:
        raise DataError(f"holds no case{_why(left_out)}", path=file.where)
    if files:
        # The author and the way a prompt is split are part of what is judged.
        parts = [file.raw, Path(splitting.__file__).read_bytes()]
        parts += [part for path, answer in files.items() for part in (Path(path).stem.encode(), answer)]
        checksum = hashlib.sha256("".join(hashlib.sha256(part).hexdigest() for part in parts).encode()).hexdigest()
    return DataSet(file.name, file.format, checksum, tuple(cases.values()), left_out, size)


def _entries(file: _File, files: Mapping[str, bytes]) -> Iterator[Case | LeftOut]:
    reader, where = READERS[file.format], file.where
    if reader.join is not None:
        if not files:
            raise UsageError(
                f"{where}: {file.format} holds prompts only; name a file of {{prompt, response}} with --responses"
            )
        answers = [read_answers(_decoded(raw, path), path) for path, raw in files.items()]
        authors = [one.author for one in answers]
        if twice := [author for author in authors if authors.count(author) > 1]:
            raise UsageError(f"--responses: two files stand for the author {twice[0]!r}; rename one of them")
        return reader.join(file.text, where, answers)
    if files:
        raise UsageError(
            f"--responses: {file.format} data hold their responses; it goes with prompts only, such as ifeval"
        )
    assert reader.read is not None
    return reader.read(file.text, where)
