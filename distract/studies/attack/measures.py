"""Compute figures from rows, each with its k, n, invalid and excluded counts and a 95% interval.

Figures are derived and never stored with the rows, so a new one needs no model call. Definitions: DESIGN, measures 1 to
3 (Distracted evaluation, sections 3.1, 3.2 and 4).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from distract.core.attack import Truth
from distract.core.records import BASELINE, RESAMPLED, MinimalFlip, Rewrite, Row
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Condition, Figure, adjust_p_values, fill_rate, headline
from distract.studies.attack.briefs import CompactRow, CompactRows
from distract.studies.attack.design import DESIGNS as AUDIT_DESIGNS, AuditDesign
from distract.studies.attack.excess import excess_figures
from distract.studies.attack.labels import Usability, accuracy_figures, count_robust
from distract.studies.attack.margins import MarginCurve
from distract.studies.attack.outcomes import (
    COUNTERS,
    OutcomeCounts,
    add_ties,
    count_fixed,
    count_flips,
    pair_conditions,
    pair_criteria,
    pair_values,
)
from distract.studies.attack.protocol_ranks import ProtocolRank
from distract.studies.attack.strength import Strength
from distract.studies.attack.style import find_margin, style_figures
from distract.studies.attack.truths import RATES, STYLES, difference_figures, share_figure, truth_figures
from distract.studies.rewrite_counts import CompactRewrites, agreements, rejections

GROUPS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("distractor_win_rate", "original_win_rate", "tie_rate"),
    "flip": ("flip_rate", "softened_rate"),
    "severity": ("severity_accuracy",),
}
"""The rates of each design, by the outcomes of its comparisons."""

NET = "net_flip_rate"
"""The measure for which winners are rewritten too."""

DERIVED: Mapping[str, tuple[AuditDesign, ...]] = {
    **dict.fromkeys(("clean_accuracy", "robust_accuracy", "attack_cost", "skill_under_attack"), ("flip",)),
    **dict.fromkeys((NET, "flip_rate_of_all", "flip_rate_beyond_margin", "indifference_margin"), ("flip",)),
    **dict.fromkeys(("shift", "distractor_lead"), ("fixed",)),
    "exchange_rate": ("fixed", "severity"),
    **dict.fromkeys(("crossing_rate", "lifted_rate"), ("fixed",)),
    **dict.fromkeys((measure for measures in RATES.values() for measure in measures), ("flip",)),
}
"""Further measures, with the designs that they need."""

MEASURES = frozenset((*(measure for measures in GROUPS.values() for measure in measures), *DERIVED))
"""The measures a user can ask for; others say how readable the judge was."""

DESIGNS: Mapping[str, tuple[AuditDesign, ...]] = {
    **{design: (design,) for design in AUDIT_DESIGNS},
    "net": ("flip",),
    **{measure: (design,) for design in AUDIT_DESIGNS for measure in GROUPS[design]},
    **DERIVED,
}
"""The designs that each value of ``--measure`` needs."""

ALWAYS = ("order_inconsistency", "rejection_rate", "layer_agreement", "choice_mass", "invalid_rate", "distinct_ratings")
"""Measures of every design."""

PAIRED: Mapping[str, str] = {"fixed": "tie_rate", "flip": "flip_rate", "severity": "severity_accuracy"}
"""The rate by which each design compares protocols."""


def figures(
    rows: Iterable[Row] | CompactRows,
    rewrites: Iterable[Rewrite],
    rules: Mapping[str, Sequence[str]],
    attacks: Sequence[str],
    ties: Collection[str] | None = None,
    placebos: Collection[str] = (),
    truths: Mapping[str, Truth] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
    control_of: Mapping[str, str] = MappingProxyType({}),
) -> list[Figure]:
    """Compute every figure that the rows support, in a total order.

    ``ties`` names the protocols that can tie (None: all), ``placebos`` the attacks that change no tone, ``truths`` what
    each attack does to quality (default: ``same``), ``families`` the family of each, ``control_of`` the control of
    those that have one.
    """
    every, truths = attacks, {**dict.fromkeys(attacks, "same"), **truths}
    attacks = [attack for attack in every if truths[attack] in STYLES]
    briefs = rows if isinstance(rows, CompactRows) else CompactRows(rows, rules)
    # Second samples exist for pairs only: a response against itself is not a comparison.
    conditions: dict[str, list[Condition]] = {
        design: [(attack, None) for attack in attacks if design == "flip" or attack != RESAMPLED]
        for design in briefs.designs
    }
    if "severity" in conditions:
        # Every case has a row for each, if only to record why it was not judged.
        degraded = {(row.attack, row.b.severity) for protocol in rules for row in briefs.of(protocol, "severity")}
        conditions["severity"] = sorted(degraded, key=str)
    clusters = briefs.clusters
    written = [attack for attack in attacks if attack != RESAMPLED]
    shown = [attack for attack in every if attack != RESAMPLED]
    results = [*rejections(rewrites, shown, clusters), *agreements(rewrites, clusters)]
    for protocol in rules:
        results += _quality(protocol, briefs)
        own = style_figures(briefs, protocol, rules[protocol], written, placebos)
        results += own
        results += excess_figures(briefs, protocol, headline("flip_rate", rules[protocol]), control_of, truths)
        for rule in rules[protocol] or (None,):
            results += _pair_figures(briefs, protocol, rule, attacks, find_margin(own, protocol))
            results += truth_figures(briefs, protocol, rule, every, truths)
            for design, places in conditions.items():
                for place in places if briefs.holds(protocol, design) else ():
                    shares = _shares(design, briefs, protocol, rule, place)
                    results += [f for f in shares if f.measure != "tie_rate" or ties is None or protocol in ties]
    for one, other in combinations(sorted(rules), 2):
        for design, places in conditions.items():
            # A tie of integer ratings and one of distributions are not the same thing.
            is_alike = bool(rules[one]) == bool(rules[other]) and (ties is None or {one, other} <= {*ties})
            is_shared = briefs.holds(one, design) and briefs.holds(other, design)
            if is_shared and (PAIRED[design] != "tie_rate" or is_alike):
                results += [_difference(design, briefs, rules, (one, place), (other, place)) for place in places]
        accuracies = (_accuracy_difference(briefs, rules, one, other, attack) for attack in attacks)
        results += [difference for difference in accuracies if difference.n]  # none without labels
    results += difference_figures(briefs, rules, truths, families)
    for protocol in rules:  # the effect of a distractor in the worse response on accuracy
        for attack, severity in conditions.get("severity", ()):
            if attack != BASELINE and (plain := (BASELINE, severity)) in conditions["severity"]:
                place = (attack, severity)
                results.append(_difference("severity", briefs, rules, (protocol, place), (protocol, plain)))
    return adjust_p_values(sorted(results, key=lambda figure: figure.place))


def _pair_figures(
    briefs: CompactRows, protocol: str, rule: str | None, attacks: Sequence[str], margin: float | None
) -> list[Figure]:
    """Compute what the flip design measures besides flips of eligible pairs, under one rule."""
    rows = briefs.of(protocol, "flip")
    results = accuracy_figures(rows, protocol, rule, attacks) if rows else []
    for attack in attacks if rows else ():
        figure = Figure(NET, protocol, rule, attack)
        flips, counters = count_flips(rows, rule, attack), count_flips(rows, rule, attack, winners=True)
        results.append(share_figure(replace(figure, measure="flip_rate_of_all"), add_ties(rows, rule, flips)))
        if briefs.net and counters.outcomes:
            results.append(pair_conditions("flip_rate", flips, counters).fill(_against_original(figure)))
        if margin is not None and rule != "rating":
            beyond = count_flips(rows, rule, attack, margin)
            results.append(share_figure(replace(figure, measure="flip_rate_beyond_margin"), beyond))
    for attack in attacks:
        fixed = count_fixed(briefs.of(protocol, "fixed", attack), rule, attack)
        if fixed.outcomes:
            lead = _against_original(Figure("distractor_lead", protocol, rule, attack, invalid=fixed.invalid))
            results.append(pair_criteria(fixed, "distractor_win_rate", "original_win_rate").fill(lead))
    return results


def _against_original(figure: Figure) -> Figure:
    """Mark a figure as a difference between the rewrites of an attack and the originals."""
    return replace(figure, against=figure.protocol, against_rule=figure.rule, against_attack=BASELINE)


def _accuracy_difference(
    briefs: CompactRows, rules: Mapping[str, Sequence[str]], one: str, other: str, attack: str
) -> Figure:
    measure = "robust_accuracy"
    rule, rule_other = (headline(measure, rules[protocol]) for protocol in (one, other))
    first = count_robust(briefs.of(one, "flip", attack), rule, attack)
    second = count_robust(briefs.of(other, "flip", attack), rule_other, attack)
    figure = Figure(measure, one, rule, attack, against=other, against_rule=rule_other, against_attack=attack)
    return pair_values(first.values, second.values).fill(figure)


def _count_outcomes(
    design: str, briefs: CompactRows, protocol: str, rule: str | None, place: Condition
) -> OutcomeCounts:
    attack, severity = place
    rows = [row for row in briefs.of(protocol, design, attack) if severity in (None, row.b.severity)]
    return COUNTERS[design](rows, rule, attack)


def _shares(design: str, briefs: CompactRows, protocol: str, rule: str | None, place: Condition) -> list[Figure]:
    counted = _count_outcomes(design, briefs, protocol, rule, place)
    return [share_figure(Figure(measure, protocol, rule, *place), counted) for measure in GROUPS[design]]


def win_figure(rows: Sequence[CompactRow], protocol: str, rule: str | None, attack: str, confidence: float) -> Figure:
    """Measure how often the rewrite wins against its original, at a confidence of the caller's."""
    return share_figure(
        Figure("distractor_win_rate", protocol, rule, attack), count_fixed(rows, rule, attack), confidence
    )


