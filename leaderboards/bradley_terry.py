"""Bradley-Terry: a strength for each model, such that P(a beats b) = 1 / (1 + base^((b - a) / scale)).

A tie counts as half a win for each. The likelihood assumes independent matches and a Gaussian prior on every strength,
so models that never lost, and groups that never met, get finite ratings and wide intervals. Intervals come from the
sandwich covariance over prompts, or from draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from distract import Draws, Matches, Ratings, RatingSystem

from .logistic import BLOCK, MANY, Design, Floats, Game, chances, design, fit, parts, refit, sandwich, sum_clusters
from .scale import POINTS, Scale, make_scale, on_scale, prior_notes


class PairCounts(NamedTuple):
    """Matches as counts.

    ``design`` has a row for each pair that met, with the model whose name sorts first as its first one. ``counts``
    holds first wins, second wins and ties, shape (pairs, 3); ``number`` is the row of two models.
    """

    design: Design
    counts: NDArray[np.int64]
    number: NDArray[np.int32]


def collapse(matches: Matches) -> PairCounts:
    """Count matches by pair, so that the cost of a fit does not depend on the number of matches."""
    size = len(matches.models)
    cells = 3 * size * size
    count = np.zeros(cells, np.int64)
    for part in parts(len(matches), max(MANY, cells)):
        code = (matches.a[part] * np.int64(size) + matches.b[part]) * 3 + matches.outcome[part]
        count += np.bincount(code, minlength=cells)
    table = count.reshape(size, size, 3)
    table = table + table.transpose(1, 0, 2)[:, :, [Matches.B, Matches.A, Matches.TIE]]
    first, second = np.nonzero(np.triu(table.any(axis=2), 1))
    number = np.zeros((size, size), np.int32)
    number[first, second] = number[second, first] = np.arange(len(first))
    rows = design(np.stack((first, second), axis=1).astype(np.int32), np.array([1.0, -1.0]), size)
    return PairCounts(rows, table[first, second], number)


@on_scale
def rate_bradley_terry(matches: Matches, scale: Scale, parameters: Mapping[str, Any]) -> Ratings:
    """Rate by maximum penalised likelihood."""
    pairs = collapse(matches)
    strengths, hessian = _fit(pairs, scale)
    covariance = None
    if parameters["interval"] == "sandwich":
        covariance = scale.spread(sandwich(hessian, _scores(matches, pairs, strengths), scale.ridge))
    rating = scale.place(strengths)
    return Ratings(SYSTEM.name, matches.models, rating, parameters, covariance, notes=tuple(prior_notes(matches)))


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> Floats:
    """Ratings under each draw, shape (draws, models).

    The mean of the prior is drawn too, so that draws vary like the sandwich covariance even if the prior dominates.
    Without prompt weights, each match counts a Poisson(1) number of times.
    """
    scale = make_scale(matches, **{**SYSTEM.parameters, **parameters})
    pairs = collapse(matches)
    strengths, hessian = _fit(pairs, scale)
    mean = draws.normal(matches.models).T / math.sqrt(scale.ridge)
    random = draws.generator("matches")
    ratings = np.empty_like(mean)
    rows = len(pairs.counts)
    for group in parts(draws.count, (MANY if draws.weights is None else BLOCK) // rows):
        if draws.weights is None:
            first, second = _draw_points(pairs, group.stop - group.start, random)
        else:
            first, second = _weigh_points(matches, pairs, draws.weights[group])
        for part in parts(group.stop - group.start, MANY // rows):
            here = slice(group.start + part.start, group.start + part.stop)
            game = _make_game(pairs.design, first[:, part], second[:, part])
            ratings[:, here] = refit(game, strengths, hessian, mean[:, here], scale.ridge)
    return scale.place(ratings)


def _make_game(rows: Design, first: Floats, second: Floats) -> Game:
    return lambda which: ((rows, first[:, which], second[:, which]),)


def _fit(pairs: PairCounts, scale: Scale) -> tuple[Floats, Floats]:
    wins = pairs.counts[:, [Matches.A, Matches.B]] + pairs.counts[:, [Matches.TIE]] / 2
    return fit(_make_game(pairs.design, wins[:, [0]], wins[:, [1]]), len(pairs.number), scale.ridge)


def _scores(matches: Matches, pairs: PairCounts, strengths: Floats) -> Floats:
    """Sum over prompts of the outer products of their scores, shape (models, models)."""
    size = len(strengths)
    if matches.cluster is None or len(matches.prompts) == len(matches) == len(np.unique(matches.cluster)):
        p, q = chances(pairs.design.rows @ strengths)
        squares = (pairs.counts * np.stack((q * q, p * p, (p - q) ** 2 / 4), axis=1)).sum(axis=1)
        result: Floats = (pairs.design.squares.T @ squares).reshape(size, size)
        return result
    expected = chances(strengths[:, None] - strengths[None, :])[0]

    def scores(which: Any) -> tuple[NDArray[np.int32], Floats]:
        a, b = matches.a[which], matches.b[which]
        value = POINTS[matches.outcome[which]] - expected[a, b]
        return np.stack((a, b), axis=1), np.stack((value, -value), axis=1)

    return sum_clusters(matches.cluster, len(matches.prompts), size, scores)


def _draw_points(pairs: PairCounts, draws: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Points of both models of each pair if each match counts a Poisson(1) number of times, shape (pairs, draws).

    This is a bootstrap with a slightly varying number of matches, which affects ratings only through the prior.
    """
    # A sum of Poisson numbers is Poisson, so one number for each cell is enough.
    drawn = random.poisson(pairs.counts[:, :, None], (*pairs.counts.shape, draws))
    tie = drawn[:, 2] / 2
    return drawn[:, 0] + tie, drawn[:, 1] + tie


def _weigh_points(matches: Matches, pairs: PairCounts, weights: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Points of both models of each pair under the weights of prompts, shape (pairs, draws)."""
    assert matches.cluster is not None or weights.shape[1] == len(matches)
    rows, clusters = len(pairs.counts), weights.shape[1]
    total = np.zeros((2 * rows, len(weights)))
    for part in parts(len(matches), MANY):
        pair = pairs.number[matches.a[part], matches.b[part]]
        share = POINTS[matches.outcome[part]]
        share = np.where(matches.a[part] < matches.b[part], share, 1 - share)
        prompt = np.arange(part.start, part.stop) if matches.cluster is None else matches.cluster[part]
        where = np.concatenate((pair, pair + rows)), np.concatenate((prompt, prompt))
        won = coo_array((np.concatenate((share, 1 - share)), where), shape=(2 * rows, clusters)).tocsr()
        table = won.toarray() if won.nnz > 0.05 * 2 * rows * clusters else won
        for block in parts(len(weights), BLOCK // clusters):
            total[:, block] += table @ np.ascontiguousarray(weights[block].T, np.float64)
    return total[:rows], total[rows:]


SYSTEM = RatingSystem(
    name="bradley-terry",
    summary="maximum likelihood of strengths, ties half a win each, with an explicit prior; order does not matter",
    rate=rate_bradley_terry,
    redraw=redraw,
    default=True,
)
