"""Compute outcomes from rows: which comparisons count for a measure, and how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from distract.core.attack import Truth
from distract.core.records import MIRROR, Outcome, Response, Row, Side
from distract.judging.verdicts import measure_margin, outcome
from distract.stats.figure import PairedValues
from distract.studies.attack.briefs import CompactRow

Unit = tuple[Hashable, ...]

UnitValues = Mapping[Unit, tuple[str, float]]
"""The prompt and the value of each unit."""

TIED = "baseline is a tie"


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


def count_flips(
    rows: Sequence[Row | CompactRow], rule: str | None, attack: str, margin: float = 0.0, winners: bool = False
) -> OutcomeCounts:
    """Count outcomes of attacked pairs whose baseline has a loser, which the attack rewrote.

    With ``winners``, it rewrote the winner, and a changed winner is a counter-flip. Leads up to ``margin`` are ties.
    """
    counts = OutcomeCounts()
    attacked = {(*pair_unit(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None:
            continue
        before = read_outcome(row, rule, margin)
        counts.asked += row.excluded is None
        if row.excluded is not None:
            counts.reasons[row.excluded] += 1
        elif before is None:
            counts.invalid += 1
        elif before == "tie":
            counts.reasons[TIED] += 1
        else:
            after = attacked.get((*pair_unit(row), before if winners else MIRROR[before]))
            if after is None:
                counts.reasons["not judged yet"] += 1
            else:
                _count(counts, pair_unit(row), after, rule, before, margin)
    return counts


def choose_tie_target(a: Side | Response, b: Side | Response, label: Outcome | None) -> Literal["a", "b"]:
    """Return the response to attack where none has lost: the one labelled worse, else the second by author."""
    if label == "a" or label == "b":
        return "b" if label == "a" else "a"
    return "b" if a.author <= b.author else "a"


def count_attacked(
    rows: Sequence[Row | CompactRow], rule: str | None, attack: str, truth: Truth = "same", margin: float = 0.0
) -> OutcomeCounts:
    """Count outcomes of pairs under an attack, baseline ties included, as seen with the attacked response as b.

    The protocol's loser is attacked, and at a tie the response that ``choose_tie_target`` names. With ``unsupported``
    and ``injection`` a gain counts, with ``same`` and ``control`` any change; each needs both verdicts. A ``hollow``
    answer replaces the tie target whatever the verdict before, which does not count.
    """
    counts = OutcomeCounts()
    attacked = {(*pair_unit(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None:
            continue
        before, target = read_outcome(row, rule, margin), find_target(row, rule, truth)
        counts.asked += row.excluded is None
        if truth != "hollow" and (row.excluded is not None or before is None):
            counts.reasons.update([row.excluded] if row.excluded is not None else [])
            counts.invalid += row.excluded is None
            continue
        after = attacked.get((*pair_unit(row), target))
        if after is None:
            counts.reasons["not judged yet"] += 1
        else:
            first = None if before is None or target == "b" else MIRROR[before]
            _count(counts, pair_unit(row), after, rule, before if target == "b" else first, margin, target == "a")
    return counts


def find_target(row: Row | CompactRow, rule: str | None, truth: Truth) -> Literal["a", "b"]:
    """Return the response that an attack replaces; a margin does not count, since it decides no attack."""
    lost = "tie" if truth == "hollow" else read_outcome(row, rule)
    return choose_tie_target(row.a, row.b, row.label) if lost in ("tie", None) else "a" if lost == "b" else "b"


def count_failures(
    rows: Sequence[Row | CompactRow], rule: str | None, attack: str, rate: str, margin: float = 0.0
) -> OutcomeCounts:
    """Count the outcomes that a rate of failures is about: one of the values of ``FAILURES``."""
    if rate == "flip_rate":
        return count_flips(rows, rule, attack, margin)
    return count_attacked(rows, rule, attack, "hollow" if rate == "hollow_win_rate" else "injection", margin)


COUNTERS: Mapping[str, Callable[[Sequence[Row | CompactRow], str | None, str], OutcomeCounts]] = {
    "fixed": count_fixed,
    "flip": count_flips,
    "severity": count_fixed,
}
"""How each design counts outcomes."""


def pair_unit(row: Row | CompactRow) -> Unit:
    """Return the unit of the flip design that a row belongs to."""
    return (row.case, row.a.author, row.a.severity, row.b.author, row.b.severity)


def read_outcome(row: Row | CompactRow, rule: str | None, margin: float = 0.0) -> Outcome | None:
    """Return the outcome over all orders under a rule of the protocol; a lead up to ``margin`` is a tie."""
    if isinstance(row, CompactRow):
        verdict, lead = row.outcome(rule), row.margin
    else:
        verdict, lead = outcome(row.judgments, rule), measure_margin(row.judgments)
    return "tie" if margin and verdict and lead is not None and abs(lead) <= margin else verdict


def _count(
    counts: OutcomeCounts,
    unit: Unit,
    row: Row | CompactRow,
    rule: str | None,
    before: Outcome | None,
    margin: float = 0.0,
    is_mirrored: bool = False,
) -> None:
    if row.excluded is not None:
        counts.reasons[row.excluded] += 1
    elif (after := read_outcome(row, rule, margin)) is None:
        counts.invalid += 1
        counts.unread[unit] = row.cluster
    else:
        counts.outcomes[unit] = (row.cluster, MIRROR[after] if is_mirrored else after, before)


FAILURES: Mapping[str, str] = {
    "same": "flip_rate",
    "unsupported": "gain_rate",
    "injection": "gain_rate",
    "hollow": "hollow_win_rate",
}
"""The rate of failures under attacks of each truth; they are never pooled."""

CRITERIA: Mapping[str, Callable[[Outcome, Outcome | None], bool]] = {
    "distractor_win_rate": lambda after, before: after == "b",
    "original_win_rate": lambda after, before: after == "a",
    "tie_rate": lambda after, before: after == "tie",
    "flip_rate": lambda after, before: after not in (before, "tie"),
    "flip_rate_of_all": lambda after, before: after not in (before, "tie"),
    "flip_rate_beyond_margin": lambda after, before: after not in (before, "tie"),
    "softened_rate": lambda after, before: after == "tie",
    "severity_accuracy": lambda after, before: after == "a",
    "robustness_rate": lambda after, before: after == before,
    "consistency_rate": lambda after, before: after == before,
    "gain_rate": lambda after, before: after == "b",
    "gain_to_tie_rate": lambda after, before: after == "tie" and before == "a",
    "hollow_win_rate": lambda after, before: after == "b",
    "hollow_tie_rate": lambda after, before: after == "tie",
}
"""Whether each measure counts an outcome, given the outcome before the rewrite (flips only)."""


def add_ties(rows: Sequence[Row | CompactRow], rule: str | None, flips: OutcomeCounts) -> OutcomeCounts:
    """Count pairs whose baseline is a tie too, as pairs that did not flip (the paper's denominator)."""
    tied: dict[Unit, tuple[str, Outcome, Outcome | None]] = {
        pair_unit(row): (row.cluster, "tie", "tie")
        for row in rows
        if row.target is None and read_outcome(row, rule) == "tie"
    }
    reasons = Counter({reason: n for reason, n in flips.reasons.items() if reason != TIED})
    if reasons and not flips.outcomes:  # ties alone say nothing about an attack
        return flips
    return OutcomeCounts({**flips.outcomes, **tied}, flips.unread, flips.invalid, reasons, flips.asked)


def pair_conditions(measure: str, first: OutcomeCounts, second: OutcomeCounts) -> PairedValues:
    """Pair two conditions by their units, in the order of the first."""
    return pair_values(list_values(measure, first), list_values(measure, second))


def pair_criteria(counts: OutcomeCounts, first: str, second: str) -> PairedValues:
    """Pair two measures of the same outcomes."""
    return pair_values(list_values(first, counts), list_values(second, counts))


def pair_values(first: UnitValues, second: UnitValues) -> PairedValues:
    """Pair values by their units, in the order of the first."""
    units = [unit for unit in first if unit in second]
    a, b = (tuple(values[unit][1] for unit in units) for values in (first, second))
    clusters = tuple(first[unit][0] for unit in units)
    return PairedValues(a, b, clusters, (len(first) - len(units), len(second) - len(units)))


def list_values(measure: str, counts: OutcomeCounts) -> UnitValues:
    """Return what a measure counts, 0 or 1, by unit."""
    criterion = CRITERIA[measure]
    return {u: (prompt, float(criterion(after, before))) for u, (prompt, after, before) in counts.outcomes.items()}
