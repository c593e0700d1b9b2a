"""Decide whether the rates of a finished run are below their thresholds, by one-sided exact bounds.

A check passes if its upper bound, counting every invalid verdict after a rewrite as a hit, is below the threshold. It
fails if its lower bound, counting none of them, is above it after Holm's adjustment. No data, few prompts or few
eligible comparisons never pass. Comparisons that share a prompt count for less; by chance their variance may miss
prompts that are hits as a whole, so a pass also needs enough prompts of even sizes and evidence from their means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import Any

from distract.core.printable import count, p_value, percent
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.stats.figure import FEW, Counts
from distract.stats.measures import MEASURES, headline
from distract.studies.gate.limits import (
    MOST,
    AttackKind,
    Limits,
    Place,
    describe_bounded,
    is_unreadable,
    list_kinds,
    list_rates,
)
from distract.studies.gate.monitor import log_evidence
from distract.studies.gate.verdict import Check
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import ProtocolTrials

FEW_REPEATED = 1.2
"""Up to this mean number of comparisons per prompt, repeated prompts do not matter."""


def count_prompts(clusters: Sequence[Hashable]) -> int | None:
    """Count the prompts of these comparisons; None if each has its own."""
    prompts = len({*clusters})
    return prompts if prompts < len(clusters) else None


def shrink_counts(values: Sequence[float], clusters: Sequence[Hashable], limits: Limits) -> tuple[float, float]:
    """Return hits and comparisons, shrunk by the dependence within prompts."""
    # If few prompts have hits, degrees of freedom understate n: at worst all pairs of a prompt are one pair repeated.
    n = max(intervals.effective_n(values, clusters, limits.alpha), intervals.kish_n(clusters))
    return math.fsum(values) / len(values) * n, n


def few_prompts_reason(prompts: int | None, limit: float, limits: Limits) -> str | None:
    """Explain why so few prompts cannot pass: all comparisons of a prompt may be hits together."""
    least = limits.least_n(limit)
    if prompts is None or prompts >= least:
        return None
    return f"only {count(prompts, 'prompt')}; at least {least} are needed to pass at {limit:g}"


def uneven_prompts_reason(clusters: Sequence[Hashable], limit: float, limits: Limits) -> str | None:
    """Explain why prompts of uneven sizes cannot pass: the largest may consist of hits and decide alone."""
    equal, least = math.floor(intervals.kish_n(clusters)), limits.least_n(limit)
    if len(clusters) <= FEW_REPEATED * equal or equal >= least:
        return None
    few = f"prompts of these sizes count only as {count(equal, 'equal one')}"
    return f"{few}; at least {least} are needed to pass at {limit:g}"


def clustered_hits_reason(
    values: Sequence[float], clusters: Sequence[Hashable], limit: float, limits: Limits
) -> str | None:
    """Explain why hits concentrated in few prompts cannot pass: more such prompts may be missing by chance."""
    if not any(values) or len(values) <= FEW_REPEATED * intervals.kish_n(clusters):
        return None
    prompts: dict[Hashable, list[float]] = {}
    for value, prompt in zip(values, clusters, strict=True):
        prompts.setdefault(prompt, []).append(value)
    if log_evidence([fmean(part) for part in prompts.values()], limit, "below") >= math.log(1 / limits.alpha):
        return None
    return f"{count(len(prompts), 'prompt')} do not show that the mean over prompts is below {limit:g}"


@dataclass(frozen=True, slots=True)
class HitCounts:
    """The outcomes of a run for one rate."""

    place: Place
    rule: str | None = None
    counted: Counts = field(default_factory=Counts)

    @property
    def hits(self) -> dict[Any, tuple[str, bool | None]]:
        """Each eligible pair's prompt, and whether it is a hit; None without a valid verdict."""
        return self.counted.hits(MEASURES[self.place.measure])


def read_briefs(run: LoadedRun) -> CompactRows:
    """Read the rows of a run; one with a flaw has none."""
    return CompactRows.of_run(run.parameters, run.rows if run.flaw is None else ())


