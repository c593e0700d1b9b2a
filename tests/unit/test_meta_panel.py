"""Test the panel of judges against a naive implementation on random accuracies (ReIFE, section 6)."""

import csv
import random
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from builders import case, drive, near, scored, verdict, write_rows
from command_result import Run, check_refusal, fits
from hypothesis import assume, given, strategies as st
from loops import each
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from distract.core.errors import DistractError, UsageError
from distract.core.plan import Plan, tap
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import PASS_MARK, RESAMPLED, Case, Judgment, Reply, Request, Response, Row, Side
from distract.core.registry import attacks, protocols
from distract.core.runs import load
from distract.judging.orders import Manner
from distract.judging.pass_marks import PassMark, against_mark, find_mark, read_pass
from distract.judging.published import PublishedRun, attach_labels
from distract.stats import agreement
from distract.studies.leaderboard.sources.records import from_rows
from distract.studies.meta.disagreements import collect_disagreements
from distract.studies.meta.measures import Agreement, JudgeRows, figures
from distract.studies.meta.panel import BASES, BINS, Difficulty, compare_judges, confusions, find_base, measure_judges
from distract.studies.meta.session import MetaConfig, from_published, judge_labelled, list_judged
from distract.studies.meta.study import report_parts

Accuracies = Mapping[str, Mapping[str, float]]
"""Accuracy by judge and protocol."""

PROTOCOLS = ("base", "cot", "prepair", "zz")
JUDGES = ("j1", "j2", "j3", "j4", "j5")


def accuracies(accuracy_table: Accuracies, data: str | None = "d") -> list[Agreement]:
    values = [(judge, protocol, value) for judge, by in accuracy_table.items() for protocol, value in by.items()]
    return [
        Agreement("accuracy", name, None, "none", value=v, n=10, judge=judge, data=data) for judge, name, v in values
    ]


def differences(accuracy_table: Accuracies, rng: random.Random) -> list[Agreement]:
    """Random gains for all pairs of protocols of a judge; they deliberately disagree with the accuracies."""
    gains = []
    for judge, by in accuracy_table.items():
        for pair in combinations(sorted(by), 2):
            first, second = pair if rng.random() < 0.5 else pair[::-1]
            value = rng.choice([-0.3, -0.1, 0.0, 0.05, 0.2, None])
            low, high = (None, None) if value is None else (value - 0.1, value + 0.3)
            f = Agreement("accuracy", first, None, "none", value=value, low=low, high=high, judge=judge)
            p, compared = (None, None) if value is None else (1.0, "not distinguishable")
            if value and rng.random() < 0.5:
                p, compared = 0.05, "better" if value > 0 else "worse"
            gains.append(replace(f, data="d", against=second, p_adjusted=p, compared=compared))
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
    got: Any = compare_judges(make_rows(accuracy_table), figures, base)
    if len(accuracy_table) < 2:
        assert got is None
        return
    assert got.comparisons == got.difficulty.n == 1
    common = set(PROTOCOLS).intersection(*(by.keys() for by in accuracy_table.values()))
    assert {one.protocol for one in got.protocols} == common
    means = averages(accuracy_table, common)
    strength = {judge: by[base] if base in common else means[judge] for judge, by in accuracy_table.items()}
    order = sorted(accuracy_table, key=lambda judge: (-strength[judge], judge))
    assert [one.judge for one in got.judges] == order
    assert base is not None or not got.correlations
    halves = split_halves(order)
    for one in got.protocols:
        column = {judge: by[one.protocol] for judge, by in accuracy_table.items()}
        ranks = [rank(by[one.protocol], [by[p] for p in common]) for by in accuracy_table.values()]
        best = max(column.values())
        assert one.mean_accuracy == pytest.approx(sum(column.values()) / len(column))
        assert (one.mean_rank, one.judges) == (near(sum(ranks) / len(ranks)), len(accuracy_table))
        assert (one.best_accuracy, one.best_judge) == (best, min(j for j in column if column[j] == best))
        for half, gain in (("strong", one.strong_gain), ("weak", one.weak_gain)):
            accuracies_in_half = [by for judge, by in accuracy_table.items() if halves.get(judge) == half]
            if base not in common or base is None:
                assert gain is None
            else:
                gains = [by[one.protocol] - by[base] for by in accuracies_in_half]
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
    return {
        judge: fmean(value for protocol, value in by.items() if protocol in common or not common)
        for judge, by in accuracy_table.items()
    }


