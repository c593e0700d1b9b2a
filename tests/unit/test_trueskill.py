"""Test TrueSkill against the library of that name, its functions against integrals, scalar against array code."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
import trueskill as library
from distract.leaderboards.shuffles import Orders
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loops import each
from rating_matches import NAMES, Match, played_matches, simulate_matches, table
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from distract.stats import ratings
from distract.stats.ratings.draws import Draws, draw

ours = importlib.import_module("distract.leaderboards.trueskill")


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


@given(played_matches(15))
@pytest.mark.parametrize("order", ["shuffled", "file"])
def test_names_and_sides_do_not_matter(order: str, played: list[Match]) -> None:
    ratings = ours.rate(table(played), order=order, shuffles=4)
    renamed = {name: f"{9 - at}" for at, name in enumerate(NAMES)}
    other = ours.rate(table([(renamed[a], renamed[b], won) for a, b, won in played]), order=order, shuffles=4)
    by = dict(zip(other.models, other.rating, strict=True))
    assert ratings.rating == pytest.approx([by[renamed[name]] for name in ratings.models], abs=1e-9)
    turned = [(b, a, {"a": "b", "b": "a", "tie": "tie"}[won]) for a, b, won in played]
    assert ours.rate(table(turned), order=order, shuffles=4).rating == pytest.approx(ratings.rating, abs=1e-9)
    if order == "shuffled":
        assert ratings.rating.mean() == pytest.approx(25, abs=1e-9)


def test_ties_alone_give_equal_ratings() -> None:
    ratings = ours.rate(table([(NAMES[0], name, "tie") for name in NAMES[1:]] * 9))
    assert ratings.rating == pytest.approx([25.0] * 4, abs=1e-12)
    assert (ratings.sigma < 25 / 3).all()


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


@each("beyond", -400.0, -66.7, -30.01, -29.99, -8.0, -1.0, 0.0, 0.5, 3.0, 7.0)
def test_win_truncates_the_difference_on_one_side(beyond: float) -> None:
    mean, variance = moments(-beyond, math.inf)
    for shift, shrink in (ours.win_effect(beyond), [one[0] for one in ours.win_effects(np.array([beyond]))]):
        assert shift == pytest.approx(mean, rel=1e-9, abs=1e-12)
        assert 1 - shrink == pytest.approx(variance, rel=1e-6, abs=1e-9)


@each("margin", 1e-3, 0.1, 0.9, 3.0, 8.0)
@each("ahead", -400.0, -66.0, -12.0, -1.0, 1e-9, 0.3, 5.0, 31.0)
def test_tie_truncates_it_on_both_sides(ahead: float, margin: float) -> None:
    mean, variance = moments(abs(ahead) - margin, 2 * margin)
    for shift, shrink in (
        ours.tie_effect(ahead, margin),
        [one[0] for one in ours.tie_effects(np.array([ahead]), np.array([margin]))],
    ):
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
    for shift, shrink in (
        ours.tie_effect(ahead, margin),
        [float(one[0]) for one in ours.tie_effects(np.array([ahead]), np.array([margin]))],
    ):
        assert -shift == pytest.approx(down, rel=1e-12)
        assert shrink == pytest.approx(gone, abs=2e-10)


@given(st.floats(-1e6, 1e6), st.floats(0, 8.2))
@example(15.0, 1.19e-7)  # 1.0 against 0.99999912
@settings(max_examples=200)  # a few dozen numbers each are cheap, and accuracy was lost only in narrow ranges
def test_both_implementations_agree_and_stay_in_range(ahead: float, margin: float) -> None:
    one, many = ours.win_effect(ahead), ours.win_effects(np.array([ahead]))
    assert [float(part[0]) for part in many] == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert one[0] >= 0
    assert 0 <= one[1] <= 1
    one, many = ours.tie_effect(ahead, margin), ours.tie_effects(np.array([ahead]), np.array([margin]))
    assert float(many[0][0]) == pytest.approx(one[0], rel=1e-11, abs=1e-11)
    assert float(many[1][0]) == pytest.approx(one[1], abs=1e-9)
    assert 0 <= one[1] <= 1


@each("wins, ties, share", (9, 0, 0.0), (0, 9, 0.9), (3, 9, 0.75), (0, 1, 0.5))
def test_draw_probability_is_the_share_of_ties(wins: int, ties: int, share: float) -> None:
    won: list[Match] = [("m1", "m2", "a")] * wins
    matches = table([*won, *[("m1", "m2", "tie")] * ties], [f"p{at}" for at in range(wins + ties)])
    ratings = ours.rate(matches, shuffles=2)
    assert ratings.parameters["draw_probability"] == share
    assert np.isfinite([ratings.rating, ratings.sigma]).all()
    assert np.isfinite(ours.redraw(matches, draw(0, 5, matches.clusters), shuffles=2)).all()


def test_gap_beyond_the_library_is_computed() -> None:
    environment = library.TrueSkill(sigma=1.0)
    with pytest.raises(FloatingPointError):
        library.rate_1vs1(library.Rating(0, 1), library.Rating(400, 1), env=environment)
    width = math.sqrt(2 + 2 * (25 / 6) ** 2)
    shift, shrink = ours.win_effect(-400 / width)
    assert shift == pytest.approx(400 / width, rel=1e-3)
    assert 0 < 1 - shrink < 1e-3


def test_extreme_ratings_stay_finite() -> None:
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


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=3), played_matches(15))
@pytest.mark.parametrize("order", ["shuffled", "file"])
def test_draw_replays_matches_in_their_places(order: str, rows: list[list[int]], played: list[Match]) -> None:
    matches = table(played, [f"p{at % 3}" for at in range(len(played))])
    drawn = np.array(rows, np.uint8)[:, : matches.clusters]
    replicates = ours.redraw(matches, Draws(0, len(rows), drawn), order=order, shuffles=2, draw_probability=0.1)
    orders, tau = Orders(len(played), order, 2, 0), 25 / 300 if order == "file" else 0.0
    assert matches.cluster is not None
    for row, rating in zip(drawn, replicates, strict=True):
        times = row[matches.cluster].tolist()
        ends = []
        for index in range(orders.count):
            again = [played[at] for at in orders.last(index, len(played)) for _ in range(times[at])]
            ends.append([mu for mu, _ in rate_with_library(again, matches.models, tau=tau, backend=EXACT)])
        expected = np.mean(ends, axis=0)
        expected += 0 if order == "file" else 25 - expected.mean()
        assert rating == pytest.approx(expected, abs=1e-8)


@each("options", {}, {"order": "file"})
def test_draw_of_every_prompt_once_equals_no_draw(options: dict[str, Any]) -> None:
    matches = table(simulate_matches(4, 200), [f"p{at // 6}" for at in range(200)])
    rating = ours.rate(matches, **options).rating
    assert (ours.redraw(matches, Draws(0, 3, np.ones((3, matches.clusters), np.uint8)), **options) == rating).all()


def test_draws_with_and_without_a_table_spread_alike() -> None:
    matches = table(simulate_matches(4, 300))
    one = ours.redraw(matches, draw(1, 400, 300)).std(axis=0)
    assert ours.redraw(matches, draw(1, 400, 300, table=False)).std(axis=0) == pytest.approx(one, rel=0.2)


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
