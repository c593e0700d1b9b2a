"""Turn a case into rows: the pairs of its triples, and pairs shown beside a third response.

One plan for each case covers all protocols. A row of design ``triple`` is one pair of a triple, with the triple's third
response in ``beside``: it is not shown. A row of design ``set`` is a pair that is shown beside ``beside[0]``; the row
with which it is compared has the two of ``beside`` swapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count
from distract.core.records import BASELINE, Case, CaseResult, Response, Row
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.studies.consistency.draw import Triple, draw_quadruples, draw_triples
from distract.studies.eligibility import pair_obstacle

ThirdPlace = Literal["first", "last"]

NO_QUADRUPLE = "fewer than four responses by different authors"

TURNS: Mapping[ThirdPlace, int] = MappingProxyType({"last": 2, "first": 1})
"""Rotation of (b, third, a) that puts a right before b and the third response in its place."""


@dataclass(frozen=True)
class ConsistencyConfig:
    """The parameters of a run; ``sets`` limits the triples, and the quadruples, of a case."""

    judge: str
    protocols: tuple[Protocol, ...]
    sets: int
    seed: int = 0
    manner: Manner = DEFAULT


def describe_sets(limit: int) -> str:
    """Describe the draw of triples and quadruples in a line."""
    return f"at most {count(limit, 'triple')} and {count(limit, 'quadruple')} of responses to a prompt"


def judge_case(case: Case, p: ConsistencyConfig) -> Plan[CaseResult]:
    """Judge the triples and quadruples drawn from one case with at least three usable responses."""
    jobs = [
        job for protocol in p.protocols for job in (_judge_triples(case, protocol, p), _judge_sets(case, protocol, p))
    ]
    parts = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part])


def comparison_key(row: Row) -> tuple[object, ...]:
    """Identify a comparison: a pair of several triples, or a set of several quadruples, is judged once."""
    return (row.case, row.protocol, row.design, row.a, row.b, row.place, row.beside[:1] if row.place else ())


def set_obstacle(protocol: Protocol) -> str | None:
    """Say why a protocol cannot judge a pair beside a third response."""
    if protocol.shows in (None, 3):
        return None
    if protocol.orders == "none":
        return "scores each response alone"
    return "shows two responses only" if protocol.shows == 2 else f"shows {protocol.shows} responses, never three"


def _row(case: Case, design: Literal["triple", "set"], protocol: Protocol, p: ConsistencyConfig) -> Row:
    """The row of a case that compares nothing yet."""
    one = side(comparable_responses(case)[0])
    return Row(case.id, case.cluster, design, protocol.name, p.judge, BASELINE, one, one)


def _judge_triples(case: Case, protocol: Protocol, p: ConsistencyConfig) -> Plan[list[Row]]:
    row = _row(case, "triple", protocol, p)
    if why := pair_obstacle(protocol):
        return [replace(row, excluded=why)]
    drawn = draw_triples(case, p.sets, p.seed)
    # Triples share pairs: each pair is judged once, and has a row in every triple that it is in.
    pairs = {(a.author, b.author): (a, b) for triple in drawn for a, b in combinations(triple, 2)}
    judged = yield from gather([_judge_pair(row, case, a, b, protocol, p) for a, b in pairs.values()])
    rows = dict(zip(pairs, judged, strict=True))
    return [
        replace(rows[a.author, b.author], beside=(side(third),))
        for one, two, three in drawn
        for a, b, third in ((one, two, three), (one, three, two), (two, three, one))
    ]


def _judge_pair(row: Row, case: Case, a: Response, b: Response, protocol: Protocol, p: ConsistencyConfig) -> Plan[Row]:
    # A case with only these two: a protocol that shows more would take others from it.
    alone = replace(case, responses=(a, b))
    pair = partial(replace, row, a=side(a), b=side(b))
    return (yield from judge_comparison(pair, protocol, Comparison(alone, a, b), p.manner, helped=False))


def _judge_sets(case: Case, protocol: Protocol, p: ConsistencyConfig) -> Plan[list[Row]]:
    row = _row(case, "set", protocol, p)
    if why := set_obstacle(protocol):
        return [replace(row, excluded=why)]
    drawn = draw_quadruples(case, p.sets, p.seed)
    if not drawn:
        return [replace(row, excluded=NO_QUADRUPLE)]
    jobs = [
        _judge_with_third(
            replace(row, a=side(a), b=side(b), place=place, beside=(side(c), side(d))), case, (a, b, c), protocol, p
        )
        for a, b, *others in drawn
        for place in TURNS
        for c, d in (others, reversed(others))
    ]
    return (yield from gather(jobs))


def _judge_with_third(row: Row, case: Case, triple: Triple, protocol: Protocol, p: ConsistencyConfig) -> Plan[Row]:
    """Judge a pair beside a third response in this order only, whatever orders the manner has."""
    a, b, _ = triple
    assert row.place is not None
    comparison = Comparison(replace(case, responses=triple), b, a, turn=TURNS[row.place])
    held = replace(protocol, orders="none")
    judged = yield from judge_comparison(partial(replace, row), held, comparison, p.manner, helped=False)
    # The comparison's first response is b, the row's is a.
    return replace(judged, judgments=tuple(judgment.mirror() for judgment in judged.judgments))
