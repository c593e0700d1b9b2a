"""Labelled data sets as matches: what people prefer of two responses, between their authors.

Where the authors are only places (``output_1``, ``chosen``), the board has these two and says which place wins.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from distract.core.errors import UsageError
from distract.core.records import Case, Outcome, Response
from distract.data import datasets, sources
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, no_match_error

NOT_TWO = "not two responses of different authors"
NO_LABEL = "no label"


def read(spec: str) -> MatchSource:
    """The matches of a data set."""
    if not spec.partition(":")[0] == sources.HUB and datasets.READERS[sources.locate(spec, "cases").format].needs:
        raise UsageError(f"{spec}: holds no pairs of responses that anybody has compared; name votes or judgments")
    data = datasets.load(spec)
    left_out = Counter(data.left_out)
    columns = MatchColumns()
    for case in data.cases:
        if reason := _exclusion_reason(case):
            left_out[reason] += 1
            continue
        a, b = case.originals
        lengths = _count_characters(a), _count_characters(b)
        columns.add(a.author, b.author, _outcome(case), int(case.cluster, 16), lengths)
    if not len(columns):
        raise no_match_error(Path(data.name) if spec == data.name else spec, left_out, 0)
    return MatchSource(data.name, data.format, columns.matches(), left_out=dict(left_out), sha256=data.checksum)


def _exclusion_reason(case: Case) -> str | None:
    if len(case.originals) != 2 or len({response.author for response in case.originals}) != 2:
        return NOT_TWO
    labels = {"tie", *(response.author for response in case.originals)}
    return None if case.preferred in labels else NO_LABEL


def _outcome(case: Case) -> Outcome:
    return "tie" if case.preferred == "tie" else "a" if case.preferred == case.originals[0].author else "b"


def _count_characters(response: Response) -> int:
    return sum(map(len, response.turns))
