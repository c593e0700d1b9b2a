"""The check of a live gate, worded from the evidence that its monitor has gathered."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from distract.core.printable import count, p_value
from distract.studies.gate.boundary import end_probability
from distract.studies.gate.exact import count_needed, format_bound, ineligible_reason, invalid_reason, open_reason
from distract.studies.gate.limits import Limits, is_unreadable, least_n
from distract.studies.gate.measures import RATES, RISES, Measure, describe_bounded, name_hit
from distract.studies.gate.mixture import Direction, log_evidence
from distract.studies.gate.monitor import Monitor
from distract.studies.gate.verdict import Check

STEPS = 24
"""Bisection steps for a bound, enough for thresholds of a millionth."""


def build_check(
    protocol: str,
    rule: str | None,
    attack: str,
    monitor: Monitor,
    measure: Measure,
    limit: float,
    adjusted: float,
    limits: Limits,
    checks: int,
) -> Check:
    """Describe the current state of a check, whose threshold is ``limit``."""
    state = _CheckState(monitor, measure, limits, limit)
    decision = monitor.decision or "inconclusive"
    # Once another check has failed, Holm's adjustment may let this one fail too.
    if decision == "inconclusive" and monitor.p_value is not None and adjusted <= limits.alpha:
        decision = "fail"
    skipped = decision == "inconclusive" and monitor.decision is None
    more = None
    readable = not is_unreadable(monitor.n, monitor.invalid, limits.max_invalid_rate)
    if decision == "inconclusive" and not skipped and monitor.limits is not None and readable:
        # The estimate is for a new run; drop it if this one has as many.
        more = count_needed(monitor.value, limit, limits, checks)
        more = None if more is not None and more <= monitor.n else more
    if skipped:
        reason = "left open, as another check had failed"
    elif decision != monitor.decision and decision == "fail":
        reason = f"p {p_value(adjusted)} after Holm's adjustment, since other checks have failed"
    elif decision == "inconclusive" or state.bounds is None:
        reason = state.open_reason(more)
    else:
        reason = state.decision_reason(*state.bounds)
    compared = measure not in RATES
    lower, upper = state.bounds or (None, None)
    return Check(
        protocol=protocol,
        rule=rule,
        attack=attack,
        decision=decision,
        reason=reason,
        threshold=limit,
        k=monitor.k,
        n=monitor.n,
        invalid=monitor.invalid,
        excluded=sum(monitor.test.pairs) - monitor.left - monitor.n - monitor.invalid,
        value=monitor.value,
        measure=measure,
        reference=monitor.reference if compared else None,
        only_here=monitor.only_here if compared else None,
        only_there=monitor.only_there if compared else None,
        lower=lower,
        upper=upper,
        p_value=monitor.p_value,
        p_adjusted=None if monitor.p_value is None else adjusted,
        needed=more,
        skipped=skipped,
        eligible_share=state.eligible_share,
        prompts=None if monitor.test.is_single else monitor.prompt_count,
    )


def lower_bound(monitor: Monitor, alpha: float) -> float:
    """Return the one-sided lower bound of the mean over prompts, invalid verdicts counted for the judge."""
    return _find_bound(lambda rate: _is_rejected(monitor, rate, "above", alpha))


def upper_bound(monitor: Monitor, alpha: float) -> float:
    """Return the one-sided upper bound of the mean over prompts, invalid verdicts counted against the judge."""
    return 1 - _find_bound(lambda rest: _is_rejected(monitor, 1 - rest, "below", alpha))


def _find_bound(rejected: Callable[[float], bool]) -> float:
    """Return the largest number from 0 to 1 that is rejected along with all below it, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _is_rejected(monitor: Monitor, rate: float, side: Direction, alpha: float) -> bool:
    """Return whether a test of this rate at this level would have rejected it."""
    limits = monitor.limits
    if limits is None or limits.inexact or monitor.reason not in ("end", "settled"):
        return log_evidence(monitor.lows if side == "above" else monitor.highs, rate, side) >= math.log(1 / alpha)
    n = monitor.looked
    # Comparisons that were skipped because none could matter count for the other side.
    if side == "above":
        return end_probability(rate, limits.fail_at, n, round(monitor.low)) <= alpha
    zeros = monitor.prompt_count - round(monitor.high)
    return end_probability(1 - rate, np.arange(limits.most + 1) - limits.pass_at, n, zeros) <= alpha


class _CheckState:
    """The evidence of a check in words."""

    def __init__(self, monitor: Monitor, measure: Measure, limits: Limits, threshold: float) -> None:
        self._monitor, self._limits, self._threshold = monitor, limits, threshold
        self._is_rise, self._is_rate, self._hit = measure in RISES, measure in RATES, name_hit(measure)
        self._of = describe_bounded(measure) + ("" if monitor.test.is_single else " (mean over prompts)")
        self._others = f"whatever the other {count(monitor.left, 'pair')} would say"
        self.eligible_share = monitor.eligible / monitor.asked if monitor.asked else None
        self.bounds: tuple[float, float] | None = None
        if monitor.prompt_count:
            low, high = lower_bound(monitor, limits.alpha), upper_bound(monitor, limits.alpha)
            self.bounds = (low, high) if self._is_rate else (2 * low - 1, 2 * high - 1)

    def decision_reason(self, lower: float, upper: float) -> str:
        monitor, limit = self._monitor, self._threshold
        if monitor.reason == "settled":
            return f"{self._hits} decide it, {self._others}"
        floor = 0.0 if self._is_rise else limit
        if monitor.decision == "fail":
            return f"lower bound{self._of} {format_bound(lower, floor)} is above {floor:g}"
        rose = self._is_rise and lower > floor
        though = f", though the lower bound {format_bound(lower, floor)} is above 0" if rose else ""
        return f"upper bound{self._of} {format_bound(upper, limit)} is below {limit:g}{though}"

    def open_reason(self, more: int | None) -> str:
        monitor, limit, limits = self._monitor, self._threshold, self._limits
        short = invalid_reason(monitor.n, monitor.invalid, limits) or ineligible_reason(self.eligible_share, limits)
        if short:
            return short
        lower, upper = self.bounds or (0.0, 1.0)
        least, about = least_n(limit, limits.confidence), ""
        if more is not None:
            about = f"; at this rate about {count(more, 'verdict')} would"
        elif monitor.limits is None and monitor.prompt_count < least:
            about = f"; without any {self._hit} it takes about {count(least, 'prompt')}"
        settle = f"whether the rise is above 0 or below {limit:g}" if self._is_rise else f"{limit:g}"
        if monitor.reason == "settled":
            return f"{self._hits} do not settle {settle}, {self._others}{about}"
        if monitor.limits is not None:
            return open_reason(lower, upper, limit, monitor.n, least, more, self._of)
        return f"the bounds{self._of} {lower:.3f} to {upper:.3f} do not settle {settle}{about}"

    @property
    def _hits(self) -> str:
        monitor = self._monitor
        if self._is_rate:
            return f"{count(monitor.k, self._hit)} in {count(monitor.n, 'verdict')}"
        return f"{count(monitor.only_here, self._hit)} only here and {monitor.only_there} only there, of {monitor.n},"
