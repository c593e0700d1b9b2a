"""Penalised logistic regression on few coefficients, for one or many sets of weights at once.

A row is a kind of comparison: the coefficients of its log odds and how often, under each draw, its first and its second
model won. Coefficients and their prior mean have shape (coefficients, draws); ``ridge`` is the inverse variance of the
prior. The rating systems that explain matches by strengths share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]

MANY = 1 << 17  # table entries to process at once, so that they stay in the processor's cache
BLOCK = 1 << 22  # entries of the largest table to keep in memory
SMALL = 1 << 13  # entries up to which a dense table is as fast as a sparse one
EXACT = 1e-6  # maximum last step of Newton's method, in logits; the remaining error is of the order of its square

CLOSE = 5e-10
"""Maximum error after steps with a shared matrix, in logits: below a ten-millionth of a point on the usual scale."""

SAFE = 1.5  # maximum change of log odds for which a full Newton step raises the likelihood: exp(d) - d - 1 < d * d
STEPS = 200  # limit on Newton steps; few are needed unless rounding keeps the last one from being short


class Design(NamedTuple):
    """Coefficients of the log odds of each row, and their outer products.

    The shapes are (rows, coefficients) and (rows, coefficients * coefficients).
    """

    rows: Any
    squares: Any


Piece: TypeAlias = tuple[Design, Floats, Floats]
"""Rows, and how often their first and second model won, each of shape (rows, draws)."""

Game: TypeAlias = Callable[[Any], Iterable[Piece]]
"""Takes an index of draws; returns all rows in pieces that fit into memory."""


def parts(total: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` (at least 1) that cover ``total``."""
    for start in range(0, total, max(size, 1)):
        yield slice(start, min(start + max(size, 1), total))


def design(columns: NDArray[np.int32], values: Floats, coefficients: int) -> Design:
    """Rows of a few coefficients each: their columns (rows, few) and values (rows, few) or (few,)."""
    values = np.broadcast_to(values, columns.shape)
    pairs = columns[:, :, None] * np.int64(coefficients) + columns[:, None, :]
    return Design(
        _sparse_design(columns, values, coefficients),
        _sparse_design(pairs, values[:, :, None] * values[:, None, :], coefficients * coefficients),
    )


