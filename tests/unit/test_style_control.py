"""Test length-controlled Bradley-Terry against plain loops, statsmodels, and planted length effects."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from distract.leaderboards.bradley_terry import rate_bradley_terry
from distract.leaderboards.style_control import rate_style_control, redraw
from hypothesis import given, strategies as st
from loops import each
from scipy import optimize, stats

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings.matches import Matches, draw, encode

LOGIT = 400 / math.log(10)
POINTS = np.array([1.0, 0.0, 0.5])


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


def design(matches: Matches) -> Any:
    x = np.zeros((len(matches), len(matches.models) + 1))
    x[np.arange(len(matches)), matches.a] = 1
    x[np.arange(len(matches)), matches.b] -= 1
    x[:, -1] = covariate(matches.lengths)
    return x


def fit_naively(matches: Matches, weight: Any = 1.0, mean: Any = 0.0, sd: float = 1000.0) -> Any:
    """Strengths and the worth of length in logits, by scipy on the dense design."""
    x, y, ridge = design(matches), POINTS[matches.outcome], (LOGIT / sd) ** 2

    def loss(theta: Any) -> tuple[float, Any]:
        odds = x @ theta
        value = (weight * (y * np.logaddexp(0, -odds) + (1 - y) * np.logaddexp(0, odds))).sum()
        slope = x.T @ (weight * (1 / (1 + np.exp(-odds)) - y)) + ridge * (theta - mean)
        return value + 0.5 * ridge * ((theta - mean) ** 2).sum(), slope

    def steep(theta: Any) -> Any:
        return loss(theta)[1]

    fit = optimize.minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"maxiter": 5000}).x
    return optimize.root(steep, fit, tol=1e-13).x


NAMES = ["a, b", "🦙", "<b>", "x|y"]
one = st.tuples(
    st.permutations(NAMES),
    st.sampled_from(["a", "b", "tie"]),
    st.sampled_from("pqr"),
    st.tuples(*[st.integers(0, 900)] * 2),
)


@st.composite
def match_tables(draw_: st.DrawFn) -> Matches:
    pairs, outcomes, prompts, lengths = zip(*draw_(st.lists(one, min_size=1, max_size=20)), strict=True)
    return encode([p[0] for p in pairs], [p[1] for p in pairs], outcomes, prompts, lengths)


@given(match_tables(), st.sampled_from([50.0, 1000.0]))
def test_ratings_agree_with_a_dense_regression(matches: Matches, sd: float) -> None:
    ratings = rate_style_control(matches, prior=sd)
    theta = fit_naively(matches, sd=sd)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta[:-1] - theta[:-1].mean()), abs=1e-4)
    assert ratings.extra["length"] == pytest.approx(LOGIT * theta[-1], abs=1e-4)


@given(match_tables(), st.randoms(use_true_random=False))
def test_match_and_model_order_do_not_matter(matches: Matches, random: Any) -> None:
    order = list(range(len(matches)))
    random.shuffle(order)
    assert matches.cluster is not None
    assert matches.lengths is not None
    turned = replace(
        matches,
        a=matches.b[order],
        b=matches.a[order],
        outcome=np.array([1, 0, 2], np.int8)[matches.outcome][order],
        cluster=matches.cluster[order],
        lengths=matches.lengths[order][:, ::-1],
    )
    one, other = rate_style_control(matches), rate_style_control(turned)
    assert one.rating == pytest.approx(other.rating, abs=1e-7)
    assert one.covariance == pytest.approx(other.covariance, rel=1e-7, abs=1e-4)
    assert dict(one.extra) == pytest.approx(dict(other.extra), abs=1e-5)


@given(match_tables())
def test_equal_lengths_reduce_it_to_bradley_terry(matches: Matches) -> None:
    assert matches.lengths is not None
    flat = replace(matches, lengths=np.full_like(matches.lengths, 7))
    ratings, expected = rate_style_control(flat), rate_bradley_terry(flat)
    assert ratings.rating == pytest.approx(expected.rating, abs=1e-7)
    assert ratings.covariance == pytest.approx(expected.covariance, rel=1e-7, abs=1e-5)
    assert ratings.extra["length"] == 0
    assert ratings.notes == (
        *expected.notes,
        "responses are equally long in every match: the worth of length rests on the prior",
    )


@each("known", True, False)
def test_statsmodels_has_the_same_sandwich(known: bool) -> None:
    matches = plant_matches(5, 400, 25, 80, known=known)
    groups = matches.cluster if known else np.arange(400)
    fit = sm.GLM(POINTS[matches.outcome], design(matches)[:, 1:], family=sm.families.Binomial()).fit(
        tol=1e-12, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    ratings = rate_style_control(matches, prior=3e4, anchor="m0", anchor_rating=0)
    assert ratings.rating[1:] == pytest.approx(LOGIT * fit.params[:-1], abs=0.01)
    assert ratings.covariance is not None
    assert ratings.covariance[1:, 1:] == pytest.approx(LOGIT**2 * fit.cov_params()[:-1, :-1], rel=1e-3)
    m = matches.clusters
    half = stats.t.ppf(0.975, m - 1) * LOGIT * fit.bse[-1] * math.sqrt(m / (m - 1))
    assert ratings.extra["length"] == pytest.approx(LOGIT * fit.params[-1], abs=0.01)
    assert ratings.extra["length_high"] - ratings.extra["length"] == pytest.approx(half, rel=1e-3)
    assert ratings.extra["length"] - ratings.extra["length_low"] == pytest.approx(half, rel=1e-3)


def test_length_effect_is_removed() -> None:
    matches = plant_matches(4, 20_000, 200, 100, noise=0)
    ratings, plain = rate_style_control(matches), rate_bradley_terry(matches)
    assert ratings.extra["length_low"] < 100 < ratings.extra["length_high"]
    assert ratings.extra["length"] == pytest.approx(100, abs=12)
    assert np.ptp(plain.rating) > 100
    assert np.ptp(ratings.rating) < 30


@given(match_tables(), st.integers(0, 5))
def test_draw_replays_each_prompt_as_often_as_drawn(matches: Matches, seed: int) -> None:
    draws = draw(seed, 6, matches.clusters)
    assert draws.weights is not None
    replicates = redraw(matches, draws)
    normal = draws.normal((*matches.models, " length")) * 1000 / LOGIT
    for row, weight, mean in zip(replicates, draws.weights, normal, strict=True):
        theta = fit_naively(matches, weight[matches.cluster], mean)
        assert row == pytest.approx(1000 + LOGIT * (theta[:-1] - theta[:-1].mean()), abs=1e-3)


def test_single_match_weights_equal_one_match_prompts() -> None:
    matches = plant_matches(4, 60, 60, 50)
    draws = draw(1, 10, 60)
    expected = redraw(matches, draws)
    assert redraw(replace(matches, cluster=None, prompts=()), draws) == pytest.approx(expected)


@each("outcome, length", ("a", 5), ("tie", 5), ("b", 0))
def test_single_match_has_a_rating_and_no_length_interval(outcome: str, length: int) -> None:
    ratings = rate_style_control(encode(["a"], ["b"], [outcome], ["p"], [(length, 0)]))
    assert np.isfinite(ratings.rating).all()
    assert set(ratings.extra) == {"length"}
    assert rate_style_control(encode(["a"], ["b"], ["a"], ["p"], [(9, 1)]), interval="bootstrap").covariance is None


def test_separated_matches_are_finite() -> None:
    # The longer response wins a thousand times.
    matches = encode(["a", "b"] * 1000, ["b", "a"] * 1000, ["a", "a"] * 1000, None, [(90, 10)] * 2000)
    ratings = rate_style_control(matches)
    assert ratings.rating == pytest.approx([1000, 1000], abs=1e-6)
    assert 500 < ratings.extra["length_low"] < ratings.extra["length"] < ratings.extra["length_high"] < 3000
    assert not ratings.notes
    assert np.isfinite(redraw(matches, draw(0, 5, 2000))).all()


def test_matches_without_lengths_are_refused_in_one_line() -> None:
    matches = encode(["a"], ["b"], ["a"])
    with pytest.raises(UsageError, match="style-control needs the lengths of responses") as error:
        rate_style_control(matches)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="style-control needs the lengths of responses"):
        redraw(matches, draw(0, 2, 1))
    with pytest.raises(UsageError, match="unknown model 'c'"):
        rate_style_control(plant_matches(3, 20, 5, 0), anchor="c")


def test_style_control_is_a_system_that_needs_lengths() -> None:
    system = ratings.systems()["style-control"]
    assert system.lengths
    assert not system.default
    assert system.parameters == ratings.systems()["bradley-terry"].parameters
    assert dict(rate_style_control(plant_matches(3, 20, 5, 0), prior=500.0).parameters)["prior"] == 500.0
