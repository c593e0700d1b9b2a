"""The checks of a live gate: the outcome of each prompt, and the words for the evidence that a monitor has gathered.

Values are hits or, against the judge's own noise or a baseline, how much more often a trial is a hit than there. An
unreadable verdict counts twice: with the most and with the least favourable value that it could have had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from distract.core.printable import count, p_value
from distract.core.records import RESAMPLED, Row
from distract.stats.figure import Counts
from distract.stats.measures import MEASURES, headline
from distract.stats.trials import Unit
from distract.studies.gate.exact import count_needed, decision_reason, open_reason, short_reason
from distract.studies.gate.limits import Limits, is_unreadable, split_name
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

    def noise(self, attack: str, null: str) -> UnitHits:
        """Return whether each trial of an attack is a hit without it.

        That is under the control that only normalises the text; if that changes nothing, under a second sample; if
        nothing is sampled, none is.
        """
        noise = dict.fromkeys(self.count(attack)[0], False)
        return noise | {unit: hit for control in (RESAMPLED, null) for unit, hit in self.count(control)[0].items()}

    def outcome(self, attack: str, reference: UnitHits | None = None) -> PromptOutcome:
        """Count hits: the value of a trial is 1 for a hit, else 0.

        With a reference, on the trials that it has too: 1 for a hit that it lacks, 0 for the reverse, else 1/2.
        """
        hits, counted = self.count(attack)
        n, invalid, unasked = len(counted.values), counted.invalid, self.units - counted.judged
        if reference is None:
            low, high = tuple(map(_low_value, hits.values())), tuple(map(_high_value, hits.values()))
            return PromptOutcome(self.units, low, high, n, round(sum(low)), invalid, unasked=unasked)
        both = [(hit, reference[unit]) for unit, hit in hits.items() if unit in reference]
        valid = [(hit, before) for hit, before in both if hit is not None and before is not None]
        return PromptOutcome(
            self.units,
            tuple((1 + _low_value(hit) - _high_value(before)) / 2 for hit, before in both),
            tuple((1 + _high_value(hit) - _low_value(before)) / 2 for hit, before in both),
            len(valid),
            sum(hit for hit, _ in valid),
            # The reference of some pairs is unreadable too.
            invalid + sum(hit is not None and before is None for hit, before in both),
            sum(hit and not before for hit, before in valid),
            sum(before and not hit for hit, before in valid),
            unasked,
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
    p, is_single, is_rate = monitor.p_value, monitor.test.is_single, split_name(measure)[1] == "rate"
    figures: dict[str, Any] = {"measure": measure, "prompts": None if is_single else monitor.prompt_count}
    figures |= {"eligible_share": monitor.eligible / monitor.asked if monitor.asked else None}
    figures |= {"p_value": p, "p_adjusted": None if p is None else adjusted}
    if monitor.prompt_count:
        low, high = lower_bound(monitor, limits.alpha), upper_bound(monitor, limits.alpha)
        figures |= {"lower": low, "upper": high} if is_rate else {"lower": 2 * low - 1, "upper": 2 * high - 1}
    if not is_rate:
        only = {"only_here": monitor.only_here, "only_there": monitor.only_there}
        figures |= {"reference": monitor.reference, **only}
    excluded = sum(monitor.test.pairs) - monitor.left - monitor.n - monitor.invalid
    counts = monitor.k, monitor.n, monitor.invalid, excluded
    check = Check(*place, monitor.decision or "inconclusive", "", limit, *counts, monitor.value, **figures)
    # Once another check has failed, Holm's adjustment may let this one fail too.
    if check.decision == "inconclusive" and p is not None and adjusted <= limits.alpha:
        reason = f"p {p_value(adjusted)} after Holm's adjustment, since other checks have failed"
        return replace(check, decision="fail", reason=reason)
    if monitor.decision is None:
        return replace(check, reason="left open, as another check had failed", skipped=True)
    if check.is_withheld and check.decision == "inconclusive":
        check = replace(check, lower=None, upper=None)
    if check.decision == "inconclusive" or check.upper is None:
        return _explain_open(check, monitor, limits, checks)
    if monitor.reason == "settled":
        return replace(check, reason=f"{_describe_hits(check)} decide it, {_describe_rest(monitor)}")
    return replace(check, reason=decision_reason(check))


def _explain_open(check: Check, monitor: Monitor, limits: Limits, checks: int) -> Check:
    """Say why nothing has decided a check, and about how many comparisons would."""
    limit, more, about = check.threshold or 0.0, None, ""
    if monitor.limits is not None and not is_unreadable(monitor.n, monitor.invalid, limits.max_invalid_rate):
        # The estimate is for a new run; drop it if this one has as many.
        more = count_needed(monitor.value, limit, limits, checks)
        more = None if more is not None and more <= monitor.n else more
    if more is not None:
        about = f"; at this rate about {count(more, 'verdict')} would"
    elif monitor.limits is None and monitor.prompt_count < (least := limits.least_n(limit)):
        about = f"; without any {check.row.hit} it takes about {count(least, 'prompt')}"
    reason = open_reason(check, limits, checks, about, None if monitor.limits is None else monitor.n)
    if monitor.reason == "settled":
        settle = f"whether the rise is above 0 or below {limit:g}" if check.kind == "rise" else f"{limit:g}"
        reason = f"{_describe_hits(check)} do not settle {settle}, {_describe_rest(monitor)}{about}"
    return replace(check, reason=short_reason(check, limits) or reason, needed=more)


def _describe_hits(check: Check) -> str:
    if check.only_here is None:
        return f"{count(check.k or 0, check.row.hit)} in {count(check.n, 'verdict')}"
    return f"{count(check.only_here, check.row.hit)} only here and {check.only_there} only there, of {check.n},"


def _describe_rest(monitor: Monitor) -> str:
    return f"whatever the other {count(monitor.left, 'pair')} would say"


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
