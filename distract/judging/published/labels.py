"""Labels, clusters and names of data sets for published comparisons, most of which come without.

A comparison is found by its texts where they are known, in either order, and by its case's id and its two authors where
they are not. It reads no file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from distract.core.printable import count
from distract.core.records import Case, Outcome, Response, Row, Side
from distract.judging import comparison as judging
from distract.judging.published.published_runs import PublishedRun

_Texts = tuple[tuple[str, ...], frozenset[tuple[str, ...]]]
_Names = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _DataPair:
    """A pair of a data set, the responses in the order of a row's a and b."""

    data: str
    case: Case
    a: Response
    b: Response

    @property
    def label(self) -> Outcome | None:
        return judging.label(self.case, self.a, self.b)


def attach_labels(published: PublishedRun, cases: Mapping[str, Sequence[Case]]) -> PublishedRun:
    """Give the comparisons of a run what data sets know of them, and names by which those of several runs meet."""
    index = _PairIndex(cases)
    rules: dict[str, tuple[Row, ...]] = {}
    known: dict[str, Case] = {}
    missed = Counter[str]()
    for rule, rows in published.rows.items():
        # All rules tell of the same comparisons, which are counted once.
        missed.clear()
        found, named = list[Row](), Counter[tuple[str, ...]]()
        for row in rows:
            case = published.cases.get(row.case)
            # Its id alone is too little to say anew what is known.
            pairs = [] if case is None and row.label is not None else index.find(row, case)
            missed["none"] += not pairs and (case is not None or row.label is None)
            missed["several"] += len({pair.label for pair in pairs} - {None}) > 1
            made = _fill_row(row, pairs[0]) if pairs else _name_by_texts(row, case)
            of = pairs[0].case if pairs else case
            if case is not None:
                # The same texts may be there twice.
                times = (made.data, made.case, *sorted((made.a.author, made.b.author)), made.attack)
                named[times] += 1
                made = made if named[times] == 1 else replace(made, case=f"{made.case}~{named[times]}")
            if of is not None:
                known.setdefault(made.case, of)
            found.append(made)
        rules[rule] = tuple(found)
    notes = published.notes
    if missed["none"] and cases:
        notes += (f"{count(missed['none'], 'row is', 'rows are')} in none of the data sets",)
    if missed["several"]:
        rows_are = count(missed["several"], "row is", "rows are")
        notes += (f"{rows_are} in the data sets with several labels (the first one counts)",)
    return replace(published, rows=rules, cases=known, notes=notes)


def _name_by_texts(row: Row, case: Case | None) -> Row:
    """A row named by what is compared in it, whichever of the two is listed first."""
    a, b = (_find_response(case, author) for author in (row.a.author, row.b.author))
    if case is None or a is None or b is None:
        return row
    texts = sorted((a.turns, b.turns))
    digest = hashlib.sha256(json.dumps([case.prompt, texts]).encode()).hexdigest()[:16]
    if a.turns == b.turns:
        return replace(row, case=f"texts-{digest}")
    # The authors are places in a file, too.
    one, other = (Side(f"text-{1 + texts.index(response.turns)}") for response in (a, b))
    return replace(row, case=f"texts-{digest}", a=one, b=other)


def _fill_row(row: Row, found: _DataPair) -> Row:
    return replace(
        row,
        case=found.case.id,
        a=Side(found.a.author, row.a.attack, row.a.severity),
        b=Side(found.b.author, row.b.attack, row.b.severity),
        label=found.label if row.label is None else row.label,
        cluster=found.case.cluster,
        subset=found.case.source or row.subset,
        data=found.data,
    )


class _PairIndex:
    """The pairs of data sets by their texts and by their names."""

    def __init__(self, cases: Mapping[str, Sequence[Case]]) -> None:
        self._by_texts: dict[_Texts, list[_DataPair]] = {}
        self._by_names: dict[_Names, list[_DataPair]] = {}
        for pair in _list_pairs(cases):
            turns = frozenset({pair.a.turns, pair.b.turns})
            self._by_texts.setdefault((pair.case.prompt, turns), []).append(pair)
            authors = frozenset({pair.a.author, pair.b.author})
            self._by_names.setdefault((pair.case.id, authors), []).append(pair)

    def find(self, row: Row, known: Case | None) -> list[_DataPair]:
        """The pairs that a row compares, the best match first."""
        a, b = (_find_response(known, author) for author in (row.a.author, row.b.author))
        if known is None or a is None or b is None:
            names = (row.case, frozenset({row.a.author, row.b.author}))
            found = [_orient_pair(pair, pair.a.author != row.a.author) for pair in self._by_names.get(names, ())]
            # Ids such as a number are in many data sets; without the texts only the name tells these apart.
            own = [pair for pair in found if pair.data == row.data]
            return own or (found if len({pair.data for pair in found}) == 1 else [])
        texts = (known.prompt, frozenset({a.turns, b.turns}))
        # Of two equal texts neither is a: then the authors tell, or else the order in the data.
        found = [
            _orient_pair(pair, pair.b.author == a.author if a.turns == b.turns else pair.a.turns != a.turns)
            for pair in self._by_texts.get(texts, ())
        ]
        return sorted(found, key=lambda pair: (pair.label is None, (pair.data, pair.case.id) != (row.data, row.case)))


def _list_pairs(cases: Mapping[str, Sequence[Case]]) -> Iterator[_DataPair]:
    for data, found in cases.items():
        for case in found:
            for a, b in combinations([one for one in case.originals if one.severity is None], 2):
                yield _DataPair(data, case, a, b)


def _orient_pair(pair: _DataPair, turn: bool) -> _DataPair:
    return replace(pair, a=pair.b, b=pair.a) if turn else pair


def _find_response(case: Case | None, author: str) -> Response | None:
    originals = case.originals if case else ()
    return next((one for one in originals if one.author == author and one.severity is None), None)
