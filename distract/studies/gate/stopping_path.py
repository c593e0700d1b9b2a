"""How a live gate on independent outcomes goes at a flip rate: exact chances, step by step, by the count of flips.

It follows the rule of ``monitor`` for one outcome of 0 or 1 a prompt, all of them eligible, under the limits of
``boundary``. It knows no data and simulates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distract.studies.gate.boundary import Boundary, Ints, extend_chances
from distract.studies.gate.mixture import Floats


@dataclass(frozen=True, slots=True)
class StoppingPath:
    """What a live gate does at one true rate.

    Attributes:
        cap: eligible comparisons at most.
        passed: the chance to pass.
        failed: the chance to fail.
        inconclusive: the chance of neither.
        mean: eligible comparisons that it takes on average.
        median: the number that suffices half the time.
    """

    cap: int
    passed: float
    failed: float
    inconclusive: float
    mean: float
    median: int


def compute_path(limits: Boundary, rate: float) -> StoppingPath:
    """How a gate goes whose set ends where the limits do."""
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
        # Neither can be reached any more by what is left.
        neither = (k > passing) & (k + left < fail) & ~fails & ~passes
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        inconclusive += float(going[neither].sum())
        going = np.where(fails | passes | neither, 0.0, going)
        if not median and float(going.sum()) <= 0.5:
            median = n
    return StoppingPath(cap, passed, failed, inconclusive, mean, median)


def decision_chances(limits: Boundary, rate: float) -> tuple[Floats, Floats]:
    """The chance to pass and the chance to fail by how many comparisons there are, shapes (most + 1,).

    A set that ends earlier has the limits of a longer one, so that one way through it serves for all.
    """
    found = [
        (passed + float(going[k <= passing].sum()), failed + float(going[k >= failing].sum()))
        for (passed, failed, going, k), passing, failing in zip(
            _walk_undecided(limits, rate), limits.pass_end, limits.fail_end, strict=True
        )
    ]
    passes, fails = np.array(found).T
    return passes, fails


def _walk_undecided(limits: Boundary, rate: float) -> Iterator[tuple[float, float, Floats, Ints]]:
    """By n: passed and failed by evidence until then, the chance of each count without, and those counts."""
    passed = failed = 0.0
    going = np.ones(1)
    for n in range(limits.most + 1):
        going = extend_chances(going, rate) if n else going
        k = np.arange(n + 1)
        fails, passes = k >= limits.fail_at[n], k <= limits.pass_at[n]
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        going = np.where(fails | passes, 0.0, going)
        yield passed, failed, going, k
