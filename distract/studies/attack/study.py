"""``distract attack``: how often a rewrite that changes only style changes the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.records import MinimalFlip, Rewrite, Row
from distract.core.study import Study
from distract.studies.attack import measures, ranking
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.document import AttackResult, document
from distract.studies.rewrite_counts import CompactRewrites

if TYPE_CHECKING:
    pass


class _AttackSums:
    """The running summary of a run, in compact form."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._briefs = CompactRows((), parameters["protocols"])
        self._rewrites = CompactRewrites()
        self._smallest: list[MinimalFlip] = []
        self._excluded, self._invalid = Counter[str](), Counter[str]()

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip] = ()) -> None:
        self._briefs.extend(rows)
        for row in rows:
            self._excluded.update([row.excluded] if row.excluded else [])
            self._invalid.update(judgment.failure for judgment in row.judgments if judgment.failure)
        self._rewrites.extend(rewrites)
        self._smallest.extend(smallest)

    def result(self, flaw: str | None = None) -> AttackResult:
        p = self._parameters
        # A search that has not begun is not one that found nothing.
        is_searched = bool(p.get("minimal")) and not (flaw and not self._smallest)
        return AttackResult(
            measures.figures(self._briefs, self._rewrites, p["protocols"], p["attacks"], p["ties"]),
            ranking.rank_protocols(self._briefs, p["protocols"], p["attacks"], p["controls"]),
            self._rewrites,
            self._smallest if is_searched else None,
            len({*self._briefs.clusters.values()}),
            self._excluded,
            self._invalid,
        )


def _report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[Any]:
    from distract.studies.attack.view import run_report

    return run_report(parameters, measured)


STUDY = Study(
    name="attack",
    schema={
        "data": {"name": str, "cases": int},
        "limit": int,
        "attacks": [str],
        "degradations": [str],
        "generator": str,
        "asking": dict | None,
        "verifier": dict | None,
    },
    sums=_AttackSums,
    document=document,
    report=_report,
)
