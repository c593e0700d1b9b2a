"""By which plans the requests of a tournament are estimated, before it is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from distract.core.job import Sample
from distract.core.plan import Protocol
from distract.core.records import Case
from distract.rewriting.writers import offline
from distract.studies.leaderboard.design import Tournament, attacked, baseline
from distract.studies.leaderboard.pairings import Pair
from distract.studies.setup import SAMPLE


def samples(
    t: Tournament, cases: Sequence[Case], named: Collection[str], lowest: int, protocol: Protocol
) -> Iterator[Sample]:
    """The baseline, and what is judged again.

    Which models are lowest nobody knows yet, so that those with the most matches stand for them.

    Args:
        t: the tournament.
        cases: of it.
        named: models that are attacked by name.
        lowest: how many are attacked otherwise.
        protocol: whose requests are estimated.
    """
    alone = replace(t, protocols=(protocol,), verifier=None, writer=offline(t.writer))
    targets = frozenset(named) or _busiest(t.pairs, lowest)
    part = cases[:SAMPLE]
    if not _matches((t.pairs[case.id] for case in part), targets):
        part = cases  # sampled matches may all lie elsewhere
    here = [t.pairs[case.id] for case in part]
    # Each stage by the share of its matches that the sample holds.
    yield Sample((baseline(case, alone) for case in part), _matches(t.pairs.values(), None) / _matches(here, None))
    if t.attacks:
        scale = _matches(t.pairs.values(), targets) / max(1, _matches(here, targets))
        plans = (attacked(case, alone, {protocol.name: targets}) for case in part)
        # Protocols share the rewrites of models that are named, and may each attack others otherwise.
        yield Sample(plans, scale, not named or protocol is t.protocols[0])


def _busiest(pairs: Mapping[str, Sequence[Pair]], most: int) -> frozenset[str]:
    """So many models with the most matches, by name among equals."""
    played = Counter(name for of in pairs.values() for pair in of for name in pair)
    return frozenset(sorted(played, key=lambda name: (-played[name], name))[:most])


def _matches(drawn: Iterable[Sequence[Pair]], targets: frozenset[str] | None) -> int:
    """How many matches there are, or how many of them hold a target."""
    return sum(targets is None or not targets.isdisjoint(pair) for of in drawn for pair in of)
