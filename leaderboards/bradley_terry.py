"""Bradley-Terry: a strength for each model, such that P(a beats b) = 1 / (1 + base^((b - a) / scale)).

A tie is half a win for each. The likelihood is that of independent matches with a Gaussian prior on every strength, so
that models which never lost, and groups which never met, have finite ratings and wide intervals. The interval is the
sandwich over prompts unless it is to be drawn. It knows no judge, and no lengths.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from distract import Draws, Matches, Ratings, RatingSystem

from .logistic import BLOCK, MANY, Design, Floats, Game, chances, derivatives, design, newton, parts, refit
from .sandwich import sandwich, sum_clusters
from .scale import POINTS, Scale, make_scale, remarks


class PairCounts(NamedTuple):
    """Matches as counts.

    Attributes:
        design: a row for each pair that met, the model whose name comes first being its first one.
        counts: how often the first won, the second won, neither; shape (pairs, 3).
        number: which pair two models are, shape (models, models).
    """

    design: Design
    counts: NDArray[np.int64]
    number: NDArray[np.int32]


def collapse(matches: Matches) -> PairCounts:
    """Count matches: what follows costs as much as there are pairs, however many matches there are."""
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


def rate_bradley_terry(
    matches: Matches,
    *,
    prior: float = 1000.0,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
    scale: float = 400.0,
    base: float = 10.0,
    interval: str = "sandwich",
) -> Ratings:
    """Rate by maximum penalised likelihood.

    Args:
        matches: in any order.
        prior: standard deviation of the Gaussian prior on every rating, around their mean, in points.
        anchor: the model whose rating is given; None: the mean of all is.
        anchor_rating: that rating, in points.
        scale: points that multiply the odds by ``base``.
        base: above 1.
        interval: ``sandwich`` for a covariance over prompts in closed form, ``bootstrap`` for none.

    Raises:
        UsageError: a parameter is out of its range, or the anchor is no model.
    """
    asked: dict[str, Any] = {"prior": prior, "anchor": anchor, "anchor_rating": anchor_rating}
    asked |= {"scale": scale, "base": base, "interval": interval}
    to = make_scale(matches, **asked)
    pairs = collapse(matches)
    strengths, hessian = _fit(pairs, to)
    covariance = None
    if interval == "sandwich":
        covariance = to.spread(sandwich(hessian, _scores(matches, pairs, strengths), to.ridge))
    notes = tuple(remarks(matches))
    return Ratings(SYSTEM.name, matches.models, to.place(strengths), MappingProxyType(asked), covariance, notes=notes)


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> Floats:
    """Ratings under each draw, shape (draws, models).

    The mean of the prior is drawn as well, so that the draws vary as the sandwich says also where it decides.

    Args:
        matches: in any order.
        draws: of prompts; without weights, each match counts a random number of times, Poisson(1).
        **parameters: as for ``rate_bradley_terry``.

    Raises:
        UsageError: as there.
    """
    to = make_scale(matches, **{**SYSTEM.parameters, **parameters})
    pairs = collapse(matches)
    strengths, hessian = _fit(pairs, to)
    mean = draws.normal(matches.models).T / math.sqrt(to.ridge)
    random = draws.generator("matches")
    found = np.empty_like(mean)
    rows = len(pairs.counts)
    for group in parts(draws.count, (MANY if draws.weights is None else BLOCK) // rows):
        if draws.weights is None:
            first, second = _draw_points(pairs, group.stop - group.start, random)
        else:
            first, second = _weigh_points(matches, pairs, draws.weights[group])
        for some in parts(group.stop - group.start, MANY // rows):
            here = slice(group.start + some.start, group.start + some.stop)
            found[:, here] = refit(
                _make_game(pairs.design, first[:, some], second[:, some]), strengths, hessian, mean[:, here], to.ridge
            )
    return to.place(found)


def _make_game(rows: Design, first: Floats, second: Floats) -> Game:
    return lambda which: ((rows, first[:, which], second[:, which]),)


def _fit(pairs: PairCounts, to: Scale) -> tuple[Floats, Floats]:
    """Strengths in logits, their mean being 0, and minus the second derivative there."""
    wins = pairs.counts[:, [Matches.A, Matches.B]] + pairs.counts[:, [Matches.TIE]] / 2
    game = _make_game(pairs.design, wins[:, [0]], wins[:, [1]])
    none = np.zeros((len(pairs.number), 1))
    found = newton(game, none, none, to.ridge)
    return found[:, 0], derivatives(game, slice(None), found, none, to.ridge)[1][0]


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
    """What each model of each pair won where each match counts a Poisson(1) number of times, shape (pairs, draws).

    That is a bootstrap whose number of matches varies a little, on which ratings do not depend but for the prior.
    """
    # Several sums of such numbers are Poisson as well: one for each cell.
    drawn = random.poisson(pairs.counts[:, :, None], (*pairs.counts.shape, draws))
    tie = drawn[:, 2] / 2
    return drawn[:, 0] + tie, drawn[:, 1] + tie


def _weigh_points(matches: Matches, pairs: PairCounts, weights: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """What each model of each pair won where prompts count as weighted, shape (pairs, draws)."""
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
        for some in parts(len(weights), BLOCK // clusters):
            total[:, some] += table @ np.ascontiguousarray(weights[some].T, np.float64)
    return total[:rows], total[rows:]


SYSTEM = RatingSystem(
    name="bradley-terry",
    summary="maximum likelihood of strengths, ties half a win each, with an explicit prior; order does not matter",
    rate=rate_bradley_terry,
    redraw=redraw,
    default=True,
)
