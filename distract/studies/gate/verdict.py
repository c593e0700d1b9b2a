"""A gate's verdict: one check for each protocol, attack and measure, and their combined decision.

A judge that tosses a coin for each author never flips. So where labels exist, a pass needs proof that the judge is
right more often than chance before any rewrite; without them, only proof of the opposite stops it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any, Literal

from distract.core.printable import count, line
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.stats import figure
from distract.stats.figure import CONFIDENCE, round_values
from distract.stats.trials import Measure
from distract.studies.attack import ranks
from distract.studies.attack.exchange import (
    CHANCE,
    LEAST,
    ExchangeCounts,
    count_labelled,
    describe_gap,
    weigh_exchanges,
)
from distract.studies.attack.ranks import Usability, Usable, check_protocols
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
    With ``--beyond-noise``, hits are beyond a ``margin`` that ``margin_n`` placebos show, with its upper bound; of all
    flips there are ``all_k`` of ``all_n``.
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
    margin: float | None = None
    margin_upper: float | None = None
    margin_n: int | None = None
    all_k: int | None = None
    all_n: int | None = None

    @property
    def row(self) -> Measure:
        """The measure of the table that it is about."""
        return split_name(self.measure)[0]

    @property
    def kind(self) -> Kind:
        """What its threshold and its bounds refer to."""
        return split_name(self.measure)[1]

    def name_rate(self, several: bool = False) -> str:
        """Name the rate that it bounds, or several such rates."""
        return f"{self.row.failure}{'s' if several else ''}{'' if self.margin_n is None else ' beyond noise'}"

    def document(self) -> dict[str, Any]:
        """Return JSON values; only a check beyond noise has a margin."""
        hidden = {"margin", "margin_upper", "margin_n", "all_k", "all_n"} if self.margin_n is None else ()
        return {name: value for name, value in round_values(asdict(self)).items() if name not in hidden}

    @property
    def is_withheld(self) -> bool:
        """Whether it is about an excess over a control with too few pairs, which cannot pass."""
        return self.kind == "excess" and self.n < figure.LEAST


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
    to ``margin`` are ties. ``usable`` says of each protocol whether it can tell good from bad; where that is not
    measured, ``unlabelled_reason`` says why the user passes it. ``identity_checks``
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
    unlabelled_reason: str = ""

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return 1 if self.certify and self.decision == "inconclusive" else EXIT_CODES[self.decision]

    @property
    def outcome(self) -> str:
        """The decision as a heading, which says where a pass does not rest on a judge that is shown to be usable."""
        is_waived = self.decision == "pass" and self.unlabelled_reason
        more = f", not shown to tell good from bad ({self.unlabelled_reason})" if is_waived else ""
        return f"{self.decision.upper()}{more}"

    @property
    def deciding(self) -> Check | None:
        """The check that the reason is about; None if all have passed or none decided."""
        bad = list_worst(self.checks)
        return bad[0] if bad and bad[0].decision == self.decision else None

    def document(self) -> dict[str, Any]:
        """Return JSON values, figures rounded to four decimals."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "threshold": self.threshold,
            "margin": self.margin,
            "confidence": self.confidence,
            "usable": dict(self.usable),
            **({"unlabelled_reason": self.unlabelled_reason} if self.unlabelled_reason else {}),
            "checks": [check.document() for check in self.checks],
            "effort": None if self.effort is None else asdict(self.effort),
            "notes": list(self.notes),
            **self.identity_checks,
        }


def undecided_verdict(reason: str) -> Verdict:
    """Return the verdict of a gate that reached no decision."""
    return Verdict("inconclusive", reason, None, 0.0, False, ())


def list_worst(checks: Sequence[Check]) -> list[Check]:
    """List the checks that have failed, else those that are inconclusive; the first of them decides the gate."""
    worst = ([check for check in checks if check.decision == decision] for decision in ("fail", "inconclusive"))
    return next(filter(None, worst), [])


def combine_checks(checks: Sequence[Check], flaw: str | None) -> tuple[Decision, str]:
    """Return the decision of a gate and its reason in one line."""
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "no attack was measured (controls are not checked)"
    if bad := list_worst(checks):
        first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        return first.decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    measures = dict.fromkeys(check.measure for check in checks)
    return "pass", " and ".join(_describe_pass([c for c in checks if c.measure == name]) for name in measures)


