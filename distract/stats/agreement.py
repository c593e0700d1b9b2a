"""Agreement beyond chance and rank correlation, with intervals that allow for clusters.

Units of one cluster may be dependent. All figures are in -1..1, and intervals use no random numbers;
``benchmarks/coverage.py`` measures their coverage. An interval always holds the estimate, is never a point, and is None
if the estimate is None or there are too few clusters. Sequences of different length raise ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distract.stats.intervals import ROUNDING, Interval, lower_bound, upper_bound
from distract.stats.special import ndtri, stdtrit

_Array = NDArray[np.float64]


def alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal data (Krippendorff, 2011, Computing Krippendorff's alpha-reliability).

    A unit is a sequence of values in any order, without missing ones; units with fewer than two are dropped. The result
    is 1 without disagreement, 0 for as much as chance gives, and down to -1. It is None without a pair, and if all
    values are equal: the definition is then 0/0, since there is no evidence that the judge can tell two things apart.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    return _alpha(*_coincidences(pairable, [0] * len(pairable))) if pairable else None


def alpha_interval(
    units: Sequence[Sequence[Hashable]], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Interval for ``alpha``; needs two clusters with a pair."""
    pairable = [(unit, cluster) for unit, cluster in zip(units, clusters, strict=True) if len(unit) > 1]
    if not pairable:
        return None
    groups = _number_names(cluster for _, cluster in pairable)
    disagreement, counts = _coincidences([unit for unit, _ in pairable], groups)
    estimate = _alpha(disagreement, counts)
    if estimate is None or len(counts) < 2:
        return None
    # Chance without the correction n / (n - 1) of the estimate, so that repeating all rows changes no replicate and
    # cannot narrow the interval.
    return _interval(estimate, disagreement, counts, counts, confidence)


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters (Cohen, 1960); any hashable value is a category, including None.

    The result is 1 without disagreement, 0 for as much as chance gives, and down to -1. It is None without data, and if
    both raters gave only one and the same category, so that chance alone agrees fully.
    """
    return _kappa(*_table(first, second, [0] * len(first))) if first or second else None


def kappa_interval(
    first: Sequence[Hashable], second: Sequence[Hashable], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Interval for ``kappa``; needs two clusters."""
    disagreement, left, right = _table(first, second, _number_names(clusters))
    if len(disagreement) < 2 or (estimate := _kappa(disagreement, left, right)) is None:
        return None
    return _interval(estimate, disagreement, left, right, confidence)


