"""A call of an invariant from beginning to end: checked, looked at, put on record and, where it failed, raised.

It knows no invariant by name, and neither pytest nor hypothesis: only whether a search by hypothesis is going on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from distract import registry
from distract.errors import UsageError
from distract.invariants import telling
from distract.invariants.failures import Failed, Inconclusive, NoVerdict, Violation
from distract.invariants.records import Finding
from distract.invariants.seen import Asked, Invariant, Seen
from distract.invariants.settling import Course, Form, course
from distract.judge import Judge
from distract.metrics import headline
from distract.minimal import Smallest, said, smallest
from distract.plan import Protocol
from distract.records import Case

S = TypeVar("S")

Cases = Case | Iterable[Case]
"""What an invariant is tested on: one case, or several."""


def given(cases: Cases, invariant: str) -> tuple[Case, ...]:
    """The cases of a call.

    Raises:
        UsageError: there are none, or something else.
    """
    found = (cases,) if isinstance(cases, Case) else tuple(cases)
    if not found:
        raise UsageError(f"{invariant}: no cases; give at least one")
    if other := next((one for one in found if not isinstance(one, Case)), None):
        raise UsageError(f"{invariant}: expected a case or several, found {type(other).__name__}")
    return found


def of_name(name: str, invariant: str, why_not: Callable[[Protocol], str | None] | None = None) -> Protocol:
    """The protocol of that name, which serves the invariant.

    Args:
        name: of the protocol.
        invariant: for messages.
        why_not: says of a protocol why it cannot serve; None where all can.

    Raises:
        UnknownName: no such protocol.
        UsageError: it cannot serve the invariant.
    """
    protocol = registry.protocol(name)
    if why_not is not None and (why := why_not(protocol)):
        fitting = [one.name for one in registry.protocols().values() if why_not(one) is None]
        raise UsageError(f"{invariant}: protocol {name} {why}; name one of {', '.join(fitting)}")
    return protocol


def decided(
    judge: Judge,
    cases: Cases,
    invariant: Invariant[S],
    protocol: Protocol,
    form: Form,
    measure: str = "flip_rate",
) -> Finding:
    """Test an invariant.

    Args:
        judge: whom to ask; the finding is added to its findings, also where the test fails.
        cases: one, or several.
        invariant: what is tested.
        protocol: how to ask.
        form: how much it takes to pass.
        measure: that says by which rule a scoring protocol is decided.

    Returns:
        What was found. One case that says nothing fails no test; of several, one has to.

    Raises:
        Violation: there is a counterexample, or the rate of them is above what is accepted.
        NoVerdict: in the strict form: a verdict is not valid.
        Inconclusive: nothing says anything about the invariant, or too little does to decide.
        UsageError: there are no cases.
        BackendError: the model failed.
    """
    __tracebackhide__ = True
    asked = Asked(judge.name, protocol, headline(measure, protocol.rules), judge.manner, judge.helped, form.seed)
    found = course(judge, given(cases, invariant.name), invariant, asked, form)
    finding = Finding(
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
        searching=_searching(),
    )
    finding, failed = _judged(judge, finding, found, asked, single=isinstance(cases, Case))
    judge.findings.append(finding)
    if failed is not None:
        raise failed
    return finding


def _judged(judge: Judge, finding: Finding, found: Course, asked: Asked, single: bool) -> tuple[Finding, Failed | None]:
    """The finding with the words that did it, and how the test fails, if it does."""
    if finding.decision == "fail":
        clearest = found.violations[0]
        # A search shrinks the rewrite by itself: what is left of it is the smallest change.
        least = None if finding.searching else _smallest(judge, finding, clearest, asked)
        if least is not None:
            finding = replace(finding, words=said(least.edits))
        elif clearest.flip is not None:
            finding = replace(finding, words=telling.between(clearest.flip))
        return finding, Violation(telling.violation(finding, judge.name, found, clearest, least))
    if finding.decision == "pass":
        return finding, None
    if finding.threshold is None:
        if found.invalid:
            return finding, NoVerdict(telling.no_verdict(judge.name, found.invalid[0]))
        if single:
            return finding, None
    return finding, Inconclusive(telling.inconclusive(finding, judge.name, found))


def _smallest(judge: Judge, finding: Finding, clearest: Seen, asked: Asked) -> Smallest | None:
    """The smallest part of a rewrite that is enough; None where it was not looked for, or cannot be had again."""
    if (flip := clearest.flip) is None or flip.other is None:
        return None
    found = judge.run(
        smallest(
            clearest.case,
            asked.protocol,
            asked.rule,
            flip.original,
            flip.rewrite,
            flip.other,
            first=flip.first,
            manner=asked.manner,
            helped=asked.helped,
        )
    )
    return None if isinstance(found, str) else found


def _searching() -> bool:
    """Whether this is one of many examples of a search by hypothesis."""
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis is not None and bool(hypothesis.currently_in_test_context())
