"""The checks of a live gate: the outcome of each prompt, and the words for the evidence that a monitor has gathered.

Values are hits or, against the judge's own noise or a baseline, how much more often a trial is a hit than there. An
unreadable verdict counts twice: with the most and with the least favourable value that it could have had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from distract.core.printable import count, p_value
from distract.core.records import RESAMPLED, Row
from distract.stats.figure import Counts
from distract.stats.measures import MEASURES, headline
from distract.stats.trials import Unit
from distract.studies.gate.exact import count_needed, format_bound, ineligible_reason, invalid_reason, open_reason
from distract.studies.gate.limits import Limits, describe_bounded, is_unreadable, least_n, split_name
from distract.studies.gate.monitor import Direction, Monitor, PromptOutcome, end_probability, log_evidence
from distract.studies.gate.verdict import Check
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import ProtocolTrials

UnitHits = Mapping[Unit, bool | None]
"""Whether each eligible trial is a hit; None without a valid verdict after the rewrite."""


class RowHits:
    """The hits among rows of one protocol: those of a prompt or of a run, in the design of a measure."""

    def __init__(
        self, parameters: Mapping[str, Any], rows: Sequence[Row], protocol: str, measure: str, margin: float = 0.0
    ) -> None:
        self._measure = MEASURES[measure]
        self._rule, self._margin = headline(measure, parameters["protocols"][protocol]), margin
        own = [row for row in rows if row.protocol == protocol and row.design in self._measure.designs]
        self._trials = ProtocolTrials(CompactRows.of_run(parameters, own), protocol)
        # A pair has one row before any rewrite; a response has one for each of its rewrites.
        pairs = sum(row.target is None for row in own)
        self.units = pairs if self._measure.is_paired else len({row.case for row in own})

    def count(self, attack: str) -> tuple[dict[Unit, bool | None], Counts]:
        """Return whether each eligible trial is a hit beyond the margin, and all counts."""
        counted = self._trials.count(self._measure, self._rule, (attack, None), self._margin)
        return {unit: hit for unit, (_, hit) in counted.hits(self._measure).items()}, counted

    def rate_outcome(self, attack: str) -> PromptOutcome:
        """Count hits: the value of a trial is 1 for a hit, else 0."""
        hits, counted = self.count(attack)
        low, high = tuple(map(_low_value, hits.values())), tuple(map(_high_value, hits.values()))
        unasked, n = self.units - counted.judged, len(counted.values)
        return PromptOutcome(self.units, low, high, n, round(sum(low)), counted.invalid, unasked=unasked)

    def excess_outcome(self, attack: str, null: str) -> PromptOutcome:
        """Count hits beyond the noise: 1 for a hit that the noise lacks, 0 for the reverse, else 1/2.

        The noise of a trial is whether it is a hit under the control that only normalises the text; if that changes
        nothing, under a second sample; if nothing is sampled, it is zero.
        """
        hits, counted = self.count(attack)
        noise = dict.fromkeys(hits, False) | {
            unit: hit for control in (RESAMPLED, null) for unit, hit in self.count(control)[0].items()
        }
        return self._compare(hits, noise, counted)

    def rise_outcome(self, attack: str, before: UnitHits) -> PromptOutcome:
        """Count hits beyond those of a baseline, on the trials that it has too; values as in ``excess_outcome``."""
        hits, counted = self.count(attack)
        return self._compare(hits, before, counted)

    def _compare(self, hits: UnitHits, reference: UnitHits, counted: Counts) -> PromptOutcome:
        both = [(hit, reference[unit]) for unit, hit in hits.items() if unit in reference]
        valid = [(hit, before) for hit, before in both if hit is not None and before is not None]
        return PromptOutcome(
            self.units,
            tuple((1 + _low_value(hit) - _high_value(before)) / 2 for hit, before in both),
            tuple((1 + _high_value(hit) - _low_value(before)) / 2 for hit, before in both),
            len(valid),
            sum(hit for hit, _ in valid),
            # The noise of some pairs is unreadable too.
            counted.invalid + sum(hit is not None and before is None for hit, before in both),
            sum(hit and not before for hit, before in valid),
            sum(before and not hit for hit, before in valid),
            self.units - counted.judged,
        )


def _low_value(hit: bool | None) -> float:
    return float(hit is True)


def _high_value(hit: bool | None) -> float:
    return float(hit is not False)


STEPS = 24
"""Bisection steps for a bound, enough for thresholds of a millionth."""


def build_check(
    place: tuple[str, str | None, str],
    monitor: Monitor,
    measure: str,
    limit: float,
    adjusted: float,
    limits: Limits,
    checks: int,
) -> Check:
    """Describe the current state of a check of a protocol, by a rule, under an attack; its threshold is ``limit``."""
    state = _CheckState(monitor, measure, limits, limit)
    decision = monitor.decision or "inconclusive"
    # Once another check has failed, Holm's adjustment may let this one fail too.
    if decision == "inconclusive" and monitor.p_value is not None and adjusted <= limits.alpha:
        decision = "fail"
    skipped = decision == "inconclusive" and monitor.decision is None
    more = None
    readable = not is_unreadable(monitor.n, monitor.invalid, limits.max_invalid_rate)
    if decision == "inconclusive" and not skipped and monitor.limits is not None and readable:
        # The estimate is for a new run; drop it if this one has as many.
        more = count_needed(monitor.value, limit, limits, checks)
        more = None if more is not None and more <= monitor.n else more
    if skipped:
        reason = "left open, as another check had failed"
    elif decision != monitor.decision and decision == "fail":
        reason = f"p {p_value(adjusted)} after Holm's adjustment, since other checks have failed"
    elif decision == "inconclusive" or state.bounds is None:
        reason = state.open_reason(more)
    else:
        reason = state.decision_reason(*state.bounds)
    lower, upper = state.bounds or (None, None)
    excluded = sum(monitor.test.pairs) - monitor.left - monitor.n - monitor.invalid
    figures: dict[str, Any] = {"measure": measure, "eligible_share": state.eligible_share}
    figures |= {"lower": lower, "upper": upper, "needed": more, "skipped": skipped}
    figures |= {"p_value": monitor.p_value, "p_adjusted": None if monitor.p_value is None else adjusted}
    figures |= {"prompts": None if monitor.test.is_single else monitor.prompt_count}
    if state.kind != "rate":
        only = {"only_here": monitor.only_here, "only_there": monitor.only_there}
        figures |= {"reference": monitor.reference, **only}
    counts = monitor.k, monitor.n, monitor.invalid, excluded
    return Check(*place, decision, reason, limit, *counts, monitor.value, **figures)


def lower_bound(monitor: Monitor, alpha: float) -> float:
    """Return the one-sided lower bound of the mean over prompts, invalid verdicts counted for the judge."""
    return _find_bound(lambda rate: _is_rejected(monitor, rate, "above", alpha))


def upper_bound(monitor: Monitor, alpha: float) -> float:
    """Return the one-sided upper bound of the mean over prompts, invalid verdicts counted against the judge."""
    return 1 - _find_bound(lambda rest: _is_rejected(monitor, 1 - rest, "below", alpha))


def _find_bound(rejected: Callable[[float], bool]) -> float:
    """Return the largest number from 0 to 1 that is rejected along with all below it, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _is_rejected(monitor: Monitor, rate: float, side: Direction, alpha: float) -> bool:
    """Return whether a test of this rate at this level would have rejected it."""
    limits = monitor.limits
    if limits is None or limits.inexact or monitor.reason not in ("end", "settled"):
        return log_evidence(monitor.lows if side == "above" else monitor.highs, rate, side) >= math.log(1 / alpha)
    n = monitor.looked
    # Comparisons that were skipped because none could matter count for the other side.
    if side == "above":
        return end_probability(rate, limits.fail_at, n, round(monitor.low)) <= alpha
    zeros = monitor.prompt_count - round(monitor.high)
    return end_probability(1 - rate, np.arange(limits.most + 1) - limits.pass_at, n, zeros) <= alpha


