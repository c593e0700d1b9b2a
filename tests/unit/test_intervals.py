"""Test intervals and tests against published figures, scipy, and simulation."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import permutations
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from loops import each
from scipy import stats

from distract.stats.agreement import alpha, alpha_interval, kappa, kappa_interval, ranks, spearman, spearman_interval
from distract.stats.intervals import (
    difference_interval,
    discordant_pairs,
    effective_n,
    holm,
    lower_bound,
    mcnemar,
    mcnemar_above,
    mean_interval,
    p_above,
    paired_p,
    rate_interval,
    rise_bounds,
    upper_bound,
    wilson,
)

Pairs = list[tuple[str | None, str | None]]

outcomes = st.sampled_from([0.0, 1.0])
counts = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_agree_with_scipy(kn: tuple[int, int], confidence: float) -> None:
    k, n = kn
    test = stats.binomtest(k, n)
    w = test.proportion_ci(confidence, "wilson")
    assert wilson(k, n, confidence) == pytest.approx((w.low, w.high), abs=1e-9)
    two_sided = 0.5 + confidence / 2
    e = test.proportion_ci(confidence, "exact")
    assert lower_bound(k, n, two_sided) == pytest.approx(e.low, abs=1e-9)
    assert upper_bound(k, n, two_sided) == pytest.approx(e.high, abs=1e-9)


@given(counts)
def test_interval_contains_its_estimate_within_the_unit_range(kn: tuple[int, int]) -> None:
    k, n = kn
    low, high = wilson(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0
    assert lower_bound(k, n) <= k / n <= upper_bound(k, n)


# Gates at threshold 10%, one-sided 5%: largest k that passes and smallest that fails.
@each("n, passes, fails", (40, 0, 8), (50, 1, 10), (100, 4, 16), (200, 12, 28), (400, 29, 51))
def test_gate_limits_match_published_values(n: int, passes: int, fails: int) -> None:
    assert upper_bound(passes, n) < 0.10 <= upper_bound(passes + 1, n)
    assert lower_bound(fails, n) > 0.10 >= lower_bound(fails - 1, n)


@each("flips, n", (0, 29), (1, 46), (2, 61), (3, 76), (5, 103), (10, 167))
def test_least_n_matches_published_values(flips: int, n: int) -> None:
    assert upper_bound(flips, n) < 0.10 <= upper_bound(flips, n - 1)


@given(counts, st.floats(0.01, 0.99))
def test_p_above_agrees_with_scipy_and_with_the_bound(kn: tuple[int, int], threshold: float) -> None:
    k, n = kn
    p = p_above(k, n, threshold)
    assert p == pytest.approx(stats.binomtest(k, n, threshold, "greater").pvalue, abs=1e-9)
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (lower_bound(k, n) > threshold)


@each("test, alternative", (mcnemar, "two-sided"), (mcnemar_above, "greater"))
@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_is_the_exact_binomial_test(test: Any, alternative: str, b: int, c: int) -> None:
    expected = stats.binomtest(b, b + c, 0.5, alternative).pvalue if b + c else 1.0
    assert test(b, c) == pytest.approx(expected, abs=1e-9)
    assert mcnemar(b, c) == mcnemar(c, b)
    assert mcnemar(b, c) == pytest.approx(min(1.0, 2 * min(mcnemar_above(b, c), mcnemar_above(c, b))))


@given(st.floats(0, 200), st.floats(0, 200), st.floats(0.01, 5))
def test_one_sided_mcnemar_is_monotone_in_both_counts(b: float, c: float, more: float) -> None:
    assert 0 <= mcnemar_above(b + more, c) <= mcnemar_above(b, c) + 1e-9
    assert mcnemar_above(b, c) <= mcnemar_above(b, c + more) + 1e-9 <= 1 + 1e-9


def test_holm_agrees_with_a_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(raw <= new <= 1.0 for raw, new in zip(p, adjusted, strict=True))
    order = sorted(range(len(p)), key=p.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=60))
def test_effective_n_is_n_without_clusters_and_at_most_n_with(values: list[float]) -> None:
    n = len(values)
    assert effective_n(values, range(n)) == n
    assert 0 < effective_n(values, [i // 3 for i in range(n)]) <= n


def effective_n_by_definition(values: Sequence[float], clusters: Sequence[int], tail: float) -> float | None:
    """Trials over the squared ratio of the clustered and the simple standard error; None where one of them is zero."""
    n, m = len(values), len(set(clusters))
    if m == n:
        return float(n)
    p = sum(values) / n
    residuals = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        residuals[cluster].append((value - p) / n)
    totals = [sum(part) for part in residuals.values()]
    clustered = m / (m - 1) * sum(total**2 for total in totals) if m > 1 else 0.0
    simple = sum((value - p) ** 2 for value in values) / n / n
    if min(clustered, simple) < 1e-9:
        return None
    freedom = max(1, sum(total**2 for total in totals) ** 2 / sum(total**4 for total in totals) - 1)
    inflated = clustered * stats.t.ppf(tail, freedom) ** 2 / stats.t.ppf(tail, n - 1) ** 2
    return float(n * min(1.0, simple / inflated))


@given(st.lists(st.tuples(outcomes, st.integers(0, 9)), min_size=2, max_size=60), st.sampled_from([0.8, 0.95, 0.99]))
def test_korn_graubard_follows_its_definition(rows: list[tuple[float, int]], confidence: float) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    tail = (1 - confidence) / 2
    n = effective_n_by_definition(values, clusters, tail)
    assume(n is not None and len(set(clusters)) < len(rows))
    assert n is not None
    assert effective_n(values, clusters, tail) == pytest.approx(n)
    k = sum(values) / len(values) * n
    expected = stats.beta.ppf(tail, k, n - k + 1), stats.beta.ppf(1 - tail, k + 1, n - k)
    assert rate_interval(values, clusters, confidence) == pytest.approx(expected, abs=1e-9)


def test_few_prompts_with_all_the_variance_count_little() -> None:
    """One of 24 prompts flips as a whole; 23 degrees of freedom would make it look like 24 trials."""
    values = [1.0] * 45 + [0.0] * 23 * 45
    clusters = [i // 45 for i in range(24 * 45)]
    assert effective_n(values, clusters, 0.05) < 2
    # The bound sets the tail; at one half it has no quantile and needs none.
    assert effective_n(values, clusters, 0.5) == pytest.approx(effective_n(values, clusters, 0.49))
    assert effective_n(values, clusters, 0.05) > effective_n(values, clusters, 0.025)


@given(st.lists(st.tuples(outcomes, st.integers(0, 9)), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_cluster_names_and_order_do_not_matter(rows: list[tuple[float, int]], draw: random.Random) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    draw.shuffle(rows)
    others, names = [value for value, _ in rows], [("prompt", -cluster) for _, cluster in rows]
    assert rate_interval(others, names) == pytest.approx(rate_interval(values, clusters))
    assert mean_interval(others, names) == pytest.approx(mean_interval(values, clusters))
    zeros = [0.0] * len(rows)
    assert difference_interval(others, zeros, names) == pytest.approx(difference_interval(values, zeros, clusters))


@given(st.lists(outcomes, min_size=2, max_size=60))
def test_repeated_trials_within_clusters_narrow_nothing(values: list[float]) -> None:
    n = len(values)
    assert effective_n(values * 2, [*range(n)] * 2) <= n + 1e-9
    low, high = mean_interval(values, range(n)) or (0.0, 0.0)
    assert mean_interval(values * 2, [*range(n)] * 2) == pytest.approx((low, high))


def test_repeating_equal_trials_adds_no_evidence() -> None:
    # Repetitions that never differ carry no more evidence than their clusters.
    assert effective_n([0.0] * 200, [i // 5 for i in range(200)]) == 40
    assert effective_n([1.0, 0.0] * 20, [i // 2 for i in range(40)]) == 40  # clusters that do not vary


def test_clustered_intervals_cover_where_naive_ones_do_not() -> None:
    rng = random.Random(1)
    naive = clustered = 0
    for _ in range(400):
        values, clusters = [], []
        for prompt in range(60):
            p = rng.betavariate(0.6, 1.4)
            for _ in range(4):
                values.append(float(rng.random() < p))
                clusters.append(prompt)
        low, high = rate_interval(values, clusters)
        clustered += low <= 0.3 <= high
        low, high = wilson(sum(values), len(values))
        naive += low <= 0.3 <= high
    assert clustered / 400 >= 0.93
    assert naive / 400 <= 0.86


def test_paired_difference_covers() -> None:
    rng, covered = random.Random(2), 0
    for _ in range(600):
        first = [float(rng.random() < 0.35) for _ in range(40)]
        second = [float(rng.random() < (0.25 if a else 0.0)) for a in first]
        low, high = difference_interval(first, second, range(40))
        covered += low <= 0.35 - 0.35 * 0.25 <= high
    assert covered / 600 >= 0.93


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=40))
def test_paired_difference_is_antisymmetric_and_clusters_widen(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    low, high = difference_interval(a, b, range(len(a)))
    assert difference_interval(b, a, range(len(a))) == pytest.approx((-high, -low))
    wide = difference_interval(a * 2, b * 2, [*range(len(a))] * 2)
    assert wide[0] <= low + 1e-9
    assert wide[1] >= high - 1e-9


@given(
    st.lists(st.tuples(outcomes, outcomes, st.integers(0, 9)), min_size=2, max_size=60),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_paired_difference_follows_its_definition(rows: list[tuple[float, float, int]], confidence: float) -> None:
    first, second, clusters = [a for a, _, _ in rows], [b for _, b, _ in rows], [cluster for _, _, cluster in rows]
    m = effective_n_by_definition([a - b for a, b in zip(first, second, strict=True)], clusters, (1 - confidence) / 2)
    assume(m is not None)
    assert m is not None
    # Add one pair of each discordant kind; scale counts to the effective number (Bonett and Price, 2012).
    up = sum(a > b for a, b in zip(first, second, strict=True)) / len(rows) * m + 1
    down = sum(a < b for a, b in zip(first, second, strict=True)) / len(rows) * m + 1
    p, q = up / (m + 2), down / (m + 2)
    half = stats.norm.ppf(0.5 + confidence / 2) * sqrt((p + q - (p - q) ** 2) / (m + 2))
    expected = max(-1.0, p - q - half), min(1.0, p - q + half)
    assert difference_interval(first, second, clusters, confidence) == pytest.approx(expected, abs=1e-9)
    if confidence == 0.95:
        assert paired_p(first, second, clusters) == pytest.approx(mcnemar(up - 1, down - 1), abs=1e-9)


@each("rise, n", (0.05, 60), (0.05, 124), (0.1, 29), (0.1, 61), (0.02, 160))
@each("fell", 0.0, 0.01, 0.05, 0.2)
def test_upper_bound_of_a_rise_is_seldom_too_low(rise: float, n: int, fell: float) -> None:
    """Coverage is summed over all possible counts."""
    rose = rise + fell
    below = 0.0
    for differ in range(n + 1):
        chance = stats.binom.pmf(differ, n, rose + fell)
        if chance < 1e-7:
            continue
        up = np.arange(differ + 1)
        bounds = np.array([rise_bounds(int(k), differ - int(k), n)[1] for k in up])
        below += chance * stats.binom.pmf(up, differ, rose / (rose + fell))[bounds < rise].sum()
    assert below <= 0.0505


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_rise_is_shown_only_if_its_test_shows_it(up: int, down: int, rest: int, confidence: float) -> None:
    assume(up + down + rest)
    low, high = rise_bounds(up, down, up + down + rest, confidence)
    assert -1 <= low <= high <= 1
    assert low <= (up - down) / (up + down + rest) + 1e-9
    assert high >= (up - down) / (up + down + rest) - 1e-9
    if low > 0:
        assert mcnemar_above(up, down) <= 1 - confidence
    # If no pair fell, the bound of the risen share is exact.
    assert rise_bounds(up, 0, up + rest + 1, confidence)[1] >= upper_bound(up, up + rest + 1, confidence) - 1e-12


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 5)), min_size=2, max_size=40))
def test_mean_follows_its_definition(rows: list[tuple[float, int]]) -> None:
    values, names = [value for value, _ in rows], sorted({cluster for _, cluster in rows})
    n, m, centre = len(rows), len(names), sum(values) / len(rows)
    if m == 1:
        assert mean_interval(values, [cluster for _, cluster in rows]) is None
        return
    squares = [sum((v - centre) / n for v, c in rows if c == name) ** 2 for name in names]
    freedom = sum(squares) ** 2 / sum(square**2 for square in squares) - 1 if max(squares) > 1e-30 else 1
    half = stats.t.ppf(0.975, max(1, freedom)) * sqrt(m / (m - 1) * sum(squares))
    interval = mean_interval(values, [cluster for _, cluster in rows])
    assert interval == pytest.approx((centre - half, centre + half), abs=1e-9)


def test_one_cluster_is_one_trial_despite_rounding() -> None:
    assert effective_n([1.0, 0.5, 0.5], ["x"] * 3) == 1
    for ones in range(1, 30):
        low, high = difference_interval([1.0] * ones + [0.0] * (30 - ones), [0.0] * 30, ["x"] * 30)
        assert low <= 0 <= high
        assert paired_p([1.0] * ones + [0.0] * (30 - ones), [0.0] * 30, ["x"] * 30) > 0.3


@given(st.lists(st.tuples(outcomes, outcomes, st.integers(0, 9)), min_size=1, max_size=60))
def test_discordant_pairs_are_counted_and_shrunk(rows: list[tuple[float, float, int]]) -> None:
    first, second, clusters = [a for a, _, _ in rows], [b for _, b, _ in rows], [cluster for _, _, cluster in rows]
    up, down, shrink = discordant_pairs(first, second, clusters)
    kinds = Counter(zip(first, second, strict=True))
    assert (up, down) == (kinds[1, 0], kinds[0, 1])
    assert discordant_pairs(first, second, range(len(rows))) == (up, down, 1.0)
    assert 0 < shrink <= 1
    assert paired_p(first, second, clusters) == mcnemar(up * shrink, down * shrink)


@each("k, n", (1, 0), (-1, 5), (6, 5))
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= k <= n"):
        wilson(k, n)


verdicts = st.sampled_from(["a", "b", "tie", None])
units_of = st.lists(st.lists(verdicts, max_size=4), max_size=20)
pairs_of = st.lists(st.tuples(verdicts, verdicts), min_size=1, max_size=30)
points_of = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=25)


def alpha_by_definition(units: Sequence[Sequence[Hashable]]) -> Fraction | None:
    """The matrix of coincidences, pair by pair, in exact arithmetic."""
    matrix: Counter[tuple[Hashable, Hashable]] = Counter()
    for unit in units:
        for c, k in permutations(unit, 2):
            matrix[c, k] += Fraction(1, len(unit) - 1)  # type: ignore[assignment]
    marginal: Counter[Hashable] = Counter()
    for (c, _), weight in matrix.items():
        marginal[c] += weight
    n = Fraction(sum(marginal.values()))
    observed = Fraction(sum(weight for (c, k), weight in matrix.items() if c != k))
    expected = Fraction(sum(marginal[c] * marginal[k] for c in marginal for k in marginal if c != k))
    return 1 - (n - 1) * observed / expected if expected else None


def kappa_by_definition(pairs: Sequence[tuple[Hashable, Hashable]]) -> Fraction | None:
    n = len(pairs)
    agreed = chance = Fraction(0)
    for category in {value for pair in pairs for value in pair}:
        agreed += Fraction(sum(x == y == category for x, y in pairs), n)
        rows, columns = sum(x == category for x, _ in pairs), sum(y == category for _, y in pairs)
        chance += Fraction(rows * columns, n * n)
    return (agreed - chance) / (1 - chance) if chance != 1 else None


def interval_by_definition(
    coefficient: Callable[[list[Any]], Fraction | None],
    parts: list[Any],
    clusters: list[int],
    scale: Callable[[list[Any]], Fraction],
) -> tuple[float, float] | None:
    """Beta quantiles for the number of trials with the jackknife variance of half the ratio; 0 < half < 1."""

    def ratio(some: list[Any]) -> Fraction | None:
        value = coefficient(some)
        return None if value is None else (1 - value) * scale(some)

    whole = ratio(parts)
    replicates = [ratio([p for p, c in zip(parts, clusters, strict=True) if c != name]) for name in {*clusters}]
    known = [value / 2 for value in replicates if value is not None]
    if whole is None:
        return None
    if len(known) < len(replicates):
        return -1.0, 1.0
    m, half = len(known), whole / 2
    centre = sum(known, Fraction(0)) / m
    variance = Fraction(m - 1, m) * sum((value - centre) ** 2 for value in known)
    if not variance or not 0 < half < 1:
        return None
    n = float(half * (1 - half) / variance) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, m - 1)) ** 2
    k, width = float(half) * n, 2 / float(scale(parts))
    low, high = stats.beta.ppf(0.025, k, n - k + 1), stats.beta.ppf(0.975, k + 1, n - k)
    return max(-1.0, 1 - width * high), 1 - width * low


def clusters_for(n: int, draw: random.Random) -> list[int]:
    return [draw.randrange(max(2, n // 2)) for _ in range(n)]


# Krippendorff (2011), Computing Krippendorff's alpha-reliability, sections A, B and C: alpha = .095, .692 and .743.
MEG, OWEN = "0100000010", "1110010000"
BEN, GERRY = "aabbdcccedda", "babbbcccedd" + "d"
FOUR = ["111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11", "3"]


@each(
    "units, published",
    (list(zip(MEG, OWEN, strict=True)), 0.095),
    (list(zip(BEN, GERRY, strict=True)), 0.692),
    (FOUR, 0.743),
)
def test_alphas_match_published_values(units: list[Sequence[str]], published: float) -> None:
    assert alpha(units) == pytest.approx(published, abs=0.0005)


# Fleiss, Levin and Paik, Statistical methods for rates and proportions, chapter 18: 100 diagnoses, kappa = .68.
def test_kappa_matches_a_published_value() -> None:
    table = {("p", "p"): 75, ("p", "n"): 1, ("p", "o"): 4, ("n", "p"): 5, ("n", "n"): 4, ("n", "o"): 1, ("o", "o"): 10}
    pairs = list(Counter(table).elements())
    assert kappa([x for x, _ in pairs], [y for _, y in pairs]) == pytest.approx(0.23 / 0.34)


@given(units_of)
def test_alpha_follows_its_definition(units: list[list[str | None]]) -> None:
    expected = alpha_by_definition(units)
    assert alpha(units) == (None if expected is None else pytest.approx(float(expected), abs=1e-12))


@given(pairs_of)
def test_kappa_follows_its_definition(pairs: Pairs) -> None:
    expected = kappa_by_definition(pairs)
    value = kappa([x for x, _ in pairs], [y for _, y in pairs])
    assert value == (None if expected is None else pytest.approx(float(expected), abs=1e-12))


@each("units", [], [[]], [["a"], ["b"]], [["a", "a"], ["a", "a", "a"]])
def test_alpha_needs_a_pair_and_two_values(units: list[list[str]]) -> None:
    assert alpha(units) is None
    assert alpha_interval(units, range(len(units))) is None


def test_kappa_needs_data_and_two_categories() -> None:
    assert kappa([], []) is None
    assert kappa_interval([], [], []) is None
    assert kappa([None, None], [None, None]) is None
    assert kappa_interval([None, None], [None, None], [0, 1]) is None


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        alpha_interval([["a", "b"]] * 2, [1])
    for clusters in ([1, 2], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"got 3 and 2 for {len(clusters)}"):
            kappa_interval("aab", "ab", clusters)
    with pytest.raises(ValueError, match="got 1 and 0"):
        kappa("a", "")
    with pytest.raises(ValueError, match="got 2 and 1"):
        spearman([1, 2], [1])


@given(units_of, st.randoms(use_true_random=False))
def test_alpha_interval_follows_its_definition(units: list[list[str | None]], draw: random.Random) -> None:
    units = [unit for unit in units if len(unit) > 1]
    clusters = clusters_for(len(units), draw)
    assume(len(set(clusters)) > 1)

    def scale(some: list[list[str | None]]) -> Fraction:
        return Fraction(sum(map(len, some)), sum(map(len, some)) - 1)

    expected = interval_by_definition(alpha_by_definition, units, clusters, scale)
    assert expected is None or alpha_interval(units, clusters) == pytest.approx(expected, abs=1e-6)


@given(pairs_of, st.randoms(use_true_random=False))
def test_kappa_interval_follows_its_definition(pairs: Pairs, draw: random.Random) -> None:
    clusters = clusters_for(len(pairs), draw)
    assume(len(set(clusters)) > 1)
    expected = interval_by_definition(kappa_by_definition, pairs, clusters, lambda _: Fraction(1))
    interval = kappa_interval([x for x, _ in pairs], [y for _, y in pairs], clusters)
    assert expected is None or interval == pytest.approx(expected, abs=1e-6)


@given(pairs_of, st.randoms(use_true_random=False), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_contain_the_estimate_and_have_width(pairs: Pairs, draw: random.Random, confidence: float) -> None:
    clusters = clusters_for(len(pairs), draw)
    first, second = [x for x, _ in pairs], [y for _, y in pairs]
    for estimate, interval in (
        (alpha(pairs), alpha_interval(pairs, clusters, confidence)),
        (kappa(first, second), kappa_interval(first, second, clusters, confidence)),
    ):
        assert (interval is None) == (estimate is None or len(set(clusters)) < 2)
        if interval is not None and estimate is not None:
            assert -1 <= interval[0] <= estimate <= interval[1] <= 1
            assert interval[1] - interval[0] > 1e-3


@given(pairs_of, st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(pairs: Pairs, draw: random.Random) -> None:
    clusters = clusters_for(len(pairs), draw)
    places = list(range(len(pairs)))
    draw.shuffle(places)
    new: dict[str | None, Hashable] = {"a": "tie", "b": 7, "tie": None, None: ("x",)}
    renamed = [(new[pairs[i][0]], new[pairs[i][1]]) for i in places]
    names = [f"cluster {clusters[i]}" for i in places]
    assert alpha(renamed) == pytest.approx(alpha(pairs))
    assert alpha_interval(renamed, names) == pytest.approx(alpha_interval(pairs, clusters))
    first, second = [x for x, _ in pairs], [y for _, y in pairs]
    left, right = [x for x, _ in renamed], [y for _, y in renamed]
    assert kappa(left, right) == pytest.approx(kappa(first, second))
    assert kappa_interval(left, right, names) == pytest.approx(kappa_interval(first, second, clusters))
    assert kappa_interval(second, first, clusters) == pytest.approx(kappa_interval(first, second, clusters))
    # The values of a unit are unordered.
    assert alpha_interval([pair[::-1] for pair in pairs], clusters) == alpha_interval(pairs, clusters)


@given(pairs_of, st.randoms(use_true_random=False))
def test_repeated_rows_do_not_narrow_the_interval(pairs: Pairs, draw: random.Random) -> None:
    clusters = clusters_for(len(pairs), draw)
    first, second = [x for x, _ in pairs], [y for _, y in pairs]
    once = kappa_interval(first, second, clusters)
    assert kappa_interval(first * 2, second * 2, clusters * 2) == pytest.approx(once)
    one, two = alpha_interval(pairs, clusters), alpha_interval(pairs * 2, clusters * 2)
    # The width of an interval cut by the end of the scale is meaningless.
    if one is not None and two is not None and two[0] > -1:
        assert two[1] - two[0] >= one[1] - one[0] - 1e-9


@each("m", 2, 10, 50, 400)
def test_without_disagreement_clusters_bound_the_unseen(m: int) -> None:
    clusters = [i // 4 for i in range(4 * m)]
    values = ["a" if i % 2 else "b" for i in range(4 * m)]
    bound = max(-1.0, 1 - (1 - 0.025 ** (1 / m)) / 0.5)
    assert alpha_interval([(v, v) for v in values], clusters) == pytest.approx((bound, 1.0))
    assert kappa_interval(values, values, clusters) == pytest.approx((bound, 1.0))


def test_constant_rater_gives_a_wide_interval() -> None:
    second = (["a"] * 9 + ["b"]) * 10
    assert kappa(["a"] * 100, second) == 0
    low, high = kappa_interval(["a"] * 100, second, range(100)) or (0, 0)
    assert low < -0.5
    assert high > 0.4
    # Only one cluster holds a second category; without it there is no coefficient.
    assert alpha_interval([("a", "a")] * 99 + [("a", "b")], range(100)) == (-1.0, 1.0)


def test_opposite_raters_reach_the_other_end() -> None:
    first, second, clusters = "abab" * 6, "baba" * 6, [i * i // 40 for i in range(24)]
    assert kappa(first, second) == -1
    low, high = kappa_interval(first, second, clusters) or (0, 0)
    assert low == -1
    assert -1 < high < 0


def test_intervals_cover_rare_disagreement_and_varied_prompts() -> None:
    draw, held = random.Random(3), 0
    p, steady = 0.5, 0.95  # alpha of two draws that are equal with this chance, and independent otherwise
    for _ in range(400):
        units, clusters = [], []
        for prompt in range(40):
            # All rows of a prompt are equal, so they count as one.
            one, value = draw.random() < steady, draw.choice("ab")
            for _ in range(draw.randrange(1, 6)):
                units.append((value, value if one else draw.choice("ab")))
                clusters.append(prompt)
        low, high = alpha_interval(units, clusters) or (1.0, -1.0)
        held += low <= 1 - (1 - steady) * p / (2 * p * (1 - p)) <= high
    assert held / 400 >= 0.93


@given(st.lists(st.integers(-5, 5)), st.booleans())
def test_ranks_agree_with_scipy(values: list[float], descending: bool) -> None:
    assert ranks(values, descending) == list(stats.rankdata([-v if descending else v for v in values]))


@given(points_of)
def test_spearman_follows_its_definition_and_scipy(points: list[tuple[int, int]]) -> None:
    x, y = [a for a, _ in points], [b for _, b in points]
    result = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert result is None
        assert spearman_interval(x, y) is None
        return

    def rank(value: float, values: list[int]) -> Fraction:
        return Fraction(sum(v < value for v in values) * 2 + sum(v == value for v in values) + 1, 2)

    mean = Fraction(len(x) + 1, 2)
    a, b = [rank(v, x) - mean for v in x], [rank(v, y) - mean for v in y]
    product = sum((i * j for i, j in zip(a, b, strict=True)), Fraction(0))
    assert result == pytest.approx(float(product) / sqrt(sum(i * i for i in a) * sum(j * j for j in b)), abs=1e-12)
    if len(x) > 2:  # scipy's p-value divides by zero with two
        assert result == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


@given(points_of, st.sampled_from([0.8, 0.95, 0.99]))
def test_spearman_interval_follows_its_definition(points: list[tuple[int, int]], confidence: float) -> None:
    x, y = [a for a, _ in points], [b for _, b in points]
    r, interval, n = spearman(x, y), spearman_interval(x, y, confidence), len(x)
    assert (interval is None) == (r is None or n < 4)
    if interval is None or r is None:
        return
    assert -1 <= interval[0] <= r <= interval[1] <= 1
    assert interval[1] - interval[0] > 1e-3
    if abs(r) < 1 - 12 / (n**3 - n) - 1e-9:
        half = stats.norm.ppf(0.5 + confidence / 2) * sqrt((1 + r * r / 2) / (n - 3))
        assert interval == pytest.approx((tanh(atanh(r) - half), tanh(atanh(r) + half)), abs=1e-9)
    mirrored = spearman_interval(x, [-v for v in y], confidence)
    assert mirrored == pytest.approx((-interval[1], -interval[0]), abs=1e-9)


def test_perfect_correlation_is_bounded_by_its_nearest_neighbour() -> None:
    low, high = spearman_interval(range(6), [1, 0, 2, 3, 4, 5]) or (1.0, 1.0)
    assert spearman_interval(range(6), range(6)) == pytest.approx((low, 1.0))
    assert high < 1
