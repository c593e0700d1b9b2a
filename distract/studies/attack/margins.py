"""Flips by the lead that counts as one: how much of a flip rate rests on verdicts that hang by a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from distract.core.records import MIRROR
from distract.stats.figure import headline
from distract.studies.attack.briefs import CompactRow, CompactRows
from distract.studies.attack.outcomes import pair_unit, read_outcome

STEPS = 10
"""Margins to try, from 0 to below the largest lead."""


@dataclass(frozen=True, slots=True)
class MarginCurve:
    """Flips at rising margins: each point has a margin, the flips beyond it, and the pairs whose winner led by more.

    Margins are in probability, or in points of the score for a protocol with a ``rule``.
    """

    protocol: str
    rule: str | None
    attack: str
    points: tuple[tuple[float, int, int], ...]


def trace_margins(rows: CompactRows, rules: Mapping[str, Sequence[str]], attacks: Sequence[str]) -> list[MarginCurve]:
    """Trace the flips of each protocol, by its headline rule, under each attack."""
    curves = []
    for protocol, names in rules.items():
        # A rating has too few values for a margin.
        if (rule := headline("flip_rate", names)) == "rating":
            continue
        leads = {attack: list(_find_leads(rows.of(protocol, "flip", attack), rule, attack)) for attack in attacks}
        finite = [lead for pairs in leads.values() for lead, _ in pairs if math.isfinite(lead)]
        if not finite or not (most := max(finite)):
            continue
        margins = [round(most * step / STEPS, 4) for step in range(STEPS)]
        for attack, pairs in leads.items():
            if pairs:
                before, after = np.asarray(pairs).T
                points = [(m, int(((before > m) & (after > m)).sum()), int((before > m).sum())) for m in margins]
                curves.append(MarginCurve(protocol, rule, attack, tuple(points)))
    return curves


def _find_leads(rows: Sequence[CompactRow], rule: str | None, attack: str) -> Iterator[tuple[float, float]]:
    """Yield the winner's lead before, and that of the rewritten loser after, 0 if it does not win.

    A verdict without a strength counts at every margin.
    """
    attacked = {(*pair_unit(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None or row.excluded is not None:
            continue
        before = read_outcome(row, rule)
        if before is None or before == "tie":
            continue
        after = attacked.get((*pair_unit(row), MIRROR[before]))
        if after is None or after.excluded is not None or (verdict := read_outcome(after, rule)) is None:
            continue
        yield _measure_lead(row), _measure_lead(after) if verdict == MIRROR[before] else 0.0


def _measure_lead(row: CompactRow) -> float:
    # A verdict without a lead counts at margin 0.
    return math.inf if row.margin is None else abs(row.margin) or math.ulp(0)
