"""Rows to figures: each with its k, n, invalid and excluded counts and a 95% interval.

Figures are derived and never stored with the rows, so a new one needs no model call. It knows the two designs of
``audit`` and no protocol, attack or judge by name. The definitions are DESIGN's measures 1 and 2 (Distracted
evaluation, sections 3.1 and 4).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from distract import statistics
from distract.records import Outcome, Rewrite, Row
from distract.verdicts import outcome

GROUPS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("distractor_win_rate", "original_win_rate", "tie_rate"),
    "flip": ("flip_rate", "softened_rate"),
}
"""The measures that each design gives, by the design's name."""

ALWAYS = ("order_inconsistency", "rejection_rate", "choice_mass", "invalid_rate")
"""Measures that come with either design."""

HEADLINE = {"flip_rate": "score", "softened_rate": "score"}
"""The rule by which a scoring protocol is summed up; ``rating`` where nothing is named, as in the paper."""

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes:
        measure: its name in DESIGN.
        protocol: None where it belongs to no protocol.
        rule: ``score`` or ``rating`` for a scoring protocol.
        attack: ``none`` before any rewrite.
        severity: of measure 3 only.
        value: a share or a mean, 0 to 1, or a difference of shares, -1 to 1; None when n is 0.
        low: lower end of the 95% interval.
        high: upper end.
        k: how many of n; None for a mean.
        n: valid and eligible comparisons.
        invalid: comparisons without a valid verdict.
        excluded: comparisons not made, or not eligible.
        unit: ``share``.
        against: the protocol that a difference is taken against (value = protocol - against).
        against_rule: its rule.
        p_value: exact two-sided McNemar test of a difference.
        effective_n: n shrunk by the dependence of cases that share a prompt.
    """

    measure: str
    protocol: str | None
    rule: str | None
    attack: str
    severity: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    k: int | None = None
    n: int = 0
    invalid: int = 0
    excluded: int = 0
    unit: str = "share"
    against: str | None = None
    against_rule: str | None = None
    p_value: float | None = None
    effective_n: float | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one run."""
        parts = (
            self.measure,
            self.protocol,
            self.rule,
            self.attack,
            self.severity,
            self.against,
            self.against_rule,
        )
        return tuple("" if part is None else str(part) for part in parts)


Unit = tuple[Hashable, ...]


@dataclass(slots=True)
class Counted:
    """Outcomes of the eligible, valid comparisons by unit, and how many others there were, by reason."""

    outcomes: dict[Unit, tuple[str, Outcome, Outcome | None]] = field(default_factory=dict)
    invalid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


def headline(measure: str, rules: Sequence[str]) -> str | None:
    """The rule by which a measure of a protocol with these rules is summed up; None without rules."""
    return HEADLINE.get(measure, "rating") if rules else None


def figures(
    rows: Iterable[Row], rewrites: Iterable[Rewrite], rules: Mapping[str, Sequence[str]], attacks: Sequence[str]
) -> list[Figure]:
    """Every figure that the rows support, in a total order.

    Args:
        rows: of one run.
        rewrites: of the same run.
        rules: of each protocol of the run, by its name.
        attacks: of the run, so that one without rows still shows n = 0.
    """
    by: dict[tuple[str, str], list[Row]] = defaultdict(list)
    clusters: dict[str, str] = {}
    for row in rows:
        by[row.protocol, row.design].append(row)
        clusters[row.case] = row.cluster
    designs = {design for _, design in by}
    made = _rejections(rewrites, attacks, clusters)
    for protocol in rules:
        fixed, flip = by[protocol, "fixed"], by[protocol, "flip"]
        made += _quality(protocol, [*fixed, *flip])
        for rule in rules[protocol] or (None,):
            for attack in attacks:
                if "fixed" in designs:
                    made += _shares("fixed", count_fixed(fixed, rule, attack), protocol, rule, attack)
                if "flip" in designs:
                    made += _shares("flip", count_flips(flip, rule, attack), protocol, rule, attack)
    for one, other in combinations(sorted(rules), 2):
        for attack in attacks:
            if "fixed" in designs:
                made.append(_difference("tie_rate", count_fixed, by, rules, one, other, attack))
            if "flip" in designs:
                made.append(_difference("flip_rate", count_flips, by, rules, one, other, attack))
    return sorted(made, key=lambda figure: figure.place)


def count_fixed(rows: Sequence[Row], rule: str | None, attack: str) -> Counted:
    """Outcomes of a good response (a) against its rewrite (b)."""
    counted = Counted()
    for row in rows:
        if row.attack == attack:
            _count(counted, (row.case, row.a.author, row.a.severity), row, rule, None)
    return counted


