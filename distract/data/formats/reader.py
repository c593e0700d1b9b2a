"""The record of a format, and the values that readers yield besides cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from distract.core.records import Case, Constraint
from distract.data.tables import Table


@dataclass(frozen=True, slots=True)
class Omission:
    """An entry that makes no case; ``prompt`` is False for a response without a prompt."""

    reason: str
    prompt: bool = True


@dataclass(frozen=True, slots=True)
class BetterFirst:
    """A case whose better response comes first, so that the loader must draw the order."""

    case: Case


@dataclass(frozen=True, slots=True)
class ConstrainedPrompt:
    """A prompt without responses: its key, the whole text, and at least one constraint that the text states."""

    id: str
    text: str
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format. Every function raises DataError with the place of a fault.

    Attributes:
        summary: one line.
        recognise: whether a table is in this format, by its columns and first row.
        read: reads the cases of a table; None if responses come from other files.
        join: the same, with the tables of those files by path; None if the format holds its responses.
        needs: a description of the files for ``--responses``; empty if there are none.
        gather: finds all files of a folder, or beside its first file, the first one first (none if it is another kind
            of folder); None if the format is a single file.
        prompts: like ``read``, without responses; None if prompts hold no verifiable requirements.
        code: other code that affects the cases, and so is part of the checksum.
    """

    summary: str
    recognise: Callable[[Table], bool]
    read: Callable[[Table], Iterator[Case | BetterFirst | Omission]] | None = None
    join: Callable[[Table, Mapping[str, Table]], Iterator[Case | Omission]] | None = None
    needs: str = ""
    gather: Callable[[Path], tuple[Path, ...]] | None = None
    prompts: Callable[[Table], Iterator[ConstrainedPrompt | Omission]] | None = None
    code: ModuleType | None = None