def count_run_hits(run: LoadedRun, briefs: CompactRows, places: Iterable[Place], margin: float) -> list[HitCounts]:
    """Count hits beyond a margin for each rate."""
    rules, counts = run.parameters["protocols"], list[HitCounts]()
    trials = {protocol: ProtocolTrials(briefs, protocol) for protocol in rules}
    for place in places:
        rule, where = headline(place.measure, rules[place.protocol]), (place.attack.name, None)
        counted = trials[place.protocol].count(MEASURES[place.measure], rule, where, margin)
        counts.append(HitCounts(place, rule, counted))
    return counts


def list_judged(run: LoadedRun, briefs: CompactRows, limits: Limits, is_paired: bool) -> list[Place]:
    """List the rates that a run measured: of its pairs, if wanted, and of responses against their originals."""
    attacks = list_kinds(run.parameters).values() if is_paired and "flip" in briefs.designs else ()
    places = limits.list_places(run.parameters["protocols"], attacks)
    alone = [row.name for row in list_rates() if not row.is_paired and row.name in limits.measures]
    own = product(sorted(run.parameters["protocols"]), list_styled(run, briefs), alone)
    return [*(place for place in places if MEASURES[place.measure].is_paired), *(Place(*place) for place in own)]


def list_styled(run: LoadedRun, briefs: CompactRows) -> list[AttackKind]:
    """List the attacks that have a style: those of the effect ``same``, and others judged against their originals."""
    kinds = list_kinds(run.parameters).values() if run.flaw is None else ()
    fixed = {row.attack for protocol in run.parameters["protocols"] for row in briefs.of(protocol, "fixed")}
    return [attack for attack in kinds if attack.effect == "same" or attack.name in fixed]


class RateTest:
    """Tests a rate against its threshold."""

    def __init__(self, counts: HitCounts, limits: Limits) -> None:
        self.counts, self._limits = counts, limits
        self._threshold = limits.require(counts.place)
        self._measure = MEASURES[counts.place.measure]
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
        lower = upper = None
        if self._best:
            lower = intervals.lower_bound(*self._shrink(self._best), limits.confidence)
            upper = intervals.upper_bound(*self._shrink(self._worst), limits.confidence)
        k, p = sum(hit or 0 for _, hit in self.counts.hits.values()), self.p_value if self._best else None
        check = start_check(self.counts, k, len(counted.values), limit, p, adjusted, lower=lower, upper=upper)
        short = (
            ("" if counted.judged else check.row.missing)
            or short_reason(check, limits)
            or few_prompts_reason(self.prompts, limit, limits)
            or uneven_prompts_reason(self._clusters, limit, limits)
            or clustered_hits_reason(self._worst, self._clusters, limit, limits)
        )

        def explain() -> tuple[str, int | None]:
            more = self._count_needed(checks)
            about = "" if more is None else f"; at this rate about {count(more, 'verdict')} would"
            reason = open_reason(check, limits, checks, about, len(self._best))
            unread = f" ({count(len(counted.unread), 'invalid verdict')} may be {check.row.hit}s)"
            return reason + unread * bool(counted.unread), more

        return settle(check, adjusted <= limits.alpha, short, explain)

    def _shrink(self, values: Sequence[float]) -> tuple[float, float]:
        return shrink_counts(values, self._clusters, self._limits)

    def _count_needed(self, checks: int) -> int | None:
        counted, limit, limits = self.counts.counted, self._threshold, self._limits
        if is_unreadable(len(counted.values), counted.invalid, limits.max_invalid_rate):
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
            more = max(more, math.ceil(limits.least_n(limit) * len(values) / self.prompts))
        return more if more > len(values) else None


def start_check(
    counts: HitCounts, k: int | None, n: int, limit: float, p: float | None, adjusted: float, **figures: Any
) -> Check:
    """Start a check of a finished run with its counts; ``p`` and ``adjusted`` are its p-value before and after Holm."""
    counted, (protocol, attack, measure) = counts.counted, counts.place
    numbers = k, n, counted.invalid, counted.reasons.total(), None if k is None or not n else k / n
    figures = {"measure": measure, "eligible_share": counted.eligible_share, **figures}
    figures |= {} if p is None else {"p_value": p, "p_adjusted": adjusted}
    return Check(protocol, counts.rule, attack.name, "inconclusive", "", limit, *numbers, **figures)


