"""Test the panel of judges against a naive implementation on random accuracies (ReIFE, section 6)."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest
from builders import near, verdict
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Row, Side
from distract.stats import agreement
from distract.studies.meta.comparisons import Agreement, JudgeRows
from distract.studies.meta.difficulty import BINS
from distract.studies.meta.measures import figures
from distract.studies.meta.panel import BASES, JudgeStanding, Panel, compare_judges, find_base

Accuracies = Mapping[str, Mapping[str, float]]
"""Accuracy by judge and protocol."""

PROTOCOLS = ("base", "cot", "prepair", "zz")
JUDGES = ("j1", "j2", "j3", "j4", "j5")


def accuracies(accuracy_table: Accuracies, data: str | None = "d") -> list[Agreement]:
    return [
        Agreement("accuracy", protocol, None, "none", value=value, n=10, judge=judge, data=data)
        for judge, by in accuracy_table.items()
        for protocol, value in by.items()
    ]


def differences(accuracy_table: Accuracies, rng: random.Random) -> list[Agreement]:
    """Random gains for all pairs of protocols of a judge; they deliberately disagree with the accuracies."""
    gains = []
    for judge, by in accuracy_table.items():
        for first in by:
            for second in by:
                if first < second:
                    names = [first, second] if rng.random() < 0.5 else [second, first]
                    value = rng.choice([-0.3, -0.1, 0.0, 0.05, 0.2, None])
                    low, high = (None, None) if value is None else (value - 0.1, value + 0.3)
                    compared = None if value is None else rng.choice(["better", "worse", "not distinguishable"])
                    f = Agreement("accuracy", names[0], None, "none", value=value, low=low, high=high, judge=judge)
                    p = None if value is None else rng.random()
                    gains.append(replace(f, data="d", against=names[1], p_adjusted=p, compared=compared))
    return gains


def make_rows(accuracy_table: Accuracies) -> list[JudgeRows]:
    """Rows about one and the same comparison, so that figures do not change."""
    return [rows(protocol, judge, ["a"], [["a"]]) for judge, by in accuracy_table.items() for protocol in by]


VALUES = st.sampled_from([0.0, 0.25, 0.5, 0.5, 0.625, 0.75, 1.0])
ALIKE = st.lists(st.sampled_from(PROTOCOLS), min_size=1, unique=True).flatmap(
    lambda names: st.dictionaries(st.sampled_from(JUDGES), st.fixed_dictionaries(dict.fromkeys(names, VALUES)))
)
MIXED = st.dictionaries(st.sampled_from(JUDGES), st.dictionaries(st.sampled_from(PROTOCOLS), VALUES, min_size=1))


def rank(value: float, among: Sequence[float]) -> float:
    """Ranks from 1 for the largest value; equal values share the mean rank."""
    return 1 + sum(other > value for other in among) + (sum(other == value for other in among) - 1) / 2


@given(ALIKE | MIXED, st.sampled_from(["base", "cot", None]), st.randoms(use_true_random=False))
def test_panel_matches_a_naive_count(accuracy_table: Accuracies, base: str | None, rng: random.Random) -> None:
    figures = [*accuracies(accuracy_table), *differences(accuracy_table, rng)]
    got = compare_judges(make_rows(accuracy_table), figures, base)
    if len(accuracy_table) < 2:
        assert got is None
        return
    assert got is not None
    assert got.comparisons == got.difficulty.n == 1
    common = set(PROTOCOLS).intersection(*(by.keys() for by in accuracy_table.values()))
    assert {one.protocol for one in got.protocols} == common
    means = averages(accuracy_table, common)
    strength = {judge: by[base] if base in common else means[judge] for judge, by in accuracy_table.items()}
    order = sorted(accuracy_table, key=lambda judge: (-strength[judge], judge))
    assert [one.judge for one in got.judges] == order
    halves = split_halves(order)
    for one in got.protocols:
        column = {judge: by[one.protocol] for judge, by in accuracy_table.items()}
        ranks = [rank(by[one.protocol], [by[p] for p in common]) for by in accuracy_table.values()]
        assert one.mean_accuracy == pytest.approx(sum(column.values()) / len(column))
        assert (one.mean_rank, one.judges) == (near(sum(ranks) / len(ranks)), len(accuracy_table))
        assert (one.best_accuracy, one.best_judge) == (
            max(column.values()),
            min(j for j in column if column[j] == max(column.values())),
        )
        for half, gain in (("strong", one.strong_gain), ("weak", one.weak_gain)):
            half_judges = [judge for judge in accuracy_table if halves.get(judge) == half]
            if base not in common or base is None:
                assert gain is None
            else:
                gains = [accuracy_table[judge][one.protocol] - accuracy_table[judge][base] for judge in half_judges]
                assert gain == pytest.approx(sum(gains) / len(gains))
    ranked = [(one.mean_rank, -one.mean_accuracy, one.protocol) for one in got.protocols]
    assert ranked == sorted(ranked)
    for standing in got.judges:
        by = accuracy_table[standing.judge]
        assert standing.half == halves.get(standing.judge)
        assert standing.accuracy == (by.get(base) if base else None)
        assert standing.mean_accuracy == pytest.approx(means[standing.judge])
        check_gain(standing, [f for f in figures if f.against and f.judge == standing.judge], base)


def averages(accuracy_table: Accuracies, common: Collection[str]) -> dict[str, float]:
    """The mean accuracy of each judge over the common protocols, or over its own if none is common."""
    means = {}
    for judge, by in accuracy_table.items():
        values = [value for protocol, value in by.items() if protocol in common or not common]
        means[judge] = sum(values) / len(values)
    return means


def split_halves(order: Sequence[str]) -> dict[str, str]:
    """Split judges into halves; the middle one of an odd number is in neither."""
    halves = {}
    for place, judge in enumerate(order):
        mirrored = len(order) - 1 - place
        if place != mirrored:
            halves[judge] = "strong" if place < mirrored else "weak"
    return halves


def check_gain(standing: JudgeStanding, figures: Sequence[Agreement], base: str | None) -> None:
    gains = {}
    for f in figures:
        if f.value is not None and base is not None:
            if f.against == base:
                gains[f.protocol or ""] = (f.value, f.low, f.high, f.p_adjusted, f.compared)
            elif f.protocol == base:
                low, high = -(f.high or 0.0), -(f.low or 0.0)
                turned = {"better": "worse", "worse": "better"}.get(f.compared or "", f.compared)
                gains[f.against or ""] = (-f.value, low, high, f.p_adjusted, turned)
    if not gains:
        assert (standing.best_protocol, standing.gain, standing.low, standing.compared) == (None,) * 4
        return
    largest = max(gain for gain, *_ in gains.values())
    best = max(name for name in gains if gains[name][0] == largest)
    assert standing.best_protocol == best
    assert (standing.gain, standing.low, standing.high, standing.p_adjusted, standing.compared) == gains[best]


@each("turned", False, True)
def test_gain_has_sign_and_interval_in_either_protocol_order(turned: bool) -> None:
    table = {"j1": {"base": 0.5, "cot": 0.75}, "j2": {"base": 0.5, "cot": 0.5}}
    f = Agreement("accuracy", "cot", None, "none", judge="j1", data="d", value=0.25, low=0.125, high=0.5)
    f = replace(f, against="base", p_adjusted=0.01, compared="better")
    if turned:
        f = replace(f, protocol="base", against="cot", value=-0.25, low=-0.5, high=-0.125, compared="worse")
    got = compare_judges(make_rows(table), [*accuracies(table), f], "base")
    assert got is not None
    assert got.judges[0] == JudgeStanding("j1", "strong", 0.5, 0.625, "cot", 0.25, 0.125, 0.5, 0.01, "better")
    assert got.judges[1] == JudgeStanding("j2", "weak", 0.5, 0.5)


def test_zero_gain_has_no_sign() -> None:
    table = {"j1": {"base": 0.5, "cot": 0.5}, "j2": {"base": 0.5, "cot": 0.5}}
    f = Agreement("accuracy", "base", None, "none", judge="j1", data="d", value=0.0, low=-0.1, high=0.1, against="cot")
    got = compare_judges(make_rows(table), [*accuracies(table), f], "base")
    assert got is not None
    assert str(got.judges[0].gain) == "0.0"


def test_without_a_base_there_are_no_gains() -> None:
    table = {"j1": {"cot": 0.5, "zz": 0.75}, "j2": {"cot": 0.5, "zz": 0.25}}
    got = compare_judges(make_rows(table), [*accuracies(table), *differences(table, random.Random(1))], None)
    assert got is not None
    assert {(one.strong_gain, one.weak_gain) for one in got.protocols} == {(None, None)}
    assert {(one.accuracy, one.best_protocol, one.gain) for one in got.judges} == {(None, None, None)}
    assert got.correlations == ()
    assert [one.judge for one in got.judges] == ["j1", "j2"], "by the mean over protocols"


@each(
    "protocols, expected, base",
    (["cot", "base"], None, "base"),
    (["CoT", "Vanilla"], None, "Vanilla"),
    (["base_pairwise.pairwise_vanilla"], None, "base_pairwise.pairwise_vanilla"),
    (["Vanilla", "base"], None, "base"),
    (["cot", "base"], "cot", "cot"),
    (["cot", "base"], "prepair", None),
    (["cot"], None, None),
    ([], None, None),
)
def test_base_is_the_requested_or_a_known_one(protocols: list[str], expected: str | None, base: str | None) -> None:
    assert find_base(protocols, expected) == base
    assert BASES[0] == "base"


def test_only_common_comparisons_are_ranked() -> None:
    table = {
        "j1": {"base": 0.5, "cot": 0.75, "zz": 1.0},
        "j2": {"base": 0.25, "cot": 0.5},
        "j3": {"cot": 0.5, "prepair": 0},
    }
    got = compare_judges(make_rows(table), accuracies(table), "base")
    assert got is not None
    assert [(one.protocol, one.mean_rank, one.strong_gain) for one in got.protocols] == [("cot", 1.0, None)]
    assert {one.judge: one.accuracy for one in got.judges} == {"j1": 0.5, "j2": 0.25, "j3": None}


@each(
    "accuracy_table, standings",  # A protocol of only one judge enters no mean.
    (
        {"j1": {"base": 0.5, "cot": 0.75, "zz": 0.0}, "j2": {"base": 0.25, "cot": 0.5}},
        [("j1", "strong", 0.5, 0.625), ("j2", "weak", 0.25, 0.375)],
    ),
    # With the base, its accuracy orders the judges, whatever their means.
    (
        {"j1": {"base": 0.5, "cot": 0.0}, "j2": {"base": 0.25, "cot": 1.0}},
        [("j1", "strong", 0.5, 0.25), ("j2", "weak", 0.25, 0.625)],
    ),
    # One judge lacks the base, so the means order all judges.
    (
        {"j1": {"base": 1.0, "cot": 0.25}, "j2": {"base": 0.0, "cot": 0.5}, "j3": {"cot": 0.75}},
        [("j3", "strong", None, 0.75), ("j2", None, 0.0, 0.5), ("j1", "weak", 1.0, 0.25)],
    ),
    # Without a common protocol, each mean covers the judge's own protocols.
    ({"j1": {"base": 1.0, "zz": 0.0}, "j2": {"cot": 0.75}}, [("j2", "strong", None, 0.75), ("j1", "weak", 1.0, 0.5)]),
)
def test_strength_is_measured_on_common_comparisons(
    accuracy_table: Accuracies, standings: list[tuple[object, ...]]
) -> None:
    got = compare_judges(make_rows(accuracy_table), accuracies(accuracy_table), "base")
    assert got is not None
    assert [(one.judge, one.half, one.accuracy, one.mean_accuracy) for one in got.judges] == standings


# Correlations.


@given(ALIKE | MIXED, ALIKE | MIXED, st.sampled_from(["base", "cot", None]))
def test_correlations_cover_data_sets_and_base_against_mean(
    one: Accuracies, other: Accuracies, base: str | None
) -> None:
    both = {j: {p: (one[j][p] + other[j][p]) / 2 for p in one[j] if p in other[j]} for j in one if j in other}
    both = {judge: by for judge, by in both.items() if by}
    figures = [*accuracies(both, None), *accuracies(one, "d1"), *accuracies(other, "d2")]
    got = compare_judges([*make_rows(one), *make_rows(other)], figures, base)
    if len(both) < 2:
        # Without common comparisons overall, a single data set is used.
        assert not both or got is None
        return
    assert got is not None
    correlations = {correlations.between: correlations for correlations in got.correlations}
    points = [(one[j][p], other[j][p]) for j in sorted(one) if j in other for p in sorted(one[j]) if p in other[j]]
    check_correlation(correlations["data sets"], "d1", "d2", points)
    means = averages(both, set(PROTOCOLS).intersection(*both.values()))
    points = [(by[base], means[judge]) for judge, by in sorted(both.items()) if base in by]
    if points:
        check_correlation(correlations["base and mean over protocols"], base, "mean", points)
    assert len(got.correlations) == 1 + bool(points)


def check_correlation(
    correlation: object, first: str | None, second: str, points: Sequence[tuple[float, float]]
) -> None:
    x, y = [a for a, _ in points], [b for _, b in points]
    value, interval = agreement.spearman(x, y), agreement.spearman_interval(x, y) or (None, None)
    got = [getattr(correlation, name) for name in ("first", "second", "n", "value", "low", "high")]
    assert got[:3] == [first, second, len(points)]
    # Rounding in sums of another order may break or create ties, so accuracies here are exact in binary.
    assert got[3:] == [value, *interval]


# Difficulty.


def rows(
    protocol: str, judge: str, labels: Sequence[str | None], verdict_table: Sequence[Sequence[str | None]]
) -> JudgeRows:
    rows = tuple(
        Row(
            f"c{i}", f"c{i}", "people", protocol, judge, "none", Side("x"), Side("y"), data="d", label=label,  # type: ignore[arg-type]
            judgments=tuple(verdict(one) for one in verdicts), shown=("a", "b")[: len(verdicts)],  # type: ignore[arg-type]
            excluded=None if verdicts else "why not",
        )
        for i, (label, verdicts) in enumerate(zip(labels, verdict_table, strict=True))
    )  # fmt: skip
    return JudgeRows(judge, protocol, (), {"": rows})


Said = Sequence[Sequence[str | None]]
"""The verdicts of one judge on each comparison in each order; empty if it was not asked."""


def able_judges(labels: Sequence[str | None], verdict_table: Sequence[Said]) -> list[Said]:
    """Judges with a verdict on any labelled comparison."""
    return [one for one in verdict_table if any(label and any(v) for v, label in zip(one, labels, strict=True))]


def common_comparisons(labels: Sequence[str | None], verdict_table: Sequence[Said]) -> list[int]:
    """The indices of labelled comparisons that all judges share."""
    return [i for i, label in enumerate(labels) if label is not None and all(one[i] for one in verdict_table)]


SAID = st.sampled_from(["a", "b", "tie", None])
ASKED = st.lists(st.tuples(SAID, SAID).map(list) | st.just([]), min_size=5, max_size=5)


@given(st.lists(SAID, min_size=5, max_size=5), st.lists(ASKED, min_size=2, max_size=6))
def test_difficulty_is_the_share_of_all_verdicts_that_are_right(
    labels: list[str | None], verdicts_said: list[list[list[str | None]]]
) -> None:
    judged = [rows("base", f"j{i}", labels, one) for i, one in enumerate(verdicts_said)]
    assume(
        all(
            any(any(one[i]) for i in common_comparisons(labels, able_judges(labels, verdicts_said)))
            for one in able_judges(labels, verdicts_said)
        )
    )
    got = compare_judges(judged, figures(judged), "base")
    able = able_judges(labels, verdicts_said)
    shared = common_comparisons(labels, able)
    assert (got is None) == (len(able) < 2 or not shared)
    if got is None:
        return
    assert got.comparisons == len(shared)
    bins, never, always = [0] * BINS, 0, 0
    for i in shared:
        label = labels[i]
        verdicts = [v for one in able for v in one[i]]
        right = verdicts.count(label)
        bins[min(9, 10 * right // len(verdicts))] += 1
        never += right == 0
        always += right == len(verdicts)
    assert (got.difficulty.bins, got.difficulty.n) == (tuple(bins), sum(bins))
    assert (got.difficulty.never, got.difficulty.always) == (never, always)


# Common comparisons.


def judges(*sets: Sequence[str]) -> Panel | None:
    """The panel of judges on these data sets."""
    judged = []
    for i, names in enumerate(sets):
        one = rows("base", f"j{i}", ["a", "b"], [["a", "a"], ["a", "b"]])
        judge_rows = [replace(row, data=name) for name in names for row in one.rows[""]]
        judged.append(replace(one, rows={"": tuple(judge_rows)}))
    return compare_judges(judged, figures(judged), "base")


def test_one_judge_or_unlabelled_judges_make_no_panel() -> None:
    assert judges(["d"]) is None
    assert judges() is None
    unlabelled = [rows("base", name, [None], [["a", "a"]]) for name in ("j", "k")]
    assert compare_judges(unlabelled, figures(unlabelled), "base") is None
    one = rows("base", "l", ["a"], [["a", "a"]])
    assert compare_judges([*unlabelled, one], figures([*unlabelled, one]), "base") is None


def test_judges_of_the_same_data_sets_make_a_panel() -> None:
    for sets in (["d"], ["d", "e"]):
        panel = judges(sets, sets)
        assert panel is not None
        assert [one.judges for one in panel.protocols] == [2]
        assert panel.comparisons == 2 * len(sets)


def test_judge_of_fewer_data_sets_is_compared_on_those() -> None:
    panel = judges(["d", "e"], ["d"])
    assert panel is not None
    assert ({one.judge for one in panel.judges}, panel.comparisons) == ({"j0", "j1"}, 2)
    for got, expected in (
        (panel, judges(["d"], ["d"])),
        (judges(["d", "e"], ["e", "f"], ["f", "e"]), judges(["e"], ["e"], ["e"])),
    ):
        assert got is not None
        assert expected is not None
        # The correlation of data sets uses all their comparisons.
        assert replace(got, correlations=expected.correlations) == expected


def test_judges_without_a_common_comparison_make_no_panel() -> None:
    assert judges(["d"], ["e"]) is None
    assert judges(["d", "e"], ["d", "e"], ["f"]) is None


def accuracy(
    verdict_table: Mapping[tuple[str, int], Sequence[str | None]], labels: Mapping[tuple[str, int], str | None]
) -> float | None:
    valid = [v == labels[one] for one, verdicts in verdict_table.items() for v in verdicts if v and labels[one]]
    return sum(valid) / len(valid) if valid else None


def test_judge_without_a_common_verdict_breaks_nothing() -> None:
    judged = [
        rows("base", "j", ["a", "a"], [[None, None], ["a", "a"]]),
        rows("base", "k", ["a", "a"], [["a", "a"], []]),
    ]
    got = compare_judges(judged, figures(judged), "base")
    assert got is None or "k" in {one.judge for one in got.judges}


def test_protocol_of_some_judges_uses_the_same_comparisons() -> None:
    others = rows("base", "j", ["a", "a", "a"], [["a", "a"], ["b", "b"], []])
    alike = [rows("cot", name, ["a", "a", "a"], [["a", "a"], [], []]) for name in "jk"]
    got = compare_judges([*alike, others], figures([*alike, others]), "base")
    assert got is not None
    assert got.comparisons == 1
    assert {(one.judge, one.accuracy, one.mean_accuracy) for one in got.judges} == {("j", 1.0, 1.0), ("k", None, 1.0)}