def ranks(values: Sequence[float], descending: bool = False) -> list[float]:
    """Ranks of finite numbers: 1 for the least or, if ``descending``, the largest; ties share their mean rank."""
    array = np.asarray(values, dtype=float)
    _, place, counts = np.unique(-array if descending else array, return_inverse=True, return_counts=True)
    return [float(rank) for rank in (np.cumsum(counts) - (counts - 1) / 2)[place]]


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation with average ranks; None below two points, or if x or y is constant."""
    if len(x) != len(y):
        raise ValueError(f"expected as many x as y, got {len(x)} and {len(y)}")
    if len(x) < 2:
        return None
    # Twice the distance from the mean rank is an integer, so that the sums are exact.
    a, b = (2 * np.asarray(ranks(values)) - (len(values) + 1) for values in (x, y))
    scale = float(a @ a) * float(b @ b)
    return max(-1.0, min(1.0, float(a @ b) / math.sqrt(scale))) if scale > 0 else None


def spearman_interval(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Fisher's z interval for ``spearman`` with the standard error of Bonett and Wright (2000); needs four points.

    A perfect correlation gets the bound of the nearest imperfect one, with two neighbours swapped.
    """
    r, n = spearman(x, y), len(x)
    if r is None or n < 4:
        return None
    limit = 1 - 12 / (n**3 - n)
    near = max(-limit, min(limit, r))
    half = float(ndtri(0.5 + confidence / 2)) * math.sqrt((1 + near**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(near) - half), math.tanh(math.atanh(near) + half)
    return (-1.0 if r < -limit - ROUNDING else min(low, r)), (1.0 if r > limit + ROUNDING else max(high, r))


def _number_names(names: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


def _counts(groups: ArrayLike, categories: Sequence[int], shape: tuple[int, int]) -> _Array:
    """Count each category (column) in each group (row)."""
    flat = np.asarray(groups, dtype=np.int64) * shape[1] + np.asarray(categories, dtype=np.int64)
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


def _coincidences(units: Sequence[Sequence[Hashable]], groups: Sequence[int]) -> tuple[_Array, _Array]:
    """Disagreeing coincidences of each group, and its counts of each category."""
    sizes = np.array([len(unit) for unit in units], dtype=float)
    values = _number_names(value for unit in units for value in unit)
    unit_of = np.repeat(np.arange(len(units)), sizes.astype(int))
    by_unit = _counts(unit_of, values, (len(units), max(values) + 1))
    disagreement = (sizes**2 - (by_unit**2).sum(axis=1)) / (sizes - 1)
    counts = _counts(np.asarray(groups)[unit_of], values, (max(groups) + 1, by_unit.shape[1]))
    return np.bincount(groups, disagreement).astype(float), counts


def _alpha(disagreement: _Array, counts: _Array) -> float | None:
    totals = counts.sum(axis=0)
    n = float(totals.sum())
    chance = (n * n - float(totals @ totals)) / (n - 1)
    return 1 - float(disagreement.sum()) / chance if chance > 0 else None


def _table(
    first: Sequence[Hashable], second: Sequence[Hashable], groups: Sequence[int]
) -> tuple[_Array, _Array, _Array]:
    """Disagreements of each group, and the counts of each category by the first and the second rater."""
    n = len(groups)
    if not n == len(first) == len(second):
        raise ValueError(f"expected as many verdicts as units, got {len(first)} and {len(second)} for {n}")
    values = _number_names([*first, *second])
    shape = max(groups, default=-1) + 1, max(values, default=-1) + 1
    left, right = values[:n], values[n:]
    differ = np.array([x != y for x, y in zip(left, right, strict=True)], dtype=float)
    disagreement = np.bincount(np.asarray(groups, dtype=np.int64), differ).astype(float)
    return disagreement, _counts(groups, left, shape), _counts(groups, right, shape)


def _kappa(disagreement: _Array, left: _Array, right: _Array) -> float | None:
    n = float(left.sum())
    chance = n * n - float(left.sum(axis=0) @ right.sum(axis=0))
    return 1 - n * float(disagreement.sum()) / chance if chance > 0 else None


def _interval(estimate: float, disagreement: _Array, left: _Array, right: _Array, confidence: float) -> Interval:
    """Interval for 1 - factor * observed / chance disagreement, where the factor follows from the estimate.

    This is Korn and Graubard's method with a proportion: half that ratio is in 0..1; the jackknife over clusters gives
    the number of independent trials with the same uncertainty, and the exact binomial bounds for this number follow the
    skew near both ends, unlike Student's interval, transformed or not. Without variance (no disagreement, or a rater
    that never varied) the disagreement itself is bounded, with each cluster as one trial.
    """
    n, rows, columns = float(left.sum()), left.sum(axis=0), right.sum(axis=0)
    rest = n - left.sum(axis=1)
    observed, without = float(disagreement.sum()) / n, (disagreement.sum() - disagreement) / rest
    chance = 1 - float(rows @ columns) / n**2
    chance_without = 1 - ((rows - left) * (columns - right)).sum(axis=1) / rest**2
    if bool((chance_without <= ROUNDING).any()):
        # The coefficient is undefined without one of the clusters.
        return -1.0, 1.0
    m, one_sided = len(rest), 0.5 + confidence / 2
    share = observed / chance / 2
    replicates = without / chance_without / 2
    variance = (m - 1) / m * float(((replicates - replicates.mean()) ** 2).sum())
    within = share * (1 - share)
    if variance > ROUNDING and within > ROUNDING:
        n = within / variance * (float(ndtri(one_sided)) / float(stdtrit(m - 1, one_sided))) ** 2
    else:
        n, share = float(m), min(1.0, observed)
    scale = (1 - estimate) / share if share > 0 else 1 / chance
    low = 1 - scale * upper_bound(share * n, n, one_sided)
    high = 1 - scale * lower_bound(share * n, n, one_sided)
    return max(-1.0, min(low, estimate)), min(1.0, max(high, estimate))
