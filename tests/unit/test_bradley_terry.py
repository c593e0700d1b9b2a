"""Test Bradley-Terry against plain loops over matches, other libraries, and properties of any matches."""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import choix
import evalica
import numpy as np
import pytest
import statsmodels.api as sm
from distract.leaderboards import logistic
from distract.leaderboards.bradley_terry import rate_bradley_terry, redraw
from hypothesis import given, strategies as st
from loops import each
from scipy import optimize, special

from distract.core.errors import UnknownName
from distract.stats import ratings
from distract.stats.ratings.matches import Draws, Matches, draw, encode

Played = list[tuple[str, str, str, str]]
"""First model, second model, outcome, prompt."""

LOGIT = 400 / math.log(10)
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5}
NAMES = ["gpt-4", 'a, "quoted" name', "🦙 llama", "<b>bold</b>", "x|y"]


def game_lists(clustered: bool = True, names: Sequence[str] = NAMES) -> st.SearchStrategy[Played]:
    pair = st.permutations(names).map(lambda two: two[:2])
    prompt = st.sampled_from(["p1", "p2", "p3", "p4"]) if clustered else st.just("")
    one = st.tuples(pair, st.sampled_from(["a", "b", "tie"]), prompt).map(lambda x: (x[0][0], x[0][1], x[1], x[2]))
    return st.lists(one, min_size=1, max_size=25)


def matches_of(rows: Played, clustered: bool = True) -> Matches:
    a, b, outcome, prompt = zip(*rows, strict=True)
    return encode(a, b, outcome, prompt if clustered else None)


def random_rows(
    models: int, matches: int, prompts: int, spread: float = 200, ties: float = 0.1, seed: int = 0
) -> Played:
    """Matches between models of known strength, some prompts suiting some models."""
    random = np.random.default_rng(seed)
    strength = random.normal(0, spread, models)
    suits = random.normal(0, spread / 2, (prompts, models))
    rows = []
    for i in range(matches):
        a, b = random.choice(models, 2, replace=False)
        gap = strength[b] + suits[i % prompts, b] - strength[a] - suits[i % prompts, a]
        won = "a" if random.random() < 1 / (1 + 10 ** (gap / 400)) else "b"
        rows.append((f"m{a}", f"m{b}", "tie" if random.random() < 0.1 else won, f"q{i % prompts}"))
    return rows


def rate_naively(rows: Played, models: Sequence[str], sd: float = 1000.0, mean: Any = 0.0) -> Any:
    """Strengths in logits, fitted match by match with scipy; ``mean`` is the prior mean in logits."""
    ridge = (LOGIT / sd) ** 2

    def loss(theta: Any) -> tuple[float, Any]:
        total, slope = 0.5 * ridge * float(((theta - mean) ** 2).sum()), ridge * (theta - mean)
        for a, b, outcome, _prompt in rows:
            i, j, y = models.index(a), models.index(b), POINTS[outcome]
            gap = theta[i] - theta[j]
            total += y * np.logaddexp(0, -gap) + (1 - y) * np.logaddexp(0, gap)
            residual = y - 1 / (1 + math.exp(-gap))
            slope[i] -= residual
            slope[j] += residual
        return total, slope

    start = np.zeros(len(models))
    fit = optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x

    # Near the optimum the loss is too flat to compare points, so compare its slope.
    def steep(theta: Any) -> Any:
        return loss(theta)[1]

    return optimize.root(steep, fit, tol=1e-13).x


def naive_covariance(rows: Played, models: Sequence[str], theta: Any, clustered: bool, sd: float = 1000.0) -> Any:
    """The sandwich over prompts in points, with the prior's own part, centred."""
    size, ridge = len(models), (LOGIT / sd) ** 2
    bread = ridge * np.eye(size)
    scores: dict[Any, Any] = {}
    for number, (a, b, outcome, prompt) in enumerate(rows):
        x = np.zeros(size)
        x[models.index(a)], x[models.index(b)] = 1, -1
        p = 1 / (1 + math.exp(-x @ theta))
        bread += p * (1 - p) * np.outer(x, x)
        key = prompt if clustered else number
        scores[key] = scores.get(key, 0) + (POINTS[outcome] - p) * x
    filling = ridge * np.eye(size) + sum(np.outer(s, s) for s in scores.values())
    turn = np.eye(size) - 1 / size
    half = turn @ np.linalg.inv(bread)
    return LOGIT**2 * half @ filling @ half.T


