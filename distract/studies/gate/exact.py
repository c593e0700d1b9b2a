"""Decide whether the rates of a finished run are below their thresholds, by one-sided exact bounds.

A check passes if its upper bound, counting every invalid verdict after a rewrite as a hit, is below the threshold. It
fails if its lower bound, counting none of them, is above it after Holm's adjustment. No data, few prompts or few
eligible comparisons never pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from distract.core.errors import UsageError
from distract.core.printable import count, percent
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.stats.figure import headline
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.outcomes import OutcomeCounts, count_failures
from distract.studies.gate.dependence import clustered_hits_reason, count_prompts, few_prompts_reason, shrink_counts
from distract.studies.gate.limits import MOST, Limits, is_unreadable, least_n, name_option
from distract.studies.gate.measures import (
    RATES,
    AttackKind,
    Measure,
    describe_bounded,
    list_kinds,
    name_hit,
)
from distract.studies.gate.verdict import Check, Decision

Place = tuple[str, AttackKind]
"""A protocol and an attack."""


@dataclass(frozen=True, slots=True)
class HitCounts:
    """The outcomes of a run for one protocol under one attack."""

    protocol: str
    attack: AttackKind
    rule: str | None = None
    counted: OutcomeCounts = field(default_factory=OutcomeCounts)

    @property
    def measure(self) -> Measure:
        """The rate of the attack's failures."""
        return self.attack.measure

    @property
    def hits(self) -> dict[Any, tuple[str, bool | None]]:
        """Each eligible pair's prompt, and whether it is a hit; None without a valid verdict."""
        return self.counted.eligible(self.measure)


def read_briefs(run: LoadedRun) -> CompactRows:
    """Read the rows of a run; one with a flaw has none."""
    p = run.parameters
    return CompactRows.of_run(p, run.rows if run.flaw is None else ())


def count_run_hits(run: LoadedRun, briefs: CompactRows, places: Iterable[Place], margin: float) -> list[HitCounts]:
    """Count hits beyond a margin by protocol and attack."""
    counts = []
    for protocol, attack in places:
        rule = headline("flip_rate", run.parameters["protocols"][protocol])
        rows = briefs.of(protocol, "flip", attack.name)
        counts.append(
            HitCounts(protocol, attack, rule, count_failures(rows, rule, attack.name, attack.measure, margin))
        )
    return counts


def list_places(run: LoadedRun, briefs: CompactRows) -> list[Place]:
    """List the protocols and attacks whose pairs a run judged."""
    attacks = list_kinds(run.parameters).values() if "flip" in briefs.designs else ()
    return list(product(sorted(run.parameters["protocols"]), attacks))


def keep_covered(places: Sequence[Place], limits: Limits) -> list[Place]:
    """Drop the attacks of truths without any threshold; fail if one that stays has none, or if none stays."""
    truths = {attack.truth for protocol, attack in places if limits.threshold(protocol, attack) is not None}
    kept = [place for place in places if place[1].truth in truths]
    for place in kept or places:
        threshold(limits, *place)
    return kept


class RateTest:
    """Tests a rate against its threshold."""

    def __init__(self, counts: HitCounts, limits: Limits) -> None:
        self.counts, self._limits = counts, limits
        self._threshold = threshold(limits, counts.protocol, counts.attack)
        eligible = list(counts.hits.values())
        self._clusters = [prompt for prompt, _ in eligible]
        self.prompts = count_prompts(self._clusters)
        self._best = [float(hit or 0) for _, hit in eligible]
        self._worst = [float(hit is None or hit) for _, hit in eligible]

    @property
    def p_value(self) -> float:
        """P-value of "the rate is at most the threshold"."""
        return intervals.p_above(*self._shrink(self._best), self._threshold) if self._best else 1.0

    def check(self, adjusted: float, checks: int) -> Check:
        """Decide, given the adjusted p-value and the number of checks."""
        counted, limit, limits = self.counts.counted, self._threshold, self._limits
        n, sure, lower, upper, more = len(counted.outcomes), limits.confidence, None, None, None
        if self._best:
            lower = intervals.lower_bound(*self._shrink(self._best), sure)
            upper = intervals.upper_bound(*self._shrink(self._worst), sure)
        decision: Decision = "inconclusive"
        of = describe_bounded(self.counts.measure)
        short = (
            invalid_reason(n, counted.invalid, limits)
            or ineligible_reason(counted.eligible_share, limits)
            or few_prompts_reason(self.prompts, limit, limits)
            or clustered_hits_reason(self._worst, self._clusters, limit, limits)
        )
        if lower is not None and adjusted <= limits.alpha and lower > limit:
            decision, reason = "fail", f"lower bound{of} {format_bound(lower, limit)} is above {limit:g}"
        elif upper is not None and upper < limit and not short:
            decision, reason = "pass", f"upper bound{of} {format_bound(upper, limit)} is below {limit:g}"
        else:
            more = self._count_needed(checks)
            least = least_n(limit, sure)
            reason = short or open_reason(lower or 0.0, upper or 1.0, limit, len(self._best), least, more, of)
            if counted.unread and not short:
                hit = name_hit(self.counts.measure)
                reason += f" ({count(len(counted.unread), 'invalid verdict')} may be {hit}s)"
        k = sum(hit or 0 for _, hit in self.counts.hits.values())
        p = (self.p_value, adjusted) if self._best else None
        bounds = {"lower": lower, "upper": upper}
        return build_check(
            self.counts, k, n, p, decision=decision, reason=reason, threshold=limit, needed=more, **bounds
        )

    def _shrink(self, values: Sequence[float]) -> tuple[float, float]:
        return shrink_counts(values, self._clusters, self._limits)

    def _count_needed(self, checks: int) -> int | None:
        counted, limit, limits = self.counts.counted, self._threshold, self._limits
        if is_unreadable(len(counted.outcomes), counted.invalid, limits.max_invalid_rate):
            return None
        if not self._best:
            return count_needed(None, limit, limits, checks)
        worst, best = (math.fsum(values) / len(values) for values in (self._worst, self._best))
        values, rate = (self._worst, worst) if worst < limit else (self._best, best)
        if best <= limit <= worst or (more := count_needed(rate, limit, limits, checks)) is None:
            return None
        # Scale up for dependence, and require enough prompts.
        more = math.ceil(more * len(values) / self._shrink(values)[1])
        if self.prompts and rate < limit:
            more = max(more, math.ceil(least_n(limit, limits.confidence) * len(values) / self.prompts))
        return more if more > len(values) else None


