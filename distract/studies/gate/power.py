"""Exact chances of a gate's decisions at a true flip rate, without simulation.

Power is not monotonic in the number of trials, because a limit is a whole number: one number may reach a power that a
larger one misses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from distract.studies.gate.boundary import LONGEST, Boundary, Ints, extend_chances
from distract.studies.gate.mixture import Floats


@dataclass(frozen=True, slots=True)
class TailTest:
    """The exact (Clopper-Pearson) test that a rate is below a threshold: counts up to a limit show it.

    To test that a rate is above one, count the other outcome: ``TailTest(1 - threshold, level)`` at 1 - rate.
    """

    threshold: float
    level: float

    def limit(self, n: Ints) -> Ints:
        """Return the largest count after n trials whose chance at the threshold is below the level; -1 for none."""
        low, high = np.full_like(n, -1), n.copy()
        while np.any(high - low > 1):
            middle = (low + high) // 2
            rare = binomial_cdf(middle, n, self.threshold) < self.level
            low, high = np.where(rare, middle, low), np.where(rare, high, middle)
        return low

    def power(self, n: Ints, rate: float) -> Floats:
        """Return the chance that the test shows it at a true rate."""
        return binomial_cdf(self.limit(n), n, rate)

    def least(self, rate: float, power: float) -> int | None:
        """Find the number of trials from which on every number reaches the power; None above ``LONGEST``."""
        # Look beyond the largest answer: the power may drop below the target again.
        short = np.flatnonzero(self.power(np.arange(1, 2 * LONGEST), rate) < power)
        least = int(short[-1]) + 2 if len(short) else 1
        return least if least <= LONGEST else None


def binomial_cdf(k: Ints, n: Ints, rate: float) -> NDArray[np.float64]:
    """Return the chance of at most k successes in n independent trials, for arrays of one shape; n is at least 1."""
    inside = np.clip(k, 0, n - 1)
    chances: Floats = np.where(k < 0, 0.0, np.where(k >= n, 1.0, betainc(n - inside, inside + 1, 1 - rate)))
    return chances


@dataclass(frozen=True, slots=True)
class StoppingPath:
    """The course of a live gate with at most ``cap`` eligible comparisons at one true rate.

    ``passed``, ``failed`` and ``inconclusive`` are chances; ``mean`` and ``median`` count comparisons until it stops.
    """

    cap: int
    passed: float
    failed: float
    inconclusive: float
    mean: float
    median: int


def compute_path(limits: Boundary, rate: float) -> StoppingPath:
    """Follow a live gate, one eligible outcome a prompt, whose data end where the limits do."""
    cap = limits.most
    fail, passing = int(limits.fail_end[cap]), int(limits.pass_end[cap])
    passed = failed = inconclusive = mean = 0.0
    median, going = 0, np.ones(1)
    for n in range(1, cap + 1):
        mean += float(going.sum())
        going = extend_chances(going, rate)
        k, left = np.arange(n + 1), cap - n
        fails = k >= min(int(limits.fail_at[n]), fail)
        passes = k <= max(int(limits.pass_at[n]), passing - left)
        # The remaining outcomes can reach neither limit.
        neither = (k > passing) & (k + left < fail) & ~fails & ~passes
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        inconclusive += float(going[neither].sum())
        going = np.where(fails | passes | neither, 0.0, going)
        if not median and float(going.sum()) <= 0.5:
            median = n
    return StoppingPath(cap, passed, failed, inconclusive, mean, median)


def decision_chances(limits: Boundary, rate: float) -> tuple[Floats, Floats]:
    """Return the chances to pass and to fail for data of every size from 0 to ``most``.

    Smaller data have the same limits as larger, so one walk serves all sizes.
    """
    passes, fails = np.array(list(_walk_sizes(limits, rate))).T
    return passes, fails


def _walk_sizes(limits: Boundary, rate: float) -> Iterator[tuple[float, float]]:
    passed = failed = 0.0
    going = np.ones(1)
    for n in range(limits.most + 1):
        going = extend_chances(going, rate) if n else going
        k = np.arange(n + 1)
        fails, passes = k >= limits.fail_at[n], k <= limits.pass_at[n]
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        going = np.where(fails | passes, 0.0, going)
        at_end = going[k <= limits.pass_end[n]], going[k >= limits.fail_end[n]]
        yield passed + float(at_end[0].sum()), failed + float(at_end[1].sum())