@given(game_lists(), st.booleans(), st.sampled_from([50.0, 1000.0, 3000.0]))
def test_ratings_agree_with_loops_over_matches(rows: Played, clustered: bool, sd: float) -> None:
    matches = matches_of(rows, clustered)
    ratings = rate_bradley_terry(matches, prior=sd)
    theta = rate_naively(rows, matches.models, sd)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta - theta.mean()), abs=1e-4)
    assert ratings.rating.mean() == pytest.approx(1000)
    expected = naive_covariance(rows, matches.models, theta, clustered, sd)
    assert ratings.covariance == pytest.approx(expected, rel=1e-5, abs=1e-4)


@given(game_lists().map(lambda rows: [(a, b, "tie", p) for a, b, _, p in rows]))
def test_table_of_ties_is_flat(rows: Played) -> None:
    ratings = rate_bradley_terry(matches_of(rows), anchor_rating=1500)
    assert ratings.rating == pytest.approx(np.full(len(ratings.models), 1500.0), abs=1e-9)
    assert not ratings.notes


def test_doubled_matches_narrow_the_interval_by_root_two() -> None:
    rows = random_rows(5, 400, 20)
    one, two = (rate_bradley_terry(matches_of(some, False), prior=3e4).covariance for some in (rows, rows * 2))
    assert one is not None
    assert two is not None
    assert np.sqrt(np.diag(one) / np.diag(two)) == pytest.approx(np.full(5, math.sqrt(2)), rel=1e-4)
    # Judging the same prompts twice adds no prompts.
    one, two = (rate_bradley_terry(matches_of(some), prior=3e4).covariance for some in (rows, rows * 2))
    assert one == pytest.approx(two, rel=1e-3)


def test_one_prompt_per_match_equals_no_prompts() -> None:
    rows = [(a, b, o, str(i)) for i, (a, b, o, _) in enumerate(random_rows(4, 60, 6))]
    expected = rate_bradley_terry(matches_of(rows, False)).covariance
    assert rate_bradley_terry(matches_of(rows)).covariance == pytest.approx(expected)
    # A further prompt without a match adds no information but selects the general code path.
    matches = replace(matches_of(rows), prompts=(*map(str, range(60)), "unused"))
    assert rate_bradley_terry(matches).covariance == pytest.approx(expected)


def test_evalica_and_choix_agree_on_connected_models() -> None:
    rows = random_rows(6, 600, 30)
    matches = matches_of(rows)
    code = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}
    a, b, outcome, _ = zip(*rows, strict=True)
    peer_ratings = evalica.bradley_terry(a, b, [code[o] for o in outcome], tolerance=1e-12, limit=100_000).scores
    expected = LOGIT * np.log(peer_ratings[list(matches.models)].to_numpy())
    rating = rate_bradley_terry(matches, prior=3e4).rating
    assert rating - 1000 == pytest.approx(expected - expected.mean(), abs=0.01)

    # choix knows no ties: a win is two of its comparisons, a tie one each way. Its penalty is alpha times the squares,
    # not half of that, so that its variance is 1 / (2 alpha) and doubled matches need our alpha.
    wins = []
    for i, j, o in zip(matches.a.tolist(), matches.b.tolist(), outcome, strict=True):
        wins += {"a": [(i, j)] * 2, "b": [(j, i)] * 2, "tie": [(i, j), (j, i)]}[o]
    ridge = (LOGIT / 300) ** 2
    theta = choix.opt_pairwise(len(matches.models), wins, alpha=ridge, tol=1e-12)
    rating = rate_bradley_terry(matches, prior=300).rating
    assert rating - 1000 == pytest.approx(LOGIT * (theta - theta.mean()), abs=0.01)


