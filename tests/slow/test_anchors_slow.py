"""Test how often a check of anchors is right, over 100 seeds of judges whose change is known."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "anchors.py"))
SEEDS = 100

# Number of checks, of 100, that must say so. The stated errors are at most 1%; with flicker, more miss a drift.
LEAST = {
    "the same judge": ("unchanged", 99),
    "10% of verdicts turned": ("drifted", 96),
    "another bias: boosters": ("another judge", 98),
    "another bias: first place": ("another judge", 98),
}


@pytest.mark.parametrize(
    ("noise", "missed"), [("probabilities", 0), ("probabilities, 2% flicker", 5), ("words, 2% flicker", 5)]
)
def test_check_tells_three_kinds_of_judges_apart(noise: str, missed: int) -> None:
    counts = BENCHMARK["count_statuses"](noise, LEAST, SEEDS)
    for change, (status, least) in LEAST.items():
        allowed = missed if change.startswith("10%") else 0
        assert counts[change][status] >= least - allowed, counts
