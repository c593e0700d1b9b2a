"""Labelled data sets as matches: which of two responses people prefer, between their authors.

Where the author names only denote positions (``output_1``, ``chosen``), the board compares the two positions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from distract.core.errors import UsageError
from distract.core.records import Case, Outcome
from distract.data import datasets
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, no_match_error

NOT_TWO = "not two responses of different authors"
NO_LABEL = "no label"


def read(spec: str) -> MatchSource:
    """Read the matches of a data set."""
    if not spec.partition(":")[0] == datasets.HUB and datasets.READERS[datasets.locate(spec, "cases").format].needs:
        raise UsageError(f"{spec}: holds no labelled pairs of responses; name votes or judgments")
    data = datasets.load(spec)
    left_out = Counter(data.left_out)
    columns = MatchColumns()
    for case in data.cases:
        if reason := _exclusion_reason(case):
            left_out[reason] += 1
            continue
        a, b = case.originals
        first, second = (sum(map(len, response.turns)) for response in (a, b))
        outcomes: dict[str | None, Outcome] = {a.author: "a", b.author: "b", "tie": "tie"}
        columns.add(a.author, b.author, outcomes[case.preferred], int(case.prompt_group[:16], 16), (first, second))
    if not len(columns):
        raise no_match_error(Path(data.name) if spec == data.name else spec, left_out, 0)
    return MatchSource(data.name, data.format, columns.matches(), left_out=dict(left_out), sha256=data.checksum)


def _exclusion_reason(case: Case) -> str | None:
    authors = {response.author for response in case.originals}
    if len(case.originals) != 2 or len(authors) != 2:
        return NOT_TWO
    return None if case.preferred in {"tie", *authors} else NO_LABEL
