"""A study: one question put to a judge, what its runs record, how they are summed up and what is shown of them.

Each module of ``distract.studies`` holds one, under the name of its command. A run is summed up once: its document and
its tables are made of the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType, UnionType
from typing import Any, Generic, Protocol, TypeVar

from distract.core.records import MinimalFlip, Rewrite, Row

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Shape = type | UnionType | list[Any] | Mapping[str | EllipsisType, Any]
"""Of a JSON value: a type, a list of one shape, or an object with these keys; ``...`` stands for every key."""

SHARED_SCHEMA: Mapping[str | EllipsisType, Shape] = {
    "judge": str,
    "seed": int,
    "left_out": dict,
    "protocols": {...: list},
    "ties": [str],
    "controls": [str],
    "self_judging": [str],
}
"""What every study records of a run."""


class Sums(Protocol[R_co]):
    """What sums up a run as it comes, so that nothing has to be read again."""

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip]) -> None:
        """Take in what came of a plan; the plans come in order."""

    def result(self, flaw: str | None = None) -> R_co:
        """What the run comes to."""
        ...


class BufferedSums(Generic[R]):
    """Sums of what can only be summed up with everything at hand."""

    def __init__(self, measure: Callable[[Sequence[Row], Sequence[Rewrite], str | None], R]) -> None:
        self._measure = measure
        self._rows: list[Row] = []
        self._rewrites: list[Rewrite] = []

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip]) -> None:
        """Keep them."""
        self._rows.extend(rows)
        self._rewrites.extend(rewrites)

    def result(self, flaw: str | None = None) -> R:
        """What they come to."""
        return self._measure(self._rows, self._rewrites, flaw)


@dataclass(frozen=True)
class Study(Generic[R]):
    """A question put to a judge.

    Attributes:
        name: of its command.
        schema: shape of the parameters that its document and its tables read, beside ``SHARED_SCHEMA``.
        sums: begins to sum up a run with these parameters.
        document: parameters and result to what ``--json`` prints and ``summary.json`` holds.
        report: parameters and result to what a person sees: renderables of Rich.
    """

    name: str
    schema: Mapping[str | EllipsisType, Shape]
    sums: Callable[[Mapping[str, Any]], Sums[R]]
    document: Callable[[Mapping[str, Any], R], dict[str, Any]]
    report: Callable[[Mapping[str, Any], R], Iterable[Any]]

    def fits(self, parameters: object) -> bool:
        """Whether everything is there that its document and its tables read."""
        return has_shape(parameters, {**SHARED_SCHEMA, **self.schema})


def has_shape(value: object, shape: Shape) -> bool:
    """Whether a JSON value is of a shape; an object may have more keys."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(one, shape[0]) for one in value)
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return False
        if ... in shape:
            return all(has_shape(one, shape[...]) for one in value.values())
        return all(key in value and has_shape(value[key], one) for key, one in shape.items())
    return isinstance(value, shape)
