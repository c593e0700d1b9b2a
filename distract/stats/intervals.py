"""Intervals, exact tests and their corrections, on counts alone.

All proportions are shares, 0 to 1; intervals are two-sided unless a name says otherwise. Values of one cluster may be
dependent. Empty or negative counts raise ValueError.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from distract.stats.special import betainc, betaincinv, ndtri, stdtrit

Interval = tuple[float, float]

ROUNDING = 1e-12
_WIDEST_TAIL = 0.49  # at one half, Student's quantiles are 0 and have no ratio


def wilson(k: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for k successes in n independent trials."""
    _check_counts(k, n)
    z = float(ndtri(0.5 + confidence / 2))
    p, zz = k / n, z * z / n
    centre = (p + zz / 2) / (1 + zz)
    half = z * math.sqrt(p * (1 - p) / n + zz / (4 * n)) / (1 + zz)
    # At the ends the interval touches 0 or 1 exactly, but arithmetic may miss by an ulp.
    return (0.0 if k == 0 else max(0.0, centre - half)), (1.0 if k == n else min(1.0, centre + half))


def lower_bound(k: float, n: float, confidence: float = 0.95) -> float:
    """One-sided exact (Clopper-Pearson) lower bound; n may be an effective, fractional number of trials."""
    _check_counts(k, n)
    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, 1 - confidence))


def upper_bound(k: float, n: float, confidence: float = 0.95) -> float:
    """One-sided exact (Clopper-Pearson) upper bound; n may be an effective, fractional number of trials."""
    _check_counts(k, n)
    return 1.0 if k >= n else float(betaincinv(k + 1, n - k, confidence))


def effective_n(
    values: Sequence[float], clusters: Sequence[Hashable], tail: float = 0.025, capped: bool = True
) -> float:
    """Number of independent trials that clustered ones are worth (Korn and Graubard, 1998).

    That is the number of values if every cluster has one, else n over the design effect, corrected for the degrees of
    freedom: those of the clusters' totals (Satterthwaite), because a few clusters that hold all the variance say little
    about it. If all values are equal, it is the number of clusters, because each may be one trial repeated. ``tail`` is
    the one-sided error of the bound to compute. Without ``capped``, outcomes that balance each other within a cluster
    may count for more than n, as the slots of a judge that keeps its verdict when the order changes do.
    """
    n = len(values)
    names = dict.fromkeys(clusters)
    m = len(names)
    if m == n or n == 0:
        return float(n)
    centre = math.fsum(values) / n
    variance = math.fsum((value - centre) ** 2 for value in values) / n
    # Sums of deviations are zero only up to rounding.
    if m < 2 or variance <= ROUNDING:
        return float(m)
    totals = dict.fromkeys(names, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] += value - centre
    squares = [total * total for total in totals.values()]
    between = m / (m - 1) * math.fsum(squares) / n**2
    if between <= ROUNDING:
        return float(n)
    freedom = _degrees_of_freedom(squares)
    tail = min(tail, _WIDEST_TAIL)
    worth = variance / between * (float(stdtrit(n - 1, tail)) / float(stdtrit(freedom, tail))) ** 2
    return min(float(n), worth) if capped else worth


def _degrees_of_freedom(squares: Sequence[float]) -> float:
    """Satterthwaite's degrees of freedom of a variance, from the squared totals of the clusters."""
    largest = max(squares)
    shares = [square / largest for square in squares]  # so that no square of a square vanishes
    return max(1.0, math.fsum(shares) ** 2 / math.fsum(share * share for share in shares) - 1)


def kish_n(clusters: Sequence[Hashable]) -> float:
    """Minimum number of independent trials that clustered ones are worth: one for each cluster (Kish, 1965)."""
    sizes = Counter(clusters).values()
    return sum(sizes) ** 2 / sum(size * size for size in sizes) if sizes else 0.0


def rate_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95, capped: bool = True
) -> Interval:
    """Interval for a rate: Wilson for independent trials, Korn-Graubard for clusters."""
    k, n, independent = math.fsum(values), len(values), len(set(clusters)) == len(values)
    if independent:
        return wilson(k, n, confidence)
    one_sided = 0.5 + confidence / 2
    m = effective_n(values, clusters, 1 - one_sided, capped)
    return lower_bound(k / n * m, m, one_sided), upper_bound(k / n * m, m, one_sided)


