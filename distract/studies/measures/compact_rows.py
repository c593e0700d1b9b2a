"""Rows in compact form, so that summarising a million comparisons takes the memory of a few.

Most rows differ from many others only in their case: protocol, attack, authors and outcome agree. So each is stored as
two numbers, plus its choice masses.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from distract.core.records import Outcome, Row, Side
from distract.judging.verdicts import measure_margin, outcome


@dataclass(frozen=True, slots=True)
class RowKind:
    """The values that many rows share; fields as in ``Row``.

    ``preferences`` holds the preference of each judgment (None: no verdict), ``outcomes`` their joint outcome by each
    rule of the protocol; ``label`` is the better response, if known; ``passes`` says whether a and b reach the
    pass mark (None: no mark, or no verdict), ``reaches`` whether they reach that or the middle of the scale.
    """

    attack: str
    a: Side
    b: Side
    target: Literal["a", "b"] | None
    excluded: str | None
    preferences: tuple[Outcome | None, ...]
    outcomes: tuple[tuple[str | None, Outcome | None], ...]
    label: Outcome | None
    passes: tuple[bool | None, bool | None] = (None, None)
    reaches: tuple[bool | None, bool | None] = (None, None)
    shown: tuple[Literal["a", "b"], ...] = ()


@dataclass(slots=True)
class CompactRow:
    """A row without its texts, keys and probabilities."""

    case: str
    group: str
    kind: RowKind
    part: _DesignRows
    number: int
    at: int

    @property
    def masses(self) -> list[float]:
        """The known choice masses of its judgments."""
        masses = self.part.masses[self.at : self.at + len(self.kind.preferences)]
        return [mass for mass in masses if not math.isnan(mass)]

    def lead(self, criterion: str | None = None) -> float | None:
        """Return the lead of a over b, as ``measure_margin`` does, over all criteria or by one."""
        lead = self.part.leads[criterion][self.number]
        return None if math.isnan(lead) else lead

    margin = property(lead)
    attack = property(attrgetter("kind.attack"))
    a = property(attrgetter("kind.a"))
    b = property(attrgetter("kind.b"))
    target = property(attrgetter("kind.target"))
    excluded = property(attrgetter("kind.excluded"))
    label = property(attrgetter("kind.label"))
    passes = property(attrgetter("kind.passes"))
    reaches = property(attrgetter("kind.reaches"))
    shown = property(attrgetter("kind.shown"))

    def outcome(self, rule: str | None) -> Outcome | None:
        """Return the outcome over all orders under a rule of the protocol."""
        return dict(self.kind.outcomes)[rule]


@dataclass(frozen=True, slots=True)
class Usage:
    """Distinct calls and tokens behind the verdicts of a protocol, and how many comparisons they served."""

    comparisons: int
    calls: int
    prompts: int
    answers: int


class CompactRows:
    """The rows of a run in compact form.

    ``marks`` holds the pass marks of protocols that have one, ``floors`` those and the middles of scales, ``criteria``
    the names of those that a protocol scores one by one; ``both_directions`` says whether winners were rewritten too.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        rules: Mapping[str, Sequence[str]],
        marks: Mapping[str, float] | None = None,
        floors: Mapping[str, float] | None = None,
        both_directions: bool = False,
        criteria: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.marks, self.floors, self.both_directions = marks or {}, floors or {}, both_directions
        self.criteria = {name: tuple(dict.fromkeys(own)) for name, own in (criteria or {}).items()}
        self._cases: list[tuple[str, str]] = []
        self.designs: list[str] = []
        # Keep both rules: figures are summarised by one and compared by the other.
        both = ("score", "rating")
        self._rules = {name: tuple(dict.fromkeys((*own, *both))) if own else (None,) for name, own in rules.items()}
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._kind: list[RowKind] = []
        self._places: dict[tuple[str, str], int] = {}
        self._parts: dict[tuple[str, str], _DesignRows] = defaultdict(_DesignRows)
        self.spent: dict[str, Requests] = defaultdict(Requests)
        self.ratings: dict[str, set[int]] = defaultdict(set)
        self.extend(rows)

    @classmethod
    def of_run(cls, parameters: Mapping[str, Any], rows: Iterable[Row] = ()) -> CompactRows:
        """Take rows of a run with these parameters."""
        marks, floors, criteria = (parameters.get(name) for name in ("pass_marks", "floors", "criteria"))
        return cls(rows, parameters["protocols"], marks, floors, parameters.get("net", False), criteria)

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows of the same run."""
        for row in rows:
            if row.design not in self.designs:
                self.designs.append(row.design)
            case = (row.case, row.prompt_group or row.cluster)
            place = self._places.setdefault(case, len(self._cases))
            if place == len(self._cases):
                self._cases.append(case)
            if row.protocol in self._rules:
                self._add(row, place)

    @property
    def groups(self) -> dict[str, str]:
        """The prompt of each case."""
        return dict(self._cases)

    def holds(self, protocol: str, design: str) -> bool:
        """Whether there are rows of a protocol under a design."""
        return (protocol, design) in self._parts

    def of(self, protocol: str, design: str, attack: str | None = None) -> list[CompactRow]:
        """Return rows of a protocol under a design, in order; for one attack, along with those before any rewrite."""
        rows, at = list[CompactRow](), 0
        part = self._parts.get((protocol, design), _DesignRows())
        is_selected = [attack is None or kind.attack == attack or kind.target is None for kind in self._kind]
        for number, (place, same) in enumerate(zip(part.places, part.kinds, strict=True)):
            kind = self._kind[same]
            if is_selected[same]:
                rows.append(CompactRow(*self._cases[place], kind, part, number, at))
            at += len(kind.preferences)
        return rows

    def _add(self, row: Row, place: int) -> None:
        preferences = tuple([None if j.failure is not None else j.preferred for j in row.judgments])
        outcomes = tuple([(rule, outcome(row.judgments, rule)) for rule in self._rules[row.protocol]])
        passes, reaches = (_compare_scores(row, marks.get(row.protocol)) for marks in (self.marks, self.floors))
        own = (row.label, passes, reaches, row.shown)
        same = (row.attack, row.a, row.b, row.target, row.excluded, preferences, outcomes, *own)
        kind = self._kinds.setdefault(same, len(self._kinds))
        if kind == len(self._kind):
            self._kind.append(RowKind(*same))
        part = self._parts[row.protocol, row.design]
        part.places.append(place)
        part.kinds.append(kind)
        for criterion in (None, *self.criteria.get(row.protocol, ())):
            lead = measure_margin(row.judgments, criterion)
            part.leads[criterion].append(math.nan if lead is None else lead)
        part.masses.extend([math.nan if j.mass is None else j.mass for j in row.judgments])
        self.ratings[row.protocol].update(*[j.ratings for j in row.judgments if j.ratings is not None])
        self.spent[row.protocol].add(row)


def _compare_scores(row: Row, mark: float | None) -> tuple[bool | None, bool | None]:
    if mark is None or len(row.judgments) != 1 or row.judgments[0].scores is None:
        return None, None
    first, second = row.judgments[0].scores
    return first >= mark, second >= mark


class _DesignRows:
    """Rows of one protocol under one design: case, kind and leads of each, and the masses of all judgments in turn."""

    def __init__(self) -> None:
        self.places, self.kinds, self.masses = array("I"), array("I"), array("d")
        # By criterion, None for all of them together.
        self.leads: dict[str | None, array[float]] = defaultdict(lambda: array("d"))


class Requests:
    """Requests of a protocol by the hash of their key: among a million, two collide with a chance of 3e-8."""

    def __init__(self) -> None:
        self.comparisons, self.keys, self.tokens = 0, array("q"), array("q")

    def add(self, row: Row) -> None:
        """Add those of a row."""
        self.comparisons += bool(row.judgments)
        for key, tokens in zip(row.keys, row.tokens, strict=True):
            self.keys.append(hash(key))
            self.tokens.extend(tokens)

    def sum(self) -> Usage:
        """Sum up the effort behind the verdicts."""
        if not self.keys:
            return Usage(self.comparisons, 0, 0, 0)
        keys = np.frombuffer(self.keys, dtype=np.int64)
        # If rows that share a key differ, the last one counts.
        _, first = np.unique(keys[::-1], return_index=True)
        tokens = np.frombuffer(self.tokens, dtype=np.int64).reshape(-1, 2)[::-1][first]
        prompts, answers = (int(total) for total in tokens.sum(axis=0))
        return Usage(self.comparisons, len(first), prompts, answers)
