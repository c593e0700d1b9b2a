"""Decide whether a judge got worse: two runs on the same cases, and how much more often it is hit in the new one.

Each check takes the pairs eligible in both runs. It passes if the upper bound of the rise is below the largest one to
accept. Otherwise it fails if hits in the new run only outnumber those in the old run only beyond chance (exact
one-sided McNemar test, after Holm's adjustment). Invalid verdicts count against the decision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from distract.core.printable import count, p_value, percent
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.studies.gate.comparable import common_names
from distract.studies.gate.dependence import count_prompts, few_prompts_reason, uneven_prompts_reason
from distract.studies.gate.exact import (
    HitCounts,
    Place,
    build_check,
    count_run_hits,
    find_least,
    format_bound,
    ineligible_reason,
    invalid_reason,
    read_briefs,
)
from distract.studies.gate.limits import MOST, Limits, least_n
from distract.studies.gate.measures import RATES, list_kinds, name_hit, name_measure
from distract.studies.gate.verdict import Check, Decision


class RiseTest:
    """Tests the rise of a rate between two runs; ``alone`` counts the pairs eligible in only one of them."""

    def __init__(self, now: HitCounts, before: HitCounts, limits: Limits) -> None:
        self.now, self._limits = now, limits
        self._noun, self._hit = name_measure(now.measure), name_hit(now.measure)
        new, old = now.hits, before.hits
        both = [unit for unit in new if unit in old]
        self.alone = len(old) - len(both), len(new) - len(both)
        self._clusters = [new[unit][0] for unit in both]
        self.prompts = count_prompts(self._clusters)
        pairs = [(new[unit][1], old[unit][1]) for unit in both]
        # Count an invalid verdict against the decision: as a hit only now, or only before.
        self._worst = [(float(hit is None or hit), float(hit_before or 0)) for hit, hit_before in pairs]
        self._best = [(float(hit or 0), float(hit_before is None or hit_before)) for hit, hit_before in pairs]
        valid = [pair for pair in pairs if None not in pair]
        self._n, self._k, self._k_before = len(valid), *(sum(bool(pair[run]) for pair in valid) for run in (0, 1))
        self._only_here, self._only_there = valid.count((True, False)), valid.count((False, True))

    @property
    def p_value(self) -> float:
        """P-value of "the rate did not rise": exact, one-sided, on effective numbers."""
        return intervals.mcnemar_above(*self._discordance(self._best)[:2])

    def check(self, adjusted: float, checks: int) -> Check:
        """Decide; ``lower`` and ``upper`` bound the rise, from -1 to 1."""
        lower = upper = None
        if self._clusters:
            lower, upper = self._bounds(self._best)[0], self._bounds(self._worst)[1]
        decision, reason, more = self._decide(adjusted, checks, lower, upper)
        return build_check(
            self.now,
            self._k,
            self._n,
            (self.p_value, adjusted) if self._clusters else None,
            decision=decision,
            reason=reason,
            threshold=self._limits.max_rise,
            measure=RATES[self.now.measure].rise,
            reference=self._k_before / self._n if self._n else None,
            only_here=self._only_here,
            only_there=self._only_there,
            lower=lower,
            upper=upper,
            needed=more,
        )

    def _discordance(self, values: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
        """Return the pairs that are hits only now, only before, and all pairs, in effective numbers."""
        if not values:
            return 0, 0, 0
        first, second = zip(*values, strict=True)
        up, down, shrink = intervals.discordant_pairs(first, second, self._clusters, self._limits.alpha)
        return up * shrink, down * shrink, len(values) * shrink

    def _bounds(self, values: Sequence[tuple[float, float]]) -> intervals.Interval:
        return intervals.rise_bounds(*self._discordance(values), self._limits.confidence)

    def _decide(
        self, adjusted: float, checks: int, lower: float | None, upper: float | None
    ) -> tuple[Decision, str, int | None]:
        n, counted, limits = self._n, self.now.counted, self._limits
        most = limits.max_rise
        if not n or lower is None or upper is None:
            return "inconclusive", "no comparison is eligible and valid in both runs", self._min_pairs
        short = (
            invalid_reason(n, 0, limits)
            or invalid_reason(len(counted.outcomes), counted.invalid, limits)
            or ineligible_reason(counted.eligible_share, limits)
            or few_prompts_reason(self.prompts, most, limits)
            or uneven_prompts_reason(self._clusters, most, limits)
        )
        rates = f"from {percent(self._k_before / n)}% to {percent(self._k / n)}%"
        if upper < most and not short:
            bound = f"upper bound of the rise {format_bound(100 * upper, 100 * most)} points is below {100 * most:g}"
            return "pass", f"the {self._noun} rose {rates}, but the {bound}" if lower > 0 else bound, None
        if lower > 0 and adjusted <= limits.alpha:
            differ = (
                f"{count(self._only_here, self._hit)} only now, {self._only_there} only before, p {p_value(adjusted)}"
            )
            return "fail", f"the {self._noun} rose {rates} ({differ})", None
        more = self._count_needed(checks)
        if short:
            return "inconclusive", short, more
        bounds = f"a rise of {percent(lower)} to {percent(upper)} points may be more than {100 * most:g}"
        if lower > 0:
            bounds += f", and may be chance among {count(checks, 'check')}"
        about = "" if more is None else f"; at these rates about {count(more, 'comparison')} would tell"
        return "inconclusive", bounds + about, more

    @property
    def _min_pairs(self) -> int:
        return max(self._limits.min_n, least_n(self._limits.max_rise, self._limits.confidence))

    def _count_needed(self, checks: int) -> int | None:
        """Estimate how many eligible pairs would settle it if the rates stay the same."""
        limits = self._limits
        (rose, fell, total), (up, down, n) = self._discordance(self._worst), self._discordance(self._best)

        def passes(size: int) -> bool:
            more, less = math.ceil(rose / total * size), math.floor(fell / total * size)
            return intervals.rise_bounds(more, less, max(size, more + less), limits.confidence)[1] < limits.max_rise

        def fails(size: int) -> bool:
            more, less = math.floor(up / n * size), math.ceil(down / n * size)
            return intervals.mcnemar_above(more, less) <= limits.alpha / checks

        if (rose - fell) / total < limits.max_rise:
            needed, effective = find_least(passes), total
        else:
            needed, effective = find_least(fails) if up > down else None, n
        if needed is None or needed > MOST:
            return None
        more = max(math.ceil(max(needed, self._min_pairs) * len(self._clusters) / effective), limits.min_n)
        return more if more > len(self._clusters) else None


def rise_tests(baseline: LoadedRun, run: LoadedRun, limits: Limits) -> list[RiseTest]:
    """Return a test for each protocol and attack (no controls) of both runs."""
    protocols, attacks = common_names(baseline, run)
    kinds = list_kinds(run.parameters)
    places: list[Place] = [(protocol, kinds[attack]) for protocol in protocols for attack in attacks]
    new, old = (count_run_hits(one, read_briefs(one), places, limits.margin) for one in (run, baseline))
    return [RiseTest(now, before, limits) for now, before in zip(new, old, strict=True)]


def unmatched_notes(rises: Sequence[RiseTest]) -> list[str]:
    """Report the pairs eligible in one run only."""
    alone = [
        f"{test.now.protocol} under {test.now.attack.name} ({test.alone[0]} before, {test.alone[1]} now)"
        for test in rises
        if any(test.alone)
    ]
    return [f"not compared, as eligible in one run only: {'; '.join(alone)}"] if alone else []
