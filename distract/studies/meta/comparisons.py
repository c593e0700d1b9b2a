"""Build comparisons from rows: the verdicts on each pair, order by order, with the label of people.

A response that is judged alone is compared with the pass mark, so that one code serves both designs; their figures are
never pooled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from distract.core.records import BASELINE, Outcome, Row
from distract.judging.pass_marks import read_verdict
from distract.judging.published.published_runs import Convention
from distract.stats.figure import PLACE_FIELDS, Figure, field_texts
from distract.stats.intervals import Interval

MetaDesign = Literal["people", "pass"]
"""What people judged: pairs of responses, or each response alone."""

DESIGNS: tuple[MetaDesign, ...] = get_args(MetaDesign)

DataPlace = tuple[str | None, str | None]
"""A data set and a subset of it; None is all of them."""

ORDERS: Mapping[Literal["a", "b"], str] = {"a": "given", "b": "swapped"}
"""Names of orders, by the response shown first."""

ComparisonUnit = tuple[str, str, tuple[str, int], tuple[str, int]]
"""Data set, case, and author and severity (0 without one) of each response, sorted: the same whichever a judge's rows
call a."""


@dataclass(frozen=True, slots=True)
class JudgeRows:
    """One judge under one protocol, on any number of data sets."""

    judge: str
    protocol: str
    rules: tuple[str, ...]  # rules that derive verdicts from the same replies; empty where there is only one way
    rows: Mapping[str, tuple[Row, ...]]  # rows by rule; under ``""`` those that serve all rules
    ties: bool = True  # whether a verdict can be a tie
    convention: Convention = ""  # authors whose ``published_*`` figures to compute; empty for none
    calls: int | None = None  # number of requests per comparison, where rows do not hold it

    @property
    def headline(self) -> str | None:
        """The rule that sums up the protocol: PrePair weighs scores, which leaves few ties."""
        return "score" if "score" in self.rules else self.rules[0] if self.rules else None

    def by(self, rule: str | None) -> tuple[Row, ...]:
        """The rows of a rule."""
        return self.rows.get(rule or "", self.rows.get("", ()))

    def select(self, design: MetaDesign) -> JudgeRows:
        """Select the rows of a design."""
        rows = {rule: tuple([row for row in rows if row.design == design]) for rule, rows in self.rows.items()}
        return replace(self, rows=rows)

    @property
    def comparisons(self) -> Comparisons:
        """The comparisons under the headline rule."""
        return collect_comparisons(self.by(self.headline), self.headline)


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """The verdicts on one comparison."""

    unit: ComparisonUnit
    turned: bool  # whether a is the second response of the unit
    cluster: str  # name of the prompt
    subset: str
    label: Outcome | None  # preference of people
    verdicts: tuple[Outcome | None, ...]  # verdict in each order, in terms of a and b; None is invalid
    # The response shown first in each order; empty if they are not shown side by side.
    shown: tuple[Literal["a", "b"], ...]
    overall: Outcome | None  # verdict over all orders
    # Number of requests, shared out among the comparisons that they serve; None where unknown.
    calls: float | None = None
    tokens: float | None = None  # number of tokens, likewise

    @property
    def data(self) -> str:
        """Name of the data set."""
        return self.unit[0]

    @property
    def is_valid(self) -> bool:
        """Whether every order has a verdict."""
        return None not in self.verdicts

    @property
    def is_right(self) -> bool:
        """Whether every verdict matches the label."""
        return all(verdict == self.label for verdict in self.verdicts)

    @property
    def is_equal(self) -> bool:
        """Whether all orders have the same verdict."""
        return len(set(self.verdicts)) == 1


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparisons of one judge under one protocol, rule and control (``none`` without).

    ``excluded`` counts those that were not judged, by data set and subset.
    """

    pairs: tuple[PairVerdicts, ...]
    excluded: Counter[tuple[str, str]] = field(default_factory=Counter)

    def select(self, data: str | None, subset: str | None) -> Comparisons:
        """Select a data set, or a subset of it; None means all."""

        def fits(place: tuple[str, str]) -> bool:
            return data in (None, place[0]) and subset in (None, place[1])

        pairs = tuple(pair for pair in self.pairs if fits((pair.data, pair.subset)))
        return Comparisons(pairs, Counter({place: n for place, n in self.excluded.items() if fits(place)}))