def split_halves(order: Sequence[str]) -> dict[str, str]:
    """Split judges into halves; the middle one of an odd number is in neither."""
    size = len(order) // 2
    return dict.fromkeys(order[:size], "strong") | dict.fromkeys(order[len(order) - size :], "weak")


def check_gain(standing: Any, figures: Sequence[Agreement], base: str | None) -> None:
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
    assert str(standing.gain) != "-0.0"


@each(
    "protocols, expected, base",
    (["cot", "base"], None, "base"), (["CoT", "Vanilla"], None, "Vanilla"),
    (["base_pairwise.pairwise_vanilla"], None, "base_pairwise.pairwise_vanilla"), (["Vanilla", "base"], None, "base"),
    (["cot", "base"], "cot", "cot"), (["cot", "base"], "prepair", None), (["cot"], None, None), ([], None, None),
)  # fmt: skip
def test_base_is_the_requested_or_a_known_one(protocols: list[str], expected: str | None, base: str | None) -> None:
    assert find_base(protocols, expected) == base
    assert BASES[0] == "base"


@given(ALIKE | MIXED, ALIKE | MIXED, st.sampled_from(["base", "cot", None]))
def test_correlations_cover_data_sets_and_base_against_mean(one: Accuracies, other: Accuracies, base: Any) -> None:
    both = {j: {p: (one[j][p] + other[j][p]) / 2 for p in one[j] if p in other[j]} for j in one if j in other}
    both = {judge: by for judge, by in both.items() if by}
    figures = [*accuracies(both, None), *accuracies(one, "d1"), *accuracies(other, "d2")]
    got: Any = compare_judges([*make_rows(one), *make_rows(other)], figures, base)
    if len(both) < 2:
        # Without common comparisons overall, a single data set is used.
        assert not both or got is None
        return
    correlations = {correlations.between: correlations for correlations in got.correlations}
    points = [(one[j][p], other[j][p]) for j in sorted(one) if j in other for p in sorted(one[j]) if p in other[j]]
    check_correlation(correlations["data sets"], "d1", "d2", points)
    means = averages(both, set(PROTOCOLS).intersection(*both.values()))
    points = [(by[base], means[judge]) for judge, by in sorted(both.items()) if base in by]
    if points:
        check_correlation(correlations["base and mean over protocols"], base, "mean", points)
    assert len(got.correlations) == 1 + bool(points)


def check_correlation(correlation: object, first: Any, second: str, points: Sequence[tuple[float, float]]) -> None:
    x, y = [a for a, _ in points], [b for _, b in points]
    value, interval = agreement.spearman(x, y), agreement.spearman_interval(x, y) or (None, None)
    got = [getattr(correlation, name) for name in ("first", "second", "n", "value", "low", "high")]
    # Rounding in sums of another order may break or create ties, so accuracies here are exact in binary.
    assert got == [first, second, len(points), value, *interval]


def rows(protocol: str, judge: str, labels: Sequence[str | None], verdict_table: Sequence[Any]) -> JudgeRows:
    rows = tuple(
        Row(
            f"c{i}", f"c{i}", "people", protocol, judge, "none", Side("x"), Side("y"), data="d", label=label,  # type: ignore[arg-type]
            judgments=tuple(verdict(one) for one in verdicts), shown=("a", "b")[: len(verdicts)],  # type: ignore[arg-type]
            excluded=None if verdicts else "why not",
        )
        for i, (label, verdicts) in enumerate(zip(labels, verdict_table, strict=True))
    )  # fmt: skip
    return JudgeRows(judge, protocol, (), {"": rows})


SAID = st.sampled_from(["a", "b", "tie", None])
ASKED = st.lists(st.tuples(SAID, SAID).map(list) | st.just([]), min_size=5, max_size=5)


@given(st.lists(SAID, min_size=5, max_size=5), st.lists(ASKED, min_size=2, max_size=6))
def test_difficulty_is_the_share_of_all_verdicts_that_are_right(labels: Any, verdicts_said: list[Any]) -> None:
    # A judge is measured if it has a verdict on any labelled comparison; those that all such judges have are shared.
    able = [one for one in verdicts_said if any(label and any(v) for v, label in zip(one, labels, strict=True))]
    shared = [i for i, label in enumerate(labels) if label is not None and all(one[i] for one in able)]
    assume(all(any(any(one[i]) for i in shared) for one in able))
    judged = [rows("base", f"j{i}", labels, one) for i, one in enumerate(verdicts_said)]
    got: Any = compare_judges(judged, figures(judged), "base")
    assert (got is None) == (len(able) < 2 or not shared)
    if got is None:
        return
    assert got.comparisons == len(shared)
    assert got.difficulty == count_right([(labels[i], [v for one in able for v in one[i]]) for i in shared])


