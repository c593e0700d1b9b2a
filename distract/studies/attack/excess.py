"""What an attack does beyond its control: their rates and shifts on the same pairs, one minus the other.

Both rewrite the same response and meet the same rival. So what the judge does by chance cancels out, as does what any
rewrite of the kind does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from distract.core.attack import Truth
from distract.core.records import BASELINE
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Figure
from distract.studies.attack.briefs import CompactRow, CompactRows
from distract.studies.attack.outcomes import (
    FAILURES,
    UnitValues,
    count_failures,
    pair_conditions,
    pair_unit,
    pair_values,
)


def excess_figures(
    briefs: CompactRows,
    protocol: str,
    rule: str | None,
    control_of: Mapping[str, str],
    truths: Mapping[str, Truth],
) -> Iterator[Figure]:
    """Compute what each attack that has a control does beyond it: the failures of its truth, and the shift."""
    flips, fixed = briefs.of(protocol, "flip"), briefs.of(protocol, "fixed")
    for attack, control in control_of.items():
        truth = truths.get(attack, "same")
        measure = FAILURES[truth]
        figure = Figure(measure, protocol, rule, attack, against=protocol, against_rule=rule, against_attack=control)
        if flips:
            first, second = (count_failures(flips, rule, name, measure) for name in (attack, control))
            yield pair_conditions(measure, first, second).fill(figure)
        if truth == "same":
            unit = "points" if rule else "probability"
            # A response against its own rewrite shows a shift best.
            yield _fill_shift(replace(figure, measure="shift", unit=unit), fixed or flips)


def is_excess(figure: Figure) -> bool:
    """Return whether a figure is the difference between an attack and its control."""
    return figure.against_attack not in (None, BASELINE, figure.attack)


def _fill_shift(figure: Figure, rows: Sequence[CompactRow]) -> Figure:
    """Fill in the mean difference of the leads of both rewrites of a response; its interval allows for prompts."""
    both = pair_values(_list_leads(rows, figure.attack), _list_leads(rows, str(figure.against_attack)))
    figure = replace(figure, n=len(both.clusters), excluded=sum(both.alone))
    if not both.clusters:
        return figure
    changes = [lead - other for lead, other in zip(both.first, both.second, strict=True)]
    low, high = intervals.mean_interval(changes, both.clusters, CONFIDENCE) or (None, None)
    return replace(figure, value=math.fsum(changes) / len(changes), low=low, high=high)


def _list_leads(rows: Sequence[CompactRow], attack: str) -> UnitValues:
    """Return the lead of each rewritten response over the other."""
    return {
        (*pair_unit(row), row.target): (row.cluster, lead if row.target == "a" else -lead)
        for row in rows
        if row.attack == attack and row.target is not None and (lead := row.margin) is not None
    }