def _describe_pass(checks: Sequence[Check]) -> str:
    """Describe checks of one measure."""
    limits = sorted({check.threshold for check in checks if check.threshold is not None})
    below = f"{limits[0]:g}" if len(limits) == 1 else "their thresholds"
    kind, several = checks[0].kind, len(checks) > 1
    noun = checks[0].name_rate(several)
    rates = f"all {len(checks)} {noun}" if several else f"the {noun}"
    if kind == "excess":
        return f"{rates} {'exceed' if several else 'exceeds'} the judge's own noise by less than {below}"
    if kind != "rise":
        return f"{rates} {'are' if several else 'is'} below {below}"
    which = f"none of {len(checks)} {noun} rose" if several else f"the {noun} did not rise"
    most = limits[-1] if limits else 0.0
    risen = [f"{line(c.protocol)} under {line(c.attack)}" for c in checks if c.lower is not None and c.lower > 0]
    though = f" (but {', '.join(risen)} did rise)" if risen else ""
    return f"{which} by {100 * most:g} points or more since the baseline{though}"


AT_ONCE = 16
"""Largest batch of prompts to judge only for their labels."""

_EVIDENCE = -math.log(1 - CONFIDENCE)


Source = Literal["labels", "exchange", ""]
"""What shows whether a judge can tell good from bad."""

_CURES: Mapping[Source, str] = {
    "labels": "judge more labelled cases",
    "exchange": "judge more prompts, or label some",
    "": "label some prompts, or pass without that by --no-probe --unlabelled-reason TEXT",
}

NO_CASES = "the run does not hold its cases, so nothing shows which prompts are the same; run it again"


@dataclass(frozen=True, slots=True)
class Discernment:
    """Whether a protocol can tell good from bad, why, and what shows it."""

    protocol: str
    usable: Usable | None
    reason: str
    source: Source

    @property
    def doubt(self) -> str | None:
        """Why no check of the protocol may pass; None if they may."""
        if self.usable == "no":
            return f"{ranks.UNUSABLE.partition(':')[0]} ({self.reason})"
        if self.reason == NO_CASES:
            return self.reason
        if self.reason == SAME_ORDER:
            return f"this judge is not shown to tell good from bad: ask with --orders one or both ({self.reason})"
        if self.usable not in ("yes", "not measured"):
            return f"this judge is not shown to tell good from bad: {_CURES[self.source]} ({self.reason})"
        return None

    def waive(self, unlabelled_reason: str) -> Discernment:
        """Accept that nothing shows it, for a reason of the user's; labels and orders still count."""
        is_shown = self.source == "labels" or self.reason in (ranks.UNSTEADY, SAME_ORDER, NO_CASES)
        is_waived = unlabelled_reason and not is_shown and self.usable != "yes"
        return replace(self, usable="not measured") if is_waived else self


def assess_run(run: LoadedRun, briefs: CompactRows) -> list[Discernment]:
    """Assess the protocols of a finished run, whose cases do not depend on its verdicts."""
    rules: Mapping[str, Sequence[str]] = run.parameters["protocols"]
    names = {case.id for case in run.cases}
    if not all(row.prompt_group and row.case in names for row in run.rows):
        return [Discernment(protocol, None, NO_CASES, "") for protocol in rules]
    exchange = run.parameters.get("exchange")
    if exchange is None and count_labelled(run.cases) < LEAST:
        exchange = dict.fromkeys(rules, "the run is of an earlier version, which judged none")
    return [
        _assess(one, briefs, find_source(exchange, one.protocol)) for one in check_protocols(briefs, rules, exchange)
    ]


def find_source(exchange: Mapping[str, int | str] | None, protocol: str) -> Source:
    """Return what shows whether a judge can tell good from bad; ``exchange`` is that of the run's parameters."""
    return "labels" if exchange is None else "exchange" if isinstance(exchange.get(protocol), int) else ""


def _assess(one: Usability, briefs: CompactRows, source: Source) -> Discernment:
    rows, fixed = (briefs.of(one.protocol, design) for design in ("flip", "fixed"))
    own = partial(Discernment, one.protocol, source=source)
    if not rows and is_same_order({row.shown for row in fixed}):
        return own(usable="not shown", reason=SAME_ORDER)
    if not rows and source == "labels":
        return own(usable=None, reason="no pair was judged before a rewrite; attack without --measure")
    if not rows and ranks.is_mostly(ranks.list_order_changes(fixed, rewritten=True)):
        return own(usable="no", reason=ranks.UNSTEADY)
    return own(usable=one.usable, reason=one.reason)


