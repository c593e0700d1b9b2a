"""Penalised logistic regression on few coefficients, for one set of weights or for many at once.

What the rating systems share that explain matches by strengths. A row is a kind of comparison: which coefficients its
log odds are made of, and how often, under each draw, its first and its second model won. It does not know which
coefficient is a model's, nor where rows come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]

MANY = 1 << 17
"""Numbers of a table that are worked on at once: they stay in a processor's cache."""

BLOCK = 1 << 22
"""Numbers of the largest table that is kept meanwhile."""

SMALL = 1 << 13
"""Numbers of a table that is no faster for leaving out its zeros."""

EXACT = 1e-6
"""Newton's last step, in logits: what it leaves is of the order of its square."""

CLOSE = 5e-10
"""What steps with a shared matrix may leave, in logits: below a ten-millionth of a point on the usual scale."""

SAFE = 1.5
"""Change of log odds within which a whole step of Newton's method raises the likelihood: exp(d) - d - 1 < d * d."""

STEPS = 200
"""Most steps of Newton's method; they are few unless rounding keeps the last one from being short."""


class Design(NamedTuple):
    """Of which coefficients the log odds of rows are made.

    Attributes:
        rows: shape (rows, coefficients).
        squares: the outer product of each row with itself, shape (rows, coefficients * coefficients).
    """

    rows: Any
    squares: Any


Piece: TypeAlias = tuple[Design, Floats, Floats]
"""Rows, and how often their first and their second model won, both of shape (rows, draws)."""

Game: TypeAlias = Callable[[Any], Iterable[Piece]]
"""Called with an index of draws: all rows, in pieces that fit into memory."""


def parts(total: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` (at least 1) that cover ``total``."""
    for start in range(0, total, max(size, 1)):
        yield slice(start, min(start + max(size, 1), total))


def design(columns: NDArray[np.int32], values: Floats, coefficients: int) -> Design:
    """Rows of a few coefficients each.

    Args:
        columns: which, shape (rows, a few).
        values: what each counts in the log odds, shape (rows, a few) or (a few,).
        coefficients: how many there are in all.
    """
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
    """Chance of the first and of the second model at given log odds, each exact however small it is."""
    against = np.clip(-odds, -700, 700)
    np.exp(against, out=against)
    p = 1 / (1 + against)
    against *= p
    return p, against


def gradient(game: Game, which: Any, at: Floats, mean: Floats, ridge: float) -> Floats:
    """Gradient of the penalised log likelihood, shape (coefficients, draws).

    Args:
        game: the rows.
        which: index of the draws that are meant.
        at: coefficients under each of them, shape (coefficients, draws).
        mean: of the prior, of the same shape.
        ridge: inverse variance of the prior.
    """
    total = ridge * (mean - at)
    for one, first, second in game(which):
        p, q = chances(one.rows @ at)
        total += one.rows.T @ (first * q - second * p)
    return total


def derivatives(game: Game, which: Any, at: Floats, mean: Floats, ridge: float) -> tuple[Floats, Floats]:
    """``slope``, and minus the second derivative, shape (draws, coefficients, coefficients)."""
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
    """Most likely coefficients, by Newton's method in steps that cannot fail.

    Let d be the most by which a step changes the log odds of a row. It is taken in full where d is at most 1.5; else
    log(1 + d) / d of it is, or more where the slope along it keeps its sign. The likelihood rises in each case: in the
    first two by the bounds for generalised self-concordant functions (Sun and Tran-Dinh, 2019).

    Args:
        game: the rows.
        start: coefficients to start from, shape (coefficients, draws).
        mean: of the prior, of the same shape.
        ridge: inverse variance of the prior, positive.
    """
    found = start.copy()
    size = len(start)
    for group in parts(start.shape[1], BLOCK // (size * size)):
        active = np.arange(group.start, group.stop)
        for _ in range(STEPS):
            at, prior = found[:, active], mean[:, active]
            gradient, hessian = derivatives(game, active, at, prior, ridge)
            solved: Any = np.linalg.solve(hessian, gradient.T[:, :, None])
            step: Floats = solved[:, :, 0].T
            found[:, active] = at + _step_share(game, active, at, step, prior, ridge) * step
            active = active[np.abs(step).max(axis=0) > EXACT]
            if not len(active):
                break
    return found


def _step_share(game: Game, which: NDArray[np.int64], at: Floats, step: Floats, mean: Floats, ridge: float) -> Floats:
    """How much of each step to take, shape (draws,)."""
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
        # The whole step, or half as much again as is known to rise, is enough.
        unsure = (share[far] < 1) & (high > 1.5 * share[far])
        far, high = far[unsure], high[unsure]
        trial = np.sqrt(share[far] * high)
    return share


def refit(game: Game, estimate: Floats, hessian: Floats, mean: Floats, ridge: float) -> Floats:
    """``newton`` for many draws whose coefficients are near an estimate, most of them with its one Hessian.

    Args:
        game: the rows.
        estimate: coefficients without drawing, shape (coefficients,).
        hessian: minus the second derivative there, shape (coefficients, coefficients).
        mean: of the prior under each draw, shape (coefficients, draws).
        ridge: inverse variance of the prior, positive.
    """
    inverse = np.linalg.inv(hessian)
    found = np.repeat(estimate[:, None], mean.shape[1], axis=1)
    active = np.arange(mean.shape[1])
    before = np.full(len(active), np.inf)
    hard: list[NDArray[np.int64]] = []
    while len(active):
        whole = len(active) == mean.shape[1]
        which: Any = slice(None) if whole else active
        step = inverse @ gradient(game, which, found[:, which], mean[:, which], ridge)
        found[:, which] += step
        length = np.abs(step).max(axis=0)
        # Steps that shrink by a factor r leave r / (1 - r) of the last one.
        ratio = length / np.maximum(before, 1e-300)
        done = length * np.maximum(ratio, 0.25) < CLOSE
        slow = ~done & ~(ratio <= 0.5)
        hard.append(active[slow])
        # A few that are done may go on: that costs less than to copy the rest.
        stay = ~(done | slow) if slow.any() or done.mean() > 0.3 else np.full(len(done), not done.all())
        active, before = active[stay], length[stay]
    left = np.concatenate(hard) if hard else active
    if len(left):
        # Some of these steps went astray; the estimate is the safe place to start from.
        begin = np.repeat(estimate[:, None], len(left), axis=1)
        found[:, left] = newton(lambda which: game(left[which]), begin, mean[:, left], ridge)
    return found
