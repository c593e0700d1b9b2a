"""Data sets: names, paths and formats to cases.

A reader turns one file into cases and raises ``DataError`` with the file, line and field of what is wrong. Which
reader reads a file is found from the file's content, or named as ``FORMAT:PATH``. A format that holds prompts only
takes the responses from further files. It knows nothing of attacks, protocols or measures.
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
    """

    summary: str
    recognise: Callable[[str], bool]
    read: Callable[[str, str], Iterator[Case]] | None = None
    join: Callable[[str, str, Sequence[Answers]], Iterator[Case | LeftOut]] | None = None


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


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "native": Reader(native.SUMMARY, native.recognise, native.read),
        "llmbar": Reader(llmbar.SUMMARY, llmbar.recognise, llmbar.read),
        "ifeval": Reader(ifeval.SUMMARY, ifeval.recognise, join=ifeval.join),
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
    if spec in BUILT_IN:
        raw = (resources.files("distract.datasets") / BUILT_IN[spec][0]).read_bytes()
        return _parse(raw, spec, spec, "native", responses)
    prefix, colon, rest = spec.partition(":")
    # A path that exists wins over a format's name, so that no file name is out of reach.
    if colon and not Path(spec).exists():
        if prefix not in READERS:
            raise UnknownName("data format", prefix, READERS)
        return _parse(_bytes(Path(rest)), rest, Path(rest).name, prefix, responses)
    if not Path(spec).exists():
        raise DataError(f"no such file (built-in data sets: {', '.join(BUILT_IN)})", path=spec)
    return _parse(_bytes(Path(spec)), spec, Path(spec).name, None, responses)


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


def _parse(raw: bytes, where: str, name: str, form: str | None, responses: Sequence[str]) -> DataSet:
    text = _decoded(raw, where)
    if not text.strip():
        raise DataError("is empty; expected cases", path=where)
    if form is None:
        # The native format is told by the least and asked last.
        form = next((key for key in reversed(tuple(READERS)) if READERS[key].recognise(text)), None)
    if form is None:
        known = "; ".join(f"{key}: {reader.summary}" for key, reader in READERS.items())
        raise DataError(f"in no format that distract knows ({known})", path=where)
    checksum, left_out = hashlib.sha256(raw).hexdigest(), Counter[str]()
    cases: dict[str, Case] = {}
    size = 0
    for entry in _entries(READERS[form], form, text, where, files := {path: _bytes(Path(path)) for path in responses}):
        if isinstance(entry, Case):
            cases[entry.id] = entry
            size += 1
        else:
            size += entry.prompt
            left_out[entry.reason] += 1
    if not cases:
        why = "; ".join(f"{reason} ({n})" for reason, n in left_out.most_common())
        raise DataError(f"holds no case{': ' if why else ''}{why}", path=where)
    if files:
        # The author and the way a prompt is split are part of what is judged.
        parts = [raw, Path(splitting.__file__).read_bytes()]
        parts += [part for path, answer in files.items() for part in (Path(path).stem.encode(), answer)]
        checksum = hashlib.sha256("".join(hashlib.sha256(part).hexdigest() for part in parts).encode()).hexdigest()
    return DataSet(name, form, checksum, tuple(cases.values()), left_out, size)


def _entries(reader: Reader, form: str, text: str, where: str, files: Mapping[str, bytes]) -> Iterator[Case | LeftOut]:
    if reader.join is not None:
        if not files:
            raise UsageError(
                f"{where}: {form} holds prompts only; name a file of {{prompt, response}} with --responses"
            )
        answers = [read_answers(_decoded(raw, path), path) for path, raw in files.items()]
        authors = [one.author for one in answers]
        if twice := [author for author in authors if authors.count(author) > 1]:
            raise UsageError(f"--responses: two files stand for the author {twice[0]!r}; rename one of them")
        return reader.join(text, where, answers)
    if files:
        raise UsageError(f"--responses: {form} data hold their responses; it goes with prompts only, such as ifeval")
    assert reader.read is not None
    return reader.read(text, where)