class _CheckState:
    """The evidence of a check in words."""

    def __init__(self, monitor: Monitor, measure: str, limits: Limits, threshold: float) -> None:
        self._monitor, self._limits, self._threshold = monitor, limits, threshold
        row, self.kind = split_name(measure)
        self._is_rise, self._hit = self.kind == "rise", row.hit
        self._of = describe_bounded(measure) + ("" if monitor.test.is_single else " (mean over prompts)")
        self._others = f"whatever the other {count(monitor.left, 'pair')} would say"
        self.eligible_share = monitor.eligible / monitor.asked if monitor.asked else None
        self.bounds: tuple[float, float] | None = None
        if monitor.prompt_count:
            low, high = lower_bound(monitor, limits.alpha), upper_bound(monitor, limits.alpha)
            self.bounds = (low, high) if self.kind == "rate" else (2 * low - 1, 2 * high - 1)

    def decision_reason(self, lower: float, upper: float) -> str:
        monitor, limit = self._monitor, self._threshold
        if monitor.reason == "settled":
            return f"{self._hits} decide it, {self._others}"
        floor = 0.0 if self._is_rise else limit
        if monitor.decision == "fail":
            return f"lower bound{self._of} {format_bound(lower, floor)} is above {floor:g}"
        rose = self._is_rise and lower > floor
        though = f", though the lower bound {format_bound(lower, floor)} is above 0" if rose else ""
        return f"upper bound{self._of} {format_bound(upper, limit)} is below {limit:g}{though}"

    def open_reason(self, more: int | None) -> str:
        monitor, limit, limits = self._monitor, self._threshold, self._limits
        short = invalid_reason(monitor.n, monitor.invalid, limits) or ineligible_reason(self.eligible_share, limits)
        if short:
            return short
        lower, upper = self.bounds or (0.0, 1.0)
        least, about = least_n(limit, limits.confidence), ""
        if more is not None:
            about = f"; at this rate about {count(more, 'verdict')} would"
        elif monitor.limits is None and monitor.prompt_count < least:
            about = f"; without any {self._hit} it takes about {count(least, 'prompt')}"
        settle = f"whether the rise is above 0 or below {limit:g}" if self._is_rise else f"{limit:g}"
        if monitor.reason == "settled":
            return f"{self._hits} do not settle {settle}, {self._others}{about}"
        if monitor.limits is not None:
            return open_reason(lower, upper, limit, monitor.n, least, more, self._of)
        return f"the bounds{self._of} {lower:.3f} to {upper:.3f} do not settle {settle}{about}"

    @property
    def _hits(self) -> str:
        monitor = self._monitor
        if self.kind == "rate":
            return f"{count(monitor.k, self._hit)} in {count(monitor.n, 'verdict')}"
        return f"{count(monitor.only_here, self._hit)} only here and {monitor.only_there} only there, of {monitor.n},"
