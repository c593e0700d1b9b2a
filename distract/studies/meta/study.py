"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.records import Rewrite, Row
from distract.core.study import BufferedSums, Study, Sums
from distract.studies.meta.document import MetaResult, from_run, measure_judges, result_document

if TYPE_CHECKING:
    from rich.console import RenderableType


def _sums(parameters: Mapping[str, Any]) -> Sums[MetaResult]:
    def measure(rows: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> MetaResult:
        return measure_judges([from_run(parameters, rows)], parameters["base"])

    return BufferedSums(measure)


def _document(parameters: Mapping[str, Any], found: MetaResult) -> dict[str, Any]:
    return result_document(found)


def _report(parameters: Mapping[str, Any], found: MetaResult) -> Iterable[RenderableType]:
    from distract.studies.meta.view import report_parts

    return report_parts(found)


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=_sums,
    document=_document,
    report=_report,
)
