"""Test Elo, and the orders it shares with TrueSkill, against evalica, loops over names, and invariants."""

import importlib
import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

import evalica
import numpy as np
import pytest
import trueskill as library
from distract.leaderboards.shuffles import Orders, combine_orders, weights
from hypothesis import example, given, settings, strategies as st
from loops import each
from rating_matches import NAMES, Match, played_matches, simulate_matches, table
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings import draws
from distract.stats.ratings.draws import Draws, draw
from distract.stats.ratings.matches import OUTCOMES, Matches, encode

elo, ours, win_rate = (
    importlib.import_module(f"distract.leaderboards.{name}") for name in ("elo", "trueskill", "win_rate")
)
WORTH = {"a": 1.0, "b": 0.0, "tie": 0.5}
FIELDS = ("k", "base", "initial", "scale", "shuffles", "order", "seed")


def rate_naively(
    played: list[Match], k: float = 4.0, base: float = 10.0, initial: float = 1000.0, scale: float = 400.0
) -> list[float]:
    rating = {name: initial for a, b, _ in played for name in (a, b)}
    for a, b, outcome in played:
        expected = 1 / (1 + base ** ((rating[b] - rating[a]) / scale))
        change = k * (WORTH[outcome] - expected)
        rating[a] += change
        rating[b] -= change
    return [rating[name] for name in sorted(rating)]


def density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


EXACT = (ndtr, density, ndtri)
"""The library's `backend`, because its own error function is accurate to 1e-7, which adds up to 1e-6 in ratings."""


def rate_with_library(played: list[Match], models: tuple[str, ...], **options: Any) -> list[tuple[float, float]]:
    environment = library.TrueSkill(**options)
    rating = {name: environment.create_rating() for name in models}
    for a, b, outcome in played:
        winner, loser = (b, a) if outcome == "b" else (a, b)
        new_ratings = library.rate_1vs1(rating[winner], rating[loser], outcome == "tie", env=environment)
        rating[winner], rating[loser] = new_ratings
    return [(rating[name].mu, rating[name].sigma) for name in models]


@each("system", "elo", "trueskill", "win-rate", "bradley-terry")
@given(played_matches(15))
def test_names_and_sides_do_not_matter(system: str, played: list[Match]) -> None:
    renamed, turned = {name: f"{9 - at}" for at, name in enumerate(NAMES)}, {"a": "b", "b": "a", "tie": "tie"}
    rate = ratings.get_system(system).rate
    result, other = rate(table(played)), rate(table([(renamed[b], renamed[a], turned[won]) for a, b, won in played]))
    by = dict(zip(other.models, other.rating, strict=True))
    assert result.rating == pytest.approx([by[renamed[name]] for name in result.models], abs=1e-6)


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


def rate_drawn_elo(played: list[Match], models: tuple[str, ...], _: str) -> list[float]:
    # Models without a drawn match keep their initial rating.
    return rate_naively([*((one, other, "tie") for one, other in pairwise(models)), *played], 32.0)


def rate_drawn_trueskill(played: list[Match], models: tuple[str, ...], order: str) -> list[float]:
    tau = 25 / 300 if order == "file" else 0.0
    return [mu for mu, _ in rate_with_library(played, models, tau=tau, backend=EXACT)]


@each("order", "shuffled", "file")
@each(
    "system, naive, options, centre, near",
    (elo, rate_drawn_elo, {"k": 32.0}, None, 1e-6),
    (ours, rate_drawn_trueskill, {"draw_probability": 0.1}, 25, 1e-8),
)
@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=2, max_size=4), played_matches(25))
def test_draw_replays_matches_in_their_places(
    system: Any, naive: Any, options: Any, centre: float, near: float, order: str, rows: Any, played: list[Match]
) -> None:
    matches = table(played, [f"p{at % 3}" for at in range(len(played))])
    drawn = np.array(rows, np.uint8)[:, : matches.clusters]
    replicates = system.redraw(matches, Draws(0, len(rows), drawn), order=order, shuffles=2, **options)
    orders = Orders(len(played), order, 2, 0)
    for row, rating in zip(drawn, replicates, strict=True):
        times = row[matches.cluster].tolist()
        places = [orders.last(index, len(played)).tolist() for index in range(orders.count)]
        again = [[played[at] for at in one for _ in range(times[at])] for one in places]
        expected = np.mean([naive(one, matches.models, order) for one in again], axis=0)
        expected += centre - expected.mean() if centre and order == "shuffled" else 0
        assert rating == pytest.approx(expected, abs=near)


