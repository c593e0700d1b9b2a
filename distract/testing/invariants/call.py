"""One call of an invariant from start to finish: check the arguments, judge, record a finding and raise a failure.

``@invariant`` turns the plan for one subject into the function that users call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol as CallProtocol, TypeVar

from distract.core import registry
from distract.core.backend import own_protocols
from distract.core.errors import BackendError, UsageError
from distract.core.plan import Plan
from distract.core.plugin import Protocol
from distract.core.records import Case, Response
from distract.data.datasets import DataSet
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.stats.measures import headline
from distract.studies.explain.edits import MinimalFlip, describe_edits
from distract.studies.explain.smallest import Pair, find_smallest
from distract.testing.invariants import failures
from distract.testing.invariants.decision import InvariantEvidence, PassCriteria, collect_evidence
from distract.testing.invariants.failures import Inconclusive, InvariantFailure, NoVerdict, Violation
from distract.testing.invariants.observations import NO_PAIR, DecisiveRewrite, Invariant, JudgeSetup, Observation

S = TypeVar("S")

Cases = Case | Iterable[Case] | DataSet
Obstacle = Callable[[Protocol], str | None]  # returns the reason why a protocol cannot serve an invariant, or None
MAX_TRIALS = 100  # limit on the texts judged to find the smallest change: the test did not ask for this search


class InvariantTest(CallProtocol):
    """The signature that most invariants share."""

    def __call__(
        self,
        judge: Judge,
        cases: Cases,
        *,
        protocol: str | None = None,
        max_violation_rate: float | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> InvariantFinding:
        """Test the invariant."""


def invariant(
    subjects: Callable[[Case, int], Sequence[S]],
    *,
    obstacle: Obstacle = lambda protocol: None,
    protocol: str = "pairwise",
    measure: str = "flip_rate",
    no_subject: str = NO_PAIR,
) -> Callable[[Callable[[Case, S, JudgeSetup], Plan[Observation]]], InvariantTest]:
    """Make an invariant of the plan for one subject; it takes over the plan's name and docstring."""
    default_protocol = protocol

    def decorate(observe: Callable[[Case, S, JudgeSetup], Plan[Observation]]) -> InvariantTest:
        name = observe.__name__

        def test(
            judge: Judge,
            cases: Cases,
            *,
            protocol: str | None = None,
            max_violation_rate: float | None = None,
            confidence: float = 0.95,
            seed: int = 0,
        ) -> InvariantFinding:
            __tracebackhide__ = True
            criteria = PassCriteria(max_violation_rate, confidence, seed)
            tested = Invariant(name, subjects, observe, no_subject)
            chosen = find_protocol(judge, protocol, default_protocol, name, obstacle)
            return check_invariant(judge, cases, tested, chosen, criteria, measure)

        test.__name__, test.__qualname__ = name, observe.__qualname__
        test.__module__, test.__doc__ = observe.__module__, observe.__doc__
        return test

    return decorate


def check_cases(cases: Cases, invariant: str) -> tuple[Case, ...]:
    """The cases of a call as a tuple."""
    if isinstance(cases, DataSet):
        cases = cases.cases
    wrong: Any = cases
    if isinstance(cases, Case | Iterable):
        checked = (cases,) if isinstance(cases, Case) else tuple(cases)
        if not checked:
            raise UsageError(f"{invariant}: no cases; give at least one")
        wrong = next((case for case in checked if not isinstance(case, Case)), None)
        if wrong is None:
            return checked
    raise UsageError(f"{invariant}: expected one or more cases, found {type(wrong).__name__}")


def find_protocol(
    judge: Judge, name: str | None, default: str, invariant: str, obstacle: Obstacle = lambda protocol: None
) -> Protocol:
    """The named protocol, or else one that the judge brings, or the default; raises if the invariant cannot use it."""
    if not isinstance(judge, Judge):
        raise UsageError(f"{invariant}: expected a judge, found {type(judge).__name__}; open it with Judge.open")
    chosen = registry.choose_protocols([name] if name else (), judge.backend, [default])
    protocol = next((one for one in chosen if obstacle(one) is None), chosen[0])
    if reason := obstacle(protocol):
        own = own_protocols(judge.backend)
        usable = [other.name for other in registry.protocols().values() if obstacle(other) is None]
        advice = "this judge has no other" if own else f"use one of {', '.join(usable)}"
        raise UsageError(f"{invariant}: protocol {protocol.name} {reason}; {advice}")
    return protocol