def settle(check: Check, is_sure: bool, short: str | None, explain: Callable[[], tuple[str, int | None]]) -> Check:
    """Decide a check by its bounds: it passes unless something is ``short``, and fails if that ``is_sure``.

    ``explain`` says why bounds leave it open, and how many comparisons would settle it.
    """
    limit, decision = check.threshold or 0.0, None
    if check.upper is not None and check.upper < limit and not short:
        decision = replace(check, decision="pass")
    elif is_sure and check.lower is not None and check.lower > (0.0 if check.kind == "rise" else limit):
        decision = replace(check, decision="fail")
    if decision is not None:
        return replace(decision, reason=decision_reason(decision))
    reason, more = explain()
    return replace(check, reason=short or reason, needed=more)


def decision_reason(check: Check) -> str:
    """Say by which bound a check has passed or failed."""
    limit, lower, upper = check.threshold or 0.0, check.lower or 0.0, check.upper or 0.0
    of = describe_bounded(check.measure) + _describe_mean(check)
    if check.kind == "rise":
        rose = f"the {check.row.failure} rose from {percent(check.reference)}% to {percent(check.value)}%"
        if check.decision == "fail":
            only = f"{count(check.only_here or 0, check.row.hit)} only now, {check.only_there} only before"
            return f"{rose} ({only}, p {p_value(check.p_adjusted)})"
        below = f"upper bound{of} {format_bound(100 * upper, 100 * limit)} points is below {100 * limit:g}"
        return f"{rose}, but the {below}" if lower > 0 else below
    if check.decision == "fail":
        return f"lower bound{of} {format_bound(lower, limit)} is above {limit:g}"
    return f"upper bound{of} {format_bound(upper, limit)} is below {limit:g}"


def _describe_mean(check: Check) -> str:
    return "" if check.prompts is None else " (mean over prompts)"


def count_needed(rate: float | None, threshold: float, limits: Limits, checks: int) -> int | None:
    """Estimate how many comparisons settle a check if its rate stays the same."""
    if not rate:
        return max(limits.least_n(threshold), limits.min_n)
    if rate < threshold:
        needed = find_least(lambda n: intervals.upper_bound(math.ceil(rate * n), n, limits.confidence) < threshold)
        return None if needed is None else max(needed, limits.min_n)
    if rate > threshold:
        level = limits.alpha / checks
        return find_least(lambda n: intervals.p_above(math.floor(rate * n), n, threshold) <= level)
    return None


def short_reason(check: Check, limits: Limits) -> str | None:
    """Explain why a check with these counts cannot pass."""
    few = f"the excess is not measured, for {FEW} count ({check.n})" if check.is_withheld else None
    return invalid_reason(check.n, check.invalid, limits) or few or ineligible_reason(check.eligible_share, limits)


def invalid_reason(n: int, invalid: int, limits: Limits) -> str | None:
    """Explain why so few valid verdicts, or so many invalid ones, cannot pass."""
    if not n:
        return "no valid verdict on an eligible case"
    if is_unreadable(n, invalid, limits.max_invalid_rate):
        return f"{invalid} of {n + invalid} verdicts are invalid: more than {limits.max_invalid_rate:g} of them"
    return f"fewer valid verdicts ({n}) than --min-n {limits.min_n}" if n < limits.min_n else None


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


def open_reason(check: Check, limits: Limits, checks: int, about: str, n: int | None = None) -> str:
    """Explain why bounds on both sides of a threshold are inconclusive; ``about`` says what would settle it.

    Fewer verdicts (``n``) than can pass without any hit need no bounds.
    """
    limit, low, high = check.threshold or 0.0, check.lower, check.upper
    chance, mean = f"chance among {count(checks, 'check')}", _describe_mean(check)
    of = describe_bounded(check.measure) + mean
    if check.kind == "rise":
        rise = f"a rise{mean} of {percent(low)} to {percent(high)} points may be more than {100 * limit:g}"
        return rise + f", and may be {chance}" * (low is not None and low > 0) + about
    if check.kind == "worth" and low is not None and low > limit:
        return f"the lower bound{of} {format_bound(low, limit)} is above {limit:g}, but may be so by {chance}"
    least = limits.least_n(limit) if n is not None else 0
    if n is not None and n < least:
        return f"only {count(n, 'verdict')}; at least {least} are needed to pass at {limit:g}"
    ends = ("–∞" if low is None else f"{low:.3f}", "∞" if high is None else f"{high:.3f}")
    return f"the bounds{of} {' to '.join(ends)} do not settle {limit:g}{about}"


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