@each("clustered", True, False)
def test_statsmodels_has_the_same_sandwich(clustered: bool) -> None:
    rows = random_rows(5, 300, 25)
    matches = matches_of(rows)
    x = np.zeros((len(rows), 5))
    x[np.arange(len(rows)), matches.a] = 1
    x[np.arange(len(rows)), matches.b] -= 1
    y = [POINTS[o] for _, _, o, _ in rows]
    groups = matches.cluster if clustered else np.arange(len(rows))
    fit = sm.GLM(y, x[:, 1:], family=sm.families.Binomial()).fit(
        tol=1e-12, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    ratings = rate_bradley_terry(matches_of(rows, clustered), prior=3e4, anchor="m0", anchor_rating=0)
    assert ratings.rating[1:] == pytest.approx(LOGIT * fit.params, abs=0.01)
    assert ratings.covariance is not None
    assert ratings.covariance[1:, 1:] == pytest.approx(LOGIT**2 * fit.cov_params(), rel=1e-3)
    assert ratings.covariance[0] == pytest.approx(np.zeros(5), abs=1e-9)


def test_anchor_keeps_its_rating_without_variance() -> None:
    matches = matches_of(random_rows(4, 300, 15))
    free, held = rate_bradley_terry(matches), rate_bradley_terry(matches, anchor="m2", anchor_rating=1234.5)
    assert held.rating[2] == 1234.5
    assert held.rating - held.rating[0] == pytest.approx(free.rating - free.rating[0])
    assert free.covariance is not None
    assert held.covariance is not None
    assert held.covariance[2, 2] == 0
    gap = np.array([1.0, 0, 0, -1])
    assert gap @ held.covariance @ gap == pytest.approx(gap @ free.covariance @ gap)
    drawn = redraw(matches, draw(0, 50, matches.clusters), anchor="m2", anchor_rating=1234.5)
    assert (drawn[:, 2] == 1234.5).all()


def test_scale_and_base_are_only_units() -> None:
    matches = matches_of(random_rows(4, 300, 15))
    elo = rate_bradley_terry(matches)
    logits = rate_bradley_terry(matches, prior=1000 / LOGIT, scale=1, base=math.e, anchor_rating=0)
    assert LOGIT * logits.rating == pytest.approx(elo.rating - 1000)
    assert logits.parameters["base"] == math.e
    points = {"prior": 1000.0, "anchor_rating": 1000.0, "scale": 400.0, "base": 10.0}
    assert elo.parameters == {**points, "anchor": None, "interval": "sandwich"}
    assert rate_bradley_terry(matches, interval="bootstrap").covariance is None


def test_notes_name_ratings_that_rest_on_the_prior() -> None:
    rows = [("a\x1b[31m\nb", "c", "a", "p")] * 1200
    assert rate_bradley_terry(matches_of(rows)).notes == (
        "a\\x1b[31m b won all of its 1,200 matches: its rating rests on the prior",
        "c lost all of its 1,200 matches: its rating rests on the prior",
    )
    ratings = rate_bradley_terry(replace(matches_of([("a", "b", "tie", "p")]), models=("a", "b", "c")))
    assert ratings.notes == ("c has no match: its rating rests on the prior",)
    assert ratings.rating == pytest.approx([1000.0] * 3)


def test_separate_groups_differ_as_the_prior_says() -> None:
    rows = random_rows(3, 300, 20)
    rows += [(f"other {a}", f"other {b}", o, p) for a, b, o, p in random_rows(3, 300, 20, seed=1)]
    matches = matches_of(rows)
    gap = np.array([1, 1, 1, -1, -1, -1]) / 3
    expected = 1000 * math.sqrt(2 / 3)
    ratings = rate_bradley_terry(matches)
    assert ratings.rating @ gap == pytest.approx(0, abs=1e-6)
    assert ratings.covariance is not None
    assert math.sqrt(gap @ ratings.covariance @ gap) == pytest.approx(expected, rel=1e-6)
    assert (redraw(matches, draw(3, 1000, matches.clusters)) @ gap).std() == pytest.approx(expected, rel=0.08)


def test_undefeated_model_has_a_wide_interval() -> None:
    rows = [*random_rows(4, 400, 20), *[("best", f"m{i % 4}", "a", f"q{i % 20}") for i in range(40)]]
    ratings = rate_bradley_terry(matches_of(rows))
    assert ratings.covariance is not None
    errors = dict(zip(ratings.models, np.sqrt(np.diag(ratings.covariance)), strict=True))
    assert 3 * errors["m0"] < errors["best"] < 1000


@each("models, count, prompts", (6, 1689, 113), (30, 200, 40), (8, 3000, 10))
def test_draws_are_at_their_maximum(models: int, count: int, prompts: int) -> None:
    matches = matches_of(random_rows(models, count, prompts, spread=400))
    draws = draw(0, 60, matches.clusters)
    assert draws.weights is not None
    assert matches.cluster is not None
    # A Newton step in plain dense algebra changes no rating by more than a millionth of a point.
    ridge = (LOGIT / 1000) ** 2
    replicates = redraw(matches, draws)
    x = np.zeros((count, models))
    x[np.arange(count), matches.a] = 1
    x[np.arange(count), matches.b] -= 1
    y = np.array([1.0, 0.0, 0.5])[matches.outcome]
    normal = draws.normal(matches.models) * 1000 / LOGIT
    for row, weight, mean in zip(replicates, draws.weights, normal, strict=True):
        theta = (row - 1000) / LOGIT + mean.mean()
        p = 1 / (1 + np.exp(-x @ theta))
        w = weight[matches.cluster]
        slope = x.T @ (w * (y - p)) - ridge * (theta - mean)
        step = np.linalg.solve((x.T * (w * p * (1 - p))) @ x + ridge * np.eye(models), slope)
        assert np.abs(step).max() * LOGIT < 1e-6


@each("table", True, False)
def test_draws_vary_as_the_sandwich_predicts(table: bool) -> None:
    matches = matches_of(random_rows(6, 1689, 113), clustered=table)
    ratings = rate_bradley_terry(matches)
    draws = draw(0, 1500, matches.clusters, table=table)
    drawn = redraw(matches, draws)
    assert drawn.shape == (1500, 6)
    assert ratings.covariance is not None
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(np.diag(ratings.covariance)), rel=0.08)
    assert drawn.mean(axis=0) == pytest.approx(ratings.rating, abs=3)
    assert (redraw(matches, draws) == drawn).all()


