"""Decide from observations of many subjects whether an invariant holds, strictly or statistically.

The strict form stops at the first batch with a counterexample. The statistical form decides like a live gate, prompt by
prompt in random order, and stops as soon as it can.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar

from distract.core.errors import UsageError
from distract.core.printable import count
from distract.core.records import Case
from distract.judging.findings import Decision
from distract.judging.judge import Judge
from distract.models.ranges import CONFIDENCE, INNER_SHARE
from distract.studies.gate import checks
from distract.studies.gate.limits import Limits
from distract.studies.gate.monitor import AT_ONCE, Hypothesis, Monitor, PromptOutcome
from distract.studies.gate.verdict import Check
from distract.testing.invariants.observations import Invariant, JudgeSetup, Observation

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PassCriteria:
    """The largest accepted rate of violations (None: no counterexample), and the confidence of its bounds."""

    threshold: float | None
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        kinds = {"confidence": CONFIDENCE} | ({} if self.threshold is None else {"threshold": INNER_SHARE})
        for name, kind in kinds.items():
            try:
                object.__setattr__(self, name, kind.read(getattr(self, name)))
            except ValueError as error:
                is_rate = kind is INNER_SHARE
                cure = "; leave it out to accept no counterexample" if is_rate else ""
                raise UsageError(f"{'max_violation_rate' if is_rate else name}={error}{cure}") from None


@dataclass(frozen=True, slots=True)
class InvariantEvidence:
    """All observations and the decision; the reason and the one-sided bounds belong to the statistical form."""

    observations: tuple[Observation, ...]
    decision: Decision
    reason: str = ""
    lower: float | None = None
    upper: float | None = None
    without_subject: int = 0

    @property
    def conclusive(self) -> list[Observation]:
        """Observations that test the invariant."""
        return [result for result in self.observations if result.is_conclusive]

    @property
    def violations(self) -> list[Observation]:
        """Counterexamples, the clearest first."""
        return sorted((result for result in self.observations if result.violated), key=lambda result: -result.margin)

    @property
    def invalid(self) -> list[Observation]:
        """Observations without a valid verdict."""
        return [result for result in self.observations if result.violated is None]

    @property
    def excluded(self) -> Counter[str]:
        """Number of excluded observations by reason."""
        return Counter(result.excluded for result in self.observations if result.excluded)


def collect_evidence(
    judge: Judge, cases: Sequence[Case], invariant: Invariant[S], setup: JudgeSetup, criteria: PassCriteria
) -> InvariantEvidence:
    """Observe the subjects of all cases until the decision is clear."""
    prompts: dict[str, list[tuple[Case, S]]] = {}
    unusable = []
    for case in cases:
        if subjects := invariant.subjects(case, criteria.seed):
            prompts.setdefault(case.cluster, []).extend((case, subject) for subject in subjects)
        else:
            unusable.append(Observation(case, excluded=invariant.no_subject))

    def observe(part: Iterable[tuple[Case, S]]) -> list[Observation]:
        return judge.run_all([invariant.observe(case, subject, setup) for case, subject in part])

    if criteria.threshold is None:
        subjects_left = chain.from_iterable(prompts.values())
        batches = iter(lambda: list(islice(subjects_left, AT_ONCE)), [])
        evidence = _decide_strictly(list(unusable), map(observe, batches))
    else:
        order = list(prompts.values())
        random.Random(criteria.seed).shuffle(order)
        limits = Limits(confidence=criteria.confidence, min_eligible=0)
        alpha, most = limits.alpha, limits.max_invalid_rate
        sizes = tuple(map(len, order))
        monitor = Monitor(Hypothesis(criteria.threshold, alpha, alpha, sizes, max_invalid_rate=most))
        observations = unusable + _monitor_prompts(monitor, order, observe)
        # A single check: there is no other p-value to adjust for.
        place = (setup.protocol.name, setup.rule, invariant.attack)
        check = checks.build_check(place, monitor, "flip_rate", criteria.threshold, 1.0, limits, 1)
        is_own_reason = monitor.reason == "settled" and monitor.n
        reason = _format_reason(monitor, check, criteria.threshold, limits) if is_own_reason else check.reason
        evidence = InvariantEvidence(tuple(observations), check.decision, reason, check.lower, check.upper)
    return replace(evidence, without_subject=len(unusable))


def _decide_strictly(observations: list[Observation], batches: Iterator[list[Observation]]) -> InvariantEvidence:
    for batch in batches:
        observations += batch
        if any(result.violated for result in batch):
            return InvariantEvidence(tuple(observations), "fail")
        if any(result.violated is None for result in batch):
            return InvariantEvidence(tuple(observations), "inconclusive")
    is_tested = any(not result.excluded for result in observations)
    return InvariantEvidence(tuple(observations), "pass" if is_tested else "inconclusive")


def _monitor_prompts(
    monitor: Monitor, prompts: Sequence[Sequence[T]], observe: Callable[[Iterable[T]], list[Observation]]
) -> list[Observation]:
    """Observe prompts until the monitor has decided."""
    observations: list[Observation] = []
    start = 0
    while start < len(prompts) and monitor.decision is None:
        batch = prompts[start : start + monitor.batch_size()]
        start += len(batch)
        answers = iter(observe(chain.from_iterable(batch)))
        for prompt in batch:
            own = list(islice(answers, len(prompt)))
            observations += own
            monitor.add(_summarise_prompt(own))
    monitor.end()
    return observations


def _summarise_prompt(observations: Sequence[Observation]) -> PromptOutcome:
    """The observations of one prompt in the form that a gate's monitor takes."""
    values = tuple(float(bool(result.violated)) for result in observations if result.is_conclusive)
    invalid = sum(result.violated is None for result in observations)
    low, high = ((*values, *(unread,) * invalid) for unread in (0.0, 1.0))
    return PromptOutcome(len(observations), low, high, len(values), round(sum(values)), invalid)


def _format_reason(monitor: Monitor, check: Check, threshold: float, limits: Limits) -> str:
    """The reason to stop: a gate's words, but with violations instead of flips."""
    score = f"{count(monitor.k, 'violation')} in {count(monitor.n, 'verdict')}"
    rest = f"whatever the other {monitor.left} would say"
    if check.decision != "inconclusive":
        return f"{score} decide it, {rest}"
    least = limits.least_n(threshold)
    if monitor.n + monitor.left < least:
        return f"{score}, and at least {least} are needed to pass at {threshold:g}"
    about = "" if check.needed is None else f"; at this rate about {check.needed:,} verdicts would"
    return f"{score} do not settle {threshold:g}, {rest}{about}"
