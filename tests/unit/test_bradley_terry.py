"""Test Bradley-Terry, plain and under style control, against dense regressions, libraries and planted effects."""

import math
import sys
from dataclasses import replace
from typing import Any

import choix
import evalica
import numpy as np
import pytest
import statsmodels.api as sm
from distract.leaderboards import logistic
from hypothesis import given, strategies as st
from loops import each
from scipy import optimize, special, stats

from distract.core.errors import UnknownName, UsageError
from distract.stats import ratings
from distract.stats.ratings.draws import Draws, draw
from distract.stats.ratings.matches import OUTCOMES, TIE, Matches, encode

Played = list[tuple[str, str, str, str]]
"""First model, second model, outcome, prompt."""

LOGIT = 400 / math.log(10)
POINTS = np.array([1.0, 0.0, 0.5])
NAMES = ["gpt-4", 'a, "quoted" name', "🦙 llama", "<b>bold</b>", "x|y"]
# mypy lets any figure be used.
PLAIN: Any = ratings.get_system("bradley-terry")
CONTROLLED: Any = ratings.get_system("style-control")
by_system = each("system", PLAIN, CONTROLLED)


@st.composite
def match_tables(draw_: st.DrawFn) -> Matches:
    sizes = st.tuples(*[st.integers(0, 900)] * 2)
    one = st.tuples(st.permutations(NAMES), st.sampled_from(sorted(OUTCOMES)), st.sampled_from("pqrs"), sizes)
    pairs, outcomes, prompts, lengths = zip(*draw_(st.lists(one, min_size=1, max_size=25)), strict=True)
    return encode([p[0] for p in pairs], [p[1] for p in pairs], outcomes, prompts, lengths)


def matches_of(rows: Played, clustered: bool = True) -> Matches:
    a, b, outcome, prompt = zip(*rows, strict=True)
    return encode(a, b, outcome, prompt if clustered else None)


def drop_prompts(matches: Matches) -> Matches:
    return replace(matches, cluster=None, prompts=())


def random_rows(models: int, matches: int, prompts: int, spread: float = 200, seed: int = 0) -> Played:
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


def covariate(lengths: Any) -> Any:
    """Relative differences in units of their root mean square, match by match."""
    raw = [(int(a) - int(b)) / (int(a) + int(b)) if a + b else 0.0 for a, b in lengths]
    unit = math.sqrt(sum(x * x for x in raw) / len(raw))
    return np.array(raw) / (unit or 1)


def plant_matches(
    models: int, matches: int, prompts: int, worth: float, known: bool = True, noise: float = 0.1
) -> Matches:
    """Matches between equally good models; later models write more, and length is worth ``worth`` points.

    With ``noise``, some matches are ties and prompts favour models, which weakens the effect of length.
    """
    random = np.random.default_rng(0)
    a = random.integers(models, size=matches)
    b = (a + 1 + random.integers(models - 1, size=matches)) % models
    lengths = np.stack([random.gamma(4, 100 * (1 + side)) for side in (a, b)], axis=1).astype(int)
    mood = random.normal(0, 3 * noise, (prompts, models))
    prompt = np.arange(matches) % prompts
    odds = worth / LOGIT * covariate(lengths) + mood[prompt, a] - mood[prompt, b]
    won = np.where(random.random(matches) < 1 / (1 + np.exp(-odds)), "a", "b")
    outcome = np.where(random.random(matches) < noise, "tie", won)
    names = [f"m{i}" for i in range(models)]
    played = [names[i] for i in a], [names[i] for i in b], outcome.tolist()
    return encode(*played, [f"q{i}" for i in prompt] if known else None, lengths.tolist())


def design(matches: Matches, system: Any = CONTROLLED) -> Any:
    x = np.zeros((len(matches), len(matches.models) + 1))
    x[np.arange(len(matches)), matches.a] = 1
    x[np.arange(len(matches)), matches.b] -= 1
    if system is PLAIN:
        return x[:, :-1]
    x[:, -1] = covariate(matches.lengths)
    return x


