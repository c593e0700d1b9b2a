"""Test Elo, and the orders it shares with TrueSkill, against evalica, loops over names, and invariants."""

from __future__ import annotations

import importlib
from itertools import permutations
from typing import Any

import evalica
import numpy as np
import pytest
from distract.leaderboards.shuffles import Orders, combine_orders, weights
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from rating_matches import NAMES, Match, played_matches, simulate_matches, table

from distract.stats import ratings
from distract.stats.ratings.draws import Draws, draw

elo = importlib.import_module("distract.leaderboards.elo")
FIELDS = ("k", "base", "initial", "scale", "shuffles", "order", "seed")


def rate_naively(
    played: list[Match], k: float = 4.0, base: float = 10.0, initial: float = 1000.0, scale: float = 400.0
) -> list[float]:
    rating = {name: initial for a, b, _ in played for name in (a, b)}
    for a, b, outcome in played:
        expected = 1 / (1 + base ** ((rating[b] - rating[a]) / scale))
        change = k * ({"a": 1.0, "b": 0.0, "tie": 0.5}[outcome] - expected)
        rating[a] += change
        rating[b] -= change
    return [rating[name] for name in sorted(rating)]


def replay_matches(played: list[Match], places: list[int], times: list[int]) -> list[Match]:
    return [played[place] for place in places for _ in range(times[place])]


@each("k", 4.0, 16.0, 32.0)
def test_single_pass_agrees_with_evalica(k: float) -> None:
    played = simulate_matches(8, 3000)
    winners = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}
    a, b, outcomes = zip(*played, strict=True)
    peer_ratings = evalica.elo(a, b, [winners[one] for one in outcomes], k=k).scores
    ours = elo.rate(table(played), k=k, order="file")
    assert ours.rating == pytest.approx([peer_ratings[name] for name in ours.models], abs=1e-9)


@given(played_matches(25), st.sampled_from([1.0, 32.0, 700.0]), st.integers(0, 9))
def test_ratings_agree_with_a_loop_over_matches(played: list[Match], k: float, seed: int) -> None:
    matches = table(played)
    file = elo.rate(matches, k=k, order="file", base=2.0, initial=5.0, scale=100.0)
    assert file.rating == pytest.approx(rate_naively(played, k, 2.0, 5.0, 100.0), abs=1e-6)
    orders = Orders(len(played), "shuffled", 3, seed)
    each = [rate_naively([played[at] for at in orders.last(index, len(played))], k) for index in range(3)]
    assert elo.rate(matches, k=k, shuffles=3, seed=seed).rating == pytest.approx(np.mean(each, axis=0), abs=1e-6)


@given(played_matches(25))
def test_names_and_sides_do_not_matter_and_the_mean_stays(played: list[Match]) -> None:
    ratings = elo.rate(table(played))
    renamed = {name: f"{len(NAMES) - at}" for at, name in enumerate(NAMES)}
    other = elo.rate(table([(renamed[a], renamed[b], outcome) for a, b, outcome in played]))
    by = dict(zip(other.models, other.rating, strict=True))
    assert ratings.rating == pytest.approx([by[renamed[name]] for name in ratings.models], abs=1e-9)
    turned = [(b, a, {"a": "b", "b": "a", "tie": "tie"}[outcome]) for a, b, outcome in played]
    assert elo.rate(table(turned)).rating.tolist() == ratings.rating.tolist()
    assert ratings.rating.mean() == pytest.approx(1000.0, abs=1e-9)


def test_ties_alone_give_equal_ratings() -> None:
    assert set(elo.rate(table([(a, b, "tie") for a, b in permutations(NAMES, 2)] * 9)).rating) == {1000.0}


@each("order", "shuffled", "file")
def test_only_the_end_of_a_long_order_is_played(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = table(simulate_matches(4, 30_000))
    lengths: list[int] = []
    last = Orders.last

    def counted(self: Orders, index: int, length: int) -> Any:
        lengths.append(length)
        return last(self, index, length)

    monkeypatch.setattr(Orders, "last", counted)
    short = elo.rate(matches, k=32.0, order=order, shuffles=3)
    assert max(lengths) < len(matches) / 2
    monkeypatch.setattr(elo, "_find_tail", lambda game, orders: (orders.matches, game.level))
    near = 2e-6 if order == "file" else elo.CLOSE
    assert short.rating == pytest.approx(elo.rate(matches, k=32.0, order=order, shuffles=3).rating, abs=near)


@each(
    "played, k",
    ([*simulate_matches(3, 5000), ("m00", "rare", "b")], 32.0),  # a model of one match
    (simulate_matches(3, 5000), 0.001),
    (simulate_matches(3, 60), 2000.0),  # throws ratings apart
    (simulate_matches(3, 5000), 1e-320),
)
def test_whole_order_is_played_if_its_beginning_matters(played: list[Match], k: float) -> None:
    assert elo.rate(table(played), k=k, order="file").rating == pytest.approx(rate_naively(played, k), rel=1e-6)


def test_extreme_ratings_stay_finite() -> None:
    played = [("m1", "m2", "a")] * 5000
    low, high = elo.rate(table([(b, a, "b") for a, b, _ in played])).rating[::-1]
    assert high == pytest.approx(2000 - low)
    assert 1400 < high < 2000
    chain = [(f"m{at:03}", f"m{at + 1:03}", "a") for at in range(199)] * 5
    assert np.isfinite(elo.rate(table(chain), k=1e6, shuffles=2).rating).all()


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 5))
def test_end_of_an_order_is_independent_of_the_requested_length(n: int, length: int, seed: int) -> None:
    for order in ("shuffled", "file"):
        orders = Orders(n, order, 2, seed)
        whole = orders.last(1, n).tolist()
        assert sorted(whole) == list(range(n))
        assert orders.last(1, min(length, n)).tolist() == whole[n - min(length, n) :]


