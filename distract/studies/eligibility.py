"""Draw a study's cases, and check that protocols and treatments fit them.

A treatment is an attack, or a response made worse by a known amount.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.plugin import Protocol
from distract.core.records import BASELINE, Case
from distract.judging import comparison as judging
from distract.rewriting.writers import find_recorded

T = TypeVar("T")


@dataclass(frozen=True)
class Degradation:
    """A response made worse by a known amount, and perhaps distracting too (``severity-2+assertiveness``)."""

    lower: Attack  # an attack with a severity
    distractor: Attack | None = None  # applied to the worse response

    @property
    def name(self) -> str:
        """The value of ``--attack``."""
        return self.lower.name + (f"+{self.distractor.name}" if self.distractor else "")

    @property
    def severity(self) -> int:
        """Number of constraints that the worse response breaks."""
        assert self.lower.severity is not None
        return self.lower.severity


Treatment = Attack | Degradation


def is_recorded(treatment: Treatment, cases: Sequence[Case], by_rule: Collection[str] = ()) -> bool:
    """Return whether a treatment needs no other writer: some case records it, or rules write it.

    Rules write the controls, except those that only a model can write, and the attacks named in ``by_rule``.
    """
    if isinstance(treatment, Attack):
        is_ruled = treatment.name in by_rule or (treatment.control and not treatment.asks)
        return is_ruled or any(r.attack == treatment.name for case in cases for r in case.responses)
    distractor = treatment.distractor
    is_ruled = distractor is None or distractor.control or distractor.name in by_rule
    return (treatment.lower.name in by_rule and is_ruled) or any(
        is_ruled
        or (distractor is not None and find_recorded(case, low, distractor))
        # A rejected rewrite is recorded too, as rejected.
        or ((lineage := case.lineage(low)) is not None and lineage.reasons)
        for case in cases
        for low in case.originals
        if low.severity == treatment.severity
    )


def check_fit(protocols: Sequence[Protocol], designs: Collection[str], cases: Sequence[Case], helped: bool) -> None:
    """Fail if a protocol fits no case, or if no protocol asks the reference model."""
    if helped and not any(protocol.reference for protocol in protocols):
        helping = [protocol.name for protocol in registry.protocols().values() if protocol.reference]
        raise UsageError(f"--reference-model is used by {', '.join(helping)} only; name one of them with --protocol")
    for protocol in protocols:
        why_not = [
            judging.exclusion_reason(protocol, case, helped, only_pairs=set(designs) == {"flip"}) for case in cases
        ]
        if all(why_not):
            hint = "name a stronger model with --reference-model" if protocol.reference == "required" else "use others"
            raise UsageError(f"{protocol.name} fits none of the cases ({why_not[0]}); {hint}")


def pair_obstacle(protocol: Protocol) -> str | None:
    """Say why a protocol cannot judge two responses alone."""
    return None if protocol.shows in (None, 2) else f"shows {protocol.shows} responses together, never two alone"


def sample(items: Sequence[T], limit: int | None, seed: int) -> tuple[T, ...]:
    """Draw ``limit`` items (None: all) without repetition, in their order."""
    limit = _check_limit(limit, len(items))
    return tuple(items[i] for i in sorted(random.Random(seed).sample(range(len(items)), limit)))


def sample_strata(items: Sequence[T], limit: int | None, seed: int) -> tuple[T, ...]:
    """Draw one item from each of ``limit`` (None: all) equal stretches, in their order."""
    limit = _check_limit(limit, len(items))
    ends = [len(items) * i // limit for i in range(limit + 1)] if limit else []
    return tuple(items[random.Random(f"{seed}/{start}").randrange(start, end)] for start, end in pairwise(ends))


def _check_limit(limit: int | None, total: int) -> int:
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: expected a number of cases from 1, or 'all'")
    return total if limit is None else min(limit, total)


def parse_attacks(names: Iterable[str]) -> list[Attack | Degradation]:
    """Parse values of ``--attack``: names, families and effects, each attack once.

    Sorted by name, so that the order of the options does not change a run.
    """
    return [parse_attack(name) for name in sorted({one for name in names for one in registry.list_attacks(name)})]


def parse_attack(name: str) -> Attack | Degradation:
    """Parse a value of ``--attack``: attacks joined by plus signs in any order, one of them may be a severity."""
    parts = (
        [registry.get_attack(name)]
        if name in registry.attacks()
        else [registry.get_attack(part.strip()) for part in name.split("+")]
    )
    lower = [part for part in parts if part.severity]
    others = [part for part in parts if not part.severity]
    others = [part for part in others if part.name != BASELINE or len(parts) == 1]
    if len(lower) == 1 and (bad := [part for part in others if part.effect not in ("same", "control")]):
        raise UsageError(f"attack {name!r}: {bad[0].name} is no style; severity_accuracy is about styles only")
    if len(others) > 1 and len(lower) < 2 and all(part.control for part in others):
        others = [registry.get_attack("+".join(part.name for part in others))]
    if len(lower) == 1 and len(others) < 2:
        return Degradation(lower[0], *others)
    if len(lower) + len(others) > 1:
        raise UsageError(
            f"attack {name!r}: expected one severity and one distractor, as in severity-2+assertiveness, or controls, "
            "as in placebo+typography"
        )
    return (others or parts)[0]
