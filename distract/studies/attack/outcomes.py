"""Compute outcomes from rows: which comparisons count for a measure, and how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from distract.core.records import Outcome, Row
from distract.judging.verdicts import outcome
from distract.stats.figure import PairedValues
from distract.studies.attack.briefs import CompactRow

Unit = tuple[Hashable, ...]


@dataclass(slots=True)
class OutcomeCounts:
    """Outcomes of eligible, valid comparisons by unit, and counts of all others by reason.

    ``outcomes`` holds prompt, outcome after the rewrite and outcome before; ``unread`` the prompts of eligible
    comparisons whose verdict after the rewrite is invalid; ``asked`` counts comparisons judged before any rewrite.
    """

    outcomes: dict[Unit, tuple[str, Outcome, Outcome | None]] = field(default_factory=dict)
    unread: dict[Unit, str] = field(default_factory=dict)
    invalid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    asked: int = 0

    @property
    def eligible_share(self) -> float | None:
        """Eligible comparisons as a share of those judged before any rewrite; None without one."""
        return (len(self.outcomes) + len(self.unread)) / self.asked if self.asked else None

    def eligible(self, measure: str) -> dict[Unit, tuple[str, bool | None]]:
        """Return each eligible comparison's prompt and whether a measure counts it; None for an invalid verdict."""
        counts = CRITERIA[measure]
        valid = {unit: (prompt, counts(after, before)) for unit, (prompt, after, before) in self.outcomes.items()}
        return {**valid, **{unit: (prompt, None) for unit, prompt in self.unread.items()}}


def count_fixed(rows: Sequence[Row | CompactRow], rule: str | None, attack: str) -> OutcomeCounts:
    """Count outcomes of a good response (a) against its rewrite or a worse response (b)."""
    counts = OutcomeCounts()
    for row in rows:
        if row.attack == attack:
            _count(counts, (row.case, row.a.author, row.a.severity), row, rule, None)
    return counts


def count_flips(rows: Sequence[Row | CompactRow], rule: str | None, attack: str) -> OutcomeCounts:
    """Count outcomes of attacked pairs, from the view of the side that had lost under this rule.

    A unit is a pair whose baseline has a loser. Its outcome is ``b`` if the rewritten response now wins (a flip),
    ``tie`` if the verdict softened, ``a`` if it held.
    """
    counts = OutcomeCounts()
    attacked = {(*pair_unit(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None:
            continue
        before = _outcome(row, rule)
        counts.asked += row.excluded is None
        if row.excluded is not None:
            counts.reasons[row.excluded] += 1
        elif before is None:
            counts.invalid += 1
        elif before == "tie":
            counts.reasons["baseline is a tie"] += 1
        else:
            after = attacked.get((*pair_unit(row), "b" if before == "a" else "a"))
            if after is None:
                counts.reasons["not judged yet"] += 1
            else:
                _count(counts, pair_unit(row), after, rule, before)
    return counts


COUNTERS: Mapping[str, Callable[[Sequence[Row | CompactRow], str | None, str], OutcomeCounts]] = {
    "fixed": count_fixed,
    "flip": count_flips,
    "severity": count_fixed,
}
"""How each design counts outcomes."""


def pair_unit(row: Row | CompactRow) -> Unit:
    """Return the unit of the flip design that a row belongs to."""
    return (row.case, row.a.author, row.a.severity, row.b.author, row.b.severity)


def _outcome(row: Row | CompactRow, rule: str | None) -> Outcome | None:
    return row.outcome(rule) if isinstance(row, CompactRow) else outcome(row.judgments, rule)


def _count(counts: OutcomeCounts, unit: Unit, row: Row | CompactRow, rule: str | None, before: Outcome | None) -> None:
    if row.excluded is not None:
        counts.reasons[row.excluded] += 1
    elif (after := _outcome(row, rule)) is None:
        counts.invalid += 1
        counts.unread[unit] = row.cluster
    else:
        counts.outcomes[unit] = (row.cluster, after, before)


CRITERIA: Mapping[str, Callable[[Outcome, Outcome | None], bool]] = {
    "distractor_win_rate": lambda after, before: after == "b",
    "original_win_rate": lambda after, before: after == "a",
    "tie_rate": lambda after, before: after == "tie",
    "flip_rate": lambda after, before: after not in (before, "tie"),
    "softened_rate": lambda after, before: after == "tie",
    "severity_accuracy": lambda after, before: after == "a",
}
"""Whether each measure counts an outcome, given the outcome before the rewrite (flips only)."""


def pair_conditions(measure: str, first: OutcomeCounts, second: OutcomeCounts) -> PairedValues:
    """Pair two conditions by their units, in the order of the first."""
    units = [unit for unit in first.outcomes if unit in second.outcomes]
    a, b = (tuple(float(CRITERIA[measure](*c.outcomes[u][1:])) for u in units) for c in (first, second))
    clusters = tuple(first.outcomes[unit][0] for unit in units)
    return PairedValues(a, b, clusters, (len(first.outcomes) - len(units), len(second.outcomes) - len(units)))
