"""``distract leaderboard``: what rewriting the responses of some models does to their ratings and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.records import Rewrite, Row
from distract.core.study import BufferedSums, Study, Sums
from distract.studies.leaderboard.document import LeaderboardResult, document, summarise_run

if TYPE_CHECKING:
    from rich.console import RenderableType


def _sums(parameters: Mapping[str, Any]) -> Sums[LeaderboardResult]:
    def measure(rows: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> LeaderboardResult:
        return summarise_run(parameters, rows, rewrites, flaw)

    return BufferedSums(measure)


def _report(parameters: Mapping[str, Any], found: LeaderboardResult) -> Iterable[RenderableType]:
    from distract.studies.leaderboard.view import report_parts

    return report_parts(parameters, found)


STUDY = Study(
    name="leaderboard",
    schema={
        "data": {"name": str, "cases": int},
        "limit": int,
        "models": [str],
        "attacks": [str],
        "systems": [{"name": str, "parameters": dict}],
        "targets": [str],
        "lowest": int,
        "draws": int | None,
        "generator": str,
    },
    sums=_sums,
    document=document,
    report=_report,
)