def fit_naively(
    matches: Matches, system: Any = CONTROLLED, weight: Any = 1.0, mean: Any = 0.0, sd: float = 1000.0
) -> Any:
    """Strengths, and the worth of length, in logits, by scipy on the dense design; ``mean`` is that of the prior."""
    x, y, ridge = design(matches, system), POINTS[matches.outcome], (LOGIT / sd) ** 2

    def loss(theta: Any) -> tuple[float, Any]:
        odds = x @ theta
        value = (weight * (y * np.logaddexp(0, -odds) + (1 - y) * np.logaddexp(0, odds))).sum()
        slope = x.T @ (weight * (1 / (1 + np.exp(-odds)) - y)) + ridge * (theta - mean)
        return value + 0.5 * ridge * ((theta - mean) ** 2).sum(), slope

    fit = optimize.minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"maxiter": 5000}).x
    # Near the optimum the loss is too flat to compare points, so compare its slope.
    return optimize.root(lambda theta: loss(theta)[1], fit, tol=1e-13).x


def expect_covariance(matches: Matches, system: Any, theta: Any, sd: float) -> Any:
    """The sandwich over prompts in points, with the prior's own part, centred."""
    x, size, ridge = design(matches, system), len(matches.models), (LOGIT / sd) ** 2
    p = 1 / (1 + np.exp(-x @ theta))
    scores, prior = (POINTS[matches.outcome] - p)[:, None] * x, ridge * np.eye(x.shape[1])
    clusters = np.arange(len(x)) if matches.cluster is None else matches.cluster
    filling = prior + sum(np.outer(one, one) for one in (scores[clusters == c].sum(axis=0) for c in {*clusters}))
    turn = np.eye(size, x.shape[1])
    turn[:, :size] -= 1 / size
    half = turn @ np.linalg.inv(prior + x.T @ ((p * (1 - p))[:, None] * x))
    return LOGIT**2 * half @ filling @ half.T


@by_system
@given(match_tables(), st.booleans(), st.sampled_from([50.0, 1000.0, 3000.0]))
def test_ratings_agree_with_a_dense_regression(system: Any, matches: Matches, clustered: bool, sd: float) -> None:
    matches, size = matches if clustered else drop_prompts(matches), len(matches.models)
    ratings, theta = system.rate(matches, prior=sd), fit_naively(matches, system, sd=sd)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta[:size] - theta[:size].mean()), abs=1e-4)
    assert ratings.rating.mean() == pytest.approx(1000)
    assert ratings.covariance == pytest.approx(expect_covariance(matches, system, theta, sd), rel=1e-5, abs=1e-4)
    if system is CONTROLLED:
        assert ratings.extra["length"] == pytest.approx(LOGIT * theta[-1], abs=1e-4)


@by_system
@given(match_tables(), st.integers(0, 5))
def test_draw_replays_each_prompt_as_often_as_drawn(system: Any, matches: Matches, seed: int) -> None:
    draws: Any = draw(seed, 6, matches.clusters)
    normal = draws.normal(matches.models if system is PLAIN else (*matches.models, " length")) * 1000 / LOGIT
    for row, weight, mean in zip(system.redraw(matches, draws), draws.weights, normal, strict=True):
        theta = fit_naively(matches, system, weight[matches.cluster], mean)[: len(matches.models)]
        assert row == pytest.approx(1000 + LOGIT * (theta - theta.mean()), abs=1e-3)


