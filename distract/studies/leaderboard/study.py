"""``distract leaderboard``: how rewriting the responses of some models changes their ratings and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from distract.core.study import BufferedSums, Study
from distract.studies.leaderboard.document import LeaderboardResult, document, summarise_run


def _report(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterable[Any]:
    from distract.studies.leaderboard.view import report_parts

    return report_parts(parameters, result)


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
    sums=lambda parameters: BufferedSums(partial(summarise_run, parameters)),
    document=document,
    report=_report,
)
