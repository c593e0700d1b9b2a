"""Test length-controlled Bradley-Terry on many matches: parts, draws and memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from distract.leaderboards.style_control import rate_style_control, redraw
from test_style_control import LOGIT, fit_naively, plant_matches

from distract.stats.ratings.draws import draw


def test_many_matches_are_processed_in_parts() -> None:
    # More matches than are kept as rows, against the same matches counted one by one.
    matches = plant_matches(4, 40_000, 50, 60)
    ratings = rate_style_control(matches)
    theta = fit_naively(matches)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta[:-1] - theta[:-1].mean()), abs=1e-4)


@pytest.mark.parametrize("known", [True, False])
def test_draws_vary_as_the_sandwich_predicts(known: bool) -> None:
    matches = plant_matches(4, 400, 100, 100, known=known)
    ratings = rate_style_control(matches)
    draws = draw(0, 1000, matches.clusters, table=known)
    drawn = redraw(matches, draws)
    assert drawn.shape == (1000, 4)
    assert ratings.covariance is not None
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(np.diag(ratings.covariance)), rel=0.1)
    assert (redraw(matches, draws) == drawn).all()


def test_memory_does_not_grow_with_matches() -> None:
    def peak(count: int) -> int:
        matches = plant_matches(6, 2000, 50, 50)
        assert matches.cluster is not None
        assert matches.lengths is not None
        times = count // 2000
        many = replace(
            matches,
            a=np.tile(matches.a, times),
            b=np.tile(matches.b, times),
            outcome=np.tile(matches.outcome, times),
            cluster=np.tile(matches.cluster, times),
            lengths=np.tile(matches.lengths, (times, 1)),
        )
        tracemalloc.start()
        rate_style_control(many)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # Six times as many matches; the allowance covers the size of the last part.
    assert peak(600_000) < 1.5 * peak(100_000)
