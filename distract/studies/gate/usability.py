"""Whether verdicts say anything about quality, without which no check passes.

A judge that tosses a coin for each author never flips. So where labels exist, a pass needs proof that the judge is
right more often than chance before any rewrite; without them, only proof of the opposite stops it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from distract.core.printable import count
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.data.good_responses import pairs
from distract.judging.comparison import label
from distract.stats.figure import CONFIDENCE, headline
from distract.studies.attack.briefs import CompactRow, CompactRows
from distract.studies.attack.labels import (
    CHANCE,
    UNSTEADY,
    UNUSABLE,
    Usable,
    check_usability,
    count_clean,
    is_mostly,
    list_order_changes,
)
from distract.studies.gate.limits import Limits
from distract.studies.gate.measures import EXCESSES, RATES, base_rate
from distract.studies.gate.mixture import Bets, log_mean
from distract.studies.gate.verdict import Check, Effort, Verdict, combine_checks

AT_ONCE = 16
"""Largest batch of prompts to judge only for their labels."""

_EVIDENCE = -math.log(1 - CONFIDENCE)


@dataclass(frozen=True, slots=True)
class Discernment:
    """Whether a protocol can tell good from bad, and why; ``labelled`` if that can be shown."""

    protocol: str
    usable: Usable | None
    reason: str
    labelled: bool

    @property
    def doubt(self) -> str | None:
        """Why no check of the protocol may pass; None if they may."""
        if self.usable == "no":
            return f"{UNUSABLE.partition(':')[0]} ({self.reason})"
        if self.labelled and self.usable != "yes":
            return f"this judge is not shown to tell good from bad: judge more labelled cases ({self.reason})"
        return None


def assess_run(briefs: CompactRows, rules: Mapping[str, Sequence[str]], labelled: bool = True) -> list[Discernment]:
    """Assess the protocols of a finished run, whose cases do not depend on its verdicts.

    ``labelled`` says whether its data have labelled pairs, which a run may judge or not.
    """
    return [_assess(name, headline("clean_accuracy", own), briefs, labelled) for name, own in rules.items()]


def has_labels(run: LoadedRun) -> bool:
    """Whether the cases of a run have labelled pairs; a run without its cases may have had some."""
    return not run.cases or any(label(case, *pair) in ("a", "b") for case in run.cases for pair in pairs(case))


def _assess(protocol: str, rule: str | None, briefs: CompactRows, labelled: bool) -> Discernment:
    rows = briefs.of(protocol, "flip")
    if not rows and not labelled:
        changes, prompts = list_order_changes(briefs.of(protocol, "fixed"), rewritten=True)
        is_unsteady = is_mostly(changes, prompts)
        return Discernment(protocol, "no" if is_unsteady else None, UNSTEADY if is_unsteady else "", False)
    if not rows:
        return Discernment(protocol, None, "no pair was judged before a rewrite; attack without --measure", True)
    one = check_usability(rows, protocol, rule)
    return Discernment(protocol, one.usable, one.reason, any(_is_labelled(row) for row in rows))


def _is_labelled(row: Row | CompactRow) -> bool:
    return row.target is None and row.label in ("a", "b")


class DiscernmentMonitor:
    """Assesses a protocol of a live gate, prompt by prompt.

    What is judged depends on the verdicts so far, where a bound for a fixed number of cases is too narrow. Bets on the
    mean over prompts hold whenever the gate stops.
    """

    def __init__(self, protocol: str, rule: str | None, labelled: bool) -> None:
        self._protocol, self._rule, self._labelled = protocol, rule, labelled
        self._right, self._wrong, self._moved = Bets(CHANCE, "above"), Bets(CHANCE, "below"), Bets(CHANCE, "above")
        self._peaks = dict.fromkeys((self._right, self._wrong, self._moved), 0.0)
        self._sum, self._n, self._ordered = 0.0, 0, False

    def add(self, rows: Sequence[Row]) -> None:
        """Add the rows of one prompt."""
        values = [value for _, value in count_clean(rows, self._rule).values.values()]
        changes, _ = list_order_changes(rows)
        self._sum, self._n = self._sum + math.fsum(values), self._n + len(values)
        self._ordered |= bool(changes)
        for bets, numbers in ((self._right, values), (self._wrong, values), (self._moved, changes)):
            if numbers:
                bets.add(fmean(numbers) - CHANCE)
                self._peaks[bets] = max(self._peaks[bets], bets.evidence)

    def assess(self) -> Discernment:
        """Assess the protocol by the prompts so far."""
        right, wrong, moved = (peak >= _EVIDENCE for peak in self._peaks.values())
        usable: Usable | None = "not shown" if self._n or self._ordered else None
        reason = (
            f"{self._sum:g} of {count(self._n, 'labelled pair')} right" if self._n else "no labelled pair was judged"
        )
        if moved:
            usable, reason = "no", "most verdicts change with the order"
        elif right or wrong:
            usable = "yes" if right else "no"
        return Discernment(self._protocol, usable, reason, self._labelled)

    @property
    def is_open(self) -> bool:
        """Whether more labelled pairs may show what is still unknown."""
        return self._labelled and self.assess().usable in ("not shown", None)

    def batch_size(self) -> int:
        """Return how many prompts can be judged at once with only the last able to show anything."""
        gain = self._right.gains(1 - CHANCE)
        sizes = range(1, AT_ONCE)
        return next((n for n in sizes if log_mean(self._right.logs + n * gain) >= _EVIDENCE), AT_ONCE)


def conclude(
    checks: Sequence[Check],
    limits: Limits,
    discernments: Iterable[Discernment],
    flaw: str | None,
    effort: Effort | None = None,
) -> Verdict:
    """Combine checks into a verdict; none passes where verdicts say nothing about quality."""
    own = {check.protocol for check in checks}
    judged = {one.protocol: one for one in discernments if one.protocol in own}
    doubts = {protocol: doubt for protocol, one in judged.items() if (doubt := one.doubt)}
    held = tuple(
        replace(check, decision="inconclusive", reason=doubts[check.protocol])
        if check.decision == "pass" and check.protocol in doubts
        else check
        for check in checks
    )
    decision, reason = combine_checks(held, flaw)
    blocked = {check.protocol for check, before in zip(held, checks, strict=True) if check != before}
    useless = [protocol for protocol, one in judged.items() if one.usable == "no" and protocol not in blocked]
    notes = [f"{protocol}: {doubts[protocol]}" for protocol in useless]
    if decision == "pass" and not any(one.labelled for one in judged.values()):
        notes.append("no response is labelled better, so this does not show that the judge can tell good from bad")
    rates = {base_rate(check.measure) for check in checks if check.measure in RATES or check.measure in EXCESSES}
    default = [getattr(limits, RATES[rate].limit) for rate in rates]
    return Verdict(
        decision,
        reason,
        default[0] if len(default) == 1 else None,  # several rates have one each
        limits.confidence,
        limits.certify,
        held,
        effort,
        tuple(notes),
        limits.margin,
        {protocol: one.usable for protocol, one in judged.items()},
    )
