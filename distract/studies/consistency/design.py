"""From a case to rows: the pairs of its triples, and pairs shown beside a third response.

One plan for each case covers all protocols. A row of design ``triple`` is one pair of a triple, with the triple's third
response in ``beside``: it is not shown. A row of design ``set`` is a pair that is shown beside ``beside[0]``; the row
with which it is compared has the two of ``beside`` exchanged. It knows no protocol by name and counts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from distract.core.plan import Comparison, Plan, Protocol, gather
from distract.core.records import BASELINE, Case, CaseResult, Response, Row
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.studies.consistency.draw import Triple, draw_quadruples, draw_triples

ThirdPlace = Literal["first", "last"]

NO_QUADRUPLE = "fewer than four responses by different authors"

TURNS: Mapping[ThirdPlace, int] = MappingProxyType({"last": 2, "first": 1})
"""How far (b, third, a) is moved forward, so that a stands right before b and the third response where it is wanted."""


@dataclass(frozen=True)
class ConsistencyConfig:
    """The parameters of a run that say what is judged; ``sets`` is the most triples, and quadruples, of a case."""

    judge: str
    protocols: tuple[Protocol, ...]
    sets: int
    seed: int = 0
    manner: Manner = DEFAULT


def judge_case(case: Case, p: ConsistencyConfig) -> Plan[CaseResult]:
    """Judge all triples and quadruples that are drawn of one case with at least three usable responses."""
    jobs = [
        job for protocol in p.protocols for job in (_judge_triples(case, protocol, p), _judge_sets(case, protocol, p))
    ]
    parts = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part])


def comparison_key(row: Row) -> tuple[object, ...]:
    """What tells comparisons apart: a pair of several triples, or a set of several quadruples, is judged once."""
    return (row.case, row.protocol, row.design, row.a, row.b, row.place, row.beside[:1] if row.place else ())


def triple_obstacle(protocol: Protocol) -> str | None:
    """Why a protocol cannot judge the pairs of a triple."""
    return None if protocol.shows in (None, 2) else f"shows {protocol.shows} responses together, never two alone"


def set_obstacle(protocol: Protocol) -> str | None:
    """Why a protocol cannot judge a pair beside a third response."""
    if protocol.shows in (None, 3):
        return None
    if protocol.orders == "none":
        return "scores each response alone"
    return "shows two responses only" if protocol.shows == 2 else f"shows {protocol.shows} responses, never three"


def _row(case: Case, design: Literal["triple", "set"], protocol: Protocol, p: ConsistencyConfig) -> Row:
    """A row of a case that compares nothing yet."""
    one = side(comparable_responses(case)[0])
    return Row(case.id, case.cluster, design, protocol.name, p.judge, BASELINE, one, one)


def _judge_triples(case: Case, protocol: Protocol, p: ConsistencyConfig) -> Plan[list[Row]]:
    row = _row(case, "triple", protocol, p)
    if why := triple_obstacle(protocol):
        return [replace(row, excluded=why)]
    drawn = draw_triples(case, p.sets, p.seed)
    # Triples share pairs: each pair is judged once, and has a row in every triple that it is in.
    pairs = {_authors(one, other): (one, other) for triple in drawn for one, other in combinations(triple, 2)}
    found = yield from gather([_judge_pair(row, case, one, other, protocol, p) for one, other in pairs.values()])
    by = dict(zip(pairs, found, strict=True))
    return [
        replace(by[_authors(*pair)], beside=(side(third),))
        for triple in drawn
        for *pair, third in _rotate_triple(triple)
    ]


def _rotate_triple(triple: Triple) -> tuple[Triple, Triple, Triple]:
    """Each pair of a triple with the third response last."""
    one, two, three = triple
    return (one, two, three), (one, three, two), (two, three, one)


def _authors(one: Response, other: Response) -> tuple[str, str]:
    return one.author, other.author


def _judge_pair(
    row: Row, case: Case, one: Response, other: Response, protocol: Protocol, p: ConsistencyConfig
) -> Plan[Row]:
    # A case of these two only: a protocol that shows more would take the others from it.
    alone = replace(case, responses=(one, other))
    pair = partial(replace, row, a=side(one), b=side(other))
    return (yield from judge_comparison(pair, protocol, Comparison(alone, one, other), p.manner, helped=False))


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


def _judge_with_third(row: Row, case: Case, shown: Triple, protocol: Protocol, p: ConsistencyConfig) -> Plan[Row]:
    """Judge a pair beside a third response in this one order: order is held fixed, whatever the manner says of it."""
    a, b, _ = shown
    assert row.place is not None
    comparison = Comparison(replace(case, responses=shown), b, a, turn=TURNS[row.place])
    held = replace(protocol, orders="none")
    done = yield from judge_comparison(partial(replace, row), held, comparison, p.manner, helped=False)
    # The comparison's first response is b, the row's is a.
    return replace(done, judgments=tuple(judgment.mirror() for judgment in done.judgments))
