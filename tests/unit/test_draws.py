"""Test draws of prompts: reproducible by seed, with the frequencies of chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.stats.ratings import draws
from distract.stats.ratings.draws import draw


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
