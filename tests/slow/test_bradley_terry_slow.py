"""Test Bradley-Terry on hard matches, draws and many matches."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from distract.leaderboards.bradley_terry import rate_bradley_terry, redraw
from hypothesis import given
from hypothesis import strategies as st
from test_bradley_terry import LOGIT, Played, game_lists, matches_of, rate_naively

from distract.stats.ratings.draws import draw
from distract.stats.ratings.matches import Matches

HARD: dict[str, tuple[Played, set[str]]] = {
    "two models, one match": ([("a", "b", "a", "p")], {"a", "b"}),
    "a million wins": ([("a", "b", "a", "p")] * 1_000_000, {"a", "b"}),
    "a chain of winners": ([(f"m{i}", f"m{i + 1}", "a", "p") for i in range(9)] * 30, {"m0", "m9"}),
    "a cycle": ([("a", "b", "a", "p"), ("b", "c", "a", "p"), ("c", "a", "a", "p")] * 5, set()),
    "two groups": ([("a", "b", "a", "p"), ("b", "a", "a", "p"), ("c", "d", "tie", "p")], set()),
    "one that lost all": ([("a", "b", "tie", "p"), ("a", "c", "a", "q"), ("b", "c", "a", "p")], {"c"}),
    "one tie among a thousand wins": ([("a", "b", "a", "p")] * 1000 + [("a", "b", "tie", "q")], set()),
}


@pytest.mark.parametrize(("rows", "resting"), HARD.values(), ids=HARD)
def test_hard_matches_have_finite_maximum_ratings(rows: Played, resting: set[str]) -> None:
    matches = matches_of(rows)
    for sd in (30.0, 1000.0, 20_000.0):
        ratings = rate_bradley_terry(matches, prior=sd)
        theta = (ratings.rating - 1000) / LOGIT
        # At the maximum, the wins of a model equal its expected wins less the pull of the prior.
        slope = -((LOGIT / sd) ** 2) * theta
        gap = theta[matches.a] - theta[matches.b]
        residual = np.array([1.0, 0.0, 0.5])[matches.outcome] - 1 / (1 + np.exp(-gap))
        np.add.at(slope, matches.a, residual)
        np.add.at(slope, matches.b, -residual)
        assert slope == pytest.approx(np.zeros(len(theta)), abs=1e-9 * max(1, len(rows)))
        assert ratings.covariance is not None
        assert np.isfinite(ratings.covariance).all()
        assert {note.split(" ")[0] for note in ratings.notes} == resting


def naive_redraw(rows: Played, models: Sequence[str], weights: dict[str, int], mean: Any) -> Any:
    again = [row for row in rows for _ in range(weights[row[3]])]
    theta = rate_naively(again, models, mean=mean)
    return 1000 + LOGIT * (theta - theta.mean())


@given(game_lists(), st.integers(0, 5))
def test_draw_replays_each_prompt_as_often_as_drawn(rows: Played, seed: int) -> None:
    matches = matches_of(rows)
    draws = draw(seed, 8, matches.clusters)
    assert draws.weights is not None
    replicates = redraw(matches, draws)
    normal = draws.normal(matches.models) * 1000 / LOGIT
    for row, weight, mean in zip(replicates, draws.weights, normal, strict=True):
        expected = naive_redraw(rows, matches.models, dict(zip(matches.prompts, weight.tolist(), strict=True)), mean)
        assert row == pytest.approx(expected, abs=1e-3)


def test_memory_does_not_grow_with_matches() -> None:
    def peak(count: int) -> int:
        random = np.random.default_rng(0)
        a = random.integers(20, size=count, dtype=np.int32)
        outcome = random.integers(3, size=count).astype(np.int8)
        cluster = random.integers(500, size=count, dtype=np.int32)
        names = tuple(map(str, range(20)))
        matches = Matches(names, a, (a + 1 + outcome) % 20, outcome, cluster, tuple(map(str, range(500))))
        draws = draw(0, 20, 500)
        tracemalloc.start()
        rate_bradley_terry(matches)
        redraw(matches, draws)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(1_500_000) < 1.1 * peak(300_000)