@by_system
@each("known", True, False)
def test_statsmodels_has_the_same_sandwich(system: Any, known: bool) -> None:
    matches = plant_matches(5, 400, 25, 80, known=known)
    groups = matches.cluster if known else np.arange(400)
    fit = sm.GLM(POINTS[matches.outcome], design(matches, system)[:, 1:], family=sm.families.Binomial()).fit(
        tol=1e-12, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    ratings = system.rate(matches, prior=3e4, anchor="m0", anchor_rating=0)
    assert ratings.rating[1:] == pytest.approx(LOGIT * fit.params[:4], abs=0.01)
    assert ratings.covariance[1:, 1:] == pytest.approx(LOGIT**2 * fit.cov_params()[:4, :4], rel=1e-3)
    assert ratings.covariance[0] == pytest.approx(np.zeros(5), abs=1e-9)
    if system is CONTROLLED:
        length, m = ratings.extra["length"], matches.clusters
        half = stats.t.ppf(0.975, m - 1) * LOGIT * fit.bse[-1] * math.sqrt(m / (m - 1))
        assert length == pytest.approx(LOGIT * fit.params[-1], abs=0.01)
        assert ratings.extra["length_high"] - length == pytest.approx(half, rel=1e-3)
        assert length - ratings.extra["length_low"] == pytest.approx(half, rel=1e-3)


@by_system
def test_single_match_weights_equal_one_match_prompts(system: Any) -> None:
    matches, draws = plant_matches(4, 80, 80, 50), draw(1, 20, 80)
    assert system.redraw(drop_prompts(matches), draws) == pytest.approx(system.redraw(matches, draws))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("system", "count", "near"), [(PLAIN, 1500, 0.08), (CONTROLLED, 1000, 0.1)])
def test_draws_vary_as_the_sandwich_predicts(system: Any, count: int, near: float, known: bool) -> None:
    matches = (
        matches_of(random_rows(6, 1689, 113), known)
        if system is PLAIN
        else plant_matches(4, 400, 100, 100, known=known)
    )
    ratings, draws = system.rate(matches), draw(0, count, matches.clusters, table=known)
    drawn = system.redraw(matches, draws)
    assert drawn.shape == (count, len(matches.models))
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(np.diag(ratings.covariance)), rel=near)
    if system is PLAIN:
        assert drawn.mean(axis=0) == pytest.approx(ratings.rating, abs=3)
    assert (system.redraw(matches, draws) == drawn).all()


@given(match_tables())
def test_table_of_ties_is_flat(matches: Matches) -> None:
    ratings = PLAIN.rate(replace(matches, outcome=np.full_like(matches.outcome, TIE)), anchor_rating=1500)
    assert ratings.rating == pytest.approx(np.full(len(ratings.models), 1500.0), abs=1e-9)
    assert not ratings.notes


def test_doubled_matches_narrow_the_interval_by_root_two() -> None:
    rows = random_rows(5, 400, 20)
    one, two = (PLAIN.rate(matches_of(some, False), prior=3e4).covariance for some in (rows, rows * 2))
    assert np.sqrt(np.diag(one) / np.diag(two)) == pytest.approx(np.full(5, math.sqrt(2)), rel=1e-4)
    # Judging the same prompts twice adds no prompts.
    one, two = (PLAIN.rate(matches_of(some), prior=3e4).covariance for some in (rows, rows * 2))
    assert one == pytest.approx(two, rel=1e-3)


def test_one_prompt_per_match_equals_no_prompts() -> None:
    rows = [(a, b, o, str(i)) for i, (a, b, o, _) in enumerate(random_rows(4, 60, 6))]
    expected = PLAIN.rate(matches_of(rows, False)).covariance
    assert PLAIN.rate(matches_of(rows)).covariance == pytest.approx(expected)
    # A further prompt without a match adds no information but selects the general code path.
    matches = replace(matches_of(rows), prompts=(*map(str, range(60)), "unused"))
    assert PLAIN.rate(matches).covariance == pytest.approx(expected)


