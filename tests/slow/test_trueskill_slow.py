"""Test the exact error function of TrueSkill against the library."""

from __future__ import annotations

import pytest
from test_trueskill import EXACT, ours, rate_with_library, simulate_matches, table


def test_exact_error_function_agrees_with_the_library() -> None:
    played = simulate_matches(6, 1689)
    ratings = ours.rate(table(played), order="file")
    share = sum(outcome == "tie" for _, _, outcome in played) / len(played)
    assert ratings.parameters["draw_probability"] == share
    assert ratings.notes == (f"draw probability {share:.3f}: the share of ties among these matches",)
    expected = rate_with_library(played, ratings.models, backend=EXACT, draw_probability=share)
    assert ratings.rating == pytest.approx([mu for mu, _ in expected], abs=1e-11)
    assert ratings.sigma == pytest.approx([sigma for _, sigma in expected], abs=1e-11)
