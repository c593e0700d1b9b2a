"""The records of a run folder read back from JSON Lines, a kind for each file. It knows no folder and no measure."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, overload

from distract.core import files
from distract.core.errors import BackendError, DataError
from distract.core.records import (
    Case,
    Edit,
    Judgment,
    MinimalFlip,
    Response,
    Rewrite,
    Row,
    Side,
    apply_edits,
    token_count,
)

R = TypeVar("R")


class RecordFile(Sequence[R]):
    """The whole records of a JSON Lines file that may still grow, each read when it is looked at and not kept."""

    def __init__(self, path: Path, read: Callable[[Any], R]) -> None:
        # Where it is now: who goes on from elsewhere still means this file.
        self._path, self._read = path.absolute(), read
        self._ends = array("Q")

    def __iter__(self) -> Iterator[R]:
        if not self._is_present():
            return
        with files.open_own(self._path) as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):  # else it is cut off
                    yield self._decode(line, number)

    @overload
    def __getitem__(self, at: int) -> R: ...

    @overload
    def __getitem__(self, at: slice) -> list[R]: ...

    def __getitem__(self, at: int | slice) -> R | list[R]:
        places = range(len(self))[at]
        if isinstance(places, int):
            return self._read_at([places])[0]
        return self._read_at(places)

    def __len__(self) -> int:
        self._find_ends()
        return len(self._ends)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # it grows

    @property
    def cut(self) -> bool:
        """Whether the last record is not whole."""
        return self._is_present() and self._path.stat().st_size > self._find_ends()

    def _is_present(self) -> bool:
        """Whether there is a file."""
        there = self._path.exists()
        if self._ends and not (there and self._path.stat().st_size >= self._ends[-1]):
            raise BackendError(f"{self._path}: was changed while it was read; run it again")
        return there

    def _find_ends(self) -> int:
        """Note where the records end that have come since; returns where the last one does."""
        end = self._ends[-1] if self._ends else 0
        if self._is_present() and self._path.stat().st_size > end:
            with files.open_own(self._path) as file:
                file.seek(end)
                for line in file:
                    if line.endswith(b"\n"):
                        end += len(line)
                        self._ends.append(end)
        return end

    def _read_at(self, places: Sequence[int]) -> list[R]:
        found = []
        with files.open_own(self._path) if places else nullcontext(BytesIO()) as file:
            for place in places:
                file.seek(self._ends[place - 1] if place else 0)
                found.append(self._decode(file.readline(), place + 1))
        return found

    def _decode(self, line: bytes, number: int) -> R:
        try:
            return self._read(json.loads(line[:-1].decode("utf-8")))
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8", path=self._path) from error
        except RecursionError as error:
            why = "nested too deeply"
            raise DataError(f"not a record of a run ({why}); run it again", path=self._path, line=number) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DataError(f"not a record of a run ({error}); run it again", path=self._path, line=number) from error


def decode_row(value: dict[str, Any]) -> Row:
    """A row, from its JSON values."""
    value["a"], value["b"] = Side(**value["a"]), Side(**value["b"])
    value["judgments"] = tuple(_build_record(Judgment, entry) for entry in value["judgments"])
    value["keys"] = tuple(value["keys"])
    value["shown"] = tuple(value.get("shown", ()))
    value["beside"] = tuple(Side(**one) for one in value.get("beside", ()))
    value["lengths"] = tuple(value.get("lengths", ()))
    value["tokens"] = tuple((token_count(int(prompt)), token_count(int(answer))) for prompt, answer in value["tokens"])
    return Row(**value)


def decode_rewrite(value: dict[str, Any]) -> Rewrite:
    """A rewrite, from its JSON values."""
    value["response"] = _build_record(Response, value["response"])
    value["original"] = tuple(value["original"])
    value["reasons"] = tuple(value["reasons"])
    value["evidence"] = tuple((str(name), found) for name, found in value["evidence"])
    made: Response = value["response"]
    if not all(isinstance(text, str) for text in (value["case"], made.author, value["generator"], *value["reasons"])):
        raise ValueError("a case, an author, a generator or a reason is no text")
    if not isinstance(made.attack, str | None) or not isinstance(made.severity, int | None):
        raise ValueError("an attack is no text or a severity no number")
    if not all(isinstance(found, int | float | str) for _, found in value["evidence"]):
        raise ValueError("evidence is neither a number nor a text")
    return Rewrite(**value)


def decode_flip(value: dict[str, Any]) -> MinimalFlip:
    """A smallest flip, from its JSON values; of its case only id and prompt."""
    value["case"] = Case(value["case"]["id"], tuple(value["case"]["prompt"]), ())
    value["edits"] = tuple(Edit(**one) for one in value["edits"])
    found = _build_record(MinimalFlip, value)
    texts = (found.case.id, *found.case.prompt, found.protocol, found.attack, found.rewritten, found.other)
    if not all(isinstance(text, str) for text in (*texts, *found.original, *found.turns, found.rule or "")):
        raise ValueError("a name or a text is none")
    numbers = (found.of, found.comparisons, found.requests, found.invalid, found.severity or 0)
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("a number is none")
    if not all(isinstance(value, int | float) for pair in (found.before, found.after) for value in pair):
        raise ValueError("a strength is no number")
    if not found.edits or any(edit.turn < 0 for edit in found.edits):
        raise ValueError("it has no edit, or one in no turn")
    if any(found.original[edit.turn][edit.start : edit.end] != edit.old for edit in found.edits):
        raise ValueError("an edit is not of its text")
    if apply_edits(found.original, found.edits) != found.turns:
        raise ValueError("its edits do not make its text")
    return found


def _build_record(kind: type[R], value: dict[str, Any]) -> R:
    return kind(**{name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()})
