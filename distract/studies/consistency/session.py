"""From a user's request to the comparisons of triples and choice sets."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, permutations, product
from math import comb
from types import MappingProxyType
from typing import Any, Literal

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count
from distract.core.records import BASELINE, Case, CaseResult, Response, Rewrite, Row, Side
from distract.data import datasets
from distract.judging.comparison import comparable_responses, exclusion_reason, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.studies.consistency.options import ConsistencyOptions
from distract.studies.eligibility import pair_obstacle
from distract.studies.setup import Setup, draw

Drawn = tuple[Response, ...]
"""A triple, or a quadruple: a pair a and b in the order shown, then the two that take turns as the third response."""

_ROLES: Mapping[str, Sequence[tuple[int, ...]]] = {
    "triple": ((0, 1, 2),),
    # The last two may swap without changing the measure: four responses make twelve quadruples.
    "quadruple": tuple(places for places in permutations(range(4)) if places[2] < places[3]),
}


def _draw(kind: str, case: Case, limit: int, seed: int) -> list[Drawn]:
    """Draw at most ``limit`` different triples or quadruples, in order."""
    responses, roles = comparable_responses(case), _ROLES[kind]
    size = len(roles[0])
    total = comb(len(responses), size) * len(roles)
    every = range(total)
    numbers = every if limit >= total else sorted(random.Random(f"{seed}\x1e{kind}\x1e{case.id}").sample(every, limit))
    chosen = ((_nth_subset(number // len(roles), len(responses), size), number % len(roles)) for number in numbers)
    return [tuple(responses[subset[place]] for place in roles[role]) for subset, role in chosen]


draw_triples, draw_quadruples = (partial(_draw, kind) for kind in _ROLES)


def _nth_subset(number: int, n: int, size: int) -> tuple[int, ...]:
    """Compute the subset of n places at an index of ``itertools.combinations``, without iterating over it."""
    places: list[int] = []
    for place in range(n):
        with_it = comb(n - place - 1, size - len(places) - 1) if len(places) < size else 0
        if number < with_it:
            places.append(place)
        else:
            number -= with_it
    return tuple(places)


NO_QUADRUPLE = "fewer than four responses by different authors"

Place = Literal["first", "last"]  # the place of the third response, before or after the pair

TURNS: Mapping[Place, int] = MappingProxyType({"last": 2, "first": 1})
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
    one = side(comparable_responses(case)[0])
    jobs = []
    for protocol in p.protocols:
        row = Row(case.id, case.cluster, "triple", protocol.name, p.judge, BASELINE, one, one)
        row = replace(row, prompt_group=case.prompt_group)
        jobs += [_judge_triples(row, case, protocol, p), _judge_sets(replace(row, design="set"), case, protocol, p)]
    parts = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part])


def comparison_key(row: Row) -> tuple[object, ...]:
    """Identify a comparison: a pair of several triples, or a set of several quadruples, is judged once."""
    place, beside = row.extra.get("place"), list_beside(row)
    return (row.case, row.protocol, row.design, row.a, row.b, place, beside[:1] if place else ())


def list_beside(row: Row) -> tuple[Side, ...]:
    """List what is beside the pair: the third of a triple, or the third of a set and its replacement in the other."""
    return tuple(Side(**one) for one in row.extra.get("beside", ()))


def set_obstacle(protocol: Protocol) -> str | None:
    """Say why a protocol cannot judge a pair beside a third response."""
    if protocol.shows in (None, 3):
        return None
    if protocol.orders == "none":
        return "scores each response alone"
    return "shows two responses only" if protocol.shows == 2 else f"shows {protocol.shows} responses, never three"


def _judge_triples(row: Row, case: Case, protocol: Protocol, p: ConsistencyConfig) -> Plan[list[Row]]:
    if why := pair_obstacle(protocol):
        return [replace(row, excluded=why)]
    drawn = draw_triples(case, p.sets, p.seed)
    # Triples share pairs: each pair is judged once, and has a row in every triple that it is in.
    pairs = {(a.author, b.author): (a, b) for triple in drawn for a, b in combinations(triple, 2)}
    plans = []
    for a, b in pairs.values():
        pair = partial(replace, row, a=side(a), b=side(b))
        # A case with only these two: a protocol that shows more would take others from it.
        comparison = Comparison(replace(case, responses=(a, b)), a, b)
        plans.append(judge_comparison(pair, protocol, comparison, p.manner, helped=False))
    rows = dict(zip(pairs, (yield from gather(plans)), strict=True))
    return [
        replace(rows[a.author, b.author], extra={"beside": [asdict(side(third))]})
        for one, two, three in drawn
        for a, b, third in ((one, two, three), (one, three, two), (two, three, one))
    ]


def _judge_sets(row: Row, case: Case, protocol: Protocol, p: ConsistencyConfig) -> Plan[list[Row]]:
    if why := set_obstacle(protocol):
        return [replace(row, excluded=why)]
    drawn = draw_quadruples(case, p.sets, p.seed)
    if not drawn:
        return [replace(row, excluded=NO_QUADRUPLE)]
    jobs = []
    for (a, b, *others), place in product(drawn, TURNS):
        for c, d in (others, reversed(others)):
            beside = {"beside": [asdict(side(c)), asdict(side(d))], "place": place}
            pair = replace(row, a=side(a), b=side(b), extra=beside)
            jobs.append(_judge_with_third(pair, case, (a, b, c), place, protocol, p))
    return (yield from gather(jobs))


def _judge_with_third(
    row: Row, case: Case, triple: Drawn, place: Place, protocol: Protocol, p: ConsistencyConfig
) -> Plan[Row]:
    """Judge a pair beside a third response in this order only, whatever orders the manner has."""
    comparison = Comparison(replace(case, responses=triple), triple[1], triple[0], turn=TURNS[place])
    held = replace(protocol, orders="none")
    judged = yield from judge_comparison(partial(replace, row), held, comparison, p.manner, helped=False)
    # The comparison's first response is b, the row's is a.
    return replace(judged, judgments=tuple(judgment.mirror() for judgment in judged.judgments))


def prepare(options: ConsistencyOptions, setup: Setup) -> Job[Any]:
    """Check data, protocols and the run folder."""
    limit, seed, sets = options.limit, options.seed, options.sets
    loaded = datasets.load(options.data, options.responses, seed, options.columns, limit)
    few, cure = "fewer than three responses by different authors", "name data with three or four responses per prompt"
    drawn = draw(loaded, loaded.cases, lambda case: len(comparable_responses(case)) > 2, few, cure, limit, seed)
    cases = drawn.cases
    _check(setup.protocols, cases)
    config = ConsistencyConfig(setup.judge, setup.protocols, sets, seed, setup.manner)
    authors = [response.author for case in cases for response in comparable_responses(case)]

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (judge_case(case, config) for case in cases)

    def samples(protocol: Protocol) -> Iterator[StageSample]:
        # All cases: the number of comparisons depends on the case.
        yield StageSample(map(partial(judge_case, p=replace(config, protocols=(protocol,))), cases), 1)

    study, heading = registry.get_study("consistency"), [describe_sets(sets)]
    record = {**drawn.record, "controls": [], "self_judging": setup.kin_notes((), authors)}
    return setup.start(study, record, cases=cases, stages=stages, samples=samples, heading=heading)


def _check(protocols: Sequence[Protocol], cases: Sequence[Case]) -> None:
    four = any(len(comparable_responses(case)) > 3 for case in cases)
    for protocol in protocols:
        if pair_obstacle(protocol) and set_obstacle(protocol):
            few = f"{protocol.name} shows {protocol.shows} responses"
            raise UsageError(f"{few}; name a protocol that shows two or three")
        reasons = [exclusion_reason(protocol, case, helped=False, only_pairs=True) for case in cases]
        reason = NO_QUADRUPLE if pair_obstacle(protocol) and not four else reasons[0] if all(reasons) else None
        if reason:
            raise UsageError(f"{protocol.name} fits none of the cases ({reason}); name another protocol")