@dataclass(frozen=True, slots=True)
class Agreement(Figure):
    """One measured figure of meta-evaluation."""

    judge: str = ""
    design: MetaDesign = "people"
    data: str | None = None  # the data set; None for all of a run's together
    subset: str | None = None  # part of the data set; None for the whole
    order: str | None = None  # ``given``, ``swapped`` or ``both``, for a kappa
    compared: str | None = None  # ``better``, ``worse`` or ``not distinguishable``, for a difference

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one document."""
        return field_texts(self, ("judge", "design", "data", "subset", *PLACE_FIELDS, "order"))


def collect_comparisons(
    rows: Iterable[Row], rule: str | None, attack: str = BASELINE, calls: int | None = None
) -> Comparisons:
    """Collect the verdicts on each pair."""
    rows = [row for row in rows if row.design in DESIGNS and row.attack == attack]
    shared = Counter(key for row in rows for key in row.keys)
    pairs, excluded = list[PairVerdicts](), Counter[tuple[str, str]]()
    for row in rows:
        if row.excluded is not None:
            excluded[row.data, row.subset] += 1
            continue
        parts = [1 / shared[key] for key in row.keys]
        tokens = sum(part * (prompt + answer) for part, (prompt, answer) in zip(parts, row.tokens, strict=True))
        unit, turned = comparison_unit(row)
        pairs.append(
            PairVerdicts(
                unit=unit,
                turned=turned,
                cluster=row.cluster,
                subset=row.subset,
                label=row.label,
                verdicts=tuple(read_verdict(row, (judgment,), rule) for judgment in row.judgments),
                shown=row.shown,
                overall=read_verdict(row, row.judgments, rule),
                calls=sum(parts) if parts else calls,
                tokens=tokens or None,
            )
        )
    return Comparisons(tuple(pairs), excluded)


def comparison_unit(row: Row) -> tuple[ComparisonUnit, bool]:
    """Identify what a row compares, and whether its a is the second response of it."""
    a, b = ((side.author, side.severity or 0) for side in (row.a, row.b))
    return (row.data, row.case, min(a, b), max(a, b)), a > b


def split_designs(judged: Sequence[JudgeRows]) -> dict[MetaDesign, list[JudgeRows]]:
    """Split judges by design, without those that have rows of another one only."""
    present = [{row.design for rows in judge.rows.values() for row in rows} & {*DESIGNS} for judge in judged]
    designs = {
        design: [
            judge.select(design) for judge, own in zip(judged, present, strict=True) if design in (own or {"people"})
        ]
        for design in DESIGNS
    }
    return {design: judges for design, judges in designs.items() if judges}


def places(judged: Iterable[JudgeRows]) -> list[DataPlace]:
    """List everything together first, then each of several data sets, and each of several subsets of one.

    All judges and protocols of a document share them, so that one which lacks a data set has a gap.
    """
    subsets: dict[str, set[str]] = defaultdict(set)
    for judge in judged:
        for rows in judge.rows.values():
            for row in rows:
                if row.design in DESIGNS:
                    subsets[row.data].add(row.subset)
    listed: list[DataPlace] = [(None, None)] if len(subsets) != 1 else []
    for data in sorted(subsets):
        listed.append((data, None))
        listed += [(data, subset) for subset in sorted(subsets[data]) if len(subsets[data]) > 1]
    return listed


def add_interval(figure: Agreement, interval: Interval | None) -> Agreement:
    """Add an interval to a figure, where there is one."""
    return figure if interval is None else replace(figure, low=interval[0], high=interval[1])
