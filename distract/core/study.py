"""A study: one question about a judge, with the parameters its runs record, their summary and their report.

Each module of ``distract.studies`` holds one, under the name of its command. A run is summarised once, and
its document and tables use the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType, UnionType
from typing import Any, Generic, Protocol, TypeVar

from distract.core.records import Rewrite, Row

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Shape = type | UnionType | list[Any] | Mapping[str | EllipsisType, Any]
"""The shape of a JSON value: a type, a list of one shape, or an object; ``...`` means every key."""

SHARED_SCHEMA: Mapping[str | EllipsisType, Shape] = {
    "judge": str,
    "seed": int,
    "left_out": dict,
    "protocols": {...: [str]},
    "ties": [str],
    "controls": [str],
    "self_judging": [str],
}
"""The parameters that every study records."""

_SOME: Mapping[str | EllipsisType, Shape] = {
    "effects": {...: str},
    "truths": {...: str},
    "families": {...: str},
    "control_of": {...: str},
    "placebos": [str],
    "criteria": {...: [str]},
    "exchange": dict | None,
    "reference": dict | None,
}
"""Parameters that only some record."""


class Sums(Protocol[R_co]):
    """Sums up a run as it arrives, so that nothing has to be read again."""

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        """Add the results of a plan, in the order of plans."""

    def result(self, flaw: str | None = None) -> R_co:
        """Return the result of the run."""


class BufferedSums(Generic[R]):
    """Buffers all rows, for summaries that cannot be computed incrementally."""

    def __init__(self, measure: Callable[[Sequence[Row], Sequence[Rewrite], str | None], R]) -> None:
        self._measure = measure
        self._rows: list[Row] = []
        self._rewrites: list[Rewrite] = []

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        self._rows.extend(rows)
        self._rewrites.extend(rewrites)

    def result(self, flaw: str | None = None) -> R:
        return self._measure(self._rows, self._rewrites, flaw)


@dataclass(frozen=True, kw_only=True)
class Study(Generic[R]):
    """One question about a judge.

    Attributes:
        name: name of its command.
        options: dataclass of its options, whose docstring is the help of the command; None if it has no command.
        protocols: ways of asking if the options name none.
        plan: makes the job of a run, from the options and the setup of its models.
        designs: what its rows compare, by the name of a design.
        row_fields: what only this study records in a row, with the values of rows that do not set it.
        schema: parameters that it reads, besides ``SHARED_SCHEMA``.
        measures: sums up a run, from its parameters.
        document: the content of ``--json`` and ``summary.json``.
        sections: blocks of its report.
        details: blocks after the report that need the texts of a run.
        page: the verdicts that the page of a run shows side by side.
        has_figures: whether the result holds any figure that the options ask for.
        interim: what the results so far show, in a sentence.
    """

    name: str
    measures: Callable[[Mapping[str, Any]], Sums[R]]
    document: Callable[[Mapping[str, Any], R], dict[str, Any]]
    sections: Callable[[Mapping[str, Any], R], Iterable[Any]]
    options: type | None = None
    protocols: tuple[str, ...] = ()
    plan: Callable[[Any, Any], Any] | None = None
    designs: Mapping[str, str] = field(default_factory=dict)
    row_fields: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str | EllipsisType, Shape] = field(default_factory=dict)
    details: Callable[[Any], Iterable[Any]] = lambda run: ()
    page: Callable[[Any], dict[str, Any] | None] = lambda run: None
    has_figures: Callable[[Any, R], bool] = lambda options, result: True
    interim: Callable[[Mapping[str, Any], R], str] | None = None

    def fits(self, parameters: object) -> bool:
        """Whether the parameters hold everything that its document and tables read."""
        if not (isinstance(parameters, dict) and parameters.get("protocols")):
            return False
        some = {name: shape for name, shape in _SOME.items() if name in parameters}
        return has_shape(parameters, {**some, **SHARED_SCHEMA, **self.schema})


def has_shape(value: object, shape: Shape) -> bool:
    """Whether a JSON value has a shape; an object may have more keys."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(item, shape[0]) for item in value)
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return False
        if ... in shape:
            return all(has_shape(item, shape[...]) for item in value.values())
        return all(key in value and has_shape(value[key], inner) for key, inner in shape.items())
    return isinstance(value, shape)
