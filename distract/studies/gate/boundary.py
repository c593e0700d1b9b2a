"""Compute when a live gate on independent outcomes of 0 and 1 may stop, and its decision when the data end.

Until then the mixture of bets decides. At the end, the alpha that the bets have left is spent on the exact distribution
of the count, over all paths that reach the end undecided: early stops and end together decide wrongly with a chance of
at most alpha.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from distract.studies.gate.mixture import Direction, Floats, log_mean, outcome_gains

Ints = NDArray[np.int64]

LONGEST = 5000
"""Maximum number of outcomes for the exact end; more take seconds to compute, so the bets alone decide."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Limits on the number of 1s among n outcomes: arrays indexed by n from 0 to ``most``, none of them decreasing.

    ``fail_at`` is the smallest count that shows a rate above the threshold (n + 1 or more: none does), ``pass_at`` the
    largest that shows one below (-1: none does). ``fail_end`` and ``pass_end`` apply where the data end at n; if
    ``inexact``, they are no sharper than the bets.
    """

    fail_at: Ints
    pass_at: Ints
    fail_end: Ints
    pass_end: Ints
    inexact: bool

    @property
    def most(self) -> int:
        """The largest n covered."""
        return len(self.fail_at) - 1


@lru_cache(maxsize=64)
def boundary(threshold: float, alpha_fail: float, alpha_pass: float, most: int) -> Boundary:
    """Compute the limits of one check."""
    fail_at = _evidence_limits(threshold, "above", alpha_fail, most)
    pass_at = np.arange(most + 1) - _evidence_limits(threshold, "below", alpha_pass, most)
    fail_end, pass_end = fail_at, pass_at
    if most <= LONGEST:
        fail_end = np.minimum(fail_at, np.maximum.accumulate(_end_limits(threshold, fail_at, alpha_fail)))
        zeros = _end_limits(1 - threshold, np.arange(most + 1) - pass_at, alpha_pass)
        # Take the largest count that no later limit undercuts, so that no later outcome undoes a certain pass.
        late = np.minimum.accumulate((np.arange(most + 1) - zeros)[::-1])[::-1]
        pass_end = np.maximum(pass_at, late)
    return Boundary(fail_at, pass_at, fail_end, pass_end, most > LONGEST)


def end_probability(threshold: float, fail_at: Ints, n: int, k: int) -> float:
    """Return the chance, at the threshold, of a decision before n or of k or more 1s at n."""
    ((decided, left),) = deque(_walk_counts(threshold, fail_at[: n + 1]), maxlen=1)
    return min(1.0, decided + float(left[k:].sum()))


def _evidence_limits(threshold: float, side: Direction, alpha: float, most: int) -> Ints:
    """Return, by n, the smallest number of 1s (``below``: of 0s) that is enough evidence."""
    ones, zeros = outcome_gains(threshold, side)
    gains, losses = (ones, zeros) if side == "above" else (zeros, ones)
    needed, hits, limits = math.log(1 / alpha), 0, list[int]()
    for n in range(most + 1):
        while hits <= n and log_mean(hits * gains + (n - hits) * losses) < needed:
            hits += 1
        # Start the next n here: one more outcome of the other kind never lowers the limit.
        limits.append(hits)
    return np.array(limits, dtype=np.int64)


def _end_limits(rate: float, at: Ints, alpha: float) -> Ints:
    """Return, by n, the smallest number of hits that decides if the data end there."""
    return np.array([_smallest_count(decided, left, alpha) for decided, left in _walk_counts(rate, at)], dtype=np.int64)


def _smallest_count(decided: float, left: Floats, alpha: float) -> int:
    counts = np.flatnonzero(decided + np.cumsum(left[::-1])[::-1] <= alpha)
    return int(counts[0]) if len(counts) else len(left)


def _walk_counts(rate: float, at: Ints) -> Iterator[tuple[float, Floats]]:
    """Yield, for each n, the chance of a decision so far and of each count of hits without one."""
    decided, left = 0.0, np.ones(1)
    for n, limit in enumerate(at):
        left = extend_chances(left, rate) if n else left
        decided += float(left[limit:].sum())
        left = left[:limit]
        yield decided, left


def extend_chances(chances: Floats, rate: float) -> Floats:
    """Return the chance of each count after one more outcome, which is 1 at that rate."""
    extended = np.append(chances * (1 - rate), 0.0)
    extended[1:] += chances * rate
    return extended
