"""Test the measures and the panel of meta-evaluation against naive implementations (measure 5; ReIFE, section 6)."""

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from test_meta_measures import CONTROLS, KINDS, check, exchange, judge_rows
from test_meta_panel import (
    JUDGES,
    PROTOCOLS,
    accuracy,
    averages,
    check_correlation,
    check_gain,
    count_right,
    rank,
    rows,
)

from distract.core.records import Row
from distract.studies.meta.measures import Agreement, JudgeRows, figures
from distract.studies.meta.panel import compare_judges


@given(judge_rows(["both"], "k"), judge_rows(["both", "scoring"], "j"))
def test_judges_are_measured_one_by_one(one: list[JudgeRows], other: list[JudgeRows]) -> None:
    whole = check([*one, *other], CONTROLS)
    alone = [*figures(one, CONTROLS), *figures(other, CONTROLS)]
    assert {*alone} <= {*whole}, "what is known of others changes no figure"
    for f in whole:
        # Measuring judges together adds only empty places, or copies of a judge's totals.
        assert not f.n or any(replace(f, data=g.data, subset=g.subset) == g for g in alone), f


def map_rows(judged: Sequence[JudgeRows], change: Any) -> list[JudgeRows]:
    return [replace(one, rows={rule: tuple(map(change, rows)) for rule, rows in one.rows.items()}) for one in judged]


def index_figures(figures: Sequence[Agreement], name: Any = lambda protocol: protocol) -> dict[object, object]:
    """Figures by their key; differences follow the order of the names that ``name`` gives the protocols."""
    index: dict[object, object] = {}
    for f in figures:
        first, second = name(f.protocol), f.against and name(f.against)
        value, low, high, decided = f.value, f.low, f.high, f.compared
        rules = f.rule, f.against_rule
        if second and second < first:
            first, second, rules = second, first, rules[::-1]
            value, low, high = (None if x is None else -x for x in (value, high, low))
            decided = {"better": "worse", "worse": "better"}.get(decided or "", decided)
        rounded = tuple(None if x is None else round(x, 9) + 0.0 for x in (value, low, high, f.p_adjusted))
        place = (f.data, f.subset, f.measure, f.attack, f.order, first, second, rules)
        index[place] = (f.k, f.n, f.invalid, f.excluded, rounded, decided)
    return index


@given(judge_rows(), st.randoms(use_true_random=False))
def test_row_and_protocol_order_do_not_matter(judged: list[JudgeRows], rng: random.Random) -> None:
    mixed = [
        replace(one, rows={rule: tuple(rng.sample(rows, len(rows))) for rule, rows in one.rows.items()})
        for one in rng.sample(judged, len(judged))
    ]
    assert index_figures(figures(mixed, CONTROLS)) == index_figures(figures(judged, CONTROLS))


@given(judge_rows(), st.permutations(list(KINDS)))
def test_names_do_not_matter(judged: list[JudgeRows], order: list[str]) -> None:
    new = {name: f"q{place}" for place, name in enumerate(order)}
    old = {to: name for name, to in new.items()}

    def renamed(row: Row) -> Row:
        a, b = replace(row.a, author="zed"), replace(row.b, author="[red]")
        cluster = {"p1": "z", "p2": "p1", "p3": ""}[row.cluster]
        return replace(row, a=a, b=b, cluster=cluster, judge="k", protocol=new[row.protocol])

    others = [replace(one, judge="k", protocol=new[one.protocol]) for one in map_rows(judged, renamed)]
    assert index_figures(figures(others, CONTROLS), old.get) == index_figures(figures(judged, CONTROLS))


@given(judge_rows(), st.sets(st.sampled_from(list(KINDS))))
def test_swapping_a_and_b_swaps_only_the_order_names(judged: list[JudgeRows], which: set[str]) -> None:
    turned = {"given": "swapped", "swapped": "given"}
    mixed = check([map_rows([one], exchange)[0] if one.protocol in which else one for one in judged], CONTROLS)
    after = [replace(f, order=turned.get(f.order or "", f.order)) if f.protocol in which else f for f in mixed]
    assert index_figures(after) == index_figures(figures(judged, CONTROLS))


@given(judge_rows(), st.randoms(use_true_random=False))
def test_rows_with_swapped_names_are_the_same_comparisons(judged: list[JudgeRows], rng: random.Random) -> None:
    mixed = map_rows(judged, lambda row: exchange(row) if rng.random() < 0.5 else row)
    # Alpha and kappa depend on the letters, because their marginals count them.
    some = [[f for f in figures(one) if f.unit not in ("alpha", "kappa")] for one in (mixed, judged)]
    assert index_figures(some[0]) == index_figures(some[1])