def _sparse_design(columns: NDArray[Any], values: Floats, width: int) -> Any:
    rows = len(columns)
    if rows * width <= SMALL:
        full = np.zeros((rows, width))
        full[np.arange(rows)[:, None], columns.reshape(rows, -1)] = values.reshape(rows, -1)
        return full
    bounds = np.arange(rows + 1) * (columns.size // max(rows, 1))
    return csr_array((values.ravel(), columns.ravel(), bounds), shape=(rows, width))


def chances(odds: Floats) -> tuple[Floats, Floats]:
    """Win probability of the first and of the second model, each exact however small."""
    against = np.clip(-odds, -700, 700)
    np.exp(against, out=against)
    p = 1 / (1 + against)
    against *= p
    return p, against


def gradient(game: Game, which: Any, at: Floats, mean: Floats, ridge: float) -> Floats:
    """Gradient of the penalised log likelihood, shape (coefficients, draws)."""
    total = ridge * (mean - at)
    for one, first, second in game(which):
        p, q = chances(one.rows @ at)
        total += one.rows.T @ (first * q - second * p)
    return total


def derivatives(game: Game, which: Any, at: Floats, mean: Floats, ridge: float) -> tuple[Floats, Floats]:
    """The gradient and the negative second derivative, shape (draws, coefficients, coefficients)."""
    total = ridge * (mean - at)
    size, draws = at.shape
    squares = np.zeros((size * size, draws))
    for one, first, second in game(which):
        p, q = chances(one.rows @ at)
        total += one.rows.T @ (first * q - second * p)
        squares += one.squares.T @ ((first + second) * p * q)
    hessian = np.ascontiguousarray(squares.T).reshape(draws, size, size)
    hessian[:, np.arange(size), np.arange(size)] += ridge
    return total, hessian


def newton(game: Game, start: Floats, mean: Floats, ridge: float) -> Floats:
    """Most likely coefficients by Newton's method, with steps that cannot fail.

    Let d be the largest change of log odds by a step. The full step is taken if d is at most 1.5, else log(1 + d) / d
    of it, or more while the slope along it keeps its sign. The likelihood rises in each case: in the first two by the
    bounds for generalised self-concordant functions (Sun and Tran-Dinh, 2019).
    """
    best = start.copy()
    size = len(start)
    for group in parts(start.shape[1], BLOCK // (size * size)):
        active = np.arange(group.start, group.stop)
        for _ in range(STEPS):
            at, prior = best[:, active], mean[:, active]
            gradient, hessian = derivatives(game, active, at, prior, ridge)
            solved: Any = np.linalg.solve(hessian, gradient.T[:, :, None])
            step: Floats = solved[:, :, 0].T
            best[:, active] = at + _step_share(game, active, at, step, prior, ridge) * step
            active = active[np.abs(step).max(axis=0) > EXACT]
            if not len(active):
                break
    return best


def fit(game: Game, coefficients: int, ridge: float) -> tuple[Floats, Floats]:
    """Coefficients without drawing, around a prior mean of 0, and the negative second derivative there."""
    zero = np.zeros((coefficients, 1))
    best = newton(game, zero, zero, ridge)
    return best[:, 0], derivatives(game, slice(None), best, zero, ridge)[1][0]


def _step_share(game: Game, which: NDArray[np.int64], at: Floats, step: Floats, mean: Floats, ridge: float) -> Floats:
    change = np.zeros(len(which))
    for one, _first, _second in game(which):
        np.maximum(change, np.abs(one.rows @ step).max(axis=0, initial=0.0), out=change)
    share = np.where(change > SAFE, np.log1p(change) / np.maximum(change, SAFE), 1.0)
    far = np.flatnonzero(change > SAFE)
    trial, high = np.ones(len(far)), np.full(len(far), np.inf)
    while len(far):
        ahead = gradient(game, which[far], at[:, far] + trial * step[:, far], mean[:, far], ridge)
        rises = (ahead * step[:, far]).sum(axis=0) >= 0
        share[far[rises]] = trial[rises]
        high = np.where(rises, high, trial)
        # Stop at the full step, or within a factor of 1.5 of the largest share known to rise.
        unsure = (share[far] < 1) & (high > 1.5 * share[far])
        far, high = far[unsure], high[unsure]
        trial = np.sqrt(share[far] * high)
    return share


def refit(game: Game, estimate: Floats, hessian: Floats, mean: Floats, ridge: float) -> Floats:
    """``newton`` for many draws near an estimate; most of them need only its Hessian."""
    inverse = np.linalg.inv(hessian)
    best = np.repeat(estimate[:, None], mean.shape[1], axis=1)
    active = np.arange(mean.shape[1])
    before = np.full(len(active), np.inf)
    hard: list[NDArray[np.int64]] = []
    while len(active):
        whole = len(active) == mean.shape[1]
        which: Any = slice(None) if whole else active
        step = inverse @ gradient(game, which, best[:, which], mean[:, which], ridge)
        best[:, which] += step
        length = np.abs(step).max(axis=0)
        # Steps that shrink by a factor r leave r / (1 - r) of the last one.
        ratio = length / np.maximum(before, 1e-300)
        done = length * np.maximum(ratio, 0.25) < CLOSE
        slow = ~done & ~(ratio <= 0.5)
        hard.append(active[slow])
        # Let a few that are done continue if copying the rest would cost more.
        stay = ~(done | slow) if slow.any() or done.mean() > 0.3 else np.full(len(done), not done.all())
        active, before = active[stay], length[stay]
    left = np.concatenate(hard) if hard else active
    if len(left):
        # Some of these steps diverged, so start from the estimate.
        begin = np.repeat(estimate[:, None], len(left), axis=1)
        best[:, left] = newton(lambda which: game(left[which]), begin, mean[:, left], ridge)
    return best


def sandwich(hessian: Floats, scores: Floats, ridge: float) -> Floats:
    """Covariance of coefficients over prompts.

    The prior counts as one more, uncertain, observation of each coefficient. It matters little for models with matches.
    Between groups that never met, it gives its full width; for a model that won everything, about that width over
    1 + the gap in logits, where a bootstrap is better because the interval is longer upwards. ``scores`` sums the outer
    products of scores over prompts, shape (coefficients, coefficients), and ``hessian`` is the negative second
    derivative.
    """
    inverse = np.linalg.inv(hessian)
    result: Floats = inverse @ (scores + ridge * np.eye(len(hessian))) @ inverse
    return (result + result.T) / 2


def sum_clusters(
    cluster: NDArray[np.int32],
    clusters: int,
    coefficients: int,
    scores: Callable[[Any], tuple[NDArray[np.int32], Floats]],
) -> Floats:
    """Sum over prompts of the outer products of their summed scores, shape (coefficients, coefficients).

    ``scores`` takes an index of matches and returns their coefficients and scores, both of shape (matches, few).
    """
    total = np.zeros((coefficients, coefficients))
    for block in parts(clusters, BLOCK // coefficients):
        table = np.zeros((block.stop - block.start, coefficients))
        for part in parts(len(cluster), MANY >> 3):
            here = cluster[part]
            which: Any = part
            if block.stop - block.start < clusters:
                inside = np.flatnonzero((here >= block.start) & (here < block.stop))
                which, here = inside + part.start, here[inside]
            columns, values = scores(which)
            np.add.at(table, ((here - block.start)[:, None], columns), values)
        total += table.T @ table
    return total
