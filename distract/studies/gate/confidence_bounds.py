"""Bounds of a rate that hold whenever a live gate stops: the thresholds that its own test would not have rejected.

It knows nothing of verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from distract.studies.gate.boundary import end_probability
from distract.studies.gate.mixture import Bets, Direction, log_mean
from distract.studies.gate.monitor import Monitor

STEPS = 24
"""Halvings: thresholds may be as small as a millionth."""


def lower_bound(monitor: Monitor, alpha: float) -> float:
    """One-sided lower bound of the tested mean over prompts, 0 to 1, where invalid verdicts count for the judge."""
    return _find_bound(lambda rate: _is_rejected(monitor, rate, "above", alpha))


def upper_bound(monitor: Monitor, alpha: float) -> float:
    """One-sided upper bound, as ``lower``, where invalid verdicts count against the judge."""
    return 1 - _find_bound(lambda rest: _is_rejected(monitor, 1 - rest, "below", alpha))


def evidence(means: Sequence[float], rate: float, side: Direction) -> float:
    """Log of the mean stake of bets that the mean over prompts lies on one side of a rate."""
    return log_mean(Bets(rate, side).gains(np.array(means).reshape(-1, 1) - rate).sum(axis=0))


def _find_bound(rejected: Callable[[float], bool]) -> float:
    """The largest number from 0 to 1 that is rejected with all below it, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _is_rejected(monitor: Monitor, rate: float, side: Direction, alpha: float) -> bool:
    """Whether the test of this rate, at this level, would have ended against it."""
    limits = monitor.limits
    if limits is None or limits.inexact or monitor.reason not in ("end", "settled"):
        return _evidence(monitor, rate, side) >= math.log(1 / alpha)
    n = monitor.looked
    # Where no more was asked because none could matter, what was not heard counts for the other side.
    if side == "above":
        return end_probability(rate, limits.fail_at, n, round(monitor.low)) <= alpha
    zeros = monitor.prompt_count - round(monitor.high)
    return end_probability(1 - rate, np.arange(limits.most + 1) - limits.pass_at, n, zeros) <= alpha


def _evidence(monitor: Monitor, rate: float, side: Direction) -> float:
    """The evidence against a rate: log of the mean stake."""
    return evidence(monitor.lows if side == "above" else monitor.highs, rate, side)
