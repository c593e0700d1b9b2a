"""Test boards under other names, orders of matches and the exact error function of TrueSkill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from distract.leaderboards.shuffles import Orders
from hypothesis import given
from hypothesis import strategies as st
from rating_matches import table
from test_boards import POINTS, matches, sample_rows
from test_trueskill import EXACT, ours, rate_with_library, simulate_matches

from distract.studies.leaderboard.boards.board import build_board


@given(st.integers(0, 10**6), st.permutations("abcd"), st.randoms(use_true_random=False))
def test_names_and_match_order_do_not_matter(seed: int, names: Sequence[str], random: Any) -> None:
    rows = sample_rows(seed, 6)
    new = dict(zip("abcd", names, strict=True))
    again = [(new[a], new[b], outcome, prompt) for a, b, outcome, prompt in rows]
    one, other = build_board(matches(rows), POINTS), build_board(matches(again), POINTS)
    by = {s.model: s for s in other.standings}
    for standing in one.standings:
        twin = by[new[standing.model]]
        assert (standing.rating, standing.error) == pytest.approx((twin.rating, twin.error))
        assert (standing.rank, standing.wins, standing.ties) == (twin.rank, twin.wins, twin.ties)
    # Within a prompt, so that prompts keep their numbers and with them their draws.
    random.shuffle(rows)
    rows.sort(key=lambda row: int(row[3][1:]))
    mixed = {s.model: s for s in build_board(matches(rows), POINTS).standings}
    for standing in one.standings:
        assert mixed[standing.model].error == pytest.approx(standing.error)


def test_all_orders_are_equally_likely() -> None:
    order_counts = Counter(tuple(Orders(4, "shuffled", 6000, 0).last(index, 4).tolist()) for index in range(6000))
    assert len(order_counts) == 24
    assert sum((often - 250) ** 2 / 250 for often in order_counts.values()) < 49.7  # chi square, 23 degrees, 0.999


def test_exact_error_function_agrees_with_the_library() -> None:
    played = simulate_matches(6, 1689)
    ratings = ours.rate(table(played), order="file")
    share = sum(outcome == "tie" for _, _, outcome in played) / len(played)
    assert ratings.parameters["draw_probability"] == share
    assert ratings.notes == (f"draw probability {share:.3f}: the share of ties among these matches",)
    expected = rate_with_library(played, ratings.models, backend=EXACT, draw_probability=share)
    assert ratings.rating == pytest.approx([mu for mu, _ in expected], abs=1e-11)
    assert ratings.sigma == pytest.approx([sigma for _, sigma in expected], abs=1e-11)
