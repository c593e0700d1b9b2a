"""A gate's verdict: one check for each protocol, attack and measure, and their combined decision.

A judge that tosses a coin for each author never flips. So where labels exist, a pass needs proof that the judge is
right more often than chance before any rewrite; without them, only proof of the opposite stops it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from distract.core.printable import count, line
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.data.good_responses import pairs
from distract.judging.comparison import label
from distract.stats.figure import CONFIDENCE, round_values
from distract.stats.trials import Measure
from distract.studies.attack import ranks
from distract.studies.attack.ranks import CHANCE, Usable
from distract.studies.gate.limits import Decision, Kind, Limits, split_name
from distract.studies.gate.monitor import Bets, log_mean
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import ONE_PLACE, SAME_ORDER, find_place, is_same_order

EXIT_CODES: Mapping[Decision, int] = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True, slots=True)
class Check:
    """One protocol under one attack.

    ``k`` of ``n`` eligible comparisons with a valid verdict are hits: flips, gains or hollow wins, by the effect of the
    attack; ``value`` is then their rate, as a mean over ``prompts`` unless that is None. ``measure`` is what
    ``threshold`` and the one-sided bounds refer to: the rate, its excess over the judge's own noise (``--control``),
    its rise since the baseline, or what a style is worth, which is a mean in ``unit`` and has no k. ``reference`` is
    the rate there, and ``only_here`` and ``only_there`` are the hits that differ. ``lower`` counts invalid verdicts
    after a rewrite as no hits, ``upper`` as hits.
    ``p_value`` tests "the measure is at most the threshold" ("it did not rise"). ``needed`` estimates how many
    comparisons would settle an open check; a ``skipped`` one was left open because another had failed.
    """

    protocol: str
    rule: str | None
    attack: str
    decision: Decision
    reason: str
    threshold: float | None
    k: int | None
    n: int
    invalid: int
    excluded: int
    value: float | None
    measure: str = "flip_rate"
    reference: float | None = None
    only_here: int | None = None
    only_there: int | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    needed: int | None = None
    skipped: bool = False
    eligible_share: float | None = None
    prompts: int | None = None
    unit: str = "share"

    @property
    def row(self) -> Measure:
        """The measure of the table that it is about."""
        return split_name(self.measure)[0]

    @property
    def kind(self) -> Kind:
        """What its threshold and its bounds refer to."""
        return split_name(self.measure)[1]


@dataclass(frozen=True, slots=True)
class Effort:
    """The cost of a live gate.

    ``calls`` counts distinct requests behind the verdicts, stored ones included, but none of a generator or verifier;
    ``saved`` estimates how many more all cases would have taken, which may still be needed if the budget ended it
    (``cut``).
    """

    cases: int
    of: int
    calls: int
    saved: int
    budget: int | None
    stopped: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of a gate.

    ``threshold`` applies to checks without one of their own; ``certify`` makes an inconclusive gate a failure. Leads up
    to ``margin`` are ties. ``usable`` says of each protocol whether it can tell good from bad. ``identity_checks``
    are those of the canary and the anchors, where they stopped the gate.
    """

    decision: Decision
    reason: str
    threshold: float | None
    confidence: float
    certify: bool
    checks: tuple[Check, ...]
    effort: Effort | None = None
    notes: tuple[str, ...] = ()
    margin: float = 0.0
    usable: Mapping[str, Usable | None] = field(default_factory=dict)
    identity_checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return 1 if self.certify and self.decision == "inconclusive" else EXIT_CODES[self.decision]

    @property
    def deciding(self) -> Check | None:
        """The check that the reason is about; None if all have passed or none decided."""
        bad = [check for check in self.checks if check.decision == self.decision != "pass"]
        return bad[0] if bad else None

    def document(self) -> dict[str, Any]:
        """Return JSON values, figures rounded to four decimals."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "threshold": self.threshold,
            "margin": self.margin,
            "confidence": self.confidence,
            "usable": dict(self.usable),
            "checks": [round_values(asdict(check)) for check in self.checks],
            "effort": None if self.effort is None else asdict(self.effort),
            "notes": list(self.notes),
            **self.identity_checks,
        }


def undecided_verdict(reason: str) -> Verdict:
    """Return the verdict of a gate that reached no decision."""
    return Verdict("inconclusive", reason, None, 0.0, False, ())


def combine_checks(checks: Sequence[Check], flaw: str | None) -> tuple[Decision, str]:
    """Return the decision of a gate and its reason in one line."""
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "no attack was measured (controls are not checked)"
    for decision in ("fail", "inconclusive"):
        bad = [check for check in checks if check.decision == decision]
        if bad:
            first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return bad[0].decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    measures = dict.fromkeys(check.measure for check in checks)
    return "pass", " and ".join(_describe_pass([c for c in checks if c.measure == name]) for name in measures)


def _describe_pass(checks: Sequence[Check]) -> str:
    """Describe checks of one measure."""
    limits = sorted({check.threshold for check in checks if check.threshold is not None})
    below = f"{limits[0]:g}" if len(limits) == 1 else "their thresholds"
    noun, kind, several = checks[0].row.failure, checks[0].kind, len(checks) > 1
    rates = f"all {len(checks)} {noun}s" if several else f"the {noun}"
    if kind == "excess":
        return f"{rates} {'exceed' if several else 'exceeds'} the judge's own noise by less than {below}"
    if kind != "rise":
        return f"{rates} {'are' if several else 'is'} below {below}"
    which = f"none of {len(checks)} {noun}s rose" if several else f"the {noun} did not rise"
    most = limits[-1] if limits else 0.0
    risen = [f"{line(c.protocol)} under {line(c.attack)}" for c in checks if c.lower is not None and c.lower > 0]
    though = f" (but {', '.join(risen)} did rise)" if risen else ""
    return f"{which} by {100 * most:g} points or more since the baseline{though}"


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
            return f"{ranks.UNUSABLE.partition(':')[0]} ({self.reason})"
        if self.reason == SAME_ORDER:
            return f"this judge is not shown to tell good from bad: ask with --orders one or both ({self.reason})"
        if self.labelled and self.usable != "yes":
            return f"this judge is not shown to tell good from bad: judge more labelled cases ({self.reason})"
        return None


def assess_run(briefs: CompactRows, rules: Mapping[str, Sequence[str]], labelled: bool = True) -> list[Discernment]:
    """Assess the protocols of a finished run, whose cases do not depend on its verdicts.

    ``labelled`` says whether its data have labelled pairs, which a run may judge or not.
    """
    return [_assess(one, briefs, labelled) for one in ranks.check_protocols(briefs, rules)]


def has_labels(run: LoadedRun) -> bool:
    """Whether the cases of a run have labelled pairs; a run without its cases may have had some."""
    return not run.cases or any(label(case, *pair) in ("a", "b") for case in run.cases for pair in pairs(case))


def _assess(one: ranks.Usability, briefs: CompactRows, labelled: bool) -> Discernment:
    protocol = one.protocol
    rows = briefs.of(protocol, "flip")
    if not rows and is_same_order({row.shown for row in briefs.of(protocol, "fixed")}):
        return Discernment(protocol, "not shown", SAME_ORDER, labelled)
    if not rows and not labelled:
        is_unsteady = ranks.is_mostly(ranks.list_order_changes(briefs.of(protocol, "fixed"), rewritten=True))
        return Discernment(protocol, "no" if is_unsteady else None, ranks.UNSTEADY if is_unsteady else "", False)
    if not rows:
        return Discernment(protocol, None, "no pair was judged before a rewrite; attack without --measure", True)
    is_labelled = any(row.target is None and row.label in ("a", "b") for row in rows)
    return Discernment(protocol, one.usable, one.reason, is_labelled)


class DiscernmentMonitor:
    """Assesses a protocol of a live gate, prompt by prompt.

    What is judged depends on the verdicts so far, where a bound for a fixed number of cases is too narrow. Bets on the
    mean over prompts hold whenever the gate stops, with evidence for each of its ``protocols``. A prompt judged in one
    order waits for one whose better response has the other place: a judge that prefers a place is right in one of both.
    """

    def __init__(self, protocol: str, rule: str | None, labelled: bool, protocols: int = 1) -> None:
        self._needed = _EVIDENCE + math.log(protocols)
        self._protocol, self._rule, self._labelled = protocol, rule, labelled
        self._right, self._wrong, self._moved = Bets(CHANCE, "above"), Bets(CHANCE, "below"), Bets(CHANCE, "above")
        self._peaks = dict.fromkeys((self._right, self._wrong, self._moved), 0.0)
        self._sum, self._n, self._ordered = 0.0, 0, False
        self._waiting: Mapping[bool, list[list[float]]] = {True: [], False: []}
        self._orders = set[tuple[str, ...]]()

    def add(self, rows: Sequence[Row]) -> None:
        """Add the rows of one prompt."""
        own = {place: [row for row in rows if find_place(row) is place] for place in (None, True, False)}
        values = {place: [v for _, v in ranks.list_accuracies(part, self._rule)] for place, part in own.items()}
        changes = [value for _, value in ranks.list_order_changes(rows)]
        parts = [part] if (part := values.pop(None)) else self._match(values)
        self._sum += math.fsum(value for part in parts for value in part)
        self._n += sum(map(len, parts))
        self._ordered |= bool(changes)
        self._orders |= {row.shown for row in rows}
        means = [fmean(part) for part in parts]
        for bets, numbers in ((self._right, means), (self._wrong, means), (self._moved, changes)):
            if numbers:
                bets.add(fmean(numbers) - CHANCE)
                self._peaks[bets] = max(self._peaks[bets], bets.evidence)

    def _match(self, values: Mapping[bool | None, list[float]]) -> list[list[float]]:
        """Return the values where the better response is first and where it is second, once there are both."""
        if all(values.values()):
            return [*values.values()]
        for place, queue in self._waiting.items():
            queue += [values[place]] if values[place] else []
        return [queue.pop(0) for queue in self._waiting.values()] if all(self._waiting.values()) else []

    def assess(self) -> Discernment:
        """Assess the protocol by the prompts so far."""
        wrong, moved = (self._peaks[bets] >= _EVIDENCE for bets in (self._wrong, self._moved))
        right = self._peaks[self._right] >= self._needed
        is_waiting = any(self._waiting.values())
        usable: Usable | None = "not shown" if self._n or self._ordered or is_waiting else None
        right_of = f"{self._sum:g} of {count(self._n, 'labelled pair')} right"
        reason = right_of if self._n else ONE_PLACE if is_waiting else "no labelled pair was judged"
        if moved:
            usable, reason = "no", ranks.UNSTEADY
        elif is_same_order(self._orders):
            usable, reason = "not shown", SAME_ORDER
        elif right or wrong:
            usable = "yes" if right else "no"
        return Discernment(self._protocol, usable, reason, self._labelled)

    @property
    def is_open(self) -> bool:
        """Whether more labelled pairs may show what is still unknown."""
        one = self.assess()
        return self._labelled and one.usable in ("not shown", None) and one.reason != SAME_ORDER

    def batch_size(self) -> int:
        """Return how many prompts can be judged at once with only the last able to show anything."""
        gain = self._right.gains(1 - CHANCE)
        sizes = range(1, AT_ONCE)
        return next((n for n in sizes if log_mean(self._right.logs + n * gain) >= self._needed), AT_ONCE)


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
    rates = {check.row.name for check in checks if check.kind in ("rate", "excess") and check.row.is_paired}
    default = [limits.default(name) for name in rates]
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