def test_orders_depend_on_seed_and_number_only() -> None:
    one = Orders(500, "shuffled", 20, 3)
    assert one.last(7, 500).tolist() == Orders(500, "shuffled", 9, 3).last(7, 500).tolist()
    assert one.last(7, 500).tolist() != Orders(500, "shuffled", 9, 4).last(7, 500).tolist()
    assert one.last(7, 500).tolist() != one.last(8, 500).tolist()


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=2, max_size=4), played_matches(25))
@pytest.mark.parametrize("order", ["shuffled", "file"])
def test_draw_replays_matches_in_their_places(order: str, rows: list[list[int]], played: list[Match]) -> None:
    matches = table(played, [f"p{min(at, at % 3)}" for at in range(len(played))])
    drawn = np.array(rows, np.uint8)[:, : matches.clusters]
    replicates = elo.redraw(matches, Draws(0, len(rows), drawn), k=32.0, order=order, shuffles=2)
    orders = Orders(len(played), order, 2, 0)
    assert matches.cluster is not None
    for row, rating in zip(drawn, replicates, strict=True):
        times = row[matches.cluster].tolist()
        ends = []
        for index in range(orders.count):
            again = replay_matches(played, orders.last(index, len(played)).tolist(), times)
            # Models without a drawn match keep their initial rating.
            start = [(name, other, "tie") for name, other in zip(matches.models, matches.models[1:], strict=False)]
            ends.append(rate_naively(start + again, 32.0))
        assert rating == pytest.approx(np.mean(ends, axis=0), abs=1e-6)


@each("options", {}, {"order": "file"}, {"k": 32.0})
def test_draw_of_every_prompt_once_equals_no_draw(options: dict[str, Any]) -> None:
    matches = table(simulate_matches(4, 3000), [f"p{at // 6}" for at in range(3000)])
    ones = Draws(0, 3, np.ones((3, 500), np.uint8))
    rating = elo.rate(matches, **options).rating
    assert (elo.redraw(matches, ones, **options) == rating).all()


def test_draws_play_only_the_end_of_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = table(simulate_matches(3, 4000), [f"p{at // 8}" for at in range(4000)])
    drawn = draw(0, 6, 500)
    short = elo.redraw(matches, drawn, k=32.0, shuffles=2)
    monkeypatch.setattr(elo._EloGame, "reach", lambda self, _: len(self.cells))
    whole = elo.redraw(matches, drawn, k=32.0, shuffles=2)
    assert short == pytest.approx(whole, abs=elo.NEAR)
    assert (short != whole).any()


def test_prompt_weights_without_a_table_are_poisson() -> None:
    matches = table(simulate_matches(3, 400), [f"p{at // 2}" for at in range(400)])
    drawn = draw(5, 300, 200, table=False)
    row_weights = weights(matches, drawn, "test")
    ahead = np.stack([row_weights(at) for at in range(400)])
    again = weights(matches, drawn, "test")
    assert all((again(at) == ahead[at]).all() for at in (399, 0, 17, 16, 250))
    assert (ahead[:, 0] == 1).all()
    assert (ahead[::2] == ahead[1::2]).all()
    assert len({row.tobytes() for row in ahead}) == 200
    assert ahead[::2, 1:].mean() == pytest.approx(1, abs=0.02)
    assert ahead[::2, 1:].var() == pytest.approx(1, abs=0.03)


def test_draws_with_and_without_a_table_spread_alike() -> None:
    matches = table(simulate_matches(4, 400))
    one = elo.redraw(matches, draw(1, 400, 400), shuffles=4).std(axis=0)
    other = elo.redraw(matches, draw(1, 400, 400, table=False), shuffles=4).std(axis=0)
    assert other == pytest.approx(one, rel=0.2)
    assert (elo.redraw(matches, draw(1, 400, 400, table=False), shuffles=4).std(axis=0) == other).all()


def test_few_orders_spread_like_all() -> None:
    random = np.random.default_rng(0)
    model, draws = np.array([3.0, 1.0])[:, None, None], 20_000
    state = 2 * random.standard_normal((2, 1, 1 + draws)) + model * random.standard_normal((2, 4, 1 + draws))
    ratings = combine_orders(state, Orders(9, "shuffled", 20, 0))
    assert ratings.std(axis=0) == pytest.approx(np.sqrt(4 + model[:, 0, 0] ** 2 / 20), rel=0.03)
    alone = combine_orders(state, Orders(9, "shuffled", 4, 0))
    assert alone == pytest.approx((state[:, :, 1:] - state[:, :, :1]).mean(axis=1).T)


def test_elo_is_discovered_and_records_its_parameters() -> None:
    system = ratings.get_system("elo")
    assert (system.unit, system.default, system.lengths) == ("points", False, False)
    assert tuple(system.parameters) == FIELDS
    result = system.rate(table([("x", "y", "a")]), order="file", shuffles=1)
    assert result.parameters == {**system.parameters, "order": "file", "shuffles": 1}
    assert (result.rating.tolist(), result.models) == ([1002.0, 998.0], ("x", "y"))