class DiscernmentMonitor:
    """Assesses a protocol of a live gate, prompt by prompt.

    What is judged depends on the verdicts so far, where a bound for a fixed number of cases is too narrow. Bets on the
    mean over prompts, or over exchanges, hold whenever the gate stops, with evidence for each of its ``protocols``. A
    prompt judged in one order waits for one whose better response has the other place: a judge that prefers a place is
    right in one of both. ``planned`` is the number of exchanges, or why there are none.
    """

    def __init__(
        self, protocol: str, rule: str | None, source: Source, protocols: int = 1, planned: int | str = 0
    ) -> None:
        self._needed = _EVIDENCE + math.log(protocols)
        self._protocol, self._rule, self._source, self._planned = protocol, rule, source, planned
        self._right, self._wrong, self._moved = Bets(CHANCE, "above"), Bets(CHANCE, "below"), Bets(CHANCE, "above")
        self._peaks = dict.fromkeys((self._right, self._wrong, self._moved), 0.0)
        self._sum, self._n, self._ordered = 0.0, 0, False
        self._exchanges, self._exchanged = ExchangeCounts(0, 0, 0), 0
        self._waiting: Mapping[bool, list[list[float]]] = {True: [], False: []}
        self._orders = set[tuple[str, ...]]()

    def add(self, rows: Sequence[Row]) -> None:
        """Add the rows of one prompt."""
        exchanged, rows = ([row for row in rows if (row.design == "exchange") is own] for own in (True, False))
        changes = [value for _, value in ranks.list_order_changes(rows)]
        self._ordered |= bool(changes)
        self._orders |= {row.shown for row in rows}
        means = self._list_labels(rows) if self._source == "labels" else self._list_exchanges(exchanged)
        for bets, numbers in ((self._right, means), (self._wrong, means), (self._moved, changes)):
            if numbers:
                bets.add(fmean(numbers) - CHANCE)
                self._peaks[bets] = max(self._peaks[bets], bets.evidence)

    def _list_labels(self, rows: Sequence[Row]) -> list[float]:
        rows = [row for row in rows if row.design == "flip"]
        own = {place: [row for row in rows if find_place(row) is place] for place in (None, True, False)}
        values = {place: [v for _, v in ranks.list_accuracies(part, self._rule)] for place, part in own.items()}
        parts = [part] if (part := values.pop(None)) else self._match(values)
        self._sum += math.fsum(value for part in parts for value in part)
        self._n += sum(map(len, parts))
        return [fmean(part) for part in parts]

    def _list_exchanges(self, rows: Sequence[Row]) -> list[float]:
        """List the exchange that a prompt begins, if it says anything."""
        values, counts = weigh_exchanges(rows, self._rule)
        self._exchanged += bool(rows)
        self._exchanges += counts
        return [value for _, value in values]

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
        is_begun = self._n or self._exchanges.judged or self._ordered or is_waiting
        usable: Usable | None = "not shown" if is_begun else None
        right_of = f"{self._sum:g} of {count(self._n, 'labelled pair')} right"
        reason = right_of if self._n else ONE_PLACE if is_waiting else "no labelled pair was judged"
        if self._source != "labels":
            reason = describe_gap(self._planned, self._exchanges)
        if moved:
            usable, reason = "no", ranks.UNSTEADY
        elif is_same_order(self._orders):
            usable, reason = "not shown", SAME_ORDER
        elif right or wrong:
            usable = "yes" if right else "no"
        return Discernment(self._protocol, usable, reason, self._source)

    @property
    def is_open(self) -> bool:
        """Whether more labelled pairs, or exchanges, may show what is still unknown."""
        one = self.assess()
        return (
            (self._source == "labels" or self.exchanges[1] > 0)
            and one.usable in ("not shown", None)
            and one.reason != SAME_ORDER
        )

    @property
    def exchanges(self) -> tuple[int, int]:
        """The exchanges that were judged, and those that are left."""
        return self._exchanged, max(0, self._planned - self._exchanged) if isinstance(self._planned, int) else 0

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
    unlabelled_reason: str = "",
) -> Verdict:
    """Combine checks into a verdict; none passes where verdicts say nothing about quality."""
    own = {check.protocol for check in checks}
    judged = {one.protocol: one.waive(unlabelled_reason) for one in discernments if one.protocol in own}
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
    waived = [one for one in judged.values() if one.usable == "not measured"]
    if waived and decision == "pass":
        notes.append(f"not shown to tell good from bad: {unlabelled_reason}")
    if unlabelled_reason and len(waived) < len(judged):
        notes.append("--no-probe changes nothing where labels, exchanges or the order decide if a judge can be used")
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
        unlabelled_reason=unlabelled_reason if waived else "",
    )
