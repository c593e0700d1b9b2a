"""The JSON document of a consistency run: what ``--json`` prints and ``summary.json`` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distract.core.records import Row
from distract.stats.figure import flatten
from distract.studies.consistency.design import comparison_key
from distract.studies.consistency.measures import MEASURES, MissingMeasure, PlacedFigure, figures, missing_measures
from distract.studies.consistency.paper import PUBLISHED

_SHARED = ("judge", "data", "left_out", "limit", "seed", "sets", "protocols", "self_judging")


@dataclass(frozen=True)
class ConsistencyResult:
    """What a run comes to.

    Attributes:
        figures: in a total order.
        absent: measures that do not apply to a protocol, and why.
        excluded: how many comparisons were not made, by reason.
        invalid: how many verdicts could not be read, by reason.
    """

    figures: Sequence[PlacedFigure]
    absent: Sequence[MissingMeasure]
    excluded: Counter[str]
    invalid: Counter[str]


def measure_rows(parameters: Mapping[str, Any], rows: Iterable[Row]) -> ConsistencyResult:
    """What the rows of a run come to."""
    rows = list(rows)
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    absent = missing_measures(rows, rules)
    without = {(one.measure, one.protocol) for one in absent}
    mine = [row for row in rows if row.design in MEASURES]
    left = [row for row in mine if (MEASURES[row.design][0], row.protocol) not in without]
    # What is judged once has a row in every triple that it is in.
    once = {comparison_key(row): row for row in mine}.values()
    return ConsistencyResult(
        figures(rows, rules),
        absent,
        Counter(row.excluded for row in left if row.excluded),
        Counter(judgment.failure for row in once for judgment in row.judgments if judgment.failure),
    )


def document(parameters: Mapping[str, Any], measured: ConsistencyResult) -> dict[str, Any]:
    """A run's summary, from the parameters of ``run.json`` and what the run comes to."""
    return {
        **{name: parameters[name] for name in _SHARED},
        "manner": parameters.get("manner"),
        "results": [_flatten(figure) for figure in measured.figures],
        "does_not_apply": [asdict(one) for one in measured.absent],
        "published": [asdict(one) for one in PUBLISHED],
    }


def _flatten(figure: PlacedFigure) -> dict[str, Any]:
    values = flatten(figure)
    # A figure's own ``place`` is its place among the others.
    values["place"] = values.pop("third")
    return values
