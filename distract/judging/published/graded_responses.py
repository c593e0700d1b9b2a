"""Responses that a tool has graded one by one, as rows of the design ``pass``: a response against the pass mark.

A run is one grader under one protocol on one data set. A response has the same name in all runs of a folder of logs, so
that graders can be compared on it; another response of its author to the prompt, as from a repeated evaluation, has its
own name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distract.core.errors import DataError
from distract.core.printable import count
from distract.core.records import BASELINE, PASS_MARK, Answer, Case, Judgment, Reply, Row, Side
from distract.data.tables import Table
from distract.judging.published import published_runs
from distract.judging.published.published_runs import STORED, Names, OutputFile, PublishedRun


@dataclass(frozen=True, slots=True)
class GradedResponse:
    """One response, its texts if they are known, and what a grader made of it, or why it was not graded."""

    names: Names
    name: str
    author: str
    case: Case | None
    judgment: Judgment | str


def grade(
    is_passed: bool | None,
    words: object = None,
    *,
    failure: str = "no verdict",
    scores: tuple[float, float] | None = None,
) -> Judgment:
    """The judgment of a grader.

    ``words`` are its reasons, if it gave any, ``scores`` the response's score and the mark to reach, if they are known.
    """
    judgment = published_runs.winner_judgment(None if is_passed is None else "a" if is_passed else "b", failure)
    text = words.encode(errors="replace").decode() if isinstance(words, str) else ""
    answers = (Answer("", Reply(text), (), judgment.failure),) if text.strip() else ()
    return replace(judgment, scores=scores, answers=answers)


def assemble_runs(
    responses: Iterable[GradedResponse], tables: Sequence[Table], remarks: Sequence[str] = ()
) -> tuple[PublishedRun, ...]:
    """Assemble one run per grader; of two grades for one response, the first counts. The first run has the remarks."""
    graders: dict[Names, dict[tuple[str, str], Row]] = {}
    cases: dict[tuple[str, str], list[Case | None]] = {}
    repeats = Counter[Names]()
    for response in responses:
        number = _add_texts(cases.setdefault((response.names[2], response.name), []), response.case)
        row = _build_row(response, _number_name(response.name, number))
        rows = graders.setdefault(response.names, {})
        repeats[response.names] += (row.case, row.a.author) in rows
        rows.setdefault((row.case, row.a.author), row)
    texts = {
        (data, _number_name(name, number)): case
        for (data, name), alike in cases.items()
        for number, case in enumerate(alike)
        if case is not None
    }
    path = Path(tables[0].where)
    if not graders:
        raise DataError("holds no grades to replay; grade its responses first", path=path)
    files = [OutputFile(Path(table.where), "", table.checksum()) for table in tables]
    source = str(path if len(files) == 1 else os.path.commonpath([table.where for table in tables]))
    sha256 = published_runs.checksum(files)
    runs = [
        PublishedRun(
            *names,
            (STORED,),
            {STORED: tuple(rows.values())},
            ties=False,
            source=source,
            sha256=sha256,
            cases={name: texts[names[2], name] for name, _ in rows if (names[2], name) in texts},
            notes=(_count_passes([*rows.values()], repeats[names]),),
        )
        for names, rows in sorted(graders.items())
    ]
    return replace(runs[0], notes=(*runs[0].notes, *remarks)), *runs[1:]


def _add_texts(cases: list[Case | None], case: Case | None) -> int:
    """Add a response to the first of some cases that has its prompt and no other response of its author."""
    for number, other in enumerate(cases):
        if case is None or other is None:
            if case is other:
                return number
            continue
        (response,) = case.responses
        same = next((one for one in other.responses if one.author == response.author), None)
        if other.prompt == case.prompt and same in (None, response):
            cases[number] = other if same else replace(other, responses=(*other.responses, response))
            return number
    cases.append(case)
    return len(cases) - 1


def _number_name(name: str, number: int) -> str:
    return f"{name}~{number + 1}" if number else name


def _build_row(response: GradedResponse, name: str) -> Row:
    judge, protocol, data = response.names
    row = Row(
        case=name,
        cluster=response.case.cluster if response.case else response.name,
        prompt_group=response.case.prompt_group if response.case else "",
        design="pass",
        protocol=protocol,
        judge=judge,
        attack=BASELINE,
        a=Side(response.author),
        b=Side(PASS_MARK),
        data=data,
    )
    if isinstance(response.judgment, str):
        return replace(row, excluded=response.judgment)
    return replace(row, judgments=(response.judgment,))


def _count_passes(rows: Sequence[Row], repeats: int) -> str:
    judgments = [judgment for row in rows for judgment in row.judgments]
    verdicts = [judgment.preferred for judgment in judgments]
    passes, invalid = verdicts.count("a"), verdicts.count(None)
    partial = sum(judgment.scores is not None and 0 < judgment.scores[0] < 1 for judgment in judgments)
    notes = [f"passes {passes} of {count(len(verdicts) - invalid, 'response')}"]
    notes += [f"no verdict on {invalid}"] if invalid else []
    notes += [f"{count(partial, 'score')} between 0 and 1"] if partial else []
    notes += [f"left out: {count(repeats, 'repeated grade')}"] if repeats else []
    return "; ".join(notes)