def mean_interval(values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95) -> Interval | None:
    """Student's interval for a mean with cluster-robust variance; None with fewer than two clusters.

    Its degrees of freedom are those of the clusters' totals (Satterthwaite): a skewed mean rests on few of them.
    """
    n = len(values)
    names = {cluster: index for index, cluster in enumerate(dict.fromkeys(clusters))}
    m = len(names)
    if m < 2:
        return None
    array = np.asarray(values, dtype=float)
    centre = float(array.mean())
    totals = np.zeros(m)
    np.add.at(totals, [names[cluster] for cluster in clusters], array - centre)
    variance = m / (m - 1) * float(totals @ totals) / n**2
    if variance <= 0.0:
        return centre, centre
    quantile = float(stdtrit(_degrees_of_freedom((totals * totals).tolist()), 0.5 + confidence / 2))
    half = quantile * math.sqrt(variance)
    return centre - half, centre + half


def difference_interval(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval:
    """Interval for the difference of two paired proportions (Bonett and Price, 2012, adjusted Wald)."""
    n = len(first)
    if n == 0:
        raise ValueError("no pairs")
    up, down, shrink = discordant_pairs(first, second, clusters, (1 - confidence) / 2)
    m = n * shrink
    p, q = (up * shrink + 1) / (m + 2), (down * shrink + 1) / (m + 2)
    half = float(ndtri(0.5 + confidence / 2)) * math.sqrt((p + q - (p - q) ** 2) / (m + 2))
    return max(-1.0, p - q - half), min(1.0, p - q + half)


def mcnemar(only_first: float, only_second: float) -> float:
    """Exact two-sided McNemar test: the p-value of the discordant counts under a fair coin.

    Counts may be fractional (shrunk to an effective number); without any, the p-value is 1.
    """
    return min(1.0, 2 * mcnemar_above(max(only_first, only_second), min(only_first, only_second)))


def mcnemar_above(only_first: float, only_second: float) -> float:
    """Exact one-sided McNemar test: the probability of at least as many discordant pairs for the first by a fair coin.

    Counts may be fractional (shrunk to an effective number); without any, the p-value is 1.
    """
    return p_above(only_first, only_first + only_second, 0.5) if only_first > 0 else 1.0


def paired_p(first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """``mcnemar`` on paired outcomes 0 or 1, with counts shrunk by the dependence within clusters."""
    up, down, shrink = discordant_pairs(first, second, clusters)
    return mcnemar(up * shrink, down * shrink)


def rise_bounds(up: float, down: float, n: float, confidence: float = 0.95) -> Interval:
    """One-sided bounds of the difference of two paired proportions, for tests of its sign and of non-inferiority.

    The upper bound is Bonett and Price's with half a rising pair more, and at least the exact bound of the share that
    rose, which decides if few pairs differ. In simulations of 900 combinations of n and rates, the upper bound was too
    low in at most 5.0% of samples. The lower bound is above 0 only if the exact McNemar test agrees at this confidence.
    Counts of pairs that rose, of those that fell and of all may be effective, fractional numbers.
    """
    _check_counts(up + down, n)
    z = float(ndtri(confidence))

    def end(more: float, less: float, side: float) -> float:
        p, q = (more + 1) / (n + 2), (less + 1) / (n + 2)
        return p - q + side * z * math.sqrt(max(0.0, p + q - (p - q) ** 2) / (n + 2))

    upper = max(end(up + 0.5, down, 1), upper_bound(up, n, confidence) - down / n)
    differ = up + down
    exact = (2 * lower_bound(up, differ, confidence) - 1) * differ / n if differ else 0.0
    return max(-1.0, min(end(up, down, -1), exact)), min(1.0, upper)


def discordant_pairs(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable], tail: float = 0.025
) -> tuple[int, int, float]:
    """Pairs with a larger first value, with a smaller one, and effective over actual pairs (at least one)."""
    pairs = list(zip(first, second, strict=True))
    # Scale the difference to 0..1 for effective_n.
    shrink = effective_n([(1 + a - b) / 2 for a, b in pairs], clusters, tail) / len(pairs)
    return sum(a > b for a, b in pairs), sum(a < b for a, b in pairs), shrink


def p_above(k: float, n: float, threshold: float) -> float:
    """Exact one-sided p-value of "the rate is at most ``threshold``" after k successes in n trials."""
    _check_counts(k, n)
    return 1.0 if k == 0 else float(betainc(k, n - k + 1, threshold))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, in the order given; each at least its raw value and at most 1."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def _check_counts(k: float, n: float) -> None:
    if not n > 0 or not 0 <= k <= n * (1 + 1e-12):
        raise ValueError(f"expected 0 <= k <= n and n > 0, got k={k}, n={n}")
