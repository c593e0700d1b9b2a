"""Attach labels, clusters and data set names to published comparisons, most of which have none.

A comparison is found by its texts, in either order; if they are unknown, by its case's id and its two authors. The pass
mark counts as a response without a text.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from distract.core.printable import count
from distract.core.records import PASS_MARK, Case, Outcome, Response, Row, Side
from distract.judging import comparison as judging
from distract.judging.published.published_runs import PublishedRun

_Texts = tuple[tuple[str, ...], frozenset[tuple[str, ...]]]
_Names = tuple[str, frozenset[str]]

MARK = Response(PASS_MARK, ())
"""Stands in for the second response where one is judged alone."""


@dataclass(frozen=True, slots=True)
class _DataPair:
    """Two responses from a data set, in the order of a row's a and b."""

    data: str
    case: Case
    a: Response
    b: Response

    @property
    def label(self) -> Outcome | None:
        if MARK in (self.a, self.b):
            return None if self.case.passed is None else "a" if self.case.passed == (self.b == MARK) else "b"
        return judging.label(self.case, self.a, self.b)


def attach_labels(published: PublishedRun, cases: Mapping[str, Sequence[Case]]) -> PublishedRun:
    """Complete a run's comparisons from data sets, and name them so that several runs can be joined."""
    index = _PairIndex(cases)
    rules: dict[str, tuple[Row, ...]] = {}
    cases_by_id: dict[str, Case] = {}
    unknown = ambiguous = 0
    for rule, rows in published.rows.items():
        unknown = ambiguous = 0  # all rules cover the same comparisons
        labelled, repeats = list[Row](), Counter[tuple[str, ...]]()
        for row in rows:
            case = published.cases.get(row.case)
            # An id without texts is too weak to replace a label.
            pairs = [] if case is None and row.label is not None else index.find(row, case)
            unknown += not pairs and (case is not None or row.label is None)
            ambiguous += len({pair.label for pair in pairs} - {None}) > 1
            new = _fill_row(row, pairs[0]) if pairs else _name_by_texts(row, case)
            if case is not None and not pairs:
                case = _rename_authors(case, row, new)
            if case is not None:
                # The same texts may occur twice.
                key = (new.data, new.case, *sorted((new.a.author, new.b.author)), new.attack)
                repeats[key] += 1
                new = new if repeats[key] == 1 else replace(new, case=f"{new.case}~{repeats[key]}")
            if source := pairs[0].case if pairs else case:
                cases_by_id.setdefault(new.case, source)
            labelled.append(new)
        rules[rule] = tuple(labelled)
    notes = published.notes
    if unknown and cases:
        notes += (f"{count(unknown, 'row is', 'rows are')} in none of the data sets",)
    if ambiguous:
        rows_are = count(ambiguous, "row is", "rows are")
        notes += (f"{rows_are} in the data sets with several labels (the first one counts)",)
    return replace(published, rows=rules, cases=cases_by_id, notes=notes)


def _name_by_texts(row: Row, case: Case | None) -> Row:
    """Name a row by the texts that it compares, whichever of the two is listed first."""
    a, b = (_find_response(case, author) for author in (row.a.author, row.b.author))
    if case is None or a is None or b is None:
        return row
    texts = sorted((a.turns, b.turns))
    digest = hashlib.sha256(json.dumps([case.prompt, texts]).encode()).hexdigest()[:16]
    if a.turns == b.turns:
        return replace(row, case=f"texts-{digest}")
    if b == MARK:
        return replace(row, case=f"texts-{digest}", a=Side("text"))
    # The author names denote positions in a file, so they are replaced too.
    first, second = (Side(f"text-{1 + texts.index(response.turns)}") for response in (a, b))
    return replace(row, case=f"texts-{digest}", a=first, b=second)


def _rename_authors(case: Case, before: Row, after: Row) -> Case:
    names = {before.a.author: after.a.author, before.b.author: after.b.author}
    renamed = tuple(replace(one, author=names.get(one.author, one.author)) for one in case.responses)
    return replace(case, responses=renamed)


def _fill_row(row: Row, pair: _DataPair) -> Row:
    return replace(
        row,
        case=pair.case.id,
        a=Side(pair.a.author, row.a.attack, row.a.severity),
        b=Side(pair.b.author, row.b.attack, row.b.severity),
        label=pair.label if row.label is None else row.label,
        cluster=pair.case.cluster,
        prompt_group=pair.case.prompt_group,
        subset=pair.case.source or row.subset,
        data=pair.data,
    )


class _PairIndex:
    """The pairs in data sets by their texts and by their names."""

    def __init__(self, cases: Mapping[str, Sequence[Case]]) -> None:
        self._by_texts: dict[_Texts, list[_DataPair]] = {}
        self._by_names: dict[_Names, list[_DataPair]] = {}
        self._by_answer: dict[tuple[str, str], list[_DataPair]] = {}
        for pair in _list_pairs(cases):
            turns = frozenset({pair.a.turns, pair.b.turns})
            self._by_texts.setdefault((pair.case.prompt, turns), []).append(pair)
            authors = frozenset({pair.a.author, pair.b.author})
            self._by_names.setdefault((pair.case.id, authors), []).append(pair)
            if pair.b == MARK:
                self._by_answer.setdefault((pair.case.id, _squeeze(pair.a)), []).append(pair)

    def find(self, row: Row, case: Case | None) -> list[_DataPair]:
        """Find the pairs that a row compares, the best match first."""
        a, b = (_find_response(case, author) for author in (row.a.author, row.b.author))
        if case is None or a is None or b is None:
            names = (row.case, frozenset({row.a.author, row.b.author}))
            pairs = [_orient_pair(pair, pair.a.author != row.a.author) for pair in self._by_names.get(names, ())]
            # Many data sets use numbers as ids; without the texts, only the data set's name tells them apart.
            own = [pair for pair in pairs if pair.data == row.data]
            return own or (pairs if len({pair.data for pair in pairs}) == 1 else [])
        texts = (case.prompt, frozenset({a.turns, b.turns}))
        # If both texts are equal, the authors determine which one is a, or else the order in the data.
        pairs = [
            _orient_pair(pair, pair.b.author == a.author if a.turns == b.turns else pair.a.turns != a.turns)
            for pair in self._by_texts.get(texts, ())
        ]
        if not pairs and b == MARK:
            # A log records the prompt otherwise than the data do, if it has several messages.
            pairs = self._by_answer.get((case.id, _squeeze(a)), [])
        return sorted(pairs, key=lambda pair: (pair.label is None, (pair.data, pair.case.id) != (row.data, row.case)))


def _list_pairs(cases: Mapping[str, Sequence[Case]]) -> Iterator[_DataPair]:
    for data, data_cases in cases.items():
        for case in data_cases:
            originals = [response for response in case.originals if response.severity is None]
            for a, b in combinations(originals if len(originals) > 1 else [*originals, MARK], 2):
                yield _DataPair(data, case, a, b)


def _orient_pair(pair: _DataPair, turn: bool) -> _DataPair:
    return replace(pair, a=pair.b, b=pair.a) if turn else pair


def _squeeze(response: Response) -> str:
    """The last turn of a response with single spaces."""
    return " ".join(response.turns[-1].split())


def _find_response(case: Case | None, author: str) -> Response | None:
    originals = case.originals if case else ()
    return next(
        (r for r in originals if r.author == author and r.severity is None), MARK if author == PASS_MARK else None
    )
