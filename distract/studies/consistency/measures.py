"""Compute figures from rows: intransitive triples, and the influence of a third response (DESIGN, measure 6).

``intransitivity`` is the share of triples with three valid outcomes that hold a chain (p over q, q over r) without p
over r; a tie of p and r breaks the chain too. ``chain_rate`` is the share that hold a chain at all. A judge that ties
all pairs has neither; that does not make it consistent. ``choice_set_sensitivity`` is the share of pairs with a valid
outcome beside either third response whose strict preference reverses; ``choice_set_tie_change`` is the share that
change to or from a tie. A verdict for the third response, where a protocol allows it, prefers neither of the pair and
is a tie.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.records import BASELINE, Outcome, Row, Side
from distract.judging.verdicts import outcome
from distract.stats.figure import PLACE_FIELDS, Figure, field_texts, fill_rate
from distract.studies.consistency.design import comparison_key

MEASURES: Mapping[str, tuple[str, str]] = {
    "triple": ("intransitivity", "chain_rate"),
    "set": ("choice_set_sensitivity", "choice_set_tie_change"),
}
"""The measures of each design."""

Violations = tuple[bool, bool]
"""Whether a unit violates each measure of its design."""


@dataclass(frozen=True, slots=True)
class PlacedFigure(Figure):
    """A figure for one place of the third response: ``first``, ``last``, or None where none is shown."""

    third: str | None = None


@dataclass(frozen=True, slots=True)
class MissingMeasure:
    """A measure for which a protocol could judge nothing, and why."""

    measure: str
    protocol: str
    reason: str


def figures(rows: Iterable[Row], rules: Mapping[str, Sequence[str]]) -> list[PlacedFigure]:
    """Compute every figure that the rows support, in a total order."""
    rows = list(rows)
    missing = {(one.measure, one.protocol) for one in missing_measures(rows, rules)}
    by: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by[row.protocol, row.design].append(row)
    results = list[PlacedFigure]()
    for protocol in rules:
        for rule in rules[protocol] or (None,):
            results += _shares("triple", by[protocol, "triple"], protocol, rule, None)
            for place in ("last", "first"):
                # A case without any quadruple is excluded in either place.
                here = [row for row in by[protocol, "set"] if row.place in (None, place)]
                results += _shares("set", here, protocol, rule, place)
    results = [figure for figure in results if (figure.measure, figure.protocol) not in missing]
    return sorted(results, key=lambda figure: field_texts(figure, (*PLACE_FIELDS, "third")))


def missing_measures(rows: Iterable[Row], rules: Iterable[str]) -> list[MissingMeasure]:
    """Find the measures for which a run judged nothing, unless it was cut short."""
    reasons: dict[tuple[str, str], Counter[str | None]] = defaultdict(Counter)
    for row in rows:
        reasons[row.design, row.protocol][row.excluded] += 1
    return [
        MissingMeasure(measure, protocol, "; ".join(sorted(filter(None, why))))
        for design, measures in MEASURES.items()
        for measure in measures
        for protocol in sorted(rules)
        if (why := reasons[design, protocol]) and None not in why
    ]


def find_chain(beats: Iterable[tuple[Side, Side]]) -> Violations:
    """Whether a chain among three responses is broken, and whether there is one at all."""
    won = set(beats)
    ends = [(p, r) for p, q in won for other, r in won if other == q]
    return any(pair not in won for pair in ends), bool(ends)


def compare_outcomes(before: Outcome, after: Outcome) -> Violations:
    """Whether a strict preference reverses between two sets, and whether it changes to or from a tie."""
    differs = before != after
    return differs and "tie" not in (before, after), differs and "tie" in (before, after)


def _shares(
    design: str, rows: Iterable[Row], protocol: str, rule: str | None, place: str | None
) -> Iterator[PlacedFigure]:
    """Compute shares of units; one with too few rows was cut short, or never begun."""
    size = 3 if design == "triple" else 2
    units: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        pair = frozenset((row.a, row.b, *row.beside)) if design == "triple" else (row.a, row.b, frozenset(row.beside))
        units[row.case, pair].append(row)
    violations, clusters = list[Violations](), list[str]()
    invalid = excluded = 0
    for part in units.values():
        outcomes = [result for row in part if (result := outcome(row.judgments, rule)) is not None]
        if len(part) != size or any(row.excluded is not None for row in part):
            excluded += 1
        elif len(outcomes) < size:
            invalid += 1
        else:
            violations.append(_check_chain(part, outcomes) if design == "triple" else compare_outcomes(*outcomes))
            clusters.append(part[0].cluster)
    for index, measure in enumerate(MEASURES[design]):
        figure = PlacedFigure(measure, protocol, rule, BASELINE, invalid=invalid, excluded=excluded, third=place)
        yield fill_rate(figure, [float(unit[index]) for unit in violations], clusters)


def _check_chain(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> Violations:
    decided = [(row, result) for row, result in zip(rows, outcomes, strict=True) if result != "tie"]
    return find_chain((row.a, row.b) if result == "a" else (row.b, row.a) for row, result in decided)


@dataclass(frozen=True)
class ConsistencyResult:
    """The figures of a run in a total order, the measures it lacks, and counts of exclusions and failures by reason."""

    figures: Sequence[PlacedFigure]
    absent: Sequence[MissingMeasure]
    excluded: Counter[str]
    invalid: Counter[str]


def measure_rows(parameters: Mapping[str, Any], rows: Iterable[Row]) -> ConsistencyResult:
    """Measure a run."""
    rows = list(rows)
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    absent = missing_measures(rows, rules)
    missing = {(one.measure, one.protocol) for one in absent}
    judged = [row for row in rows if row.design in MEASURES]
    eligible = [row for row in judged if (MEASURES[row.design][0], row.protocol) not in missing]
    # A pair that is judged once has a row in every triple that it is in.
    unique = {comparison_key(row): row for row in judged}.values()
    return ConsistencyResult(
        figures(rows, rules),
        absent,
        Counter(row.excluded for row in eligible if row.excluded),
        Counter(judgment.failure for row in unique for judgment in row.judgments if judgment.failure),
    )
