"""Rows to comparisons: what was said of each pair, order by order, beside what people say.

It knows no measure, interval or protocol.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from distract.core.records import BASELINE, Outcome, Row
from distract.judging.published.published_runs import Convention
from distract.judging.verdicts import outcome
from distract.stats.figure import PLACE_FIELDS, Figure, field_texts
from distract.stats.intervals import Interval

DataPlace = tuple[str | None, str | None]
"""A data set and a subset of it; None is all of them."""

ORDERS: Mapping[Literal["a", "b"], str] = {"a": "given", "b": "swapped"}
"""What an order is called, by which of the two stands first."""

ComparisonUnit = tuple[str, str, tuple[str, int], tuple[str, int]]
"""Data set, case, and author and severity (0 without one) of each of the two, in their own order: the same whichever of
them a judge's rows call a."""


@dataclass(frozen=True, slots=True)
class JudgeRows:
    """One judge asked one way, on any number of data sets.

    Attributes:
        judge: its name.
        protocol: the way of asking.
        rules: by which verdicts are derived from the same replies; empty where there is one way only.
        rows: by rule; under ``""`` those that serve all rules.
        ties: whether a verdict can be a tie.
        convention: whose ``published_*`` figures are wanted; empty for none.
        calls: requests behind one comparison, where rows do not say.
    """

    judge: str
    protocol: str
    rules: tuple[str, ...]
    rows: Mapping[str, tuple[Row, ...]]
    ties: bool = True
    convention: Convention = ""
    calls: int | None = None

    @property
    def headline(self) -> str | None:
        """The rule by which the protocol is summed up: PrePair weighs scores, which leaves few ties."""
        return "score" if "score" in self.rules else self.rules[0] if self.rules else None

    def by(self, rule: str | None) -> tuple[Row, ...]:
        """The rows of a rule."""
        return self.rows.get(rule or "", self.rows.get("", ()))


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """One comparison.

    Attributes:
        unit: what tells it apart.
        turned: whether a is the second one of the unit.
        cluster: name of its prompt.
        subset: of its data set.
        label: what people prefer.
        verdicts: what each order says, in terms of a and b; None is invalid.
        shown: which stood first in each order; empty where they do not stand side by side.
        overall: what all orders together say.
        calls: requests, those that serve several comparisons shared out among them; None where nobody knows.
        tokens: likewise.
    """

    unit: ComparisonUnit
    turned: bool
    cluster: str
    subset: str
    label: Outcome | None
    verdicts: tuple[Outcome | None, ...]
    shown: tuple[Literal["a", "b"], ...]
    overall: Outcome | None
    calls: float | None = None
    tokens: float | None = None

    @property
    def data(self) -> str:
        """Name of the data set."""
        return self.unit[0]

    @property
    def is_valid(self) -> bool:
        """Whether every order has a verdict."""
        return None not in self.verdicts


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparisons of one judge asked one way, by one rule and under one control (``none`` without).

    Attributes:
        made: those that were judged.
        excluded: how many were not, by data set and subset.
    """

    made: tuple[PairVerdicts, ...]
    excluded: Counter[tuple[str, str]] = field(default_factory=Counter)

    def select(self, data: str | None, subset: str | None) -> Comparisons:
        """Those of a data set, or of a subset of it; None stands for all."""

        def here(place: tuple[str, str]) -> bool:
            return data in (None, place[0]) and subset in (None, place[1])

        kept = tuple(one for one in self.made if here((one.data, one.subset)))
        return Comparisons(kept, Counter({place: n for place, n in self.excluded.items() if here(place)}))


@dataclass(frozen=True, slots=True)
class Agreement(Figure):
    """One measured figure of meta-evaluation.

    Attributes:
        judge: who was asked.
        data: the data set; None for all of a run's together.
        subset: the part of it; None for the whole.
        order: ``given``, ``swapped`` or ``both``, of a kappa.
        compared: ``better``, ``worse`` or ``not distinguishable``, of a difference.
    """

    judge: str = ""
    data: str | None = None
    subset: str | None = None
    order: str | None = None
    compared: str | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one document."""
        return field_texts(self, ("judge", "data", "subset", *PLACE_FIELDS, "order"))


def collect_comparisons(
    rows: Iterable[Row], rule: str | None, attack: str = BASELINE, calls: int | None = None
) -> Comparisons:
    """What was said of each pair."""
    mine = [row for row in rows if row.design == "people" and row.attack == attack]
    shared = Counter(key for row in mine for key in row.keys)
    made, excluded = list[PairVerdicts](), Counter[tuple[str, str]]()
    scoring = rule if rule in ("score", "rating") else None
    for row in mine:
        if row.excluded is not None:
            excluded[row.data, row.subset] += 1
            continue
        parts = [1 / shared[key] for key in row.keys]
        unit, turned = comparison_unit(row)
        made.append(
            PairVerdicts(
                unit=unit,
                turned=turned,
                cluster=row.cluster,
                subset=row.subset,
                label=row.label,
                verdicts=tuple(outcome((judgment,), scoring) for judgment in row.judgments),
                shown=row.shown,
                overall=outcome(row.judgments, scoring),
                calls=sum(parts) if parts else calls,
                tokens=_count_tokens(row, parts),
            )
        )
    return Comparisons(tuple(made), excluded)


def _count_tokens(row: Row, parts: Sequence[float]) -> float | None:
    total = sum(part * (prompt + answer) for part, (prompt, answer) in zip(parts, row.tokens, strict=True))
    return total or None


def comparison_unit(row: Row) -> tuple[ComparisonUnit, bool]:
    """The unit that a row compares, and whether its a is the second one of it."""
    a, b = ((one.author, one.severity or 0) for one in (row.a, row.b))
    return (row.data, row.case, min(a, b), max(a, b)), a > b


def places(judged: Iterable[JudgeRows]) -> list[DataPlace]:
    """Everything together first; each data set where there are several, each subset where a data set has several.

    They are the same for all judges and protocols of a document, so that one which lacks a data set has its gap.
    """
    parts: dict[str, set[str]] = defaultdict(set)
    for one in judged:
        for rows in one.rows.values():
            for row in rows:
                if row.design == "people":
                    parts[row.data].add(row.subset)
    found: list[DataPlace] = [(None, None)] if len(parts) != 1 else []
    for data in sorted(parts):
        found.append((data, None))
        found += [(data, subset) for subset in sorted(parts[data]) if len(parts[data]) > 1]
    return found


def add_interval(figure: Agreement, interval: Interval | None) -> Agreement:
    """A figure with its interval, where there is one."""
    return figure if interval is None else replace(figure, low=interval[0], high=interval[1])