def count_right(answers: Sequence[tuple[str | None, Sequence[str | None]]]) -> Difficulty:
    """Count comparisons by how many of their verdicts are the label."""
    bins, never, always = [0] * BINS, 0, 0
    for label, verdicts in answers:
        right = verdicts.count(label)
        bins[min(9, 10 * right // len(verdicts))] += 1
        never += right == 0
        always += right == len(verdicts)
    return Difficulty(len(answers), bins, never, always)


def judges(*sets: Sequence[str]) -> Any:
    """The panel of judges on these data sets, if there is one."""
    judged = []
    for i, names in enumerate(sets):
        one = rows("base", f"j{i}", ["a", "b"], [["a", "a"], ["a", "b"]])
        judged.append(replace(one, rows={"": tuple(replace(row, data=name) for name in names for row in one.rows[""])}))
    return compare_judges(judged, figures(judged), "base")


def test_judges_without_a_common_labelled_comparison_make_no_panel() -> None:
    for sets in ([], [["d"]], [["d"], ["e"]], [["d", "e"], ["d", "e"], ["f"]]):
        assert judges(*sets) is None
    unlabelled = [rows("base", name, [None], [["a", "a"]]) for name in ("j", "k")]
    for judged in (unlabelled, [*unlabelled, rows("base", "l", ["a"], [["a", "a"]])]):
        assert compare_judges(judged, figures(judged), "base") is None


def test_judge_of_fewer_data_sets_is_compared_on_those() -> None:
    panel = judges(["d", "e"], ["d"])
    assert ({one.judge for one in panel.judges}, panel.comparisons) == ({"j0", "j1"}, 2)
    for got, expected in (
        (panel, judges(["d"], ["d"])),
        (judges(["d", "e"], ["e", "f"], ["f", "e"]), judges(["e"], ["e"], ["e"])),
    ):
        # The correlation of data sets uses all their comparisons.
        assert replace(got, correlations=expected.correlations) == expected


def accuracy(verdict_table: Mapping[Any, Sequence[str | None]], labels: Mapping[Any, str | None]) -> float | None:
    valid = [v == labels[one] for one, verdicts in verdict_table.items() for v in verdicts if v and labels[one]]
    return sum(valid) / len(valid) if valid else None


def test_protocol_of_some_judges_uses_the_same_comparisons() -> None:
    others = rows("base", "j", ["a", "a", "a"], [["a", "a"], ["b", "b"], []])
    alike = [rows("cot", name, ["a", "a", "a"], [["a", "a"], [], []]) for name in "jk"]
    got: Any = compare_judges([*alike, others], figures([*alike, others]), "base")
    assert got.comparisons == 1
    assert {(one.judge, one.accuracy, one.mean_accuracy) for one in got.judges} == {("j", 1.0, 1.0), ("k", None, 1.0)}


RATES = ("accuracy", "true_positive_rate", "true_negative_rate", "precision")

MARK = 4
SCORED = [scored((score, MARK), (rating, MARK)) for score in (2.0, 4.0, 5.5) for rating in (3, 4)] + [verdict(None)]
STORED = [verdict("a"), verdict("b"), verdict(None)]


def passes(row: Row, rule: str | None) -> bool | None:
    (judgment,) = row.judgments
    if judgment.failure:
        return None
    pair = {"score": judgment.scores, "rating": judgment.ratings}.get(rule or "")
    return judgment.preferred == "a" if pair is None else pair[0] >= pair[1]


def count_naively(rows: Sequence[Row], rule: str | None) -> dict[str, tuple[int, int, int, int]]:
    """Count k, n, invalid and excluded of each measure."""
    judged = [(row.label == "a", passes(row, rule)) for row in rows if row.excluded is None and row.label is not None]
    counts = Counter(judged)
    tp, fn, fp, tn = counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    lost = {label: counts[label, None] for label in (True, False)}
    both, other = sum(lost.values()), len(rows) - len(judged)
    return {
        "accuracy": (tp + tn, tp + fn + fp + tn, both, other),
        "true_positive_rate": (tp, tp + fn, lost[True], other + fp + tn + lost[False]),
        "true_negative_rate": (tn, tn + fp, lost[False], other + tp + fn + lost[True]),
        "precision": (tp, tp + fp, both, other + fn + tn),
    }


LABELS, PROMPTS = st.sampled_from(["a", "b", "b", None]), st.sampled_from(["p1", "p2", "p3"])
ROWS = st.lists(st.tuples(LABELS, st.integers(0, 6), PROMPTS, st.booleans()), min_size=1, max_size=12)
Values = tuple[Any, int, str, bool]
"""A label, the number of a judgment, a prompt, and whether the row may be excluded."""


def pass_rows(values: Sequence[Values], judgments: Sequence[Any]) -> list[Row]:
    rows = []
    for at, (label, number, cluster, is_excluded) in enumerate(values):
        row = Row(f"c{at}", cluster, "pass", "p", "j", "none", Side("x"), Side(PASS_MARK), label=label, data="d")
        judged = (judgments[number % len(judgments)],)
        rows.append(replace(row, excluded="why not") if is_excluded and at else replace(row, judgments=judged))
    return rows


@given(ROWS, st.sampled_from([(("score", "rating"), SCORED), (("stored",), STORED), ((), STORED)]))
def test_figures_are_those_of_naive_counts(values: list[Values], kind: tuple[tuple[str, ...], list[Any]]) -> None:
    rules, judgments = kind
    rows = pass_rows(values, judgments)
    judge = JudgeRows("j", "p", rules, {"": tuple(rows)})
    results = figures([judge])
    assert {f.design for f in results} == {"pass"}
    for rule in rules or (None,):
        for measure, counts in count_naively(rows, rule).items():
            (f,) = [f for f in results if (f.measure, f.rule) == (measure, rule)]
            assert [f.k, f.n, f.invalid, f.excluded] == list(counts)
            assert f.n + f.invalid + f.excluded == len(rows)
            assert (f.value is None) == (f.n == 0)
            if f.value is not None and f.low is not None and f.high is not None:
                assert f.value == pytest.approx(counts[0] / counts[1])
                assert f.low <= f.value <= f.high
    judged = [row for row in rows if row.excluded is None and row.label is not None]
    names: Mapping[bool | None, str] = {True: "pass", False: "fail", None: "invalid"}
    for one in confusions([judge]):
        expected = Counter((row.label == "a", passes(row, one.rule)) for row in judged)
        counted = {names[label]: {names[one]: expected[label, one] for one in names} for label in (True, False)}
        assert one.counts == counted
    assert len(confusions([judge])) == bool(judged) * len(rules or (None,))


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1)), min_size=4, max_size=30))
def test_independent_prompts_agree_with_statsmodels(values: list[tuple[str, int]]) -> None:
    rows = pass_rows([(label, number, f"p{at}", False) for at, (label, number) in enumerate(values)], STORED)
    results = {f.measure: f for f in figures([JudgeRows("j", "p", (), {"": tuple(rows)})])}
    for measure in RATES:
        if (f := results[measure]).n:
            assert (f.low, f.high) == pytest.approx(proportion_confint(f.k, f.n, method="wilson"), abs=1e-9)
    table = [[sum(pair == (label, number) for pair in values) for number in (0, 1)] for label in ("a", "b")]
    kappa = results["kappa"].value
    if kappa is not None:
        assert kappa == pytest.approx(cohens_kappa(table, return_results=False))


