"""From what a judge does with many subjects to whether an invariant holds: the strict form and the statistical one.

The strict form ends at the first batch with a counterexample. The statistical one decides as a live gate does, prompt
by prompt in random order, and ends as soon as it can. It knows no invariant by name and words no message.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from distract.core.errors import UsageError
from distract.core.printable import count
from distract.core.records import Case
from distract.judging.findings import Decision
from distract.judging.judge import Judge
from distract.studies.gate import checks
from distract.studies.gate.limits import Limits, least_n
from distract.studies.gate.monitor import AT_ONCE, Hypothesis, Monitor, PromptOutcome
from distract.studies.gate.verdict import Check
from distract.testing.invariants.observations import Invariant, JudgeSetup, Observation

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class PassCriteria:
    """How much it takes to pass.

    Attributes:
        threshold: the largest rate of violations to accept, 0.000001 to below 1; None accepts none at all.
        confidence: of each bound of that rate, 0.5 to below 1.
        seed: of the order of prompts.
    """

    threshold: float | None
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        for name, number in (("max_violation_rate", self.threshold), ("confidence", self.confidence)):
            if number is not None and not isinstance(number, int | float):
                raise UsageError(f"{name}={number!r}: expected a number")
        if self.threshold is not None and not 1e-6 <= self.threshold < 1:
            raise UsageError(
                f"max_violation_rate={self.threshold:g}: expected a share between 0.000001 and 1, such as 0.1; "
                "leave it out to accept no counterexample"
            )
        if not 0.5 <= self.confidence < 1:
            raise UsageError(f"confidence={self.confidence:g}: expected a share from 0.5 to below 1, such as 0.95")


@dataclass(frozen=True, slots=True)
class InvariantEvidence:
    """What was seen, and what it comes to.

    Attributes:
        seen: of every subject that was looked at.
        decision: whether the invariant holds.
        reason: of a statistical decision, in a few words; else empty.
        lower: one-sided bound of the rate of violations; None in the strict form.
        upper: the other one.
        without: how many cases have nothing that could be asked about.
    """

    seen: tuple[Observation, ...]
    decision: Decision
    reason: str = ""
    lower: float | None = None
    upper: float | None = None
    without: int = 0

    @property
    def told(self) -> list[Observation]:
        """Those that say something about the invariant."""
        return [one for one in self.seen if not one.excluded and one.violated is not None]

    @property
    def violations(self) -> list[Observation]:
        """The counterexamples, the clearest first."""
        return sorted((one for one in self.seen if one.violated), key=lambda one: -one.margin)

    @property
    def invalid(self) -> list[Observation]:
        """Those without a valid verdict."""
        return [one for one in self.seen if one.violated is None]

    @property
    def excluded(self) -> Counter[str]:
        """How many say nothing, by reason."""
        return Counter(one.excluded for one in self.seen if one.excluded)


def collect_evidence(
    judge: Judge, cases: Sequence[Case], invariant: Invariant[S], asked: JudgeSetup, form: PassCriteria
) -> InvariantEvidence:
    """Look at the subjects of all cases until it is decided."""
    prompts: dict[str, list[tuple[Case, S]]] = {}
    without = []
    for case in cases:
        subjects = invariant.subjects(case)
        if subjects:
            prompts.setdefault(case.cluster, []).extend((case, subject) for subject in subjects)
        else:
            without.append(Observation(case, excluded=invariant.without))
    if form.threshold is None:
        found = _decide_strictly(list(without), _observe_batches(judge, prompts.values(), invariant, asked))
    else:
        order = list(prompts.values())
        random.Random(form.seed).shuffle(order)
        found = _decide_statistically(list(without), judge, order, invariant, asked, form, form.threshold)
    return replace(found, without=len(without))


def _observe_batches(
    judge: Judge, prompts: Iterable[Sequence[tuple[Case, S]]], invariant: Invariant[S], asked: JudgeSetup
) -> Iterator[list[Observation]]:
    """What is seen of the subjects, in batches."""
    subjects = (one for prompt in prompts for one in prompt)
    while part := list(islice(subjects, AT_ONCE)):
        yield judge.run_all([invariant.look(case, subject, asked) for case, subject in part])


def _decide_strictly(seen: list[Observation], batches: Iterable[list[Observation]]) -> InvariantEvidence:
    for part in batches:
        seen += part
        if any(one.violated for one in part):
            return InvariantEvidence(tuple(seen), "fail")
        if any(one.violated is None for one in part):
            return InvariantEvidence(tuple(seen), "inconclusive")
    return InvariantEvidence(tuple(seen), "pass" if any(not one.excluded for one in seen) else "inconclusive")


def _decide_statistically(
    seen: list[Observation],
    judge: Judge,
    order: Sequence[Sequence[tuple[Case, S]]],
    invariant: Invariant[S],
    asked: JudgeSetup,
    form: PassCriteria,
    threshold: float,
) -> InvariantEvidence:
    limits = Limits(threshold, confidence=form.confidence, min_eligible=0)
    pairs = tuple(map(len, order))
    monitor = Monitor(
        Hypothesis(threshold, limits.alpha, limits.alpha, pairs, max_invalid_rate=limits.max_invalid_rate)
    )
    at = 0
    while at < len(order) and monitor.decision is None:
        part = order[at : at + monitor.batch_size()]
        at += len(part)
        found = judge.run_all([invariant.look(case, subject, asked) for prompt in part for case, subject in prompt])
        for prompt in part:
            mine, found = found[: len(prompt)], found[len(prompt) :]
            seen += mine
            monitor.add(_summarise_prompt(mine))
    monitor.end()
    # One check of a gate alone: nothing to adjust for.
    check = checks.build_check(asked.protocol.name, asked.rule, invariant.attack, monitor, "flip_rate", 1.0, limits, 1)
    reason = (
        _format_reason(monitor, check, limits, threshold) if monitor.reason == "settled" and monitor.n else check.reason
    )
    return InvariantEvidence(tuple(seen), check.decision, reason, check.lower, check.upper)


def _summarise_prompt(seen: Sequence[Observation]) -> PromptOutcome:
    """What came of one prompt, as a gate's monitor takes it."""
    values = tuple(float(one.violated) for one in seen if one.violated is not None and not one.excluded)
    invalid = sum(one.violated is None for one in seen)
    low, high = ((*values, *(unread,) * invalid) for unread in (0.0, 1.0))
    return PromptOutcome(len(seen), low, high, len(values), round(sum(values)), invalid)


def _format_reason(monitor: Monitor, check: Check, limits: Limits, threshold: float) -> str:
    """Why no more is asked, in a gate's words but for its "flips"."""
    says = f"{count(monitor.k, 'violation')} in {count(monitor.n, 'verdict')}"
    rest = f"whatever the other {monitor.left} would say"
    if check.decision != "inconclusive":
        return f"{says} decide it, {rest}"
    least = least_n(threshold, limits.confidence)
    if monitor.n + monitor.left < least:
        return f"{says}, and no n below {least} can pass at {threshold:g}"
    about = "" if check.needed is None else f"; at this rate about {check.needed:,} verdicts would"
    return f"{says} do not settle {threshold:g}, {rest}{about}"
