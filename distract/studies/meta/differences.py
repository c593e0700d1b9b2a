"""Differences between the protocols of one judge, on the verdicts that are valid under both: exact McNemar, Holm.

A verdict is a unit: one comparison in one order. Both orders of a comparison, and comparisons that share a prompt,
count as dependent (``intervals.effective_n``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from distract.core.records import MIRROR
from distract.stats.figure import CONFIDENCE, PairedValues, adjust_p_values
from distract.studies.meta.comparisons import (
    ORDERS,
    Agreement,
    ComparisonUnit,
    DataPlace,
    JudgeRows,
    PairVerdicts,
)


def differences(judged: Sequence[JudgeRows], everywhere: Iterable[DataPlace]) -> list[Agreement]:
    """Compare the accuracy of each pair of one judge's protocols, on verdicts valid under both."""
    comparisons = {one.protocol: one.comparisons for one in judged}
    headline = {one.protocol: one.headline for one in judged}
    results = list[Agreement]()
    for data, subset in everywhere:
        family = list[Agreement]()
        right = {name: _read_correctness(whole.select(data, subset).pairs) for name, whole in comparisons.items()}
        for one, other in combinations(sorted(right), 2):
            empty = Agreement("accuracy", one, headline[one], "none", judge=judged[0].judge, data=data, subset=subset)
            empty = replace(empty, against=other, against_rule=headline[other], against_attack="none")
            family.append(_pair_verdicts(right[one], right[other]).fill(empty))
        results += [
            figure
            if figure.p_adjusted is None
            else replace(figure, compared=_classify_difference(figure.value or 0.0, figure.p_adjusted))
            for figure in adjust_p_values(family)
        ]
    return results


Correctness = dict[ComparisonUnit, tuple[str, dict[str, float | None]]]
"""The cluster of each comparison, and whether each verdict is right (None: invalid), by order."""


def _read_correctness(pairs: Iterable[PairVerdicts]) -> Correctness:
    correctness: Correctness = {}
    for pair in pairs:
        if pair.label is None:
            continue
        # An order is named by the response of the unit that was shown first, whatever its name in the rows.
        names: list[str] = [MIRROR[first] if pair.turned else first for first in pair.shown]
        orders = names or [str(index) for index in range(len(pair.verdicts))]
        right = [None if verdict is None else float(verdict == pair.label) for verdict in pair.verdicts]
        correctness[pair.unit] = pair.cluster, dict(zip(orders, right, strict=True))
    return correctness


def _pair_verdicts(first: Correctness, second: Correctness) -> PairedValues:
    """Pair valid verdicts on the same comparison in the same order.

    Where the two have different kinds of orders (a score of each response has none, three responses are rotated), every
    verdict of one is paired with every verdict of the other, so that the difference is that of accuracies.
    """
    shared = list[tuple[str, float, float]]()
    alone = [0, 0]
    for unit in dict.fromkeys((*first, *second)):
        (cluster, one), (_, other) = first.get(unit, ("", {})), second.get(unit, ("", {}))
        alike = one.keys() == other.keys() or {*one, *other} <= ORDERS.keys()
        pairs = [(order, beside) for order in one for beside in other if order == beside or not alike]
        right = [(one[order], other[beside], order, beside) for order, beside in pairs]
        valid = [(a, b, order, beside) for a, b, order, beside in right if a is not None and b is not None]
        shared += [(cluster, a, b) for a, b, _, _ in valid]
        alone[0] += sum(v is not None for v in one.values()) - len({order for _, _, order, _ in valid})
        alone[1] += sum(v is not None for v in other.values()) - len({beside for _, _, _, beside in valid})
    clusters, a, b = zip(*shared, strict=True) if shared else ((), (), ())
    return PairedValues(a, b, clusters, (alone[0], alone[1]))


def _classify_difference(difference: float, p_adjusted: float) -> str:
    if p_adjusted > 1 - CONFIDENCE:
        return "not distinguishable"
    return "better" if difference > 0 else "worse"
