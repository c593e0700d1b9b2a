"""Rates by what attacks do to quality: each truth has its own, and rates of different truths are never pooled.

``same``: RR, verdicts equal before and after the rewrite, beside CR, the same under a control (CALM, section 3).
``unsupported`` and ``injection``: gains, wins of a response that had not won (ASR). ``hollow``: wins of an answer
without content over a real one (FPR).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

from distract.core import registry
from distract.core.attack import Truth
from distract.core.records import RESAMPLED
from distract.stats.figure import CONFIDENCE, Figure, fill_rate, headline
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.outcomes import (
    CRITERIA,
    FAILURES,
    OutcomeCounts,
    count_attacked,
    count_failures,
    count_fixed,
    list_values,
    pair_values,
)

RATES: Mapping[Truth, tuple[str, ...]] = {
    "same": ("robustness_rate",),
    "control": ("consistency_rate",),
    "unsupported": ("gain_rate", "gain_to_tie_rate"),
    "injection": ("gain_rate", "gain_to_tie_rate"),
    "hollow": ("hollow_win_rate", "hollow_tie_rate", "hollow_pass_rate"),
}
"""The rates of each truth, beside the flips and wins of ``same`` and ``control``."""

STYLES: tuple[Truth, ...] = ("same", "control")
"""The truths under which any change of the verdict counts."""

FAMILY = "family:"
"""Beginning of the name under which the attacks of a family are compared together."""


def read_truths(parameters: Mapping[str, Any]) -> Mapping[str, Truth]:
    """Read what each attack of a run does to quality; where it is not on record, as the installed attack says."""
    recorded, names = parameters.get("truths", {}), parameters.get("attacks", ())
    installed = {} if {*names} <= {*recorded} else registry.attacks()
    truths = {name: recorded.get(name) or (installed[name].truth if name in installed else "same") for name in names}
    return cast(Mapping[str, Truth], {**truths, **dict.fromkeys((RESAMPLED, *parameters["controls"]), "control")})


def share_figure(figure: Figure, counted: OutcomeCounts, confidence: float = CONFIDENCE) -> Figure:
    """Fill in the share of outcomes that a measure counts."""
    counts = CRITERIA[figure.measure]
    reasons = tuple(sorted(counted.reasons.items()))
    empty = replace(figure, invalid=counted.invalid, excluded=counted.reasons.total(), reasons=reasons)
    values = [float(counts(after, before)) for _, after, before in counted.outcomes.values()]
    return fill_rate(empty, values, [cluster for cluster, _, _ in counted.outcomes.values()], confidence=confidence)


def truth_figures(
    briefs: CompactRows, protocol: str, rule: str | None, attacks: Sequence[str], truths: Mapping[str, Truth]
) -> Iterator[Figure]:
    """Compute the rates of each attack by its truth, under one rule."""
    for attack in attacks:
        truth = truths[attack]
        if truth in STYLES and not briefs.holds(protocol, "flip"):
            continue
        counted = _count(briefs, protocol, rule, attack, truth)
        for figure in [Figure(measure, protocol, rule, attack) for measure in RATES[truth]]:
            if figure.measure == "gain_to_tie_rate" and not briefs.holds(protocol, "flip"):
                continue  # a response against its original has no verdict before
            if figure.measure in CRITERIA:
                yield share_figure(figure, counted)
            elif rule == "score" and protocol in briefs.floors:
                yield _pass_figure(briefs, figure)


def _count(briefs: CompactRows, protocol: str, rule: str | None, attack: str, truth: Truth) -> OutcomeCounts:
    """Count outcomes of pairs or, where the data have none, of responses against their own originals."""
    if briefs.holds(protocol, "flip"):
        return count_attacked(briefs.of(protocol, "flip", attack), rule, attack, truth)
    return count_fixed(briefs.of(protocol, "fixed", attack), rule, attack)


def _pass_figure(briefs: CompactRows, figure: Figure) -> Figure:
    """Measure how many hollow answers reach the pass mark, or the middle of the scale."""
    protocol = figure.protocol or ""
    design = "flip" if briefs.holds(protocol, "flip") else "fixed"
    rows = [row for row in briefs.of(protocol, design) if row.attack == figure.attack]
    judged = [(row.reaches[0 if row.target == "a" else 1], row.cluster) for row in rows if row.excluded is None]
    valid = [(float(reaches), prompt) for reaches, prompt in judged if reaches is not None]
    figure = replace(figure, invalid=len(judged) - len(valid), excluded=len(rows) - len(judged))
    return fill_rate(figure, [value for value, _ in valid], [prompt for _, prompt in valid])


def difference_figures(
    briefs: CompactRows,
    rules: Mapping[str, Sequence[str]],
    truths: Mapping[str, Truth],
    families: Mapping[str, str],
) -> Iterator[Figure]:
    """Compare protocols by attack, styles apart, and by family if one compares and the other scores."""
    for one, other in combinations(sorted(rules), 2):
        for name, (truth, attacks) in _group_attacks(truths, families, bool(rules[one]) != bool(rules[other])).items():
            measure = FAILURES[truth]
            values = []
            for protocol in (one, other):
                rule, rows = headline(measure, rules[protocol]), briefs.of(protocol, "flip")
                values.append(
                    {
                        (attack, *unit): value
                        for attack in attacks
                        for unit, value in list_values(measure, count_failures(rows, rule, attack, measure)).items()
                    }
                )
            figure = Figure(measure, one, headline(measure, rules[one]), name, against=other, against_attack=name)
            figure = replace(figure, against_rule=headline(measure, rules[other]))
            if (difference := pair_values(*values).fill(figure)).n:
                yield difference


def _group_attacks(
    truths: Mapping[str, Truth], families: Mapping[str, str], has_families: bool
) -> Mapping[str, tuple[Truth, list[str]]]:
    groups: dict[str, tuple[Truth, list[str]]] = {}
    for attack, truth in truths.items():
        if truth not in STYLES:
            groups[attack] = (truth, [attack])
        if has_families and truth != "control" and attack in families:
            name = FAMILY + families[attack]
            # A family of several truths has a group for each: their rates are never pooled.
            name = name if groups.get(name, (truth,))[0] == truth else f"{name}, {truth}"
            groups.setdefault(name, (truth, []))[1].append(attack)
    return groups
