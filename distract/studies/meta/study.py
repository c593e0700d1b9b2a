"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.records import Rewrite, Row
from distract.core.study import Held, Study, Sums
from distract.studies.meta.document import Result, from_run, result, shown

if TYPE_CHECKING:
    from rich.console import RenderableType


def _sums(parameters: Mapping[str, Any]) -> Sums[Result]:
    def measure(rows: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> Result:
        return result([from_run(parameters, rows)], parameters["base"])

    return Held(measure)


def _document(parameters: Mapping[str, Any], found: Result) -> dict[str, Any]:
    return shown(found)


def _report(parameters: Mapping[str, Any], found: Result) -> Iterable[RenderableType]:
    from distract.studies.meta.view import parts

    return parts(found)


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=_sums,
    document=_document,
    report=_report,
)
