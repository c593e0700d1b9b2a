"""An anytime-valid test of a rate against a threshold: a mixture of bets, summed in log space.

A bet on the rate p multiplies its stake by ``1 + lambda * z`` for each value ``z = x - threshold``, with ``lambda = (p
- threshold) / (threshold * (1 - threshold))``: for outcomes of 0 and 1 that is the likelihood ratio of p against the
threshold. Under any rate on the wrong side of the threshold no bet gains on average, so the mean of all stakes ever
reaches ``1 / alpha`` with a chance of at most ``alpha`` (Ville, 1939; Howard, Ramdas, McAuliffe and Sekhon, 2021;
Waudby-Smith and Ramdas, 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

Floats = NDArray[np.float64]
Direction = Literal["above", "below"]
"""Side of the threshold that the bets are on."""

BETS = 200


def bet_rates(threshold: float, side: Direction) -> Floats:
    """Return the rates to bet on, with equal stakes; shape (BETS,), increasing.

    They are quantiles of a Beta distribution cut off at the threshold and placed relative to it, so that rates a half
    above and well below are detected soon. Its parameters need few judge calls at true rates of .02 to .35 and a
    threshold of .10 (``benchmarks/gate_errors.py``).
    """
    if side == "above":
        a, centre = 3.0, min(2.4 * threshold, (1 + threshold) / 2)
        low, high = threshold, 1.0
    else:
        a, centre = 0.7, threshold / 3
        low, high = 0.0, threshold
    # With a parameter below 1, nearly all mass would be at the end.
    b = max(1.0, a * (1 - centre) / centre)
    ends = betainc(a, b, low), betainc(a, b, high)
    shares = (np.arange(BETS) + 0.5) / BETS
    rates: Floats = betaincinv(a, b, ends[0] + shares * (ends[1] - ends[0]))
    # In a tail with hardly any mass, quantiles meet the ends, where a bet stakes nothing or everything.
    edge = 1e-9 * min(threshold, 1 - threshold)
    return np.clip(rates, low + edge, high - edge)


class Bets:
    """The stakes of all bets on one side of a threshold."""

    def __init__(self, threshold: float, side: Direction) -> None:
        self._lambdas = (bet_rates(threshold, side) - threshold) / (threshold * (1 - threshold))
        self.threshold = threshold
        self.logs = np.zeros(BETS)

    def gains(self, z: float | Floats) -> Floats:
        """Return the log gains from one value, shape (BETS,), or from n of them, shape (n, BETS)."""
        gains: Floats = np.log1p(self._lambdas * z)
        return gains

    def add(self, z: float) -> None:
        """Settle the bets on one value."""
        self.logs += self.gains(z)

    @property
    def evidence(self) -> float:
        """Log of the mean stake, which may be far below what the exponential of a float can hold."""
        return log_mean(self.logs)


def log_mean(logs: Floats) -> float:
    """Return the log of the mean of numbers given by their logs."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).mean()))


def outcome_gains(threshold: float, side: Direction) -> tuple[Floats, Floats]:
    """Return the gains from a 1 and from a 0: k of n give ``log_mean(k * ones + (n - k) * zeros)``."""
    bets = Bets(threshold, side)
    return bets.gains(1 - threshold), bets.gains(-threshold)


def log_evidence(means: Sequence[float], rate: float, side: Direction) -> float:
    """Return the log of the mean stake of bets that a mean over prompts is on one side of a rate."""
    return log_mean(Bets(rate, side).gains(np.array(means).reshape(-1, 1) - rate).sum(axis=0))
