"""Test rating systems on hard and many matches, draws, boards under other names, and TrueSkill's error function."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distract.leaderboards import style_control
from distract.leaderboards.bradley_terry import rate_bradley_terry, redraw
from distract.leaderboards.shuffles import Orders
from hypothesis import given
from hypothesis import strategies as st
from rating_matches import simulate_matches, table
from test_boards import POINTS, matches, sample_rows
from test_bradley_terry import LOGIT, Played, game_lists, matches_of, rate_naively
from test_style_control import fit_naively, plant_matches
from test_trueskill import EXACT, ours, rate_with_library

from distract.stats.ratings.draws import draw
from distract.stats.ratings.matches import Matches
from distract.studies.leaderboard.boards.board import build_board

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


def measure_peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_matches() -> None:
    def peak(count: int) -> int:
        random = np.random.default_rng(0)
        a = random.integers(20, size=count, dtype=np.int32)
        outcome = random.integers(3, size=count).astype(np.int8)
        cluster = random.integers(500, size=count, dtype=np.int32)
        names = tuple(map(str, range(20)))
        matches = Matches(names, a, (a + 1 + outcome) % 20, outcome, cluster, tuple(map(str, range(500))))
        draws = draw(0, 20, 500)
        return measure_peak(lambda: (rate_bradley_terry(matches), redraw(matches, draws)))

    assert peak(1_500_000) < 1.1 * peak(300_000)


def test_many_matches_are_processed_in_parts() -> None:
    # More matches than are kept as rows, against the same matches counted one by one.
    matches = plant_matches(4, 40_000, 50, 60)
    ratings = style_control.rate_style_control(matches)
    theta = fit_naively(matches)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta[:-1] - theta[:-1].mean()), abs=1e-4)


@pytest.mark.parametrize("known", [True, False])
def test_draws_vary_as_the_sandwich_predicts(known: bool) -> None:
    matches = plant_matches(4, 400, 100, 100, known=known)
    ratings = style_control.rate_style_control(matches)
    draws = draw(0, 1000, matches.clusters, table=known)
    drawn = style_control.redraw(matches, draws)
    assert drawn.shape == (1000, 4)
    assert ratings.covariance is not None
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(np.diag(ratings.covariance)), rel=0.1)
    assert (style_control.redraw(matches, draws) == drawn).all()


def test_memory_of_style_control_does_not_grow_with_matches() -> None:
    def peak(count: int) -> int:
        matches = plant_matches(6, 2000, 50, 50)
        assert matches.cluster is not None is not matches.lengths
        times = count // 2000
        many = replace(
            matches,
            a=np.tile(matches.a, times),
            b=np.tile(matches.b, times),
            outcome=np.tile(matches.outcome, times),
            cluster=np.tile(matches.cluster, times),
            lengths=np.tile(matches.lengths, (times, 1)),
        )
        return measure_peak(lambda: style_control.rate_style_control(many))

    # Six times as many matches; the allowance covers the size of the last part.
    assert peak(600_000) < 1.5 * peak(100_000)


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
