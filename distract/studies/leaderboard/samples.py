"""By which plans the requests of a tournament are estimated, before it is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from distract.core.job import StageSample
from distract.core.plan import Protocol
from distract.core.records import Case
from distract.rewriting.writers import offline_writer
from distract.studies.leaderboard.design import TournamentConfig, judge_attacks, judge_baseline
from distract.studies.leaderboard.pairings import ModelPair
from distract.studies.setup import SAMPLE


def samples(
    t: TournamentConfig, cases: Sequence[Case], named: Collection[str], lowest: int, protocol: Protocol
) -> Iterator[StageSample]:
    """The baseline, and what is judged again.

    Which models are lowest nobody knows yet, so that those with the most matches stand for them.
    """
    alone = replace(t, protocols=(protocol,), verifier=None, writer=offline_writer(t.writer))
    targets = frozenset(named) or _busiest_models(t.pairs, lowest)
    part = cases[:SAMPLE]
    if not _count_matches((t.pairs[case.id] for case in part), targets):
        part = cases  # sampled matches may all lie elsewhere
    here = [t.pairs[case.id] for case in part]
    # Each stage by the share of its matches that the sample holds.
    yield StageSample(
        (judge_baseline(case, alone) for case in part),
        _count_matches(t.pairs.values(), None) / _count_matches(here, None),
    )
    if t.attacks:
        scale = _count_matches(t.pairs.values(), targets) / max(1, _count_matches(here, targets))
        plans = (judge_attacks(case, alone, {protocol.name: targets}) for case in part)
        # Protocols share the rewrites of models that are named, and may each attack others otherwise.
        yield StageSample(plans, scale, not named or protocol is t.protocols[0])


def _busiest_models(pairs: Mapping[str, Sequence[ModelPair]], most: int) -> frozenset[str]:
    """So many models with the most matches, by name among equals."""
    played = Counter(name for of in pairs.values() for pair in of for name in pair)
    return frozenset(sorted(played, key=lambda name: (-played[name], name))[:most])


def _count_matches(drawn: Iterable[Sequence[ModelPair]], targets: frozenset[str] | None) -> int:
    """How many matches there are, or how many of them hold a target."""
    return sum(targets is None or not targets.isdisjoint(pair) for of in drawn for pair in of)