def test_evalica_and_choix_agree_on_connected_models() -> None:
    rows = random_rows(6, 600, 30)
    matches = matches_of(rows)
    code = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}
    a, b, outcome, _ = zip(*rows, strict=True)
    peer_ratings = evalica.bradley_terry(a, b, [code[o] for o in outcome], tolerance=1e-12, limit=100_000).scores
    expected = LOGIT * np.log(peer_ratings[list(matches.models)].to_numpy())
    rating = PLAIN.rate(matches, prior=3e4).rating
    assert rating - 1000 == pytest.approx(expected - expected.mean(), abs=0.01)

    # choix knows no ties: a win is two of its comparisons, a tie one each way. Its penalty is alpha times the squares,
    # not half of that, so that its variance is 1 / (2 alpha) and doubled matches need our alpha.
    wins = []
    for i, j, o in zip(matches.a.tolist(), matches.b.tolist(), outcome, strict=True):
        wins += {"a": [(i, j)] * 2, "b": [(j, i)] * 2, "tie": [(i, j), (j, i)]}[o]
    theta = choix.opt_pairwise(len(matches.models), wins, alpha=(LOGIT / 300) ** 2, tol=1e-12)
    rating = PLAIN.rate(matches, prior=300).rating
    assert rating - 1000 == pytest.approx(LOGIT * (theta - theta.mean()), abs=0.01)


def test_anchor_keeps_its_rating_without_variance() -> None:
    matches = matches_of(random_rows(4, 300, 15))
    free, held = PLAIN.rate(matches), PLAIN.rate(matches, anchor="m2", anchor_rating=1234.5)
    assert held.rating[2] == 1234.5
    assert held.rating - held.rating[0] == pytest.approx(free.rating - free.rating[0])
    assert held.covariance[2, 2] == 0
    gap = np.array([1.0, 0, 0, -1])
    assert gap @ held.covariance @ gap == pytest.approx(gap @ free.covariance @ gap)
    drawn = PLAIN.redraw(matches, draw(0, 50, matches.clusters), anchor="m2", anchor_rating=1234.5)
    assert (drawn[:, 2] == 1234.5).all()


def test_scale_and_base_are_only_units() -> None:
    matches = matches_of(random_rows(4, 300, 15))
    elo = PLAIN.rate(matches)
    logits = PLAIN.rate(matches, prior=1000 / LOGIT, scale=1, base=math.e, anchor_rating=0)
    assert LOGIT * logits.rating == pytest.approx(elo.rating - 1000)
    assert logits.parameters["base"] == math.e
    points = {"prior": 1000.0, "anchor_rating": 1000.0, "scale": 400.0, "base": 10.0}
    assert elo.parameters == {**points, "anchor": None, "interval": "sandwich"}
    assert PLAIN.rate(matches, interval="bootstrap").covariance is None


def test_notes_name_ratings_that_rest_on_the_prior() -> None:
    rows = [("a\x1b[31m\nb", "c", "a", "p")] * 1200
    assert PLAIN.rate(matches_of(rows)).notes == (
        "a\\x1b[31m b won all of its 1,200 matches: its rating rests on the prior",
        "c lost all of its 1,200 matches: its rating rests on the prior",
    )
    ratings = PLAIN.rate(replace(matches_of([("a", "b", "tie", "p")]), models=("a", "b", "c")))
    assert ratings.notes == ("c has no match: its rating rests on the prior",)
    assert ratings.rating == pytest.approx([1000.0] * 3)


def test_separate_groups_differ_as_the_prior_says() -> None:
    rows = random_rows(3, 300, 20)
    rows += [(f"other {a}", f"other {b}", o, p) for a, b, o, p in random_rows(3, 300, 20, seed=1)]
    matches = matches_of(rows)
    gap = np.array([1, 1, 1, -1, -1, -1]) / 3
    expected = 1000 * math.sqrt(2 / 3)
    ratings = PLAIN.rate(matches)
    assert ratings.rating @ gap == pytest.approx(0, abs=1e-6)
    assert math.sqrt(gap @ ratings.covariance @ gap) == pytest.approx(expected, rel=1e-6)
    assert (PLAIN.redraw(matches, draw(3, 1000, matches.clusters)) @ gap).std() == pytest.approx(expected, rel=0.08)


