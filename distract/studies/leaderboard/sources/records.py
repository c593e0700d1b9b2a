"""Distract's own records as matches: labelled data sets, and rows of a run.

A label says which of two responses people prefer; it is a match between their authors. Where the author names only
denote positions (``output_1``, ``chosen``), the board compares the two positions. A row of a run compares two responses
in terms of a and b; the outcome of a match is the verdict over all orders (DESIGN, Measures).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from distract.core import runs
from distract.core.errors import DataError, UsageError
from distract.core.records import BASELINE, Case, Outcome, Row, slug
from distract.data import datasets
from distract.judging.published.published_runs import check_name, checksum, read_output
from distract.judging.verdicts import outcome
from distract.stats.ratings.matches import encode
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, no_match_error

NOT_TWO = "not two responses of different authors"
NO_LABEL = "no label"


def read_labelled(spec: str) -> MatchSource:
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


DESIGNS = frozenset({"flip", "people", "triple", "match"})
"""Designs whose rows compare two responses alone, as they were written."""

SAME = "two responses of the same author"

_Key = tuple[str, str, str, frozenset[tuple[str, int | None]]]
"""Data set, case, design, and the two sides regardless of any attack."""


def read_run(path: Path) -> tuple[MatchSource, ...]:
    """Read the matches of a run folder before any rewrite: one source for each protocol and rule that has any."""
    run = runs.load(path)
    if run.flaw:
        raise DataError(run.flaw, path=path)
    judge = check_name(str(run.parameters["judge"]), path, "judge")
    sha256 = checksum([read_output(path / "run.json"), read_output(path / "rows.jsonl")])
    sources, notes = list[MatchSource](), list[str]()
    problem = DataError("holds no comparison of two authors before a rewrite", path=path)
    for protocol, rules in run.parameters["protocols"].items():
        rows = [row for row in run.rows if row.protocol == protocol and row.design in DESIGNS]
        for rule in (rules or (None,)) if rows else ():
            try:
                sources.append(from_rows(rows, protocol, rule, name=judge, sha256=sha256))
            except DataError as error:
                problem = DataError(str(error), path=path)
                notes.append(f"skipped: {error}")
    if not sources:
        raise problem
    return tuple(replace(source, notes=tuple(notes)) for source in sources)


def from_rows(
    rows: Iterable[Row], protocol: str, rule: str | None, attack: str = BASELINE, *, name: str = "", sha256: str = ""
) -> MatchSource:
    """Build matches from rows under one protocol, rule and condition, in the order in which they first appear.

    A comparison that several rows hold (a pair of several triples) counts once. Under an attack, a comparison that was
    judged again has its new outcome, and every other one keeps its outcome, also one whose rewrite was rejected,
    because no attacker would submit it. Rejections count as left out.
    """
    left_out = Counter[str]()
    compared: dict[_Key, Row] = {}
    for row in rows:
        if row.protocol != protocol or row.design not in DESIGNS:
            continue
        if not _is_before_rewrite(row) and (attack == BASELINE or row.attack != attack):
            continue
        key = (row.data, row.case, row.design, frozenset((side.author, side.severity) for side in (row.a, row.b)))
        if row.excluded is not None:
            left_out[slug(row.excluded)] += 1
        elif row.a.author == row.b.author:
            left_out[SAME] += 1
        elif key not in compared or (_is_before_rewrite(compared[key]) and not _is_before_rewrite(row)):
            compared[key] = row  # in the place of the one before, so that both boards have one order
    outcomes = [(row, outcome(row.judgments, rule)) for row in compared.values()]
    valid = [(row, verdict) for row, verdict in outcomes if verdict is not None]
    invalid = len(outcomes) - len(valid)
    if not valid:
        raise no_match_error(f"{protocol}, {rule}" if rule else protocol, left_out, invalid)
    lengths = [row.extra["lengths"] for row, _ in valid if "lengths" in row.extra]
    matches = encode(
        [row.a.author for row, _ in valid],
        [row.b.author for row, _ in valid],
        [verdict for _, verdict in valid],
        [row.group for row, _ in valid],
        lengths if len(lengths) == len(valid) else None,
        invalid,
    )
    return MatchSource(name, "run", matches, protocol, rule, attack, dict(left_out), sha256)


def _is_before_rewrite(row: Row) -> bool:
    # A control that changes nothing has the baseline's name, and a target.
    return row.attack == BASELINE and row.target is None
