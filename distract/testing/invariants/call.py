"""A call of an invariant from beginning to end: checked, looked at, put on record and, where it failed, raised.

It knows no invariant by name; of hypothesis only whether a search is going on, and of pytest the name of the test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from distract.core import registry
from distract.core.errors import BackendError, UsageError
from distract.core.plan import Protocol
from distract.core.records import Case, MinimalFlip, Response
from distract.data.datasets import DataSet
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.stats.figure import headline
from distract.studies.attack.minimal import describe_edits, find_smallest
from distract.testing.invariants import messages
from distract.testing.invariants.decision import InvariantEvidence, PassCriteria, collect_evidence
from distract.testing.invariants.failures import Inconclusive, InvariantFailure, NoVerdict, Violation
from distract.testing.invariants.observations import DecisiveRewrite, Invariant, JudgeSetup

S = TypeVar("S")

Cases = Case | Iterable[Case] | DataSet
"""What an invariant is tested on: one case, or several; a data set stands for its cases."""

MOST = 100
"""Texts that are judged at most to find the smallest change: a test was not asked to."""


def check_cases(cases: Cases, invariant: str) -> tuple[Case, ...]:
    """The cases of a call."""
    if isinstance(cases, DataSet):
        cases = cases.cases
    if not isinstance(cases, Case | Iterable):
        raise UsageError(f"{invariant}: expected a case or several, found {type(cases).__name__}")
    found = (cases,) if isinstance(cases, Case) else tuple(cases)
    if not found:
        raise UsageError(f"{invariant}: no cases; give at least one")
    if other := next((one for one in found if not isinstance(one, Case)), None):
        raise UsageError(f"{invariant}: expected a case or several, found {type(other).__name__}")
    return found


def find_protocol(name: str, invariant: str, why_not: Callable[[Protocol], str | None] | None = None) -> Protocol:
    """The protocol of that name, which serves the invariant."""
    protocol = registry.get_protocol(name)
    if why_not is not None and (why := why_not(protocol)):
        fitting = [one.name for one in registry.protocols().values() if why_not(one) is None]
        raise UsageError(f"{invariant}: protocol {name} {why}; name one of {', '.join(fitting)}")
    return protocol


def check_invariant(
    judge: Judge,
    cases: Cases,
    invariant: Invariant[S],
    protocol: Protocol,
    form: PassCriteria,
    measure: str = "flip_rate",
) -> InvariantFinding:
    """Test an invariant."""
    __tracebackhide__ = True
    if not isinstance(judge, Judge):
        raise UsageError(f"{invariant.name}: expected a judge, found {type(judge).__name__}; open it with Judge.open")
    asked = JudgeSetup(judge.name, protocol, headline(measure, protocol.rules), judge.manner, judge.helped, form.seed)
    # What was drawn by a search is one test's; others may look at the same invariant.
    test = (invariant.name, protocol.name, invariant.attack, os.environ.get("PYTEST_CURRENT_TEST", ""))
    try:
        found = collect_evidence(judge, check_cases(cases, invariant.name), invariant, asked, form)
    except BackendError:
        _reject_example(judge, test)
        raise
    finding = InvariantFinding(
        invariant=invariant.name,
        protocol=protocol.name,
        attack=invariant.attack,
        n=len(found.told),
        k=len(found.violations),
        invalid=len(found.invalid),
        excluded=found.excluded.total(),
        threshold=form.threshold,
        lower=found.lower,
        upper=found.upper,
        decision=found.decision,
        searching=_active_hypothesis() is not None,
    )
    finding, failed = _conclude(judge, finding, found, asked, single=isinstance(cases, Case))
    judge.findings.append(finding)
    if isinstance(failed, Violation):
        judge.violated.add(test)
    elif failed is not None:
        _reject_example(judge, test)
    if failed is not None:
        raise failed
    return finding


def _conclude(
    judge: Judge, finding: InvariantFinding, found: InvariantEvidence, asked: JudgeSetup, single: bool
) -> tuple[InvariantFinding, InvariantFailure | None]:
    """The finding with the words that did it, and how the test fails, if it does."""
    if finding.decision == "fail":
        clearest = found.violations[0]
        flip, least = clearest.flip, None
        if flip is not None and flip.other is not None:
            # A search shrinks the rewrite by itself: what is left of it is the smallest change.
            least = None if finding.searching else _find_smallest(judge, flip, clearest.case, flip.other, asked)
            if finding.searching or least is not None:
                finding = replace(
                    finding, words=messages.changed_words(flip) if least is None else describe_edits(least.edits)
                )
        return finding, Violation(messages.format_violation(finding, judge.name, found, clearest, least))
    if finding.decision == "pass":
        return finding, None
    if finding.threshold is None:
        if found.invalid:
            return finding, NoVerdict(messages.format_no_verdict(judge.name, found.invalid[0]))
        # A drawn pair may well tie; a case that has no pair at all never says anything.
        if single and not found.without:
            return finding, None
    return finding, Inconclusive(messages.format_inconclusive(finding, judge.name, found))


def _find_smallest(
    judge: Judge, flip: DecisiveRewrite, case: Case, other: Response, asked: JudgeSetup
) -> MinimalFlip | None:
    """The smallest part of a rewrite that is enough; None where it cannot be had."""
    plan = find_smallest(
        case,
        asked.protocol,
        asked.rule,
        flip.original,
        flip.rewrite,
        other,
        first=flip.first,
        manner=asked.manner,
        helped=asked.helped,
        most=MOST,
    )
    try:
        found = judge.run(plan)
    except BackendError:
        # What is decided already is not lost with it.
        return None
    return None if isinstance(found, str) else found


def _active_hypothesis() -> Any:
    """Hypothesis, where this is one of many examples of a search by it."""
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis if hypothesis is not None and hypothesis.currently_in_test_context() else None


def _reject_example(judge: Judge, test: tuple[str, ...]) -> None:
    """Keep a search that has found a counterexample from taking something else for a smaller one.

    A verdict that is not valid, or a server that is away for a moment, would take its place.
    """
    if test in judge.violated and (hypothesis := _active_hypothesis()) is not None:
        hypothesis.reject()
