"""Draw a study's cases, and check that protocols and treatments fit them."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.plan import Attack, Degradation, Protocol
from distract.core.records import Case
from distract.judging import comparison as judging
from distract.rewriting.writers import find_recorded

T = TypeVar("T")
Treatment = Attack | Degradation


def is_recorded(treatment: Treatment, cases: Sequence[Case]) -> bool:
    """Return whether a treatment needs no other writer: some case records it, or it is a control."""
    if isinstance(treatment, Attack):
        return treatment.control or any(r.attack == treatment.name for case in cases for r in case.responses)
    distractor = treatment.distractor
    return any(
        distractor is None
        or distractor.control
        or find_recorded(case, low, distractor)
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
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: expected a number of cases from 1, or 'all'")
    if limit is None or limit >= len(items):
        return tuple(items)
    return tuple(items[i] for i in sorted(random.Random(seed).sample(range(len(items)), limit)))
