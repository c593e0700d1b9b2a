"""Test how often a gate on dependent pairs passes at the threshold."""

from __future__ import annotations

import random

import pytest

from distract.stats.intervals import upper_bound
from distract.studies.gate.dependence import clustered_hits_reason, few_prompts_reason, shrink_counts
from distract.studies.gate.limits import Limits

UNEVEN = (1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 9, 10, 12, 14, 17, 22, 45) * 3


@pytest.mark.parametrize(
    ("sizes", "threshold"),
    [((45,) * 24, 0.05), ((45,) * 16, 0.20), ((4,) * 50, 0.05), ((4,) * 50, 0.20), ((20,) * 30, 0.10), (UNEVEN, 0.05)],
)
def test_dependent_pairs_pass_no_more_often_than_allowed(sizes: tuple[int, ...], threshold: float) -> None:
    """The rate lies at the threshold; prompts either have mixed outcomes or mostly flip as a whole."""
    rng, trials, limits = random.Random(3), 200, Limits()
    a, b = threshold * 7 / 3, (1 - threshold) * 7 / 3  # their correlation is .3
    for is_whole, most in ((False, 0.05), (True, 0.065)):
        wrong = 0
        for _ in range(trials):
            values, clusters = list[float](), list[int]()
            for prompt, pairs in enumerate(sizes):
                share = rng.betavariate(a, b)
                if is_whole:
                    share = float(rng.random() < threshold) if rng.random() < 0.7 else threshold
                values += [float(rng.random() < share) for _ in range(pairs)]
                clusters += [prompt] * pairs
            is_below = upper_bound(*shrink_counts(values, clusters, limits)) < threshold
            is_held_up = few_prompts_reason(len(sizes), threshold, limits) or clustered_hits_reason(
                values, clusters, threshold, limits
            )
            wrong += is_below and not is_held_up
        assert wrong / trials <= most
