"""Ways of asking one judge against each other, on the verdicts that are valid under both: exact McNemar, Holm.

A verdict is a unit: one comparison in one order. Both orders of a comparison, and comparisons that share a prompt,
count for as much as they are worth (``intervals.effective_n``). It knows no protocol by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from distract.core.records import MIRROR
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, adjust_p_values
from distract.studies.meta.comparisons import (
    ORDERS,
    Agreement,
    ComparisonUnit,
    DataPlace,
    JudgeRows,
    PairVerdicts,
    add_interval,
    collect_comparisons,
)


def differences(asked: Sequence[JudgeRows], everywhere: Iterable[DataPlace]) -> list[Agreement]:
    """The difference in accuracy of each pair of one judge's protocols, on verdicts valid under both."""
    said = {one.protocol: collect_comparisons(one.by(one.headline), one.headline) for one in asked}
    headline = {one.protocol: one.headline for one in asked}
    made = list[Agreement]()
    for data, subset in everywhere:
        family = list[Agreement]()
        right = {name: _read_correctness(whole.select(data, subset).made) for name, whole in said.items()}
        for one, other in combinations(sorted(right), 2):
            empty = Agreement("accuracy", one, headline[one], "none", judge=asked[0].judge, data=data, subset=subset)
            empty = replace(empty, against=other, against_rule=headline[other], against_attack="none")
            family.append(_difference(empty, right[one], right[other]))
        made += [
            figure
            if figure.p_adjusted is None
            else replace(figure, compared=_classify_difference(figure.value or 0.0, figure.p_adjusted))
            for figure in adjust_p_values(family)
        ]
    return made


Correctness = dict[ComparisonUnit, tuple[str, dict[str, float | None]]]
"""Of each comparison its cluster, and whether each verdict is right (None: it is invalid), by its order."""


def _read_correctness(made: Iterable[PairVerdicts]) -> Correctness:
    found: Correctness = {}
    for one in made:
        if one.label is None:
            continue
        # An order is named by the one of the unit that stood first, whatever its name in the rows.
        shown: list[str] = [MIRROR[first] if one.turned else first for first in one.shown]
        orders = shown or [str(index) for index in range(len(one.verdicts))]
        said = zip(orders, one.verdicts, strict=True)
        found[one.unit] = one.cluster, {order: None if v is None else float(v == one.label) for order, v in said}
    return found


def _difference(empty: Agreement, first: Correctness, second: Correctness) -> Agreement:
    shared, alone = _pair_verdicts(first, second)
    figure = replace(empty, n=len(shared), excluded=alone)
    if not shared:
        return figure
    clusters = [cluster for cluster, _, _ in shared]
    a, b = [value for _, value, _ in shared], [value for _, _, value in shared]
    interval = intervals.difference_interval(a, b, clusters, CONFIDENCE)
    value = (math.fsum(a) - math.fsum(b)) / len(shared)
    return replace(add_interval(figure, interval), value=value, p_value=intervals.paired_p(a, b, clusters))


def _pair_verdicts(first: Correctness, second: Correctness) -> tuple[list[tuple[str, float, float]], int]:
    """Valid verdicts on the same comparison in the same order, and how many have no partner.

    Where the orders of the two are not the same kind (a score of each response has none, three responses are rotated),
    every verdict of the one stands beside every verdict of the other, so that the difference is that of accuracies.
    """
    shared = list[tuple[str, float, float]]()
    alone = 0
    for unit in dict.fromkeys((*first, *second)):
        (cluster, one), (_, other) = first.get(unit, ("", {})), second.get(unit, ("", {}))
        alike = one.keys() == other.keys() or {*one, *other} <= ORDERS.keys()
        pairs = [(order, beside) for order in one for beside in other if order == beside or not alike]
        told = [(one[order], other[beside], order, beside) for order, beside in pairs]
        valid = [(a, b, order, beside) for a, b, order, beside in told if a is not None and b is not None]
        shared += [(cluster, a, b) for a, b, _, _ in valid]
        alone += sum(v is not None for v in one.values()) - len({order for _, _, order, _ in valid})
        alone += sum(v is not None for v in other.values()) - len({beside for _, _, _, beside in valid})
    return shared, alone


def _classify_difference(difference: float, p_adjusted: float) -> str:
    if p_adjusted > 1 - CONFIDENCE:
        return "not distinguishable"
    return "better" if difference > 0 else "worse"