@each(
    "system, count, options",
    *((elo, 3000, options) for options in ({}, {"order": "file"}, {"k": 32.0})),
    *((ours, 200, options) for options in ({}, {"order": "file"})),
)
def test_draw_of_every_prompt_once_equals_no_draw(system: Any, count: int, options: dict[str, Any]) -> None:
    matches = table(simulate_matches(4, count), [f"p{at // 6}" for at in range(count)])
    ones = Draws(0, 3, np.ones((3, matches.clusters), np.uint8))
    assert (system.redraw(matches, ones, **options) == system.rate(matches, **options).rating).all()


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


@pytest.mark.parametrize(("system", "count", "options"), [(elo, 400, {"shuffles": 4}), (ours, 300, {})])
def test_draws_with_and_without_a_table_spread_alike(system: Any, count: int, options: dict[str, Any]) -> None:
    matches = table(simulate_matches(4, count))
    drawn, free = (draw(1, 400, count, table=is_table) for is_table in (True, False))
    one, other = (system.redraw(matches, draws, **options).std(axis=0) for draws in (drawn, free))
    assert other == pytest.approx(one, rel=0.2)
    assert (system.redraw(matches, draw(1, 400, count, table=False), **options).std(axis=0) == other).all()


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


Game = tuple[str, str, str, str]
ONE = st.tuples(st.permutations(NAMES), st.sampled_from(tuple(OUTCOMES)), st.sampled_from("pqrst"))
PLAYED = st.lists(ONE.map(lambda one: (*one[0][:2], one[1], one[2])), min_size=1, max_size=30)


@given(PLAYED)
def test_matches_round_trip(rows: list[Game]) -> None:
    a, b, outcomes, prompts = map(list, zip(*rows, strict=True))
    lengths = [(i, 2 * i) for i in range(len(rows))]
    matches: Any = encode(iter(a), iter(b), iter(outcomes), iter(prompts), lengths, 7)
    assert matches.models == tuple(sorted({*a, *b}))
    assert [matches.models[i] for i in matches.a] == a
    assert [matches.models[i] for i in matches.b] == b
    assert matches.outcome.tolist() == [OUTCOMES[outcome] for outcome in outcomes]
    assert [matches.prompts[i] for i in matches.cluster] == prompts
    assert matches.prompts == tuple(dict.fromkeys(prompts))
    assert [tuple(one) for one in matches.lengths.tolist()] == lengths
    assert (len(matches), matches.clusters, matches.invalid) == (len(rows), len(set(prompts)), 7)
    assert {column.dtype.name for column in (matches.a, matches.b, matches.cluster, matches.lengths)} == {"int32"}
    assert matches.outcome.dtype.name == "int8"


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


def draw_table(seed: int, count: int, clusters: int) -> Any:
    return draw(seed, count, clusters).weights


@given(st.integers(0, 9), st.integers(2, 20), st.integers(1, 40))
def test_every_draw_has_as_many_prompts_as_the_data(seed: int, count: int, clusters: int) -> None:
    weights = draw_table(seed, count, clusters)
    assert weights.shape == (count, clusters)
    assert (weights.sum(axis=1) == clusters).all()
    assert np.array_equal(weights, draw_table(seed, count, clusters))


def test_prompt_draws_have_bootstrap_moments() -> None:
    weights = draw_table(0, 4000, 50)
    assert weights.mean() == 1
    assert weights.var() == pytest.approx(1 - 1 / 50, rel=0.02)
    assert np.cov(weights[:, 0], weights[:, 1])[0, 1] == pytest.approx(-1 / 50, abs=0.06)


def test_more_draws_begin_with_the_same_ones_and_seeds_differ() -> None:
    assert np.array_equal(draw_table(3, 5, 7), draw_table(3, 9, 7)[:5])
    assert not np.array_equal(draw_table(0, 5, 30), draw_table(1, 5, 30))


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
        played.append((NAMES[a], NAMES[b], "tie" if abs(gap) < 0.2 else "a" if gap > 0 else "b", f"p{at % prompts}"))
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
    assert ratings.covariance == pytest.approx(sum(np.outer(one, one) for one in influence.values()), abs=1e-12)


@given(PLAYED)
def test_each_game_is_a_cluster_without_prompts(played: list[Game]) -> None:
    alone = [(a, b, outcome, f"p{at}") for at, (a, b, outcome, _) in enumerate(played)]
    ratings = win_rate.rate(tabulate(played, prompts=False))
    assert ratings.covariance == pytest.approx(win_rate.rate(tabulate(alone)).covariance, abs=1e-12)


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
    draws = [draw(0, 30, matches.clusters, table=is_table) for is_table in (True, False)]
    results = list[list[Any]]()
    for block in (win_rate.BLOCK, 200):
        monkeypatch.setattr(win_rate, "BLOCK", block)
        results.append([win_rate.rate(matches).covariance, *(win_rate.redraw(matches, one) for one in draws)])
    for one, other in zip(*results, strict=True):
        assert other == pytest.approx(one, abs=1e-12)