COMPARISONS = [(data, i) for data in ("d1", "d2") for i in range(3)]
Answers = Mapping[str, Mapping[str, Mapping[tuple[str, int], Sequence[str | None]]]]
"""The verdicts in each order, by judge, protocol and comparison."""
VERDICTS = st.lists(st.sampled_from(["a", "b", "tie", "a", None]), min_size=2, max_size=2)
SAID = st.dictionaries(st.sampled_from(COMPARISONS), VERDICTS, min_size=2)
BY_PROTOCOL = st.dictionaries(st.sampled_from(PROTOCOLS[:3]), SAID, min_size=1)
UNEVEN = st.dictionaries(st.sampled_from(JUDGES[:3]), BY_PROTOCOL, min_size=2)
LABELS = st.fixed_dictionaries(dict.fromkeys(COMPARISONS, st.sampled_from(["a", "a", "b", "tie", None])))


def build_rows(answers: Answers, labels: Mapping[tuple[str, int], str | None]) -> list[JudgeRows]:
    sources = []
    for judge, by in answers.items():
        for protocol, said in by.items():
            own_rows = list[Row]()
            for (data, i), verdicts in said.items():
                (row,) = rows(protocol, judge, [labels[data, i]], [verdicts]).rows[""]
                own_rows.append(replace(row, data=data, case=f"{data}{i}", cluster=f"{i}"))
            sources.append(JudgeRows(judge, protocol, (), {"": tuple(own_rows)}))
    return sources


@given(UNEVEN, LABELS, st.sampled_from(["base", "cot", None]))
def test_judges_are_compared_on_their_common_comparisons(answers: Answers, labels: Any, base: str | None) -> None:
    # Ignore protocols without a measurable accuracy, and judges that have no other protocol.
    able = {
        judge: {protocol: said for protocol, said in by.items() if accuracy(said, labels) is not None}
        for judge, by in answers.items()
    }
    able = {judge: by for judge, by in able.items() if by}
    judged = build_rows(answers, labels)
    got = compare_judges(judged, figures(judged), base)
    common = sorted(set(PROTOCOLS).intersection(*able.values()))
    counted = [said for by in able.values() for protocol, said in by.items() if protocol in common or not common]
    shared = [one for one in COMPARISONS if labels[one] is not None and all(one in said for said in counted)]
    if len(able) < 2 or not shared:
        assert got is None
        return
    alike = {
        judge: {protocol: {one: said[one] for one in shared if one in said} for protocol, said in by.items()}
        for judge, by in answers.items()
    }
    known = {judge: {p: accuracy(said, labels) for p, said in alike[judge].items()} for judge in able}
    values = {judge: {p: value for p, value in by.items() if value is not None} for judge, by in known.items()}
    # Another test covers protocols without a valid verdict.
    assume(all(by and {*common} <= by.keys() for by in values.values()))
    assert got is not None
    assert got.comparisons == got.difficulty.n == len(shared)
    assert {one.protocol for one in got.protocols} == {*common}
    for one in got.protocols:
        ranks = [rank(by[one.protocol], [by[p] for p in common]) for by in values.values()]
        assert one.mean_rank == pytest.approx(sum(ranks) / len(ranks))
        assert one.mean_accuracy == pytest.approx(sum(by[one.protocol] for by in values.values()) / len(values))
        assert one.best_accuracy == max(by[one.protocol] for by in values.values())
    means = averages(values, common)
    assert {one.judge: one.mean_accuracy for one in got.judges} == pytest.approx(means)
    strength = {judge: by[base] if base in common else means[judge] for judge, by in values.items()}
    assert [strength[one.judge] for one in got.judges] == sorted(strength.values(), reverse=True)
    gains = [f for f in figures(build_rows(alike, labels)) if f.against and f.subset is None]
    place = None if len({data for data, _ in shared}) > 1 else shared[0][0]
    for standing in got.judges:
        assert standing.accuracy == (values[standing.judge].get(base) if base else None)
        check_gain(standing, [f for f in gains if (f.judge, f.data) == (standing.judge, place)], base)
    assert got.difficulty == count_right([(labels[one], [v for said in counted for v in said[one]]) for one in shared])
    # The correlation between data sets uses all comparisons of each set.
    if {data for said in counted for data, _ in said} == {"d1", "d2"}:
        (correlation,) = [one for one in got.correlations if one.between == "data sets"]
        whole = [said for _, by in sorted(answers.items()) for _, said in sorted(by.items())]
        parts = [[{one: v for one, v in said.items() if one[0] == data} for data in ("d1", "d2")] for said in whole]
        points = [(accuracy(first, labels), accuracy(second, labels)) for first, second in parts]
        check_correlation(correlation, "d1", "d2", [(x, y) for x, y in points if x is not None and y is not None])


SCRIPT = """
import sys
sys.path[:0] = {tests!r}
from test_meta_panel import judges
print(judges(["d1", "d2", "d4"], ["d2", "d1"], ["d3", "d2", "d1"]))
print(judges(["d1"], ["d1"], ["d2"], ["d2"], ["d3"], ["d3"]))
"""


def test_comparison_across_data_sets_is_deterministic() -> None:
    command = [sys.executable, "-c", SCRIPT.format(tests=[one for one in sys.path if Path(one).is_dir()])]
    names = set()
    for seed in "01234":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        names.add(done.stdout)
    (panels,) = names
    assert panels.startswith("Panel(base='base', comparisons=4,")
    assert panels.endswith(")\nNone\n")
