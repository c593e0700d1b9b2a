"""Ranks of ratings, and the similarity of two orders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOLERANCE = {"points": 1e-6, "share": 1e-9}
"""Ratings as close as this are equal, by unit."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ranks(ratings: Floats, unit: str = "points") -> Ints:
    """Rank from 1, the best, along the last axis; equal ratings share the better one: 1, 1, 3.

    Ratings are equal when no gap between them, in order, is above ``TOLERANCE``.
    """
    order = np.argsort(-ratings, axis=-1, kind="stable")
    steps = np.diff(np.take_along_axis(ratings, order, -1), axis=-1) < -TOLERANCE[unit]
    place = np.ones(ratings.shape, np.int64)
    place[..., 1:] = np.where(steps, np.arange(2, ratings.shape[-1] + 1), 1)
    ranked = np.empty_like(place)
    np.put_along_axis(ranked, order, np.maximum.accumulate(place, axis=-1), -1)
    return ranked


def middle_ranks(ratings: Floats, unit: str = "points") -> Floats:
    """Rank from 1, the best, along the last axis; equal ratings share the middle of theirs: 1.5, 1.5, 3."""
    worst = ratings.shape[-1] + 1 - ranks(-ratings, unit)
    middle: Floats = (ranks(ratings, unit) + worst) / 2
    return middle


def kendall_tau(first: Ints, second: Ints) -> Floats:
    """Kendall's tau-b (Kendall, 1945, The treatment of ties in ranking problems) of each row of two tables of ranks."""
    i, j = np.triu_indices(first.shape[1], 1)
    tau = np.full(len(first), np.nan)
    for row, (x, y) in enumerate(zip(first, second, strict=True)):
        dx, dy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        if pairs := float(dx @ dx) * float(dy @ dy):
            tau[row] = float(dx @ dy) / pairs**0.5
    return tau
