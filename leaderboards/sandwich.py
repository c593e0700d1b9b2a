"""Covariance of coefficients over prompts, from scores: what each match pulls at each coefficient.

It does not know what the coefficients are, nor how they were found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .logistic import BLOCK, MANY, Floats, parts


def sandwich(hessian: Floats, scores: Floats, ridge: float) -> Floats:
    """Covariance of coefficients over prompts.

    The prior counts as one more observation of each coefficient, itself uncertain: next to nothing where there are
    matches, its whole width between groups that never met, and about that width over 1 + the gap in logits for a model
    that won whatever it played: there a bootstrap tells more, because the interval is longer upwards.

    Args:
        hessian: minus the second derivative at the estimate, shape (coefficients, coefficients).
        scores: sum over prompts of the outer products of their scores, of the same shape.
        ridge: inverse variance of the prior.
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

    Args:
        cluster: index of the prompt of each match.
        clusters: how many prompts there are.
        coefficients: how many.
        scores: called with an index of matches: the coefficients of each, and its score for them, both of shape
            (matches, a few).
    """
    total = np.zeros((coefficients, coefficients))
    for some in parts(clusters, BLOCK // coefficients):
        table = np.zeros((some.stop - some.start, coefficients))
        for part in parts(len(cluster), MANY >> 3):
            here = cluster[part]
            which: Any = part
            if some.stop - some.start < clusters:
                inside = np.flatnonzero((here >= some.start) & (here < some.stop))
                which, here = inside + part.start, here[inside]
            columns, values = scores(which)
            np.add.at(table, ((here - some.start)[:, None], columns), values)
        total += table.T @ table
    return total