def test_single_match_weights_equal_one_match_prompts() -> None:
    rows = [(a, b, o, str(i)) for i, (a, b, o, _) in enumerate(random_rows(4, 80, 8))]
    draws = draw(1, 20, 80)
    expected = redraw(matches_of(rows), draws)
    assert redraw(matches_of(rows, clustered=False), draws) == pytest.approx(expected)


def test_unit_weights_change_the_rating_only_by_the_prior() -> None:
    matches = matches_of(random_rows(4, 400, 10))
    flat = Draws(0, 3, np.ones((3, 10), np.uint8))
    expected = rate_bradley_terry(matches, prior=10).rating
    assert redraw(matches, flat, prior=10) != pytest.approx(expected, abs=1e-3)
    rating = rate_bradley_terry(matches, prior=3e4).rating
    assert redraw(matches, flat, prior=3e4) == pytest.approx(np.tile(rating, (3, 1)), abs=1)


def test_200_models_and_1689_matches_are_rated() -> None:
    ratings = rate_bradley_terry(matches_of(random_rows(200, 1689, 113)))
    assert np.isfinite(ratings.rating).all()
    assert ratings.covariance is not None
    assert (np.diag(ratings.covariance) > 0).all()


def test_work_in_parts_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = matches_of(random_rows(7, 500, 40))
    draws = draw(0, 30, matches.clusters)
    whole, drawn = rate_bradley_terry(matches), redraw(matches, draws)
    # Sparse tables, several blocks of prompts, of matches and of draws.
    monkeypatch.setattr(logistic, "SMALL", 0)
    for module in (logistic, sys.modules[rate_bradley_terry.__module__]):
        monkeypatch.setattr(module, "BLOCK", 100)
        monkeypatch.setattr(module, "MANY", 60)
    assert rate_bradley_terry(matches).rating == pytest.approx(whole.rating)
    assert rate_bradley_terry(matches).covariance == pytest.approx(whole.covariance)
    assert redraw(matches, draws) == pytest.approx(drawn)


def test_tiny_chances_are_exact() -> None:
    odds = np.array([-1000.0, -40.0, 0.0, 1.0, 40.0, 1000.0])
    p, q = logistic.chances(odds)
    assert p == pytest.approx(special.expit(np.maximum(odds, -700)), rel=1e-14)
    assert q == pytest.approx(special.expit(np.maximum(-odds, -700)), rel=1e-14)


def test_unknown_anchor_lists_the_models() -> None:
    with pytest.raises(UnknownName, match=r"unknown model 'c'.*known: a, b"):
        rate_bradley_terry(matches_of([("a", "b", "a", "p")]), anchor="c")


def test_bradley_terry_is_the_default_system() -> None:
    system = ratings.systems()["bradley-terry"]
    assert (system.default, system.unit, system.lengths) == (True, "points", False)
    assert set(system.parameters) == {"prior", "anchor", "anchor_rating", "scale", "base", "interval"}
