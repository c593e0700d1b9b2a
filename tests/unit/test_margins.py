"""Flips by margin: the curve agrees with the count of flips at each of its margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from builders import row, scored, verdict
from hypothesis import given
from hypothesis import strategies as st

from distract.core.records import Judgment, Outcome, Row
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.margins import trace_margins
from distract.studies.attack.outcomes import CRITERIA, count_flips

SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 1.0])


def judge(share: float) -> Judgment:
    preferred: Outcome = "a" if share > 0.5 else "b" if share < 0.5 else "tie"
    return replace(verdict(preferred), probabilities=(share, 1 - share, 0.0))


@st.composite
def pairs(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(0, 6))):
        name = f"c{number}"
        before = [judge(draw(SHARES)) if draw(st.booleans()) else verdict(None)]
        rows.append(row(name, before, excluded=draw(st.sampled_from([None, None, "x"]))))
        for target in ("a", "b"):
            if draw(st.booleans()):
                rows.append(row(name, [judge(draw(SHARES))], attack="f", target=target))
    return rows


@given(pairs())
def test_curve_agrees_with_the_count_at_each_margin(rows: list[Row]) -> None:
    rules: Mapping[str, Sequence[str]] = {"pairwise": ()}
    flips = CRITERIA["flip_rate"]
    points = [point for curve in trace_margins(CompactRows(rows, rules), rules, ["f"]) for point in curve.points]
    assert len(points) in (0, 10)
    for margin, k, n in points:
        counts = count_flips(rows, None, "f", margin)
        assert n == len(counts.outcomes)
        assert k == sum(flips(after, before) for _, after, before in counts.outcomes.values())


def test_curve_of_scores_is_in_points() -> None:
    rows = [
        row("c1", [scored((3.0, 2.0), (3, 2))], protocol="pointwise"),
        row("c1", [scored((3.0, 3.5), (3, 4))], protocol="pointwise", attack="f", target="b"),
    ]
    rules = {"pointwise": ("score", "rating")}
    (curve,) = trace_margins(CompactRows(rows, rules), rules, ["f"])
    assert (curve.protocol, curve.rule, curve.attack) == ("pointwise", "score", "f")
    assert (curve.points[0], curve.points[4:7]) == ((0.0, 1, 1), ((0.4, 1, 1), (0.5, 0, 1), (0.6, 0, 1)))
    assert trace_margins(CompactRows((), rules), rules, ["f"]) == []
