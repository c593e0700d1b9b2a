"""The power of exact one-sided tests of a rate, and how many trials it takes.

The power rises and falls with the number of trials like the teeth of a saw, because a limit is a whole number: a number
may have it where a larger one lacks it. It knows nothing of flips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, rel_entr

from distract.studies.gate.boundary import Ints
from distract.studies.gate.mixture import Floats

CHUNK = 256
"""Numbers of trials that are looked at together."""


@dataclass(frozen=True, slots=True)
class TailTest:
    """A test that shows a rate to be below a threshold where the count is small (Clopper and Pearson).

    To show one above it is the same with the other outcome counted: ``Tail(1 - threshold, level)``, and 1 - the rate.

    Attributes:
        threshold: between 0 and 1, both excluded.
        level: the chance of so small a count at the threshold is below it.
    """

    threshold: float
    level: float

    def limit(self, n: Ints) -> Ints:
        """The largest count that shows it after n trials; -1 where none does."""
        low, high = np.full_like(n, -1), n.copy()
        while np.any(high - low > 1):
            middle = (low + high) // 2
            rare = binomial_cdf(middle, n, self.threshold) < self.level
            low, high = np.where(rare, middle, low), np.where(rare, high, middle)
        return low

    def power(self, n: Ints, rate: float) -> Floats:
        """The chance to show it at a true rate, 0 to 1."""
        return binomial_cdf(self.limit(n), n, rate)

    def least(self, rate: float, power: float, most: int) -> int | None:
        """The smallest number of trials from which on every number has the power; None where that is above ``most``."""
        high = 1
        while not self._has_power(high, rate, power):
            if high > 2 * most:
                return None
            high *= 2
        low = high // 2
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._has_power(middle, rate, power) else (middle, high)
        for top in range(high, 1, -CHUNK):
            n = np.arange(max(1, top - CHUNK), top)
            short = np.flatnonzero(self.power(n, rate) < power)
            if len(short):
                found = int(n[short[-1]]) + 1
                return found if found <= most else None
        return 1

    def _has_power(self, n: int, rate: float, power: float) -> bool:
        """Whether it has that power after n trials and any larger number; sometimes False although it has.

        The distribution function of k lies between C(k) and C(k + 1), where C is the normal one of the signed root of
        twice the log likelihood ratio (Zubkov and Serov, 2013). So the limit is at least n x - 2, where C reaches the
        level at the share x, and the power is at least C of that at the true rate; both only grow with n.
        """
        if rate == 0:  # the power is 0 or 1
            return bool(self.limit(np.array([n]))[0] >= 0)
        share = _share_below(self.threshold, float(ndtri(self.level)) ** 2 / (2 * n)) - 2 / n
        return share > rate and 2 * n * _divergence(share, rate) >= float(ndtri(power)) ** 2


def binomial_cdf(k: Ints, n: Ints, rate: float) -> NDArray[np.float64]:
    """The chance of at most k successes in n independent trials, arrays of one shape; n at least 1."""
    inside = np.clip(k, 0, n - 1)
    found: Floats = np.where(k < 0, 0.0, np.where(k >= n, 1.0, betainc(n - inside, inside + 1, 1 - rate)))
    return found


def _divergence(share: float, rate: float) -> float:
    """Kullback and Leibler's, of two coins, in nats."""
    return float(rel_entr(share, rate) + rel_entr(1 - share, 1 - rate))


def _share_below(rate: float, divergence: float) -> float:
    """The share below the rate that diverges so far from it; minus infinity where none does."""
    if -math.log1p(-rate) < divergence:
        return -math.inf
    low, high = 0.0, rate
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _divergence(middle, rate) > divergence else (low, middle)
    return low
