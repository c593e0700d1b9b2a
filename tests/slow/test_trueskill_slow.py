"""TrueSkill against the library of that name, its functions against integrals, scalar code against that of arrays."""

from __future__ import annotations

import pytest
from test_trueskill import EXACT, ours, rate_with_library, simulate_matches, table


def test_exact_error_function_agrees_with_the_library() -> None:
    played = simulate_matches(6, 1689)
    found = ours.rate(table(played), order="file")
    share = sum(outcome == "tie" for _, _, outcome in played) / len(played)
    assert found.parameters["draw_probability"] == share
    assert found.notes == (f"draw probability {share:.3f}: the share of ties among these matches",)
    wanted = rate_with_library(played, found.models, backend=EXACT, draw_probability=share)
    assert found.rating == pytest.approx([mu for mu, _ in wanted], abs=1e-11)
    assert found.sigma == pytest.approx([sigma for _, sigma in wanted], abs=1e-11)