def test_undefeated_model_has_a_wide_interval() -> None:
    rows = [*random_rows(4, 400, 20), *[("best", f"m{i % 4}", "a", f"q{i % 20}") for i in range(40)]]
    ratings = PLAIN.rate(matches_of(rows))
    errors = dict(zip(ratings.models, np.sqrt(np.diag(ratings.covariance)), strict=True))
    assert 3 * errors["m0"] < errors["best"] < 1000


@each("models, count, prompts", (6, 1689, 113), (30, 200, 40), (8, 3000, 10))
def test_draws_are_at_their_maximum(models: int, count: int, prompts: int) -> None:
    matches = matches_of(random_rows(models, count, prompts, spread=400))
    draws: Any = draw(0, 60, matches.clusters)
    # A Newton step in plain dense algebra changes no rating by more than a millionth of a point.
    ridge = (LOGIT / 1000) ** 2
    replicates, x, y = PLAIN.redraw(matches, draws), design(matches, PLAIN), POINTS[matches.outcome]
    normal = draws.normal(matches.models) * 1000 / LOGIT
    for row, weight, mean in zip(replicates, draws.weights, normal, strict=True):
        theta = (row - 1000) / LOGIT + mean.mean()
        p = 1 / (1 + np.exp(-x @ theta))
        w = weight[matches.cluster]
        slope = x.T @ (w * (y - p)) - ridge * (theta - mean)
        step = np.linalg.solve((x.T * (w * p * (1 - p))) @ x + ridge * np.eye(models), slope)
        assert np.abs(step).max() * LOGIT < 1e-6


def test_unit_weights_change_the_rating_only_by_the_prior() -> None:
    matches = matches_of(random_rows(4, 400, 10))
    flat = Draws(0, 3, np.ones((3, 10), np.uint8))
    assert PLAIN.redraw(matches, flat, prior=10) != pytest.approx(PLAIN.rate(matches, prior=10).rating, abs=1e-3)
    rating = PLAIN.rate(matches, prior=3e4).rating
    assert PLAIN.redraw(matches, flat, prior=3e4) == pytest.approx(np.tile(rating, (3, 1)), abs=1)


def test_200_models_and_1689_matches_are_rated() -> None:
    ratings = PLAIN.rate(matches_of(random_rows(200, 1689, 113)))
    assert np.isfinite(ratings.rating).all()
    assert (np.diag(ratings.covariance) > 0).all()


def test_work_in_parts_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = matches_of(random_rows(7, 500, 40))
    draws = draw(0, 30, matches.clusters)
    whole, drawn = PLAIN.rate(matches), PLAIN.redraw(matches, draws)
    # Sparse tables, several blocks of prompts, of matches and of draws.
    monkeypatch.setattr(logistic, "SMALL", 0)
    for module in (logistic, sys.modules[PLAIN.rate.__module__]):
        monkeypatch.setattr(module, "BLOCK", 100)
        monkeypatch.setattr(module, "MANY", 60)
    assert PLAIN.rate(matches).rating == pytest.approx(whole.rating)
    assert PLAIN.rate(matches).covariance == pytest.approx(whole.covariance)
    assert PLAIN.redraw(matches, draws) == pytest.approx(drawn)


def test_tiny_chances_are_exact() -> None:
    odds = np.array([-1000.0, -40.0, 0.0, 1.0, 40.0, 1000.0])
    p, q = logistic.chances(odds)
    assert p == pytest.approx(special.expit(np.maximum(odds, -700)), rel=1e-14)
    assert q == pytest.approx(special.expit(np.maximum(-odds, -700)), rel=1e-14)


def test_unknown_anchor_lists_the_models() -> None:
    with pytest.raises(UnknownName, match=r"unknown model 'c'.*known: a, b"):
        PLAIN.rate(matches_of([("a", "b", "a", "p")]), anchor="c")


def test_bradley_terry_is_the_default_system() -> None:
    assert (PLAIN.default, PLAIN.unit, PLAIN.lengths) == (True, "points", False)
    assert set(PLAIN.parameters) == {"prior", "anchor", "anchor_rating", "scale", "base", "interval"}


