"""Win rate: the share of points that a model takes from its matches; a tie is half a point for each.

It does not measure strength: beating weak opponents gives a high win rate. Matches of one prompt are not independent,
so the covariance is that of ratios of sums over prompts. Prompts are processed in blocks; without
prompts, the outcomes of each pair are counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distract import Draws, Matches, Ratings, RatingSystem

from .scale import POINTS
from .shuffles import Floats, cells

BLOCK = 1 << 21  # entries of a table to hold at once


def rate(matches: Matches) -> Ratings:
    """Rate by win rate, with the covariance over prompts, or over matches without prompts.

    A model without a match has the rating 0.5; ``encode`` creates none.
    """
    first, second, outcome, often = _cells(matches)
    points, played = _sums(first, second, outcome, often[None, :], len(matches.models))
    share = _share(points, played, np.full((1, len(matches.models)), 0.5))[0]
    total = np.maximum(played[0], 1)
    covariance = np.zeros((len(share), len(share)))
    if matches.cluster is None:
        # A match affects two models only, and all matches of one cell affect them equally.
        up = (POINTS[outcome] - share[first]) / total[first]
        down = (1 - POINTS[outcome] - share[second]) / total[second]
        np.add.at(covariance, (first, first), often * up**2)
        np.add.at(covariance, (second, second), often * down**2)
        np.add.at(covariance, (first, second), often * up * down)
        np.add.at(covariance, (second, first), often * up * down)
    else:
        for _, won, had in _blocks(matches, len(share)):
            influence = (won - share * had) / total
            covariance += influence.T @ influence
    return Ratings("win-rate", matches.models, share, {}, covariance)


def redraw(matches: Matches, draws: Draws) -> Floats:
    """Win rates under each draw, shape (draws, models); a model without drawn matches keeps its win rate."""
    models = len(matches.models)
    random = draws.generator("win-rate")
    own = np.repeat(rate(matches).rating[None, :], draws.count, axis=0)
    points, played = np.zeros((2, draws.count, models))
    if draws.weights is None and matches.cluster is None:
        first, second, outcome, often = _cells(matches)
        step = max(1, BLOCK // len(often))
        for start in range(0, draws.count, step):
            part = slice(start, min(start + step, draws.count))
            times = random.poisson(often, (part.stop - start, len(often))).astype(float)
            points[part], played[part] = _sums(first, second, outcome, times, models)
        return _share(points, played, own)
    for prompts, won, had in _blocks(matches, max(models, draws.count)):
        if draws.weights is None:
            times = random.poisson(1.0, (len(won), draws.count)).T.astype(float)
        else:
            times = draws.weights[:, prompts].astype(float)
        points += times @ won
        played += times @ had
    return _share(points, played, own)


def _share(points: Floats, played: Floats, otherwise: Floats) -> Floats:
    return np.divide(points, played, out=otherwise.copy(), where=played > 0)


def _cells(matches: Matches) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First model, second model, outcome and number of matches, for each combination that occurs."""
    models = len(matches.models)
    table = np.bincount(cells(matches), minlength=3 * models**2).reshape(models, models, 3)
    first, second, outcome = np.nonzero(table)
    return first, second, outcome, table[first, second, outcome]


def _sums(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    outcome: NDArray[np.int64],
    times: NDArray[np.number],
    models: int,
) -> tuple[Floats, Floats]:
    """Points and matches of each model, both of shape (draws, models)."""
    points, played = np.zeros((2, len(times), models))
    for row, often in enumerate(times):
        worth = POINTS[outcome]
        points[row] = np.bincount(first, often * worth, models) + np.bincount(second, often * (1 - worth), models)
        played[row] = np.bincount(first, often, models) + np.bincount(second, often, models)
    return points, played


def _blocks(matches: Matches, width: int) -> Iterator[tuple[slice, Floats, Floats]]:
    """Points and matches of each model by prompt, both of shape (prompts of a block, models)."""
    models, prompts = len(matches.models), matches.clusters
    cluster = np.arange(len(matches), dtype=np.int32) if matches.cluster is None else matches.cluster
    step = max(1, BLOCK // width)
    for start in range(0, prompts, step):
        part = slice(start, min(start + step, prompts))
        at = np.flatnonzero((cluster >= part.start) & (cluster < part.stop))
        row = (cluster[at] - start).astype(np.int64) * models
        worth = POINTS[matches.outcome[at]]
        shape = part.stop - start, models
        first, second, size = row + matches.a[at], row + matches.b[at], shape[0] * models
        won: Floats = (np.bincount(first, worth, size) + np.bincount(second, 1 - worth, size)).astype(float)
        had: Floats = (np.bincount(first, minlength=size) + np.bincount(second, minlength=size)).astype(float)
        yield part, won.reshape(shape), had.reshape(shape)


win_rate = RatingSystem("win-rate", "share of points; a tie is half a point", rate, redraw, unit="share")