@given(ROWS, ROWS)
def test_designs_are_never_pooled(alone: list[Values], pairs: list[Values]) -> None:
    one = pass_rows(alone, STORED)
    two = [replace(row, design="people", b=Side("y"), case=f"pair-{row.case}") for row in pass_rows(pairs, STORED)]
    both, *parts = (figures([JudgeRows("j", "p", (), {"": tuple(some)})]) for some in ([*one, *two], one, two))
    assert [[f for f in both if f.design == design] for design in ("pass", "people")] == parts


JUDGE = """
import distract

@distract.judge(version="1", scale={settings})
def judge(question, response):
    if "broken" in response:
        return "?"
    return 8 if len(response) > 20 else 5 if len(response) > 10 else 2
"""
HOSTILE = "=cmd()|[bold]<script>alert(1)</script>\x1b[31m ![x](http://a) [[A]] {output_2}"


@pytest.fixture
def labelled(run: Run) -> Run:
    """8 long texts of which people pass 5, 9 short ones of which they pass 2, one unreadable."""
    texts = [(f"It is {at}, and so on and on {HOSTILE}", at < 5) for at in range(8)]
    texts += [*((f"No {at}", at < 2) for at in range(9)), ("broken", True)]
    with Path("labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "response", "label"])
        writer.writerows([f"{at}? {HOSTILE}", text, ("fail", "pass")[good]] for at, (text, good) in enumerate(texts))
    for name, settings in (
        ("j", "(0, 10)"), ("own", "(0, 10), pass_mark=5"), ("lower", '(0, 10), better="lower"'), ("open", "(0, None)")
    ):  # fmt: skip
        Path(f"{name}.py").write_text(JUDGE.format(settings=settings), encoding="utf-8")
    return run


META = ("meta", "--data", "labels.csv", "--limit", "all")
PLANTED = {"pass": {"pass": 5, "fail": 2, "invalid": 1}, "fail": {"pass": 3, "fail": 7, "invalid": 0}}


def test_planted_judge_gives_exactly_its_counts(labelled: Run) -> None:
    ran = labelled(*META, "--judge", "python:j.py:judge", "--out", "r", "--json")
    assert ran.code == 0, ran.err
    matrix = {
        "judge": "python:j.py:judge", "protocol": "function", "rule": "score", "design": "pass",
        "data": "labels.csv", "counts": PLANTED,
    }  # fmt: skip
    assert ran.document["confusion"] == [matrix]
    counts = {name: tuple(ran.figure(name)[field] for field in ("k", "n", "invalid", "excluded")) for name in RATES}
    assert counts == {
        "accuracy": (12, 17, 1, 0), "true_positive_rate": (5, 7, 1, 10), "true_negative_rate": (7, 10, 0, 8),
        "precision": (5, 8, 1, 9),
    }  # fmt: skip
    assert {one["design"] for one in ran.results} == {"pass"}
    run = load(Path("r"))
    assert run.parameters["pass_marks"] == {"function": 5}
    assert run.parameters["pass_mark_origins"] == {"function": "the middle of its scale"}
    assert all(len(row.keys) == 1 for row in run.rows)
    # Stored verdicts of the run give the same figures, with labels from the run or from the data.
    for data in ((), ("--data", "labels.csv")):
        again = labelled("meta", "--judge", "replay:r", *data, "--json")
        assert again.document["confusion"] == [matrix]
        rates, before = ([one for one in some.results if one["measure"] in RATES] for some in (again, ran))
        assert rates == before


def test_report_says_what_is_positive_and_which_mark(labelled: Run) -> None:
    ran = labelled(*META, "--judge", "python:j.py:judge", "--verbose", "--html", "p.html", "--markdown", "p.md")
    fits(ran.out)
    for words in (
        "passes 5 of 7 responses that people pass (71.4%,", "fails 7 of 10 responses that people fail (70.0%,",
        "A pass is positive", "function: a score from 5 passes (the middle of its scale)",
        "people pass 5 2 1 people fail 3 7 0",
    ):  # fmt: skip
        assert words in ran.words
    text = Path("p.md").read_text(encoding="utf-8")
    assert ("5 disagreements with people, the clearest" in text, "<script" in text) == (True, False)
    assert "Labels by verdicts" in Path("p.html").read_text(encoding="utf-8")


@each(
    "judge, options, passed, note",
    ("j", (), 8, "a score from 5 passes (the middle of its scale)"),
    ("j", ("--pass-mark", 2), 17, "a score from 2 passes (--pass-mark)"),
    ("j", ("--pass-mark", 8), 8, "a score from 8 passes (--pass-mark)"),
    ("j", ("--pass-mark", 8.01), 0, "a score from 8.01 passes (--pass-mark)"),
    ("own", (), 8, "a score from 5 passes (the judge's own mark)"),
    ("own", ("--pass-mark", 2), 8, "a score from 5 passes (the judge's own mark)"),
    ("lower", (), 9, "a score from 5 passes (the middle of its scale)"),
    ("open", ("--pass-mark", 8), 8, "a score from 8 passes (--pass-mark)"),
)  # fmt: skip
def test_mark_decides(labelled: Run, judge: str, options: tuple[Any, ...], passed: int, note: str) -> None:
    ran = labelled(*META, "--judge", f"python:{judge}.py:judge", *options, "--json")
    (matrix,) = ran.document["confusion"]
    assert sum(row["pass"] for row in matrix["counts"].values()) == passed
    assert ran.document["judges"][0]["notes"] == [f"function: {note}"]


@each(
    "options, words",
    (("--judge", "python:open.py:judge"), "function has no pass mark, and its scale (from 0) has no middle"),
    (("--judge", "python:j.py:judge", "--pass-mark", 11), "--pass-mark 11: the scale of function is 0 to 10"),
    (("--judge", "python:j.py:judge", "--pass-mark", "x"), "pass-mark"),
    (("--judge", "python:j.py:judge", "--pass-mark", "nan"), "pass-mark"),
    (("--judge", "planted:longer", "--protocol", "pairwise"), "pairwise compares two responses, and cannot pass"),
    (("--judge", "planted:longer", "--protocol", "absolute", "--protocol", "base"), "base compares two responses"),
    (("--judge", "python:pair.py:pair"), "function compares two responses, and cannot pass or fail one"),
    (("--judge", "replay:r", "--pass-mark", 4), "--pass-mark"),
)
def test_wrong_request_is_refused_in_one_line(labelled: Run, options: tuple[Any, ...], words: str) -> None:
    Path("pair.py").write_text("def pair(response_a, response_b): return 'A'\n", encoding="utf-8")
    ran = labelled(*META, *options)
    assert (ran.code, ran.out, "Traceback" in ran.err) == (2, "", False)
    assert words in ran.err.splitlines()[-1]


def test_mark_needs_responses_that_are_judged_alone(run: Run) -> None:
    unfit = run("meta", "--judge", "planted:fair", "--pass-mark", "3")
    check_refusal(unfit, "--pass-mark: the data hold no response that people passed or failed")


def test_default_protocols_that_compare_are_left_out(labelled: Run) -> None:
    ran = labelled(*META, "--judge", "planted:longer", "--json")
    assert (ran.code, {one["protocol"] for one in ran.results}) == (0, {"absolute"})
    assert "left out of pass or fail: pairwise compares two responses" in ran.document["judges"][0]["notes"][-1]


def test_one_class_of_labels_leaves_the_other_rate_out_and_says_why(labelled: Run) -> None:
    lines = Path("labels.csv").read_text(encoding="utf-8").replace(",fail", ",pass")
    Path("labels.csv").write_text(lines, encoding="utf-8")
    rate = labelled(*META, "--judge", "python:j.py:judge", "--json").figure("true_negative_rate")
    assert (rate["n"], rate["k"], rate["value"], rate["excluded"]) == (0, 0, None, 18)
    text = labelled(*META, "--judge", "python:j.py:judge").words
    assert "is not measured on responses that people fail (no eligible case: passed by people (18))" in text


def test_pairs_and_single_responses_are_shown_apart(labelled: Run) -> None:
    responses = [{"author": "x", "text": "Red, or blue, or green."}, {"author": "y", "text": "Hm."}]
    pair = {"id": "pair", "prompt": "Name a colour.", "preferred": "x", "responses": responses}
    judges = ("--judge", "python:j.py:judge", "--judge", "planted:longer")
    options = (*META, "--data", write_rows("pairs.jsonl", [pair]), *judges, "--control")
    ran = labelled(*options, "--json")
    assert ran.code == 0, ran.err
    assert {(one["design"], one["data"]) for one in ran.results} == {("people", "pairs.jsonl"), ("pass", "labels.csv")}
    assert [ran.figure("accuracy", design=one, protocol="function")["n"] for one in ("people", "pass")] == [1, 17]
    # The judges share the pair and 17 responses; one has no verdict on the unreadable one.
    assert (ran.document["panel"]["comparisons"], ran.document["pass_panel"]["comparisons"]) == (1, 18)
    assert all(PASS_MARK not in (one["protocol"], one["judge"]) for one in ran.results)
    text = labelled(*options)
    assert text.code == 0, text.err
    assert text.out.index("\nPairs\n") < text.out.index("\nPass or fail\n")
    fits(text.out)


def test_pass_mark_is_no_author_elsewhere(labelled: Run) -> None:
    assert labelled(*META, "--judge", "python:j.py:judge", "--out", "r").code == 0
    check_refusal(labelled("leaderboard", "--matches", "r"), "holds no comparison of two authors")
    for command in ("card r", "report r", "report r --csv t.csv", "report r --json", "flips r"):
        assert labelled(*command.split()).code == 0, command
    with Path("t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["before"] for row in rows) == {"response": 8, "rival": 9, "": 1}


def grade_run(judge: str, grades: Sequence[bool | None]) -> PublishedRun:
    """Grades of a log: one response for each, without a label."""
    rows, cases = [], {}
    for at, passed in enumerate(grades):
        name = f"sample-{at}"
        judgment = verdict(None) if passed is None else replace(verdict("a" if passed else "b"), scores=(passed, 0.5))
        row = Row(name, name, "pass", "grader", judge, "none", Side("model"), Side(PASS_MARK), data="log")
        rows.append(replace(row, judgments=(judgment,)))
        cases[name] = Case(name, (f"{at}?",), (Response("model", (f"It is {at}.",)),))
    return PublishedRun(judge, "grader", "log", ("stored",), {"stored": tuple(rows)}, False, "f", "0", cases)


def test_grades_of_a_log_are_measured_with_labels_of_the_data() -> None:
    responses = [Response("response", (f"It is {at}.",)) for at in range(4)]
    labelled = [Case(f"row-{at}", (f"{at}?",), (one,), passed=at < 3) for at, one in enumerate(responses)]
    runs = [grade_run("one", [True, False, None, True, True]), grade_run("two", [True, True, True, False, True])]
    for cases, data, one, two in (
        ({}, "log", (0, 0, 0, 5), (0, 0, 0, 5)),
        ({"labels": labelled}, None, (1, 3, 1, 1), (4, 4, 0, 1)),
    ):
        sources = from_published([attach_labels(run, cases) for run in runs])
        result = measure_judges(sources)
        whole = [f for f in result.figures if (f.measure, f.data, f.subset) == ("accuracy", data, None)]
        assert {f.judge: (f.k, f.n, f.invalid, f.excluded) for f in whole} == {"one": one, "two": two}
        assert [panel.comparisons for panel in result.panels.values()] == [4] * bool(cases)
        assert bool(result.confusions) == bool(cases)
        shown = [(shown.row.case, shown.margin, shown.responses) for shown in collect_disagreements(sources)[0]]
        assert shown == [(f"row-{at}", 0.5, (f"It is {at}.",)) for at in (1, 3) if cases]
        assert list(report_parts(result))


ABSOLUTE, POINTWISE = protocols()["absolute"], protocols()["pointwise"]
X, Y = Response("x", ("Red.",)), Response("y", ("Blue.",))


def scorer(scale: tuple[float | None, float | None] | None, mark: float | None = None) -> Protocol:
    how: dict[str, Any] = {"rules": ("score",), "orders": "none"}
    return Protocol("s", "", ABSOLUTE.ask, Calls(response=1), scale=scale, pass_mark=mark, **how)


@each(
    "protocol, requested, mark",
    (ABSOLUTE, None, (4, "the middle of its scale")), (POINTWISE, None, (3, "the middle of its scale")),
    (POINTWISE, 4.5, (4.5, "--pass-mark")), (POINTWISE, 5, (5, "--pass-mark")),
    (scorer((0, 1)), None, (0.5, "the middle of its scale")), (scorer((0, None)), 7, (7, "--pass-mark")),
    (scorer(None), -7, (-7, "--pass-mark")), (scorer((0, 10), 6), None, (6, "the judge's own mark")),
    (scorer((0, 10), 6), 3, (6, "the judge's own mark")), (scorer((0, None), 0), None, (0, "the judge's own mark")),
)  # fmt: skip
def test_mark_is_the_judges_own_or_requested_or_the_middle(protocol: Protocol, requested: Any, mark: Any) -> None:
    assert find_mark(protocol, requested) == PassMark(*mark)


@each(
    "protocol, requested, words",
    (scorer((0, None)), None, "(from 0) has no middle; name the lowest score that passes with --pass-mark"),
    (scorer((None, 0)), None, "(up to 0) has no middle"),
    (scorer(None), None, "(open at both ends) has no middle"),
    (POINTWISE, 5.5, "--pass-mark 5.5: the scale of pointwise is 1 to 5"),
    (scorer((0, None)), -1, "--pass-mark -1: the scale of s is from 0"),
)
def test_mark_that_cannot_be_is_refused(protocol: Protocol, requested: float | None, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as error:
        find_mark(protocol, requested)
    assert "\n" not in str(error.value)


EMPTY = Row("c", "c", "pass", "absolute", "j", "none", Side("x"), Side(PASS_MARK))
MARKS = st.floats(1, 7).map(lambda mark: round(mark, 2))


@given(st.integers(100, 700), st.integers(1, 7), MARKS)
def test_score_and_rating_are_compared_with_the_mark(hundredths: int, rating: int, mark: float) -> None:
    score = hundredths / 100
    (judgment,) = against_mark(partial(replace, EMPTY), mark)(
        judgments=(scored((score, score), (rating, rating)),)
    ).judgments
    assert (read_pass([judgment], "score") == "a") == (judgment.preferred == "a") == (score >= mark)
    assert (read_pass([judgment], "rating") == "a") == (rating >= mark)
    assert judgment.scores == (score, mark)
    assert judgment.preferred in ("a", "b")


def test_failed_judgment_is_kept_as_it_is() -> None:
    failed = verdict(None)
    assert against_mark(partial(replace, EMPTY), 3)(judgments=(failed,)) == replace(EMPTY, judgments=(failed,))
    assert read_pass([failed], "score") is None


def rate(request: Request) -> Reply:
    """Rate a response by its length."""
    assert request.slots is not None
    (response,) = request.slots.shown
    return Reply(probabilities=tuple(float(len(response.text) == int(choice)) for choice in request.choices))


@each("text, preferred", ("1234", "a"), ("12345", "a"), ("123", "b"))
@each("passed", True, False)
def test_one_request_judges_one_response(text: str, preferred: str, passed: bool) -> None:
    alone = replace(case(responses=[Response("x", (text,))]), passed=passed)
    config = MetaConfig("j", (ABSOLUTE, protocols()["pairwise"]), marks={"absolute": 4}, resample=True)
    result, rounds = drive(judge_labelled("d", alone, config), rate)
    row, again = result.rows
    assert (row.design, row.a, row.b, row.label) == ("pass", Side("x"), Side(PASS_MARK), "a" if passed else "b")
    assert [judgment.preferred for judgment in row.judgments] == [preferred]
    assert (len(row.keys), row.shown, row.excluded) == (1, (), None)
    assert {request.key for asked in rounds for request in asked} == {*row.keys}
    assert (again.attack, again.excluded) == (RESAMPLED, "nothing is sampled")


def test_control_rewrites_the_one_response() -> None:
    alone = replace(case(responses=[Response("x", ("12  34",))]), passed=True)
    config = MetaConfig("j", (ABSOLUTE,), marks={"absolute": 4}, controls=(attacks()["null"],))
    result, _ = drive(judge_labelled("d", alone, config), rate)
    before, after = result.rows
    assert (before.judgments[0].ratings, after.judgments[0].ratings) == ((6, 4), (5, 4))
    assert (after.a, after.b, after.attack) == (Side("x", "null"), Side(PASS_MARK), "null")


@given(st.integers(1, 3), st.booleans())
def test_samples_of_one_response_are_shared(samples: int, is_resampled: bool) -> None:
    def write(request: Request) -> Reply:
        assert request.slots is not None
        return Reply(text=f"[[{len(request.slots.shown[0].text)}]]")

    def ask_in_text(comparison: Comparison) -> Plan[Judgment]:
        """Ask for a sampled answer in words."""
        plan = ABSOLUTE.ask(comparison)
        return tap(plan, lambda requests: [replace(one, choices=(), temperature=0.5) for one in requests])

    textual = replace(ABSOLUTE, ask=ask_in_text)
    config = MetaConfig("j", (textual,), Manner(samples=samples), marks={"absolute": 4}, resample=is_resampled)
    alone = replace(case(responses=[Response("x", ("12345",))]), passed=True)
    result, _ = drive(judge_labelled("d", alone, config), write)
    assert (len(result.rows[0].keys), result.rows[0].judgments[0].preferred) == (samples, "a")


@each(
    "responses, preferred, passed, sizes",
    ([X], None, True, [1]), ([X], None, False, [1]), ([X], None, None, []),
    ([X, replace(X, attack="null")], None, True, [1]), ([X, Y], "x", None, [2]), ([X, Y], "x", True, [2]),
    ([X, Y], None, True, []),
)  # fmt: skip
def test_people_judged_a_pair_or_one_response(responses: Any, preferred: Any, passed: Any, sizes: list[int]) -> None:
    one = replace(case(responses=responses, preferred=preferred), passed=passed)
    assert [len(judged) for judged in list_judged(one)] == sizes


def test_pass_mark_is_never_an_author_on_a_board() -> None:
    with pytest.raises(DistractError):
        from_rows([replace(EMPTY, judgments=(verdict("a"),))], "absolute", None)
