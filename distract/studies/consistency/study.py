"""``distract consistency``: whether the verdicts on three and four responses to a prompt fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from distract.core.study import BufferedSums, Study
from distract.studies.consistency.document import ConsistencyResult, document, measure_rows


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
