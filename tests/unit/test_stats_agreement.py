"""Agreement beyond chance and rank correlation against their definitions, scipy, statsmodels and published values."""

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import permutations
from math import atanh, sqrt, tanh

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from distract.stats.agreement import alpha, alpha_interval, kappa, kappa_interval, ranks, spearman, spearman_interval

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
    estimate: Fraction | None, ratio: Fraction | None, replicates: list[Fraction | None], factor: Fraction
) -> tuple[float, float] | None:
    """Beta quantiles for the number of trials with the jackknife variance of half the ratio; 0 < half < 1."""
    known = [value / 2 for value in replicates if value is not None]
    if estimate is None or ratio is None:
        return None
    if len(known) < len(replicates):
        return -1.0, 1.0
    m, half = len(known), ratio / 2
    centre = sum(known, Fraction(0)) / m
    variance = Fraction(m - 1, m) * sum((value - centre) ** 2 for value in known)
    if not variance or not 0 < half < 1:
        return None
    n = float(half * (1 - half) / variance) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, m - 1)) ** 2
    k = float(half) * n
    low, high = stats.beta.ppf(0.025, k, n - k + 1), stats.beta.ppf(0.975, k + 1, n - k)
    return max(-1.0, 1 - 2 * float(factor) * high), 1 - 2 * float(factor) * low


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


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(verdicts, min_size=n, max_size=n), min_size=1)))
def test_complete_data_reduce_alpha_to_corrected_fleiss_kappa(units: list[list[str | None]]) -> None:
    categories = sorted({value for unit in units for value in unit}, key=str)
    assume(len(categories) > 1)
    fleiss = fleiss_kappa([[unit.count(category) for category in categories] for unit in units])
    n = len(units) * len(units[0])
    assert alpha(units) == pytest.approx(1 - (n - 1) / n * (1 - fleiss), abs=1e-9)


@given(pairs_of)
def test_kappa_follows_its_definition_and_statsmodels(pairs: list[tuple[str | None, str | None]]) -> None:
    expected = kappa_by_definition(pairs)
    value = kappa([x for x, _ in pairs], [y for _, y in pairs])
    if expected is None:
        assert value is None
        return
    categories = ["a", "b", "tie", None]
    table = [[pairs.count((x, y)) for y in categories] for x in categories]
    assert value == pytest.approx(float(expected), abs=1e-12)
    assert value == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-9)


@each("units", [], [[]], [["a"], ["b"]], [["a", "a"], ["a", "a", "a"]])
def test_alpha_needs_a_pair_and_two_values(units: list[list[str]]) -> None:
    assert alpha(units) is None
    assert alpha_interval(units, range(len(units))) is None


def test_kappa_needs_data_and_two_categories() -> None:
    assert kappa([], []) is None
    assert kappa_interval([], [], []) is None
    assert kappa([None, None], [None, None]) is None
    assert kappa_interval([None, None], [None, None], [0, 1]) is None


def test_one_cluster_gives_no_interval() -> None:
    units = [["a", "b"], ["a", "a"], ["b"]]
    assert alpha_interval(units, ["x", "x", "y"]) is None
    assert kappa_interval("abb", "aab", "xxx") is None


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

    def ratio(ratings_given: list[list[str | None]]) -> Fraction | None:
        value, n = alpha_by_definition(ratings_given), sum(map(len, ratings_given))
        return None if value is None else (1 - value) * Fraction(n, n - 1)

    replicates = [
        ratio([u for u, c in zip(units, clusters, strict=True) if c != name]) for name in sorted(set(clusters))
    ]
    n = sum(map(len, units))
    expected = interval_by_definition(alpha_by_definition(units), ratio(units), replicates, Fraction(n - 1, n))
    if expected is not None:
        assert alpha_interval(units, clusters) == pytest.approx(expected, abs=1e-6)


@given(pairs_of, st.randoms(use_true_random=False))
def test_kappa_interval_follows_its_definition(pairs: list[tuple[str | None, str | None]], draw: random.Random) -> None:
    clusters = clusters_for(len(pairs), draw)
    assume(len(set(clusters)) > 1)

    def ratio(ratings_given: list[tuple[str | None, str | None]]) -> Fraction | None:
        value = kappa_by_definition(ratings_given)
        return None if value is None else 1 - value

    replicates = [
        ratio([p for p, c in zip(pairs, clusters, strict=True) if c != name]) for name in sorted(set(clusters))
    ]
    expected = interval_by_definition(kappa_by_definition(pairs), ratio(pairs), replicates, Fraction(1))
    if expected is not None:
        interval = kappa_interval([x for x, _ in pairs], [y for _, y in pairs], clusters)
        assert interval == pytest.approx(expected, abs=1e-6)


@given(pairs_of, st.randoms(use_true_random=False), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_contain_the_estimate_and_have_width(
    pairs: list[tuple[str | None, str | None]], draw: random.Random, confidence: float
) -> None:
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
def test_names_and_order_do_not_matter(pairs: list[tuple[str | None, str | None]], draw: random.Random) -> None:
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
def test_repeated_rows_do_not_narrow_the_interval(
    pairs: list[tuple[str | None, str | None]], draw: random.Random
) -> None:
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
    expected = float(product) / sqrt(sum(i * i for i in a) * sum(j * j for j in b))
    assert result == pytest.approx(expected, abs=1e-12)
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
    swapped = spearman_interval(range(6), [1, 0, 2, 3, 4, 5])
    assert swapped is not None
    assert spearman_interval(range(6), range(6)) == pytest.approx((swapped[0], 1.0))
    assert swapped[1] < 1
