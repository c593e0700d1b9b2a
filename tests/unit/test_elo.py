"""Test Elo, and the orders it shares with TrueSkill, against evalica, loops over names, and invariants."""

import importlib
from collections import defaultdict
from collections.abc import Sequence
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

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings import draws
from distract.stats.ratings.draws import Draws, draw
from distract.stats.ratings.matches import OUTCOMES, Matches, encode

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


LETTERS = ("gpt-4", "a, b", 'say "hi"', "🦙", "<b>bold</b>", "tie")

played = st.lists(
    st.tuples(
        st.permutations(LETTERS).map(lambda names: names[:2]),
        st.sampled_from(sorted(OUTCOMES)),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=20,
)

Played = Sequence[tuple[Sequence[str], str, int]]


@given(played)
def test_matches_round_trip(rows: Played) -> None:
    a, b = [pair[0] for pair, _, _ in rows], [pair[1] for pair, _, _ in rows]
    outcomes, prompts = [outcome for _, outcome, _ in rows], [f"p{prompt}" for *_, prompt in rows]
    matches = encode(iter(a), iter(b), iter(outcomes), iter(prompts), [(i, 2 * i) for i in range(len(rows))], 7)
    assert matches.models == tuple(sorted({*a, *b}))
    assert [matches.models[i] for i in matches.a] == a
    assert [matches.models[i] for i in matches.b] == b
    assert matches.outcome.tolist() == [OUTCOMES[outcome] for outcome in outcomes]
    assert matches.cluster is not None
    assert [matches.prompts[i] for i in matches.cluster] == prompts
    assert matches.prompts == tuple(dict.fromkeys(prompts))
    assert matches.lengths is not None
    assert matches.lengths.tolist() == [[i, 2 * i] for i in range(len(rows))]
    assert (len(matches), matches.clusters, matches.invalid) == (len(rows), len(set(prompts)), 7)
    assert {column.dtype.name for column in (matches.a, matches.b, matches.cluster, matches.lengths)} == {"int32"}
    assert matches.outcome.dtype.name == "int8"


def test_each_match_is_a_cluster_without_prompts() -> None:
    matches = encode(["x", "y", "x"], ["y", "x", "y"], ["a", "tie", "b"])
    assert matches.cluster is None
    assert (matches.prompts, matches.clusters, matches.lengths, matches.invalid) == ((), 3, None, 0)


def test_match_may_be_played_again() -> None:
    assert len(encode(["x", "x"], ["y", "y"], ["a", "a"], ["p", "p"])) == 2


@each(
    "arguments, message",
    (([], [], []), "no matches to rate"),
    (([], [], [], None, None, 3), "no matches to rate (3 comparisons are invalid)"),
    ((["x"], ["y"], ["A"]), "unknown outcome 'A'; expected a, b or tie"),
    ((["x"], ["y"], [""]), "unknown outcome ''; expected a, b or tie"),
    ((["x", "y"], ["y", "y"], ["a", "a"]), "match 2: 'y' plays itself; a match needs two models"),
    ((["x"], ["y", "z"], ["a"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a", "b"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a"], ["p", "q"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a"], ["p"], []), "columns of matches differ in length"),
)
def test_invalid_matches_are_refused(arguments: tuple[list[str], ...], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        encode(*arguments)  # type: ignore[arg-type]
    assert str(raised.value) == message


@each("names", ("x", "y"), ("y", "x"))
def test_numbers_follow_names_not_match_order(names: tuple[str, str]) -> None:
    assert encode([names[0]], [names[1]], ["a"]).a.tolist() == [sorted(names).index(names[0])]


@given(st.integers(0, 9), st.integers(2, 20), st.integers(1, 40))
def test_every_draw_has_as_many_prompts_as_the_data(seed: int, count: int, clusters: int) -> None:
    weights = draw(seed, count, clusters).weights
    assert weights is not None
    assert weights.shape == (count, clusters)
    assert (weights.sum(axis=1) == clusters).all()
    assert np.array_equal(weights, draw(seed, count, clusters).weights)  # type: ignore[arg-type]


def test_prompt_draws_have_bootstrap_moments() -> None:
    weights = draw(0, 4000, 50).weights
    assert weights is not None
    assert weights.mean() == 1
    assert weights.var() == pytest.approx(1 - 1 / 50, rel=0.02)
    covariance = np.cov(weights[:, 0], weights[:, 1])[0, 1]
    assert covariance == pytest.approx(-1 / 50, abs=0.06)


def test_more_draws_begin_with_the_same_ones() -> None:
    few, many = draw(3, 5, 7).weights, draw(3, 9, 7).weights
    assert few is not None
    assert many is not None
    assert np.array_equal(few, many[:5])


def test_seeds_give_different_draws() -> None:
    one, other = draw(0, 5, 30).weights, draw(1, 5, 30).weights
    assert one is not None
    assert other is not None
    assert not np.array_equal(one, other)


def test_no_table_where_none_is_needed_or_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draw(0, 10, 10, table=False).weights is None
    monkeypatch.setattr(draws, "MAX_WEIGHTS", 99)
    assert draw(0, 10, 10).weights is None
    assert draw(0, 9, 11).weights is not None


def test_normal_numbers_belong_to_a_name() -> None:
    drawn = draw(0, 2000, 1)
    both, one = drawn.normal(["x", "🦙"]), drawn.normal(["🦙"])
    assert both.shape == (2000, 2)
    assert np.array_equal(both[:, 1:], one)
    assert abs((both[:, 0] * both[:, 1]).mean()) < 0.1
    assert both.std() == pytest.approx(1, rel=0.05)
    assert not np.array_equal(one, draw(1, 2000, 1).normal(["🦙"]))


def test_generator_belongs_to_a_seed_and_a_purpose() -> None:
    drawn = draw(0, 2, 1)
    first = drawn.generator("cells").random(4)
    assert np.array_equal(first, drawn.generator("cells").random(4))
    assert not np.array_equal(first, drawn.generator("order").random(4))
    assert not np.array_equal(first, draw(1, 2, 1).generator("cells").random(4))


win_rate = importlib.import_module("distract.leaderboards.win_rate")
PLAYERS = ("a, the first", 'b "quoted"', "c [bold]", "d 🦙")
WORTH = {"a": 1.0, "b": 0.0, "tie": 0.5}
Game = tuple[str, str, str, str]

PLAYED = st.lists(
    st.tuples(st.permutations(PLAYERS), st.sampled_from(tuple(WORTH)), st.sampled_from("pqrst")).map(
        lambda one: (*one[0][:2], one[1], one[2])
    ),
    min_size=1,
    max_size=30,
)


def tabulate(played: list[Game], *, prompts: bool = True) -> Matches:
    a, b, outcomes, clusters = zip(*played, strict=True)
    return encode(a, b, outcomes, clusters if prompts else None)


def win_naively(played: list[Game]) -> dict[str, float]:
    points: dict[str, list[float]] = defaultdict(list)
    for a, b, outcome, _ in played:
        points[a].append(WORTH[outcome])
        points[b].append(1 - WORTH[outcome])
    return {name: sum(points[name]) / len(points[name]) for name in sorted(points)}


def simulate_games(matches: int, prompts: int, seed: int = 0) -> list[Game]:
    """Matches of four models with outcomes that depend on the prompt."""
    random = np.random.default_rng(seed)
    mood = random.normal([0.0, 0.4, 0.8, 1.2], 1, (prompts, 4))
    played: list[Game] = []
    for at in range(matches):
        a, b = random.choice(4, 2, replace=False)
        gap = mood[at % prompts, a] - mood[at % prompts, b] + random.normal(0, 1)
        played.append(
            (
                PLAYERS[a],
                PLAYERS[b],
                "tie" if abs(gap) < 0.2 else "a" if gap > 0 else "b",
                f"p{at % prompts}",
            )
        )
    return played


@given(PLAYED)
def test_win_rate_is_the_share_of_points_with_prompt_covariance(played: list[Game]) -> None:
    ratings, share = win_rate.rate(tabulate(played)), win_naively(played)
    assert (ratings.models, ratings.rating) == (tuple(share), pytest.approx(list(share.values()), abs=1e-12))
    influence: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(share)))
    often = {name: sum(name in match[:2] for match in played) for name in share}
    for a, b, outcome, prompt in played:
        for name, worth in ((a, WORTH[outcome]), (b, 1 - WORTH[outcome])):
            influence[prompt][ratings.models.index(name)] += (worth - share[name]) / often[name]
    expected = sum(np.outer(one, one) for one in influence.values())
    assert ratings.covariance == pytest.approx(expected, abs=1e-12)


@given(PLAYED)
def test_each_game_is_a_cluster_without_prompts(played: list[Game]) -> None:
    alone = [(a, b, outcome, f"p{at}") for at, (a, b, outcome, _) in enumerate(played)]
    ratings = win_rate.rate(tabulate(played, prompts=False))
    assert ratings.covariance == pytest.approx(win_rate.rate(tabulate(alone)).covariance, abs=1e-12)


@given(PLAYED)
def test_sides_order_and_names_do_not_matter(played: list[Game]) -> None:
    ratings = win_rate.rate(tabulate(played))
    turned = [(b, a, {"a": "b", "b": "a", "tie": "tie"}[outcome], prompt) for a, b, outcome, prompt in played[::-1]]
    other = win_rate.rate(tabulate(turned))
    assert other.rating == pytest.approx(ratings.rating, abs=1e-12)
    assert other.covariance == pytest.approx(ratings.covariance, abs=1e-12)
    renamed = {name: f"{9 - at}" for at, name in enumerate(PLAYERS)}
    again = win_rate.rate(tabulate([(renamed[a], renamed[b], outcome, prompt) for a, b, outcome, prompt in played]))
    by = dict(zip(again.models, again.rating, strict=True))
    assert ratings.rating == pytest.approx([by[renamed[name]] for name in ratings.models], abs=1e-12)


def test_ties_alone_give_equal_certain_rates() -> None:
    ratings = win_rate.rate(tabulate([(PLAYERS[0], PLAYERS[at], "tie", "p") for at in (1, 2, 3)]))
    assert ratings.rating.tolist() == [0.5] * 4
    assert not ratings.covariance.any()


def test_doubled_matches_narrow_the_interval_by_root_two() -> None:
    played = simulate_games(200, 40)
    once, twice = (win_rate.rate(tabulate(matches, prompts=False)) for matches in (played, played * 2))
    assert twice.rating == pytest.approx(once.rating)
    assert 2 * twice.covariance == pytest.approx(once.covariance)


@given(PLAYED, st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=4))
def test_draw_replays_matches(played: list[Game], rows: list[list[int]]) -> None:
    matches = tabulate(played)
    drawn = np.array(rows, np.uint8)[:, : matches.clusters]
    replicates = win_rate.redraw(matches, Draws(0, len(rows), drawn))
    own = win_naively(played)
    for row, shares in zip(drawn.tolist(), replicates, strict=True):
        times = dict(zip(matches.prompts, row, strict=True))
        again = win_naively([match for match in played for _ in range(times[match[3]])])
        assert shares == pytest.approx([again.get(name, own[name]) for name in matches.models], abs=1e-12)


@each("prompts", True, False)
@each("weighted", True, False)
def test_draws_spread_as_the_covariance_predicts(prompts: bool, weighted: bool) -> None:
    matches = tabulate(simulate_games(600, 120), prompts=prompts)
    drawn = draw(0, 2000, matches.clusters, table=weighted)
    ratings, rated = win_rate.redraw(matches, drawn), win_rate.rate(matches)
    assert np.cov(ratings.T) == pytest.approx(rated.covariance, abs=1e-4)
    assert ratings.mean(axis=0) == pytest.approx(rated.rating, abs=0.002)


@each("prompts", True, False)
def test_small_blocks_change_nothing(prompts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = tabulate(simulate_games(300, 50), prompts=prompts)
    weighted, free = draw(0, 30, matches.clusters), draw(0, 30, matches.clusters, table=False)
    whole = win_rate.rate(matches).covariance, win_rate.redraw(matches, weighted), win_rate.redraw(matches, free)
    monkeypatch.setattr(win_rate, "BLOCK", 200)
    parts = win_rate.rate(matches).covariance, win_rate.redraw(matches, weighted), win_rate.redraw(matches, free)
    for one, other in zip(whole, parts, strict=True):
        assert other == pytest.approx(one, abs=1e-12)


def test_win_rate_is_discovered() -> None:
    system = ratings.get_system("win-rate")
    assert (system.unit, system.default, system.lengths, dict(system.parameters)) == ("share", False, False, {})
    result = system.rate(tabulate([("x", "y", "a", "p"), ("x", "y", "tie", "q")]))
    assert result.rating.tolist() == [0.75, 0.25]
    assert result.covariance is not None
    assert result.covariance.tolist() == [[0.03125, -0.03125], [-0.03125, 0.03125]]