@given(match_tables(), st.randoms(use_true_random=False))
def test_match_and_model_order_do_not_matter(matches: Any, random: Any) -> None:
    order = list(range(len(matches)))
    random.shuffle(order)
    turned = replace(
        matches,
        a=matches.b[order],
        b=matches.a[order],
        outcome=np.array([1, 0, 2], np.int8)[matches.outcome][order],
        cluster=matches.cluster[order],
        lengths=matches.lengths[order][:, ::-1],
    )
    one, other = CONTROLLED.rate(matches), CONTROLLED.rate(turned)
    assert one.rating == pytest.approx(other.rating, abs=1e-7)
    assert one.covariance == pytest.approx(other.covariance, rel=1e-7, abs=1e-4)
    assert dict(one.extra) == pytest.approx(dict(other.extra), abs=1e-5)


@given(match_tables())
def test_equal_lengths_reduce_it_to_bradley_terry(matches: Any) -> None:
    flat = replace(matches, lengths=np.full_like(matches.lengths, 7))
    ratings, expected = CONTROLLED.rate(flat), PLAIN.rate(flat)
    assert ratings.rating == pytest.approx(expected.rating, abs=1e-7)
    assert ratings.covariance == pytest.approx(expected.covariance, rel=1e-7, abs=1e-5)
    assert ratings.extra["length"] == 0
    assert ratings.notes == (
        *expected.notes,
        "responses are equally long in every match: the worth of length rests on the prior",
    )


def test_length_effect_is_removed() -> None:
    matches = plant_matches(4, 20_000, 200, 100, noise=0)
    ratings, plain = CONTROLLED.rate(matches), PLAIN.rate(matches)
    assert ratings.extra["length_low"] < 100 < ratings.extra["length_high"]
    assert ratings.extra["length"] == pytest.approx(100, abs=12)
    assert np.ptp(plain.rating) > 100
    assert np.ptp(ratings.rating) < 30


@each("outcome, length", ("a", 5), ("tie", 5), ("b", 0))
def test_single_match_has_a_rating_and_no_length_interval(outcome: str, length: int) -> None:
    ratings = CONTROLLED.rate(encode(["a"], ["b"], [outcome], ["p"], [(length, 0)]))
    assert np.isfinite(ratings.rating).all()
    assert set(ratings.extra) == {"length"}
    assert CONTROLLED.rate(encode(["a"], ["b"], ["a"], ["p"], [(9, 1)]), interval="bootstrap").covariance is None


def test_separated_matches_are_finite() -> None:
    # The longer response wins a thousand times.
    matches = encode(["a", "b"] * 1000, ["b", "a"] * 1000, ["a", "a"] * 1000, None, [(90, 10)] * 2000)
    ratings = CONTROLLED.rate(matches)
    assert ratings.rating == pytest.approx([1000, 1000], abs=1e-6)
    assert 500 < ratings.extra["length_low"] < ratings.extra["length"] < ratings.extra["length_high"] < 3000
    assert not ratings.notes
    assert np.isfinite(CONTROLLED.redraw(matches, draw(0, 5, 2000))).all()


def test_matches_without_lengths_are_refused_in_one_line() -> None:
    matches = encode(["a"], ["b"], ["a"])
    with pytest.raises(UsageError, match="style-control needs the lengths of responses") as error:
        CONTROLLED.rate(matches)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="style-control needs the lengths of responses"):
        CONTROLLED.redraw(matches, draw(0, 2, 1))
    with pytest.raises(UsageError, match="unknown model 'c'"):
        CONTROLLED.rate(plant_matches(3, 20, 5, 0), anchor="c")


def test_style_control_is_a_system_that_needs_lengths() -> None:
    assert (CONTROLLED.lengths, CONTROLLED.default) == (True, False)
    assert CONTROLLED.parameters == PLAIN.parameters
    assert dict(CONTROLLED.rate(plant_matches(3, 20, 5, 0), prior=500.0).parameters)["prior"] == 500.0
