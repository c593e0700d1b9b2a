"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from distract.core.study import BufferedSums, Study
from distract.studies.meta.document import MetaResult, from_run, measure_judges, result_document


def _report(_: Mapping[str, Any], result: MetaResult) -> Iterable[Any]:
    from distract.studies.meta.view import report_parts

    return report_parts(result)


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=lambda p: BufferedSums(lambda rows, _rewrites, _flaw: measure_judges([from_run(p, rows)], p["base"])),
    document=lambda _, result: result_document(result),
    report=_report,
)