def test_win_rate_is_discovered() -> None:
    system = ratings.get_system("win-rate")
    assert (system.unit, system.default, system.lengths, dict(system.parameters)) == ("share", False, False, {})
    assert system.rate(tabulate([("x", "y", "a", "p"), ("x", "y", "tie", "q")])).rating.tolist() == [0.75, 0.25]


def test_gap_beyond_the_library_is_computed() -> None:
    environment = library.TrueSkill(sigma=1.0)
    with pytest.raises(FloatingPointError):
        library.rate_1vs1(library.Rating(0, 1), library.Rating(400, 1), env=environment)
    width = math.sqrt(2 + 2 * (25 / 6) ** 2)
    shift, shrink = ours.win_effect(-400 / width)
    assert (shift, 0 < 1 - shrink < 1e-3) == (pytest.approx(400 / width, rel=1e-3), True)


@each("options", {}, {"tau": 0.0}, {"draw_probability": 0.4})
def test_file_order_gives_the_numbers_of_the_library(options: dict[str, float]) -> None:
    played = simulate_matches(6, 400)
    ratings = ours.rate(table(played), order="file", **{"draw_probability": 0.1, **options})
    expected = rate_with_library(played, ratings.models, **options)
    assert ratings.rating == pytest.approx([mu for mu, _ in expected], abs=1e-6)
    assert ratings.sigma == pytest.approx([sigma for _, sigma in expected], abs=1e-6)


@given(played_matches(15), st.integers(0, 9))
def test_shuffles_give_the_centred_mean_of_the_library(played: list[Match], seed: int) -> None:
    ratings = ours.rate(table(played), shuffles=3, seed=seed, mu=7.0, sigma=2.0, beta=1.0, draw_probability=0.1)
    orders = Orders(len(played), "shuffled", 3, seed)
    options = {"mu": 7.0, "sigma": 2.0, "beta": 1.0, "tau": 0.0, "draw_probability": 0.1, "backend": EXACT}
    each = [
        rate_with_library([played[at] for at in orders.last(index, len(played))], ratings.models, **options)
        for index in range(3)
    ]
    mean = np.mean(each, axis=0)
    assert ratings.rating == pytest.approx(mean[:, 0] - mean[:, 0].mean() + 7, abs=1e-8)
    assert ratings.sigma == pytest.approx(mean[:, 1], abs=1e-8)


def moments(near: float, width: float) -> tuple[float, float]:
    """Mean and variance of a standard normal variable between ``near`` and ``near + width``, by integrals."""
    top = min(width, 40 / near if near > 4 else 14 + abs(near))

    def integral(power: int, middle: float = 0.0) -> float:
        # Divide by the density at the near end, or at 0 if that lies inside, so that no exponential overflows.
        def inside(step: float) -> float:
            peak = min(max(-near, 0.0), width)
            return float((step - middle) ** power * math.exp((peak - step) * (near + (peak + step) / 2)))

        result, _ = quad(inside, 0, top, epsabs=0, epsrel=1e-12, limit=200, points=[min(max(-near, 0.0), top)])
        return float(result)

    mean = integral(1) / integral(0)
    return near + mean, integral(2, mean) / integral(0)


def effects(kind: str, *arguments: float) -> list[tuple[float, float]]:
    """The shift and the shrinkage by both implementations, for one match and for many."""
    many = getattr(ours, f"{kind}_effects")(*(np.array([one]) for one in arguments))
    return [getattr(ours, f"{kind}_effect")(*arguments), tuple(float(part[0]) for part in many)]


@each("beyond", -400.0, -66.7, -30.01, -29.99, -8.0, -1.0, 0.0, 0.5, 3.0, 7.0)
def test_win_truncates_the_difference_on_one_side(beyond: float) -> None:
    mean, variance = moments(-beyond, math.inf)
    for shift, shrink in effects("win", beyond):
        assert shift == pytest.approx(mean, rel=1e-9, abs=1e-12)
        assert 1 - shrink == pytest.approx(variance, rel=1e-6, abs=1e-9)


