"""Prepare a job of ``distract consistency``, or report in one line what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plugin import Protocol
from distract.core.records import Case, Rewrite, Row
from distract.data import datasets
from distract.judging.comparison import comparable_responses, exclusion_reason
from distract.studies.consistency.design import (
    NO_QUADRUPLE,
    ConsistencyConfig,
    describe_sets,
    judge_case,
    set_obstacle,
)
from distract.studies.eligibility import pair_obstacle
from distract.studies.setup import Setup, draw

TOO_FEW = "fewer than three responses by different authors"


def prepare(
    setup: Setup,
    *,
    data: str,
    responses: Sequence[str] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    sets: int = 4,
    limit: int | None = None,
    seed: int = 0,
) -> Job[Any]:
    """Check data, protocols and the run folder."""
    if sets < 1:
        raise UsageError(f"--sets {sets}: expected a number of triples and quadruples from 1")
    loaded = datasets.load(data, responses, seed, columns, limit)
    cure = "name data with three or four responses per prompt"
    drawn = draw(loaded, loaded.cases, lambda case: len(comparable_responses(case)) > 2, TOO_FEW, cure, limit, seed)
    cases = drawn.cases
    _check(setup.protocols, cases)
    config = ConsistencyConfig(setup.judge, setup.protocols, sets, seed, setup.manner)
    authors = [response.author for case in cases for response in comparable_responses(case)]

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (judge_case(case, config) for case in cases)

    def samples(protocol: Protocol) -> Iterator[StageSample]:
        # All cases: the number of comparisons depends on the case.
        yield StageSample(map(partial(judge_case, p=replace(config, protocols=(protocol,))), cases), 1)

    return setup.start(
        registry.get_study("consistency"),
        {**drawn.record, "sets": sets, "controls": [], "self_judging": setup.kin_notes((), authors)},
        cases=cases,
        stages=stages,
        samples=samples,
        heading=[describe_sets(sets)],
    )


def _check(protocols: Sequence[Protocol], cases: Sequence[Case]) -> None:
    four = any(len(comparable_responses(case)) > 3 for case in cases)
    for protocol in protocols:
        if pair_obstacle(protocol) and set_obstacle(protocol):
            raise UsageError(
                f"{protocol.name} shows {protocol.shows} responses; name a protocol that shows two or three"
            )
        reasons = [exclusion_reason(protocol, case, helped=False, only_pairs=True) for case in cases]
        reason = NO_QUADRUPLE if pair_obstacle(protocol) and not four else reasons[0] if all(reasons) else None
        if reason:
            raise UsageError(f"{protocol.name} fits none of the cases ({reason}); name another protocol")