def build_check(counts: HitCounts, k: int, n: int, p: tuple[float, float] | None, **figures: Any) -> Check:
    """Build the check of a finished run; ``p`` holds the p-value before and after Holm's adjustment."""
    counted = counts.counted
    return Check(
        protocol=counts.protocol,
        rule=counts.rule,
        attack=counts.attack.name,
        k=k,
        n=n,
        invalid=counted.invalid,
        excluded=counted.reasons.total(),
        value=k / n if n else None,
        p_value=p and p[0],
        p_adjusted=p and p[1],
        eligible_share=counted.eligible_share,
        **{"measure": counts.measure, **figures},
    )


def threshold(limits: Limits, protocol: str, attack: AttackKind) -> float:
    """Return the threshold of a check; fail if there is none."""
    limit = limits.threshold(protocol, attack)
    if limit is None:
        option = name_option(RATES[attack.measure].limit)
        where = f"{option}, or {option[2:]} in [tool.distract.gate] of pyproject.toml"
        raise UsageError(f"{protocol} under {attack.name} has no threshold; give {where}")
    return limit


def count_needed(rate: float | None, threshold: float, limits: Limits, checks: int) -> int | None:
    """Estimate how many comparisons settle a check if its rate stays the same."""
    if not rate:
        return max(least_n(threshold, limits.confidence), limits.min_n)
    if rate < threshold:
        needed = find_least(lambda n: intervals.upper_bound(math.ceil(rate * n), n, limits.confidence) < threshold)
        return None if needed is None else max(needed, limits.min_n)
    if rate > threshold:
        level = limits.alpha / checks
        return find_least(lambda n: intervals.p_above(math.floor(rate * n), n, threshold) <= level)
    return None


def invalid_reason(n: int, invalid: int, limits: Limits) -> str | None:
    """Explain why a check with these counts cannot pass."""
    if not n:
        return "no valid verdict on an eligible case"
    if is_unreadable(n, invalid, limits.max_invalid_rate):
        return f"{invalid} of {n + invalid} verdicts are invalid: more than {limits.max_invalid_rate:g} of them"
    if n < limits.min_n:
        return f"fewer valid verdicts ({n}) than --min-n {limits.min_n}"
    return None


def ineligible_reason(share: float | None, limits: Limits) -> str | None:
    """Explain why a check with so few eligible comparisons cannot pass."""
    if share is None or share >= limits.min_eligible:
        return None
    least = f"fewer than --min-eligible {percent(limits.min_eligible)}%"
    return f"only {percent(share)}% of the comparisons are eligible (the others are ties or have no rewrite), {least}"


def format_bound(bound: float, limit: float) -> str:
    """Format a bound with as many decimals as put it on the right side of a limit, at least three."""
    for digits in range(3, 9):
        text = f"{bound:.{digits}f}"
        if (float(text) > limit, float(text) < limit) == (bound > limit, bound < limit):
            break
    return text


def open_reason(
    lower: float, upper: float, threshold: float, n: int, least: int, more: int | None, of: str = ""
) -> str:
    """Explain why bounds on both sides of a threshold are inconclusive, and how many verdicts are needed."""
    if n < least:
        return f"only {count(n, 'verdict')}; at least {least} are needed to pass at {threshold:g}"
    about = f"; at this rate about {count(more, 'verdict')} would" if more is not None else ""
    return f"the bounds{of} {lower:.3f} to {upper:.3f} do not settle {threshold:g}{about}"


def find_least(enough: Callable[[int], bool]) -> int | None:
    """Find about the smallest number that is enough, up to ``MOST``; exact if every larger one is enough too."""
    high = 1
    while not enough(high):
        if high > MOST:
            return None
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
