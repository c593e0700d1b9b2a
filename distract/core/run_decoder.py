"""Read the records of a run folder back from JSON Lines."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, overload

from distract.core import files
from distract.core.errors import BackendError, DataError
from distract.core.printable import count
from distract.core.records import (
    FIGURES,
    Case,
    Constraint,
    Judgment,
    Response,
    Rewrite,
    Row,
    Side,
    are_criteria,
    are_finite,
    token_count,
)

R = TypeVar("R")


class RecordFile(Sequence[R]):
    """The complete records of a JSON Lines file that may still grow; each is read on demand and not kept."""

    def __init__(self, path: Path, decode: Callable[[Any], R]) -> None:
        # Absolute, since the process may change its folder.
        self._path, self._decode_value = path.absolute(), decode
        self._ends = array("Q")

    def __iter__(self) -> Iterator[R]:
        if not self._is_present():
            return
        with files.open_own(self._path) as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):  # else it is incomplete
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
        return len(self) == len(other) and all(left == right for left, right in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # it grows

    @property
    def cut(self) -> bool:
        return self._is_present() and self._path.stat().st_size > self._find_ends()

    def _is_present(self) -> bool:
        is_present = self._path.exists()
        if self._ends and not (is_present and self._path.stat().st_size >= self._ends[-1]):
            raise BackendError(f"{self._path}: was changed while it was read; run it again")
        return is_present

    def _find_ends(self) -> int:
        """Record the ends of new records; returns the end of the last."""
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
        records = []
        with files.open_own(self._path) if places else nullcontext(BytesIO()) as file:
            for place in places:
                file.seek(self._ends[place - 1] if place else 0)
                records.append(self._decode(file.readline(), place + 1))
        return records

    def _decode(self, line: bytes, number: int) -> R:
        return decode_line(line[:-1], self._decode_value, self._path, number)


def decode_line(line: bytes, decode: Callable[[Any], R], path: Path, number: int) -> R:
    try:
        return decode(json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", path=path) from error
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise DataError(f"not a record of a run ({why}); run it again", path=path, line=number) from error


_ROW_FIELDS = frozenset(each.name for each in fields(Row)) - {"extra"}


def decode_row(value: dict[str, Any]) -> Row:
    """Decode a row; fields that only a study knows are its extra ones."""
    extra = {name: value.pop(name) for name in sorted(value.keys() - _ROW_FIELDS)}
    value["extra"] = {name: own for name, own in extra.items() if own not in (None, [], "")}
    value["a"], value["b"] = Side(**value["a"]), Side(**value["b"])
    value["judgments"] = tuple(_build_record(Judgment, entry) for entry in value["judgments"])
    value["keys"] = tuple(value["keys"])
    value["shown"] = tuple(value.get("shown", ()))
    value["tokens"] = tuple((token_count(int(prompt)), token_count(int(answer))) for prompt, answer in value["tokens"])
    row = Row(**value)
    names = (row.case, row.cluster, row.design, row.protocol, row.judge, row.attack, row.a.author, row.b.author)
    _check_types((*names, row.data, row.subset, row.prompt_group, *row.keys), str, "a name is not a string")
    words = (row.excluded, row.label, row.target, row.a.attack, row.b.attack)
    _check_types(words, str | None, "a reason, a label or an attack is not a string")
    _check_types((row.a.severity, row.b.severity), int | None, "a severity is not an integer")
    if not {*row.shown} <= {"a", "b"}:
        raise ValueError("an order names another side than a or b")
    for judgment in row.judgments:
        _check_types((judgment.preferred, judgment.failure), str | None, "a verdict is not a string")
        for name, size in (*FIGURES.items(), ("mass", 1)):
            figures = getattr(judgment, name)
            if figures is not None and not are_finite(figures if size > 1 else (figures,), size):
                raise ValueError(f"no valid verdict: {name}: expected {count(size, 'finite number')}")
        if judgment.criteria is not None and not are_criteria(judgment.criteria):
            raise ValueError("no valid verdict: criteria: expected 2 finite numbers for each")
    return row


def decode_rewrite(value: dict[str, Any]) -> Rewrite:
    value["response"] = _build_record(Response, value["response"])
    value["original"] = tuple(value["original"])
    value["reasons"] = tuple(value["reasons"])
    value["evidence"] = tuple((str(name), number) for name, number in value["evidence"])
    response: Response = value["response"]
    texts = (value["case"], response.author, value["generator"], *value["reasons"])
    _check_types(texts, str, "a case, an author, a generator or a reason is not a string")
    _check_types([response.turns], tuple, "turns are not a list")
    _check_types((*response.turns, *value["original"]), str, "a turn is not a string")
    _check_types([response.attack], str | None, "an attack is not a string")
    _check_types([response.severity], int | None, "a severity is not an integer")
    _check_types([number for _, number in value["evidence"]], int | float | str, "evidence is not a number or a string")
    return Rewrite(**value)


def decode_case(value: dict[str, Any]) -> Case:
    """Decode a case; its texts must be strings, since they are shown and judged again."""
    value["responses"] = tuple(_build_record(Response, response) for response in value["responses"])
    value["constraints"] = tuple(
        Constraint(one["kind"], tuple((name, _freeze(argument)) for name, argument in one["arguments"]))
        for one in value["constraints"]
    )
    value["lineages"] = ()
    case = _build_record(Case, value)
    lists = (case.prompt, case.reference, *(response.turns for response in case.responses))
    _check_types(lists, tuple, "turns are not a list")
    turns = (*case.prompt, *case.reference, *(turn for response in case.responses for turn in response.turns))
    names = (case.id, *(response.author for response in case.responses), *(one.kind for one in case.constraints))
    _check_types((*turns, *names), str, "a name or a text is not a string")
    _check_types((case.preferred, case.criterion, case.source), str | None, "a label or a source is not a string")
    _check_types([case.passed], bool | None, "a label is not true or false")
    return case


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _freeze(entry) for name, entry in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _check_types(values: Iterable[object], kind: Any, problem: str) -> None:
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(problem)


def _build_record(kind: type[R], value: dict[str, Any]) -> R:
    return kind(**{name: _freeze(entry) for name, entry in value.items()})
