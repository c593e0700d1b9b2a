"""Test win rates against loops over matches, and their covariance against loops and draws."""

from __future__ import annotations

import importlib
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.stats import ratings
from distract.stats.ratings.draws import Draws, draw
from distract.stats.ratings.matches import Matches, encode

win_rate = importlib.import_module("distract.leaderboards.win_rate")
NAMES = ("a, the first", 'b "quoted"', "c [bold]", "d 🦙")
WORTH = {"a": 1.0, "b": 0.0, "tie": 0.5}
Match = tuple[str, str, str, str]

PLAYED = st.lists(
    st.tuples(st.permutations(NAMES), st.sampled_from(tuple(WORTH)), st.sampled_from("pqrst")).map(
        lambda one: (*one[0][:2], one[1], one[2])
    ),
    min_size=1,
    max_size=30,
)


def table(played: list[Match], *, prompts: bool = True) -> Matches:
    a, b, outcomes, clusters = zip(*played, strict=True)
    return encode(a, b, outcomes, clusters if prompts else None)


def rate_naively(played: list[Match]) -> dict[str, float]:
    points: dict[str, list[float]] = defaultdict(list)
    for a, b, outcome, _ in played:
        points[a].append(WORTH[outcome])
        points[b].append(1 - WORTH[outcome])
    return {name: sum(points[name]) / len(points[name]) for name in sorted(points)}


def simulate_matches(matches: int, prompts: int, seed: int = 0) -> list[Match]:
    """Matches of four models with outcomes that depend on the prompt."""
    random = np.random.default_rng(seed)
    mood = random.normal([0.0, 0.4, 0.8, 1.2], 1, (prompts, 4))
    played: list[Match] = []
    for at in range(matches):
        a, b = random.choice(4, 2, replace=False)
        gap = mood[at % prompts, a] - mood[at % prompts, b] + random.normal(0, 1)
        played.append((NAMES[a], NAMES[b], "tie" if abs(gap) < 0.2 else "a" if gap > 0 else "b", f"p{at % prompts}"))
    return played


@given(PLAYED)
def test_win_rate_is_the_share_of_points_with_prompt_covariance(played: list[Match]) -> None:
    ratings, share = win_rate.rate(table(played)), rate_naively(played)
    assert (ratings.models, ratings.rating) == (tuple(share), pytest.approx(list(share.values()), abs=1e-12))
    influence: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(share)))
    often = {name: sum(name in match[:2] for match in played) for name in share}
    for a, b, outcome, prompt in played:
        for name, worth in ((a, WORTH[outcome]), (b, 1 - WORTH[outcome])):
            influence[prompt][ratings.models.index(name)] += (worth - share[name]) / often[name]
    expected = sum(np.outer(one, one) for one in influence.values())
    assert ratings.covariance == pytest.approx(expected, abs=1e-12)


@given(PLAYED)
def test_each_match_is_a_cluster_without_prompts(played: list[Match]) -> None:
    alone = [(a, b, outcome, f"p{at}") for at, (a, b, outcome, _) in enumerate(played)]
    ratings = win_rate.rate(table(played, prompts=False))
    assert ratings.covariance == pytest.approx(win_rate.rate(table(alone)).covariance, abs=1e-12)


@given(PLAYED)
def test_sides_order_and_names_do_not_matter(played: list[Match]) -> None:
    ratings = win_rate.rate(table(played))
    turned = [(b, a, {"a": "b", "b": "a", "tie": "tie"}[outcome], prompt) for a, b, outcome, prompt in played[::-1]]
    other = win_rate.rate(table(turned))
    assert other.rating == pytest.approx(ratings.rating, abs=1e-12)
    assert other.covariance == pytest.approx(ratings.covariance, abs=1e-12)
    renamed = {name: f"{9 - at}" for at, name in enumerate(NAMES)}
    again = win_rate.rate(table([(renamed[a], renamed[b], outcome, prompt) for a, b, outcome, prompt in played]))
    by = dict(zip(again.models, again.rating, strict=True))
    assert ratings.rating == pytest.approx([by[renamed[name]] for name in ratings.models], abs=1e-12)


def test_ties_alone_give_equal_certain_rates() -> None:
    ratings = win_rate.rate(table([(NAMES[0], NAMES[at], "tie", "p") for at in (1, 2, 3)]))
    assert ratings.rating.tolist() == [0.5] * 4
    assert not ratings.covariance.any()


def test_doubled_matches_narrow_the_interval_by_root_two() -> None:
    played = simulate_matches(200, 40)
    once, twice = (win_rate.rate(table(matches, prompts=False)) for matches in (played, played * 2))
    assert twice.rating == pytest.approx(once.rating)
    assert 2 * twice.covariance == pytest.approx(once.covariance)


@given(PLAYED, st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=4))
def test_draw_replays_matches(played: list[Match], rows: list[list[int]]) -> None:
    matches = table(played)
    drawn = np.array(rows, np.uint8)[:, : matches.clusters]
    replicates = win_rate.redraw(matches, Draws(0, len(rows), drawn))
    own = rate_naively(played)
    for row, shares in zip(drawn.tolist(), replicates, strict=True):
        times = dict(zip(matches.prompts, row, strict=True))
        again = rate_naively([match for match in played for _ in range(times[match[3]])])
        assert shares == pytest.approx([again.get(name, own[name]) for name in matches.models], abs=1e-12)


@each("prompts", True, False)
@each("weighted", True, False)
def test_draws_spread_as_the_covariance_predicts(prompts: bool, weighted: bool) -> None:
    matches = table(simulate_matches(600, 120), prompts=prompts)
    drawn = draw(0, 2000, matches.clusters, table=weighted)
    ratings, rated = win_rate.redraw(matches, drawn), win_rate.rate(matches)
    assert np.cov(ratings.T) == pytest.approx(rated.covariance, abs=1e-4)
    assert ratings.mean(axis=0) == pytest.approx(rated.rating, abs=0.002)


@each("prompts", True, False)
def test_small_blocks_change_nothing(prompts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = table(simulate_matches(300, 50), prompts=prompts)
    weighted, free = draw(0, 30, matches.clusters), draw(0, 30, matches.clusters, table=False)
    whole = win_rate.rate(matches).covariance, win_rate.redraw(matches, weighted), win_rate.redraw(matches, free)
    monkeypatch.setattr(win_rate, "BLOCK", 200)
    parts = win_rate.rate(matches).covariance, win_rate.redraw(matches, weighted), win_rate.redraw(matches, free)
    for one, other in zip(whole, parts, strict=True):
        assert other == pytest.approx(one, abs=1e-12)


def test_win_rate_is_discovered() -> None:
    system = ratings.get_system("win-rate")
    assert (system.unit, system.default, system.lengths, dict(system.parameters)) == ("share", False, False, {})
    result = system.rate(table([("x", "y", "a", "p"), ("x", "y", "tie", "q")]))
    assert result.rating.tolist() == [0.75, 0.25]
    assert result.covariance is not None
    assert result.covariance.tolist() == [[0.03125, -0.03125], [-0.03125, 0.03125]]