def _quality(protocol: str, briefs: CompactRows) -> list[Figure]:
    """Measure how readable the judge was, by attack: invalid verdicts, order inconsistency, choice mass."""
    results = []
    if ratings := briefs.ratings[protocol]:
        results.append(Figure("distinct_ratings", protocol, "rating", BASELINE, value=len(ratings), unit="count"))
    conditions: dict[Condition, list[CompactRow]] = defaultdict(list)
    for design in GROUPS:
        for row in briefs.of(protocol, design):
            # Only the severity design distinguishes severities.
            conditions[row.attack, row.b.severity if design == "severity" else None].append(row)
    for attack, severity in sorted(conditions, key=str):
        rows = conditions[attack, severity]
        # The control that changes nothing shares the baseline's name; prefer the baseline if there is one.
        rows = [row for row in rows if row.target is None] or rows
        judged = [row for row in rows if row.kind.preferences]
        excluded = sum(row.excluded is not None for row in rows)
        valid = [row for row in judged if None not in row.kind.preferences]
        invalid = len(judged) - len(valid)
        clusters = [row.cluster for row in valid]
        figure = Figure("invalid_rate", protocol, None, attack, severity, excluded=excluded)
        failed = [float(None in row.kind.preferences) for row in judged]
        results.append(fill_rate(figure, failed, [row.cluster for row in judged]))
        figure = replace(figure, invalid=invalid)
        if any(len(row.kind.preferences) > 1 for row in judged):
            differ = [float(len({*row.kind.preferences}) > 1) for row in valid]
            results.append(fill_rate(replace(figure, measure="order_inconsistency"), differ, clusters))
        values, names = list[float](), list[str]()
        for row in valid:
            values += row.masses
            names += [row.cluster] * (len(values) - len(names))
        mass = replace(figure, measure="choice_mass", n=len(values))
        if values:
            low, high = intervals.mean_interval(values, names, CONFIDENCE) or (None, None)
            low, high = (None if low is None else max(0.0, low)), (None if high is None else min(1.0, high))
            mass = replace(mass, value=math.fsum(values) / len(values), low=low, high=high)
        results.append(mass)
    return results


