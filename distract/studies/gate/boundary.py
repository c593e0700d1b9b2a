"""When a live gate on independent outcomes of 0 and 1 may stop, and what it decides when the set ends.

Before the end the mixture of bets decides. At the end, what it has not used up of the allowed chance of a wrong
decision is spent on the exact distribution of the count, over all the ways that lead there without a decision: the
whole way, early stops and end together, is wrong with a chance of at most alpha. It knows nothing of verdicts.
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
"""Above this many outcomes the exact end costs seconds: the bets alone decide then."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Limits on the number of 1s among n outcomes, arrays by n = 0 to ``most``, none of them decreasing.

    Attributes:
        fail_at: the smallest count that shows a rate above the threshold after n; n + 1 or more where none does.
        pass_at: the largest count that shows one below it; -1 where none does.
        fail_end: as ``fail_at``, where n is the end.
        pass_end: as ``pass_at``, where n is the end.
        inexact: whether the end decides by no more than the bets.
    """

    fail_at: Ints
    pass_at: Ints
    fail_end: Ints
    pass_end: Ints
    inexact: bool

    @property
    def most(self) -> int:
        """The longest way that is covered."""
        return len(self.fail_at) - 1


@lru_cache(maxsize=64)
def boundary(threshold: float, alpha_fail: float, alpha_pass: float, most: int) -> Boundary:
    """The limits of one check."""
    fail_at = _evidence_limits(threshold, "above", alpha_fail, most)
    pass_at = np.arange(most + 1) - _evidence_limits(threshold, "below", alpha_pass, most)
    fail_end, pass_end = fail_at, pass_at
    if most <= LONGEST:
        fail_end = np.minimum(fail_at, np.maximum.accumulate(_end_limits(threshold, fail_at, alpha_fail)))
        zeros = _end_limits(1 - threshold, np.arange(most + 1) - pass_at, alpha_pass)
        # The largest count that nothing later takes back, so that a pass that is certain stays one.
        late = np.minimum.accumulate((np.arange(most + 1) - zeros)[::-1])[::-1]
        pass_end = np.maximum(pass_at, late)
    return Boundary(fail_at, pass_at, fail_end, pass_end, most > LONGEST)


def end_probability(threshold: float, fail_at: Ints, n: int, k: int) -> float:
    """The chance, at the threshold, of an end after n with k or more 1s, or of a decision before it (``fail_at``)."""
    ((decided, left),) = deque(_walk_counts(threshold, fail_at[: n + 1]), maxlen=1)
    return min(1.0, decided + float(left[k:].sum()))


def _evidence_limits(threshold: float, side: Direction, alpha: float, most: int) -> Ints:
    """By n, the smallest number of 1s (of 0s ``below``) that is evidence enough."""
    ones, zeros = outcome_gains(threshold, side)
    gains, losses = (ones, zeros) if side == "above" else (zeros, ones)
    wanted, hits, found = math.log(1 / alpha), 0, list[int]()
    for n in range(most + 1):
        while hits <= n and log_mean(hits * gains + (n - hits) * losses) < wanted:
            hits += 1
        # The next n begins there: an outcome more, of the other kind, never makes fewer enough.
        found.append(hits)
    return np.array(found, dtype=np.int64)


def _end_limits(rate: float, at: Ints, alpha: float) -> Ints:
    """By n, the smallest number of hits, each with chance ``rate``, that an end there may decide by."""
    return np.array([_smallest_count(decided, left, alpha) for decided, left in _walk_counts(rate, at)], dtype=np.int64)


def _smallest_count(decided: float, left: Floats, alpha: float) -> int:
    """The smallest number of hits whose chance, or that of more, keeps within what is left of ``alpha``."""
    found = np.flatnonzero(decided + np.cumsum(left[::-1])[::-1] <= alpha)
    return int(found[0]) if len(found) else len(left)


def _walk_counts(rate: float, at: Ints) -> Iterator[tuple[float, Floats]]:
    """By n, the chance to have been decided by then, and of each number of hits without a decision."""
    decided, left = 0.0, np.ones(1)
    for n, limit in enumerate(at):
        left = extend_chances(left, rate) if n else left
        decided += float(left[limit:].sum())
        left = left[:limit]
        yield decided, left


def extend_chances(chances: Floats, rate: float) -> Floats:
    """The chance of each count after one outcome more, which is 1 at that rate."""
    found = np.append(chances * (1 - rate), 0.0)
    found[1:] += chances * rate
    return found