def count_flips(rows: Sequence[Row], rule: str | None, attack: str) -> Counted:
    """Outcomes of attacked pairs, in terms of the side that had lost under this rule.

    A unit is a pair whose baseline has a loser. Its outcome is ``b`` when the rewritten response is now preferred
    (a flip), ``tie`` when the verdict softened, ``a`` when it held.
    """
    counted = Counted()
    attacked = {(*_pair(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None:
            continue
        before = outcome(row.judgments, rule)
        if row.excluded is not None:
            counted.reasons[row.excluded] += 1
        elif before is None:
            counted.invalid += 1
        elif before == "tie":
            counted.reasons["baseline is a tie"] += 1
        else:
            after = attacked.get((*_pair(row), "b" if before == "a" else "a"))
            if after is None:
                counted.reasons["not judged yet"] += 1
            else:
                _count(counted, _pair(row), after, rule, before)
    return counted


def _pair(row: Row) -> Unit:
    return (row.case, row.a.author, row.a.severity, row.b.author, row.b.severity)


def _count(counted: Counted, unit: Unit, row: Row, rule: str | None, before: Outcome | None) -> None:
    if row.excluded is not None:
        counted.reasons[row.excluded] += 1
    elif (after := outcome(row.judgments, rule)) is None:
        counted.invalid += 1
    else:
        counted.outcomes[unit] = (row.cluster, after, before)


_WANTED: Mapping[str, Callable[[Outcome, Outcome | None], bool]] = {
    "distractor_win_rate": lambda after, before: after == "b",
    "original_win_rate": lambda after, before: after == "a",
    "tie_rate": lambda after, before: after == "tie",
    "flip_rate": lambda after, before: after not in (before, "tie"),
    "softened_rate": lambda after, before: after == "tie",
}


def _shares(design: str, counted: Counted, protocol: str, rule: str | None, attack: str) -> list[Figure]:
    clusters = [cluster for cluster, _, _ in counted.outcomes.values()]
    made = []
    for measure in GROUPS[design]:
        values = [float(_WANTED[measure](after, before)) for _, after, before in counted.outcomes.values()]
        empty = Figure(measure, protocol, rule, attack, invalid=counted.invalid, excluded=counted.reasons.total())
        made.append(_rate(empty, values, clusters))
    return made


def _rate(figure: Figure, values: Sequence[float], clusters: Sequence[str]) -> Figure:
    """Fill in a share with its interval."""
    n, k = len(values), int(math.fsum(values))
    if not n:
        return replace(figure, k=0)
    low, high = statistics.proportion(values, clusters, CONFIDENCE)
    effective = statistics.effective_n(values, clusters)
    return replace(figure, value=k / n, low=low, high=high, k=k, n=n, effective_n=effective)


def _rejections(rewrites: Iterable[Rewrite], attacks: Sequence[str], clusters: Mapping[str, str]) -> list[Figure]:
    by: dict[str, list[Rewrite]] = {attack: [] for attack in attacks}
    for rewrite in rewrites:
        by.setdefault(rewrite.response.attack or "", []).append(rewrite)
    return [
        _rate(
            Figure("rejection_rate", None, None, attack),
            [float(not rewrite.accepted) for rewrite in made],
            [clusters.get(rewrite.case, rewrite.case) for rewrite in made],
        )
        for attack, made in by.items()
    ]


def _quality(protocol: str, rows: Sequence[Row]) -> list[Figure]:
    """How well the judge could be read, by attack: invalid verdicts, order inconsistency, choice mass."""
    made = []
    for attack in sorted({row.attack for row in rows}):
        here = [row for row in rows if row.attack == attack]
        # The control that changes nothing has the baseline's name; where there is a baseline, that is what is meant.
        here = [row for row in here if row.target is None] or here
        judged = [row for row in here if row.judgments]
        excluded = sum(row.excluded is not None for row in here)
        valid = [row for row in judged if outcome(row.judgments, None if _orders(row) else "score") is not None]
        invalid = len(judged) - len(valid)
        clusters = [row.cluster for row in valid]
        figure = Figure("invalid_rate", protocol, None, attack, excluded=excluded)
        failed = [float(any(j.failure for j in row.judgments)) for row in judged]
        made.append(_rate(figure, failed, [row.cluster for row in judged]))
        figure = replace(figure, invalid=invalid)
        if any(_orders(row) for row in judged):
            differ = [float(len({j.preferred for j in row.judgments}) > 1) for row in valid]
            made.append(_rate(replace(figure, measure="order_inconsistency"), differ, clusters))
        masses = [(row.cluster, j.mass) for row in valid for j in row.judgments if j.mass is not None]
        mass = replace(figure, measure="choice_mass", n=len(masses))
        if masses:
            values, names = [m for _, m in masses], [cluster for cluster, _ in masses]
            low, high = statistics.mean(values, names, CONFIDENCE) or (None, None)
            low, high = (None if low is None else max(0.0, low)), (None if high is None else min(1.0, high))
            mass = replace(mass, value=math.fsum(values) / len(values), low=low, high=high)
        made.append(mass)
    return made


def _orders(row: Row) -> bool:
    return len(row.judgments) > 1


def _difference(
    measure: str,
    count: Callable[[Sequence[Row], str | None, str], Counted],
    by: Mapping[tuple[str, str], Sequence[Row]],
    rules: Mapping[str, Sequence[str]],
    one: str,
    other: str,
    attack: str,
) -> Figure:
    """Two protocols on the units that are eligible and valid under both."""
    design = next(design for design, measures in GROUPS.items() if measure in measures)
    rule_one, rule_other = headline(measure, rules[one]), headline(measure, rules[other])
    first = count(by.get((one, design), ()), rule_one, attack)
    second = count(by.get((other, design), ()), rule_other, attack)
    shared = [unit for unit in first.outcomes if unit in second.outcomes]
    wanted = _WANTED[measure]
    a = [float(wanted(*first.outcomes[unit][1:])) for unit in shared]
    b = [float(wanted(*second.outcomes[unit][1:])) for unit in shared]
    clusters = [first.outcomes[unit][0] for unit in shared]
    everything = first.outcomes.keys() | second.outcomes.keys()
    figure = Figure(
        measure,
        one,
        rule_one,
        attack,
        n=len(shared),
        excluded=len(everything) - len(shared),
        against=other,
        against_rule=rule_other,
    )
    if not shared:
        return figure
    low, high = statistics.paired_difference(a, b, clusters, CONFIDENCE)
    value = (math.fsum(a) - math.fsum(b)) / len(shared)
    return replace(figure, value=value, low=low, high=high, p_value=statistics.paired_p(a, b, clusters))
