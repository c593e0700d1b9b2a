"""``distract consistency``: whether the verdicts on three and four responses to a prompt fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.records import Rewrite, Row
from distract.core.study import BufferedSums, Study, Sums
from distract.studies.consistency.document import ConsistencyResult, document, measure_rows

if TYPE_CHECKING:
    from rich.console import RenderableType


def _sums(parameters: Mapping[str, Any]) -> Sums[ConsistencyResult]:
    def measure(rows: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> ConsistencyResult:
        return measure_rows(parameters, rows)

    return BufferedSums(measure)


def _report(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterable[RenderableType]:
    from distract.studies.consistency.view import report_parts

    return report_parts(parameters, result)


STUDY = Study(
    name="consistency",
    schema={"data": {"name": str, "cases": int}, "limit": int, "sets": int},
    sums=_sums,
    document=document,
    report=_report,
)
