"""Decide whether what a style is worth stays below its limit, by bets on means over prompts.

A shift of at most X means that E[gain - X] is at most 0; an exchange rate of at most X, that E[gain - X * cost] is,
where the cost of a broken requirement is a slope over the leads of one prompt: no ratio, no bootstrap. Leads are
bounded where scores are, so the bets of a live gate hold however skewed the gains are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from distract.core.errors import UsageError
from distract.core.printable import count
from distract.core.runs import LoadedRun
from distract.models.ranges import AMOUNT
from distract.stats.figure import Counts
from distract.stats.measures import MEASURES
from distract.studies.attack.style import ROUNDING, Leads, drop_invalid, list_gains, list_losses, weigh_severities
from distract.studies.gate.exact import HitCounts, list_styled, open_reason, settle, short_reason, start_check
from distract.studies.gate.limits import Limits, Place
from distract.studies.gate.monitor import Direction, log_evidence
from distract.studies.gate.verdict import Check
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import find_width

STEPS = 40
"""Bisection steps for a bound: to a billionth of a point."""

PromptLeads = tuple[Leads, Mapping[int, Leads]]
"""The gains of the rewrites of one prompt, and its losses by broken requirements; None: an invalid verdict."""

Span = tuple[float, float]
"""The smallest and the largest value, given that an invalid verdict could have been any."""


class MeanTest:
    """Tests a mean over prompts against its limit; leads are from ``-most`` to ``most``."""

    def __init__(
        self, place: Place, rule: str | None, prompts: Sequence[PromptLeads], most: float, limits: Limits
    ) -> None:
        self._limits, self._most, self._limit = limits, most, limits.require(place)
        leads = [lead for gains, losses in prompts for own in (gains, *losses.values()) for lead in own]
        self._counts = HitCounts(place, rule, Counts(invalid=leads.count(None)))
        self._n = sum(lead is not None for gains, _ in prompts for lead in gains)
        self._gains = np.array([_span(gains, most) for gains, _ in prompts]).reshape(-1, 2)
        self._costs = np.array([_slope(losses, most) for _, losses in prompts]).reshape(-1, 2)
        self._valid = [*_list_valid(prompts, most)]
        steepest = [sum(map(abs, weigh_severities(losses).values())) for _, losses in prompts if losses]
        self._ends = (-max(steepest) * most, max(steepest) * most) if steepest else (1.0, 1.0)

    @property
    def prompts(self) -> int:
        """Number of prompts."""
        return len(self._gains)

    @property
    def p_value(self) -> float:
        """P-value of "the mean is at most the limit"."""
        return min(1.0, math.exp(-max(0.0, self._evidence(self._limit, "above")))) if self.prompts else 1.0

    def check(self, adjusted: float, checks: int) -> Check:
        """Decide, given the adjusted p-value and the number of checks."""
        row, limits = MEASURES[self._counts.place.measure], self._limits
        lower, upper = self._bounds() if self.prompts else (None, None)
        p = self.p_value if self.prompts else None
        figures = {"lower": lower, "upper": upper, "prompts": self.prompts, "unit": row.name_unit(self._counts.rule)}
        check = start_check(self._counts, None, self._n, self._limit, p, adjusted, **figures)
        check = replace(check, value=self._value())
        unread = f"no verdict was valid ({count(check.invalid, 'comparison')})" if check.invalid else ""
        short = ("" if self._n else unread or row.missing) or short_reason(check, limits)
        if not short and check.value is None:
            short = "broken requirements are not shown to cost anything"
        return settle(check, adjusted <= limits.alpha, short, lambda: (open_reason(check, limits, checks, ""), None))

    def _value(self) -> float | None:
        """Return the mean over prompts; a rate divides it by the mean cost."""
        cost = fmean(cost for _, cost in self._valid) if self._valid else 0.0
        return fmean(gain for gain, _ in self._valid) / cost if cost > ROUNDING else None

    def _evidence(self, limit: float, side: Direction) -> float:
        """Return the evidence that the mean is on one side of a limit, with invalid verdicts for the other side."""
        products = np.sort(limit * self._costs, axis=1)
        worths = self._gains[:, 0] - products[:, 1] if side == "above" else self._gains[:, 1] - products[:, 0]
        ends = [limit * cost for cost in self._ends]
        low, high = -self._most - max(ends), self._most - min(ends)
        if low >= 0 or high <= 0:  # no mean can be on the other side
            return math.inf if (low >= 0) == (side == "above") else -math.inf
        return log_evidence(((worths - low) / (high - low)).tolist(), -low / (high - low), side)

    def _bounds(self) -> tuple[float | None, float | None]:
        """Return the one-sided bounds of the mean, on the same side of the limit as the evidence; None: none."""
        needed, bounds = math.log(1 / self._limits.alpha), list[float | None]()
        sides: tuple[tuple[Direction, float], ...] = (("above", -AMOUNT.most), ("below", AMOUNT.most))
        for side, furthest in sides:
            shown, open_ = float(furthest), self._limit
            if self._evidence(self._limit, side) >= needed:
                shown, open_ = self._limit, -shown
            elif self._evidence(shown, side) < needed:
                bounds.append(None)
                continue
            for _ in range(STEPS):
                middle = (shown + open_) / 2
                shown, open_ = (middle, open_) if self._evidence(middle, side) >= needed else (shown, middle)
            bounds.append(shown)
        return bounds[0], bounds[1]


def _list_valid(prompts: Iterable[PromptLeads], most: float) -> Iterator[tuple[float, float]]:
    """Yield the gain and the cost of each prompt by its valid verdicts."""
    for gains, losses in prompts:
        valid, known = [gain for gain in gains if gain is not None], drop_invalid(losses)
        if valid and (known or not losses):
            yield fmean(valid), _slope(known, most)[0]


def _span(leads: Leads, most: float) -> Span:
    low, high = (math.fsum(end if lead is None else lead for lead in leads) / len(leads) for end in (-most, most))
    return low, high


def _slope(losses: Mapping[int, Leads], most: float) -> Span:
    """Return the slope of the mean losses over the number of broken requirements.

    A shift has no cost: 1 puts its limit on the gain itself.
    """
    if not losses:
        return 1.0, 1.0
    weights = weigh_severities(losses)
    ends = [sorted(weights[severity] * end for end in _span(leads, most)) for severity, leads in losses.items()]
    return math.fsum(low for low, _ in ends), math.fsum(high for _, high in ends)


def mean_tests(run: LoadedRun, briefs: CompactRows, limits: Limits) -> Iterator[MeanTest]:
    """Yield a test for each limit on a mean, protocol and attack."""
    attacks = list_styled(run, briefs) if limits.means else []
    for protocol, rules in sorted(run.parameters["protocols"].items()) if attacks else ():
        most, losses = _find_largest_lead(run, protocol, limits), list_losses(briefs, protocol)
        for measure in limits.means:
            for attack in attacks:
                gains = dict[str, list[float | None]]()
                for prompt, gain in list_gains(briefs, protocol, attack.name):
                    gains.setdefault(prompt, []).append(gain)
                is_rate = "severity" in MEASURES[measure].designs
                leads = [(own, losses.get(prompt, {}) if is_rate else {}) for prompt, own in gains.items()]
                leads = [(own, costs) for own, costs in leads if costs or not is_rate]
                yield MeanTest(Place(protocol, attack, measure), "score" if rules else None, leads, most, limits)


def _find_largest_lead(run: LoadedRun, protocol: str, limits: Limits) -> float:
    """Return the largest lead between two responses: 1 in probability, else the width of the scale."""
    if (width := find_width(run.parameters, protocol)) is None:
        option = f"--{MEASURES[next(iter(limits.means))].limit}"
        raise UsageError(
            f"{option}: the scores of {protocol} have no bounds, so nothing bounds their mean; "
            "declare scale=(lowest, highest), or use --max-win-rate"
        )
    return width
