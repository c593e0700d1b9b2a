"""``distract consistency``: whether the verdicts on three and four responses to a prompt fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from distract.core.study import BufferedSums, Study
from distract.stats.figure import flatten
from distract.studies.consistency.measures import PUBLISHED, ConsistencyResult, measure_rows, report_parts

_SHARED = ("judge", "data", "left_out", "limit", "seed", "sets", "protocols", "self_judging")


def document(parameters: Mapping[str, Any], result: ConsistencyResult) -> dict[str, Any]:
    """Build the summary of a run from the parameters in ``run.json`` and the result."""
    return {
        **{name: parameters[name] for name in _SHARED},
        "manner": parameters.get("manner"),
        # A figure's own ``place`` is its place among the others.
        "results": [
            {"place" if name == "third" else name: value for name, value in flatten(figure).items()}
            for figure in result.figures
        ],
        "does_not_apply": [asdict(one) for one in result.absent],
        "published": PUBLISHED,
    }


STUDY = Study(
    name="consistency",
    schema={"data": {"name": str, "cases": int}, "limit": int, "sets": int},
    sums=lambda parameters: BufferedSums(lambda rows, _rewrites, _flaw: measure_rows(parameters, rows)),
    document=document,
    report=report_parts,
)