def _difference(
    design: str,
    briefs: CompactRows,
    rules: Mapping[str, Sequence[str]],
    one: tuple[str, Condition],
    other: tuple[str, Condition],
) -> Figure:
    """Compare two protocols, or two conditions, on the units eligible and valid under both."""
    measure = PAIRED[design]
    rule, rule_other = (headline(measure, rules[protocol]) for protocol, _ in (one, other))
    first = _count_outcomes(design, briefs, one[0], rule, one[1])
    second = _count_outcomes(design, briefs, other[0], rule_other, other[1])
    figure = Figure(
        measure, one[0], rule, *one[1], against=other[0], against_rule=rule_other, against_attack=other[1][0]
    )
    return pair_conditions(measure, first, second).fill(figure)


@dataclass(frozen=True)
class AttackResult:
    """The result of a run.

    ``smallest`` is None if the run did not search for minimal flips; ``excluded`` and ``invalid`` count comparisons and
    verdicts by reason.
    """

    figures: Sequence[Figure]
    usable: Sequence[Usability]
    standings: Sequence[ProtocolRank]
    rewrites: CompactRewrites
    smallest: Sequence[MinimalFlip] | None
    prompts: int
    excluded: Counter[str]
    invalid: Counter[str]
    curves: Sequence[MarginCurve] = ()
    strengths: Sequence[Strength] = ()
