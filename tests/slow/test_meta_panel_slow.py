"""Test the panel of judges against a naive implementation on random verdicts (ReIFE, section 6)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_meta_panel import (
    JUDGES,
    PROTOCOLS,
    accuracy,
    averages,
    check_correlation,
    check_gain,
    rank,
    rows,
)

from distract.studies.meta.comparisons import JudgeRows
from distract.studies.meta.difficulty import BINS, Difficulty
from distract.studies.meta.measures import figures
from distract.studies.meta.panel import compare_judges

# Common comparisons.


COMPARISONS = [(data, i) for data in ("d1", "d2") for i in range(3)]
Answers = Mapping[str, Mapping[str, Mapping[tuple[str, int], Sequence[str | None]]]]
"""The verdicts in each order, by judge, protocol and comparison."""
VERDICTS = st.lists(st.sampled_from(["a", "b", "tie", "a", None]), min_size=2, max_size=2)
UNEVEN = st.dictionaries(
    st.sampled_from(JUDGES[:3]),
    st.dictionaries(
        st.sampled_from(PROTOCOLS[:3]),
        st.dictionaries(st.sampled_from(COMPARISONS), VERDICTS, min_size=2),
        min_size=1,
    ),
    min_size=2,
)
LABELS = st.fixed_dictionaries(dict.fromkeys(COMPARISONS, st.sampled_from(["a", "a", "b", "tie", None])))


def build_rows(answers: Answers, labels: Mapping[tuple[str, int], str | None]) -> list[JudgeRows]:
    sources = []
    for judge, by in answers.items():
        for protocol, said in by.items():
            own_rows = [
                replace(row, data=data, case=f"{data}{i}", cluster=f"{i}")
                for (data, i), verdicts in said.items()
                for row in rows(protocol, judge, [labels[data, i]], [verdicts]).rows[""]
            ]
            sources.append(JudgeRows(judge, protocol, (), {"": tuple(own_rows)}))
    return sources


@given(UNEVEN, LABELS, st.sampled_from(["base", "cot", None]))
def test_judges_are_compared_on_their_common_comparisons(
    answers: Answers, labels: Mapping[tuple[str, int], str | None], base: str | None
) -> None:
    # Ignore protocols without a measurable accuracy, and judges that have no other protocol.
    able = {
        judge: {protocol: said for protocol, said in by.items() if accuracy(said, labels) is not None}
        for judge, by in answers.items()
    }
    able = {judge: by for judge, by in able.items() if by}
    judged = build_rows(answers, labels)
    if len(able) < 2:
        assert compare_judges(judged, figures(judged), base) is None
        return
    common = sorted(set(PROTOCOLS).intersection(*able.values()))
    counted = [said for by in able.values() for protocol, said in by.items() if protocol in common or not common]
    shared = [one for one in COMPARISONS if labels[one] is not None and all(one in said for said in counted)]
    if not shared:
        assert compare_judges(judged, figures(judged), base) is None
        return
    alike = {
        judge: {protocol: {one: said[one] for one in shared if one in said} for protocol, said in by.items()}
        for judge, by in answers.items()
    }
    values = {
        judge: {p: value for p, said in by.items() if (value := accuracy(said, labels)) is not None}
        for judge, by in alike.items()
        if judge in able
    }
    # Another test covers protocols without a valid verdict.
    assume(all(by and {*common} <= by.keys() for by in values.values()))
    got = compare_judges(judged, figures(judged), base)
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
    bins, never, always = [0] * BINS, 0, 0
    for unit in shared:
        verdicts = [v for said in counted for v in said[unit]]
        right = verdicts.count(labels[unit])
        bins[min(9, 10 * right // len(verdicts))] += 1
        never += right == 0
        always += right == len(verdicts)
    assert got.difficulty == Difficulty(len(shared), tuple(bins), never, always)
    # The correlation between data sets uses all comparisons of each set.
    sets = [answers for answers in got.correlations if answers.between == "data sets"]
    if {data for said in counted for data, _ in said} == {"d1", "d2"}:
        (correlation,) = sets
        each = [
            tuple(accuracy({one: v for one, v in said.items() if one[0] == data}, labels) for data in ("d1", "d2"))
            for _, by in sorted(answers.items())
            for _, said in sorted(by.items())
        ]
        points = [(x, y) for x, y in each if x is not None and y is not None]
        check_correlation(correlation, "d1", "d2", points)


SCRIPT = """
import sys
sys.path[:0] = {tests!r}
from test_meta_panel import judges
print(judges(["d1", "d2", "d4"], ["d2", "d1"], ["d3", "d2", "d1"]))
print(judges(["d1"], ["d1"], ["d2"], ["d2"], ["d3"], ["d3"]))
"""


def test_comparison_across_data_sets_is_deterministic() -> None:
    script = SCRIPT.format(tests=[one for one in sys.path if Path(one).is_dir()])
    names = set()
    for seed in ("0", "1", "2", "3", "4"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.returncode == 0, done.stderr
        names.add(done.stdout)
    (panels,) = names
    assert panels.startswith("Panel(base='base', comparisons=4,")
    assert panels.endswith(")\nNone\n")