def check_invariant(
    judge: Judge,
    cases: Cases,
    invariant: Invariant[S],
    protocol: Protocol,
    criteria: PassCriteria,
    measure: str = "flip_rate",
) -> InvariantFinding:
    """Test an invariant, record the finding with the judge and raise a failure if it does not hold."""
    __tracebackhide__ = True
    rule = headline(measure, protocol.rules)
    setup = JudgeSetup(judge.name, protocol, rule, judge.manner, judge.helped, criteria.seed)
    # A search belongs to one test; other tests may check the same invariant.
    test = (invariant.name, protocol.name, invariant.attack, os.environ.get("PYTEST_CURRENT_TEST", ""))
    try:
        evidence = collect_evidence(judge, check_cases(cases, invariant.name), invariant, setup, criteria)
    except BackendError:
        _reject_example(judge, test)
        raise
    finding = InvariantFinding(
        invariant=invariant.name,
        protocol=protocol.name,
        attack=invariant.attack,
        n=len(evidence.conclusive),
        k=len(evidence.violations),
        invalid=len(evidence.invalid),
        excluded=evidence.excluded.total(),
        threshold=criteria.threshold,
        lower=evidence.lower,
        upper=evidence.upper,
        decision=evidence.decision,
        searching=_active_hypothesis() is not None,
    )
    finding, failure = _conclude(judge, finding, evidence, setup, single=isinstance(cases, Case))
    judge.findings.append(finding)
    if isinstance(failure, Violation):
        judge.violated.add(test)
    elif failure is not None:
        _reject_example(judge, test)
    if failure is not None:
        raise failure
    return finding


def _conclude(
    judge: Judge, finding: InvariantFinding, evidence: InvariantEvidence, setup: JudgeSetup, single: bool
) -> tuple[InvariantFinding, InvariantFailure | None]:
    """Add the words that flipped the verdict to the finding, and choose the failure to raise, if any."""
    if finding.decision == "fail":
        clearest = evidence.violations[0]
        flip, smallest = clearest.flip, None
        if flip is not None and flip.other is not None:
            if finding.searching:
                # Hypothesis shrinks the rewrite itself, so all of it is the smallest change.
                finding = replace(finding, words=failures.changed_words(flip))
            elif smallest := _find_smallest(judge, flip, clearest.case, flip.other, setup):
                finding = replace(finding, words=describe_edits(smallest.edits))
        return finding, Violation(failures.format_violation(finding, judge.name, evidence, clearest, smallest))
    if finding.decision == "pass":
        return finding, None
    if finding.threshold is None:
        if evidence.invalid:
            return finding, NoVerdict(failures.format_no_verdict(judge.name, evidence.invalid[0]))
        # A drawn pair may well tie, but a case without any pair never tests the invariant.
        if single and not evidence.without_subject:
            return finding, None
    return finding, Inconclusive(failures.format_inconclusive(finding, judge.name, evidence))


def _find_smallest(
    judge: Judge, flip: DecisiveRewrite, case: Case, other: Response, setup: JudgeSetup
) -> MinimalFlip | None:
    pair = Pair(case, setup.protocol, setup.rule, other, flip.first, setup.manner, setup.helped)
    try:
        smallest = judge.run(find_smallest(pair, flip.original, flip.rewrite, MAX_TRIALS))
    except BackendError:
        # The decision does not depend on it.
        return None
    return None if isinstance(smallest, str) else smallest


def _active_hypothesis() -> Any:
    """The hypothesis module while it runs an example, else None."""
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis if hypothesis is not None and hypothesis.currently_in_test_context() else None


def _reject_example(judge: Judge, test: tuple[str, ...]) -> None:
    """After a counterexample, keep hypothesis from taking an invalid verdict or a server fault for a smaller one."""
    if test in judge.violated and (hypothesis := _active_hypothesis()) is not None:
        hypothesis.reject()
