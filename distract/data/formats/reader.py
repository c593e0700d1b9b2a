"""The record of a format, the values that readers yield besides cases, and what readers share: ids, labels, columns.

Columns that no reader uses are ignored, because published sets keep their sources.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from distract.core.errors import DataError
from distract.core.records import Case, Constraint, Response
from distract.data.fields import Item, describe
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


DISAGREE = "the annotators do not agree"


def has_all(*names: str) -> Callable[[Table], bool]:
    return lambda table: set(names).issubset(table.fields)


def name_rows(table: Table, field: str | None = None) -> Iterator[tuple[str, Item]]:
    """Each row with the id of its case: ``item-`` and the field if every row has its own, else the 1-based position."""
    is_unique = field in table.fields and _is_unique(table, str(field))
    for number, item in enumerate(table.items(), 1):
        yield f"item-{item.value[field]}" if field and is_unique else f"item-{number:04d}", item


def _is_unique(table: Table, field: str) -> bool:
    """Whether a column identifies every row; hashes keep a million ids in a few megabytes."""
    import numpy as np

    hashes = array("Q")
    for line, (value,) in table.select((field,)):
        identity = _identity(Item({field: value}, table.where, line), field)
        if identity is None:
            return False
        hashes.append(int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big"))
    return len(np.unique(np.frombuffer(hashes, np.uint64))) == len(hashes) if hashes else False


def _identity(item: Item, field: str) -> str | None:
    value = item.value.get(field)
    if type(value) not in (str, int):
        return None
    try:
        return item.check_name(item.checked(f"item-{value}", field), field)
    except DataError:
        return None  # use the position instead of an id that cannot be printed


def read_number(item: Item, field: str) -> str:
    """A required id, a whole number in most files and text in some."""
    value = item.value.get(field)
    return str(value) if type(value) is int else item.name(field)


def read_label(item: Item, field: str, meanings: Mapping[str | int, str]) -> str:
    known = [repr(label) if isinstance(label, str) else str(label) for label in meanings]
    expected = f"{', '.join(known[:-1])} or {known[-1]}"
    if field not in item.value:
        item.fail(f"missing; expected {expected}", field)
    value = item.value[field]
    if not item.typed and value not in meanings:
        value = next((label for label in meanings if str(label) == value), value)
    # True equals 1 in Python, but is not a number in JSON.
    if type(value) in (str, int) and value in meanings:
        return meanings[value]
    actual = json.dumps(value)[:40] if type(value) in (str, int) else describe(value)
    item.fail(f"expected {expected}, found {actual}", field)


def plurality(votes: Counter[str]) -> str | None:
    """The most frequent of at least one vote; None for a draw."""
    first, *others = votes.most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def make_case(item: Item, name: str, prompt: str, fields: tuple[str, str], preferred: str, source: str) -> Case:
    """A case of two responses, possibly blank, with their fields as authors."""
    responses = tuple(Response(field, (item.text(field, empty=True),)) for field in fields)
    return Case(name, (prompt,), responses, preferred, source=source)


def read_author(path: str) -> str:
    return Item({}, path, 1).check_author(Path(path).stem, "file name")
