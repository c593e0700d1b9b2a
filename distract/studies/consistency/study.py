"""``distract consistency``: whether the verdicts on three and four responses to a prompt fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distract.core.records import Row
from distract.core.study import BufferedSums, Study
from distract.stats.figure import flatten
from distract.studies.consistency.design import comparison_key
from distract.studies.consistency.measures import MEASURES, MissingMeasure, PlacedFigure, figures, missing_measures
from distract.studies.consistency.paper import PUBLISHED

_SHARED = ("judge", "data", "left_out", "limit", "seed", "sets", "protocols", "self_judging")


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


def document(parameters: Mapping[str, Any], result: ConsistencyResult) -> dict[str, Any]:
    """Build the summary of a run from the parameters in ``run.json`` and the result."""
    return {
        **{name: parameters[name] for name in _SHARED},
        "manner": parameters.get("manner"),
        "results": [_flatten(figure) for figure in result.figures],
        "does_not_apply": [asdict(one) for one in result.absent],
        "published": [asdict(one) for one in PUBLISHED],
    }


def _flatten(figure: PlacedFigure) -> dict[str, Any]:
    values = flatten(figure)
    # A figure's own ``place`` is its place among the others.
    values["place"] = values.pop("third")
    return values


def _report(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterable[Any]:
    from distract.studies.consistency.view import report_parts

    return report_parts(parameters, result)


STUDY = Study(
    name="consistency",
    schema={"data": {"name": str, "cases": int}, "limit": int, "sets": int},
    sums=lambda parameters: BufferedSums(lambda rows, _rewrites, _flaw: measure_rows(parameters, rows)),
    document=document,
    report=_report,
)
