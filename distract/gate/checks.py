"""What one check of a live gate says, from the evidence that its monitor has gathered.

It knows neither rows nor models.
"""

from __future__ import annotations

from distract.gate import bounds
from distract.gate.exact import beside, least_n, missing, needed, open_reason
from distract.gate.limits import Limits, unreadable
from distract.gate.monitor import Monitor
from distract.gate.records import Check, Measure
from distract.report.text import count, p_value


def check(
    protocol: str,
    rule: str | None,
    attack: str,
    monitor: Monitor,
    measure: Measure,
    adjusted: float,
    limits: Limits,
    checks: int,
) -> Check:
    """A check as it stands.

    Args:
        protocol: its name.
        rule: of a scoring protocol.
        attack: its name.
        monitor: its evidence; one without a decision was left when another check had failed.
        measure: what the monitor's values are of.
        adjusted: its p-value after Holm's adjustment.
        limits: what is accepted.
        checks: how many there are.
    """
    limit = None if measure == "flip_rate_rise" else limits.threshold(protocol, attack)
    lower, upper = _bounds(monitor, measure, limits.alpha)
    decision = monitor.decision or "inconclusive"
    # Where another check has failed, Holm's adjustment may leave enough for this one too.
    if decision == "inconclusive" and monitor.p_value is not None and adjusted <= limits.alpha:
        decision = "fail"
    skipped = decision == "inconclusive" and monitor.decision is None
    value = monitor.k / monitor.n if monitor.n else None
    more = None
    if decision == "inconclusive" and not skipped:
        if limit is None:
            more = monitor.test.min_n if monitor.n < monitor.test.min_n else None
        elif monitor.limits is not None and not unreadable(monitor.n, monitor.invalid, limits.max_invalid_rate):
            # As if it were asked anew: about, and never what there is already.
            more = needed(value, limit, limits, checks)
            more = None if more is not None and more <= monitor.n else more
    if skipped:
        reason = "left open, as another check had failed"
    elif decision != monitor.decision and decision == "fail":
        reason = f"p {p_value(adjusted)} after Holm's adjustment, since other checks have failed"
    elif limit is None:
        reason = _rise(monitor, decision, limits)
    else:
        reason = _reason(monitor, decision, limit, lower, upper, limits, more, measure)
    compared = measure != "flip_rate"
    seen = sum(monitor.test.pairs) - monitor.left
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
        excluded=seen - monitor.n - monitor.invalid,
        value=value,
        measure=measure,
        reference=(monitor.k - monitor.only_here + monitor.only_there) / monitor.n if compared and monitor.n else None,
        only_here=monitor.only_here if compared else None,
        only_there=monitor.only_there if compared else None,
        lower=lower,
        upper=upper,
        p_value=monitor.p_value,
        p_adjusted=None if monitor.p_value is None else adjusted,
        needed=more,
        skipped=skipped,
    )


def _bounds(monitor: Monitor, measure: Measure, alpha: float) -> tuple[float | None, float | None]:
    """Of the measure; none of a rise, whose pairs that differ say how many and not of how many."""
    if measure == "flip_rate_rise" or not monitor.tested:
        return None, None
    low, high = bounds.lower(monitor, alpha), bounds.upper(monitor, alpha)
    return (2 * low - 1, 2 * high - 1) if measure == "excess_flip_rate" else (low, high)


def _reason(
    monitor: Monitor,
    decision: str,
    limit: float,
    lower: float | None,
    upper: float | None,
    limits: Limits,
    more: int | None,
    measure: Measure,
) -> str:
    others = f"whatever the other {count(monitor.left, 'pair')} would say"
    if decision == "inconclusive" or lower is None or upper is None:
        if short := missing(monitor.n, monitor.invalid, limits):
            return short
        if monitor.reason == "settled":
            return f"{monitor.k} flips in {monitor.n} verdicts do not settle {limit:g}, {others}{_about(more)}"
        least = least_n(limit, limits.confidence)
        return open_reason(lower or 0.0, 1.0 if upper is None else upper, limit, monitor.n, least, more)
    if monitor.reason == "settled":
        return f"{monitor.k} flips in {monitor.n} verdicts decide it, {others}"
    of = " of the excess" if measure == "excess_flip_rate" else ""
    if decision == "fail":
        return f"lower bound{of} {beside(lower, limit)} is above {limit:g}"
    return f"upper bound{of} {beside(upper, limit)} is below {limit:g}"


def _about(more: int | None) -> str:
    return "" if more is None else f"; at this rate about {more:,} verdicts would"


def _rise(monitor: Monitor, decision: str, limits: Limits) -> str:
    differ = f"{monitor.only_here} flips only now, {monitor.only_there} only before, of {monitor.n}"
    if decision == "fail":
        return f"the flip rate rose beyond chance: {differ}"
    if decision == "pass":
        return f"no rise beyond chance: {differ}"
    if 0 < monitor.n < monitor.test.min_n:
        return f"{monitor.n} comparisons shared with the baseline are too few: at least {monitor.test.min_n} are needed"
    if short := missing(monitor.n, monitor.invalid, limits):
        return short
    if monitor.left:
        return f"ended before it could be told: {differ}"
    return f"comparisons on so few prompts could not have shown a rise: {differ}"
