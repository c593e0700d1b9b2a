"""Test that the order of names and matches does not affect boards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_boards import POINTS, matches, sample_rows

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
