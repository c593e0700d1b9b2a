"""Covariance of coefficients over prompts, from scores: the derivatives of each match's log likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .logistic import BLOCK, MANY, Floats, parts


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
