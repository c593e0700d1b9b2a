"""The measures of meta-evaluation against a second, naive implementation, straight from rows by loops (measure 5)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_meta_measures import (
    CONTROLS,
    KINDS,
    check,
    exchange,
    judge_rows,
)

from distract.core.records import Row
from distract.studies.meta.comparisons import Agreement, JudgeRows
from distract.studies.meta.measures import figures

# They agree.


@given(judge_rows())
def test_every_figure_matches_a_naive_count(judged: list[JudgeRows]) -> None:
    check(judged, CONTROLS)


@given(judge_rows(["both"], "k"), judge_rows(["both", "scoring"], "j"))
def test_judges_are_measured_one_by_one(one: list[JudgeRows], other: list[JudgeRows]) -> None:
    whole = check([*one, *other], CONTROLS)
    alone = [*figures(one, CONTROLS), *figures(other, CONTROLS)]
    assert {*alone} <= {*whole}, "what is known of others changes no figure"
    for f in whole:
        # Measuring judges together adds only empty places, or copies of a judge's totals.
        assert not f.n or any(replace(f, data=g.data, subset=g.subset) == g for g in alone), f


# Invariances.


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
    mixed = [map_rows([one], exchange)[0] if one.protocol in which else one for one in judged]
    after = [
        replace(f, order=turned.get(f.order or "", f.order)) if f.protocol in which else f
        for f in check(mixed, CONTROLS)
    ]
    assert index_figures(after) == index_figures(figures(judged, CONTROLS))


@given(judge_rows(), st.randoms(use_true_random=False))
def test_rows_with_swapped_names_are_the_same_comparisons(judged: list[JudgeRows], rng: random.Random) -> None:
    mixed = map_rows(judged, lambda row: exchange(row) if rng.random() < 0.5 else row)
    # Alpha and kappa depend on the letters, because their marginals count them.
    result, before = (
        index_figures([f for f in figures(some) if f.unit not in ("alpha", "kappa")]) for some in (mixed, judged)
    )
    assert result == before
