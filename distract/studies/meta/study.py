"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from distract.core.study import BufferedSums, Study, Sums
from distract.studies.meta.document import MetaResult, from_run, measure_judges, result_document


def _sums(parameters: Mapping[str, Any]) -> Sums[MetaResult]:
    return BufferedSums(lambda rows, _rewrites, _flaw: measure_judges([from_run(parameters, rows)], parameters["base"]))


def _report(_: Mapping[str, Any], result: MetaResult) -> Iterable[Any]:
    from distract.studies.meta.view import report_parts

    return report_parts(result)


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=_sums,
    document=lambda _, result: result_document(result),
    report=_report,
)
