"""Whether a judge got worse: two runs on the same cases, and the exact one-sided McNemar test on their flips.

Each check takes the pairs of responses that are eligible and valid in both runs. A check fails where flips that only
the new run has are more than chance gives, after Holm's adjustment, and passes where there was enough to show such a
rise and none is shown. Fails closed: too few pairs or too many invalid verdicts never pass. It knows no protocol or
attack by name and nothing of models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from distract import statistics
from distract.counting import count_flips
from distract.gate.comparable import common, comparable
from distract.gate.limits import Limits, unreadable
from distract.gate.records import Check, Decision, Verdict
from distract.gate.together import together
from distract.metrics import Shared, headline, shared
from distract.printable import line
from distract.report.text import count, p_value, percent
from distract.runfolder import Loaded

_MEASURE = "flip_rate"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Paired:
    """One protocol under one attack in two runs.

    Attributes:
        protocol: its name.
        rule: by which the new run decides a scoring protocol; None for others.
        attack: its name.
        both: flips (1) on the pairs that are eligible and valid in both runs, first in the new one, second in the
            baseline.
        only_here: flips that only the new run has.
        only_there: flips that only the baseline has.
        shrink: effective over actual number of pairs, 0 to 1; 1 where every prompt gives one.
        invalid: eligible pairs without a valid verdict in the new run, whatever they were in the baseline.
        excluded: pairs that were not made or not eligible there.
    """

    protocol: str
    rule: str | None
    attack: str
    both: Shared
    only_here: int
    only_there: int
    shrink: float
    invalid: int
    excluded: int

    @property
    def n(self) -> int:
        """Pairs that are eligible and valid in both runs."""
        return len(self.both.first)

    @property
    def k(self) -> int:
        """Flips of the new run on them."""
        return int(math.fsum(self.both.first))

    @property
    def k_there(self) -> int:
        """Flips of the baseline on them."""
        return int(math.fsum(self.both.second))

    @property
    def eligible(self) -> int:
        """Pairs of the new run that should have given a valid verdict."""
        return self.n + self.both.alone[0] + self.invalid

    @property
    def p_value(self) -> float:
        """Of "the flip rate did not rise": exact, one-sided, on counts shrunk to the effective number."""
        return statistics.mcnemar_above(self.only_here * self.shrink, self.only_there * self.shrink)


def paired(baseline: Loaded, run: Loaded) -> tuple[Paired, ...]:
    """Pair two runs by what they compare, for each protocol and attack of both that is no control.

    Args:
        baseline: what the new run may not be worse than.
        run: the new one.

    Returns:
        One for each protocol, by name, and attack, in the order of the new run; n is 0 where they share nothing.
    """
    protocols, attacks = common(baseline, run)
    return tuple(_paired(baseline, run, protocol, attack) for protocol in protocols for attack in attacks)


def _paired(baseline: Loaded, run: Loaded, protocol: str, attack: str) -> Paired:
    rules = [headline(_MEASURE, one.parameters["protocols"][protocol]) for one in (run, baseline)]
    here, there = (
        count_flips([row for row in one.rows if (row.design, row.protocol) == ("flip", protocol)], rule, attack)
        for one, rule in zip((run, baseline), rules, strict=True)
    )
    both = shared(_MEASURE, here, there)
    up, down, shrink = statistics.discordant(both.first, both.second, both.clusters) if both.first else (0, 0, 1.0)
    return Paired(protocol, rules[0], attack, both, up, down, shrink, here.invalid, here.reasons.total())


def decide(baseline: Loaded, run: Loaded, limits: Limits) -> Verdict:
    """Decide whether the flip rates of a run rose since a baseline.

    Args:
        baseline: what the new run may not be worse than.
        run: the new one.
        limits: how sure to be, and what may pass; thresholds are not looked at.

    Returns:
        Checks of the measure ``flip_rate_rise``: ``lower`` and ``upper`` bound the rise (a difference of shares, -1 to
        1), ``value`` is the flip rate of the new run and ``reference`` that of the baseline on the same pairs.

    Raises:
        UsageError: the runs cannot be compared.
    """
    notes = comparable(baseline, run)
    pairs = paired(baseline, run)
    adjusted = statistics.holm([one.p_value for one in pairs])
    least = least_discordant(limits.alpha, len(pairs))
    checks = tuple(_check(one, p, least, limits) for one, p in zip(pairs, adjusted, strict=True))
    if alone := [_alone(one) for one in pairs if any(one.both.alone)]:
        notes.append(f"not compared, as eligible and valid in one run only: {line('; '.join(alone))}")
    decision, reason = together(checks, None, no_rise(len(checks)))
    return Verdict(decision, reason, None, limits.confidence, limits.certify, checks, notes=tuple(notes))


def no_rise(checks: int) -> str:
    """The reason of a gate whose checks all pass."""
    return (
        "the flip rate did not rise beyond chance" if checks == 1 else f"none of {checks} flip rates rose beyond chance"
    )


def least_discordant(alpha: float, checks: int) -> int:
    """The fewest pairs that can show a rise, all of them flips of the new run only.

    Args:
        alpha: the largest chance of a wrong failure, above 0.
        checks: how many are made, which Holm's adjustment allows for.
    """
    n = 1
    while checks * statistics.mcnemar_above(n, 0) > alpha:
        n += 1
    return n


def _alone(one: Paired) -> str:
    now, before = one.both.alone
    return f"{one.protocol} under {one.attack} ({before} before, {now} now)"


def _check(one: Paired, adjusted: float, least: int, limits: Limits) -> Check:
    n, both = one.n, one.both
    lower = upper = None
    if n:
        # Each bound is one-sided.
        lower, upper = statistics.paired_difference(both.first, both.second, both.clusters, 2 * limits.confidence - 1)
    decision, reason, needed = _decided(one, adjusted, least, limits, upper)
    return Check(
        protocol=one.protocol,
        rule=one.rule,
        attack=one.attack,
        decision=decision,
        reason=reason,
        threshold=None,
        k=one.k,
        n=n,
        invalid=one.invalid,
        excluded=one.excluded,
        value=one.k / n if n else None,
        measure="flip_rate_rise",
        reference=one.k_there / n if n else None,
        only_here=one.only_here,
        only_there=one.only_there,
        lower=lower,
        upper=upper,
        p_value=one.p_value if n else None,
        p_adjusted=adjusted if n else None,
        needed=needed,
    )


def _decided(
    one: Paired, adjusted: float, least: int, limits: Limits, upper: float | None
) -> tuple[Decision, str, int | None]:
    """What a check comes to, why, and how many pairs would be needed where they are too few."""
    n, needed = one.n, max(limits.min_n, math.ceil(least / one.shrink - _ROUNDING))
    if not n or upper is None:
        return "inconclusive", "no comparison is eligible and valid in both runs", needed
    if adjusted <= limits.alpha:
        rates = f"from {percent(one.k_there / n)}% to {percent(one.k / n)}%"
        flips = f"{one.only_here} flips only now, {one.only_there} only before"
        return "fail", f"the flip rate rose {rates} ({flips}, p {p_value(adjusted)})", None
    if n < needed:
        worth = f", worth {n * one.shrink:.1f} independent ones," if one.shrink < 1 else ""
        shown = f"{count(n, 'comparison')}{worth} eligible in both runs"
        return "inconclusive", f"{shown}: too few to tell, at least {needed} are needed", needed
    if unreadable(one.eligible - one.invalid, one.invalid, limits.max_invalid_rate):
        share = f"{percent(one.invalid / one.eligible)}% of the eligible comparisons"
        return "inconclusive", f"{share} have no valid verdict, more than {percent(limits.max_invalid_rate)}%", None
    sure = f"at {100 * limits.confidence:g}%"
    if upper <= 0:
        return "pass", f"no rise: the rate fell by at least {percent(-upper)} points {sure}", None
    # By itself it would be one: among several checks chance gives as much.
    among = f" among all checks (p {p_value(adjusted)})" if one.p_value <= limits.alpha else ""
    return "pass", f"no rise beyond chance{among}; the rise is below {percent(upper)} points {sure}", None