@each("margin", 1e-3, 0.1, 0.9, 3.0, 8.0)
@each("ahead", -400.0, -66.0, -12.0, -1.0, 1e-9, 0.3, 5.0, 31.0)
def test_tie_truncates_it_on_both_sides(ahead: float, margin: float) -> None:
    mean, variance = moments(abs(ahead) - margin, 2 * margin)
    for shift, shrink in effects("tie", ahead, margin):
        assert shift == pytest.approx(-math.copysign(mean, ahead), rel=1e-7, abs=1e-9)
        assert 1 - shrink == pytest.approx(variance, rel=1e-6, abs=1e-8)


@each(
    "ahead, margin, down, gone",
    (0.0, 0.1, 0.0, 0.9966711089933002),
    (1e-6, 1.01e-6, 9.99999999999659967e-7, 0.99999999999965997),
    (3.0, 1e-3, 2.99999900000073333, 0.99999966666731111),
    (8.0, 0.001, 7.9999973333450667, 0.9999996666709777),
    (15.0, 1.19e-7, 14.9999999999999292, 0.99999999999999528),
    (15.0, 1.01e-6, 14.9999999999948995, 0.9999999999996599),
    (29.0, 1e-6, 28.9999999999903333, 0.99999999999966667),
    (30.0, 1.5, 28.535001849988532, 0.998777854175783),
    (1e4, 1.01e-6, 9999.9999999965997, 0.9999999999996599),
)
def test_tie_is_exact_to_the_last_digits(ahead: float, margin: float, down: float, gone: float) -> None:
    """Mean and variance between both ends of the margin, computed with 60 digits."""
    for shift, shrink in effects("tie", ahead, margin):
        assert -shift == pytest.approx(down, rel=1e-12)
        assert shrink == pytest.approx(gone, abs=2e-10)


@given(st.floats(-1e6, 1e6), st.floats(0, 8.2))
@example(15.0, 1.19e-7)  # 1.0 against 0.99999912
@settings(max_examples=200)  # a few dozen numbers each are cheap, and accuracy was lost only in narrow ranges
def test_both_implementations_agree_and_stay_in_range(ahead: float, margin: float) -> None:
    one, many = effects("win", ahead)
    assert many == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert one[0] >= 0
    assert 0 <= one[1] <= 1
    one, many = effects("tie", ahead, margin)
    assert many[0] == pytest.approx(one[0], rel=1e-11, abs=1e-11)
    assert many[1] == pytest.approx(one[1], abs=1e-9)
    assert 0 <= one[1] <= 1


@each("wins, ties, share", (9, 0, 0.0), (0, 9, 0.9), (3, 9, 0.75), (0, 1, 0.5))
def test_draw_probability_is_the_share_of_ties(wins: int, ties: int, share: float) -> None:
    won: list[Match] = [("m1", "m2", "a")] * wins
    matches = table([*won, *[("m1", "m2", "tie")] * ties], [f"p{at}" for at in range(wins + ties)])
    ratings = ours.rate(matches, shuffles=2)
    assert ratings.parameters["draw_probability"] == share
    assert np.isfinite([ratings.rating, ratings.sigma]).all()
    assert np.isfinite(ours.redraw(matches, draw(0, 5, matches.clusters), shuffles=2)).all()


def test_trueskill_extreme_ratings_stay_finite() -> None:
    played: list[Match] = [("m1", "m2", "a")] * 5000
    ratings = ours.rate(table([*played, ("m2", "m1", "a"), ("m1", "m2", "tie")]), order="file", beta=1e-6, tau=1.0)
    assert np.isfinite([ratings.rating, ratings.sigma]).all()
    assert (ratings.sigma > 0).all()
    ratings = ours.rate(table(played), shuffles=2)
    assert ratings.rating[0] > 38
    assert ratings.rating.sum() == pytest.approx(50)
    # Without a margin, a tie means equal performance.
    level = ours.rate(table([("x", "y", "a"), ("x", "y", "tie")]), draw_probability=0.0, order="file")
    assert np.isfinite(level.rating).all()
    assert level.rating[0] > level.rating[1]


def test_trueskill_is_discovered_and_records_its_parameters() -> None:
    system, matches = ratings.get_system("trueskill"), table([("x", "y", "a")])
    assert (system.unit, system.default, system.lengths) == ("points", False, False)
    used = {**system.parameters, "draw_probability": 0.0}
    assert system.rate(matches).parameters == {**used, "tau": 0.0}
    file = system.rate(matches, order="file", shuffles=1)
    assert file.parameters == {**used, "tau": pytest.approx(25 / 300), "order": "file", "shuffles": 1}
    explicit = system.rate(matches, draw_probability=0.3)
    assert (explicit.parameters["draw_probability"], explicit.notes) == (0.3, ())
    assert system.rate(matches, order="file", tau=0.5).parameters["tau"] == 0.5
