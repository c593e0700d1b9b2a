"""Invariants of asking again: in the other order, with the same response twice, or simply once more.

Each is one function that a test calls; what they ask is above it. They change no text.
"""

from __future__ import annotations

from dataclasses import replace

from distract.core.plan import Plan, Protocol, gather
from distract.core.printable import count
from distract.core.records import Case, Request, Response
from distract.data.good_responses import pairs
from distract.judging.comparison import comparable_responses
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.judging.orders import adjust_requests
from distract.testing.invariants.call import Cases, check_invariant, find_protocol
from distract.testing.invariants.decision import PassCriteria
from distract.testing.invariants.messages import difference
from distract.testing.invariants.observations import (
    Invariant,
    JudgeSetup,
    Observation,
    compare_responses,
    reject_invalid,
)

Pair = tuple[Response, Response]

_LATER = 1_000_000_000
"""Added to the index of samples that are asked again: more than any protocol or manner takes."""

FIRST, SECOND = "response 1", "response 2"
"""What messages call two responses that are both as they were written."""


def swap_consistent(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """The verdict on two responses is the same in both orders; a win against a tie is a violation too.

    Args:
        judge: whom to ask; both orders, whatever its manner.
        cases: one, or several; each pair of responses by different authors is looked at.
        protocol: one that shows two responses side by side.
        max_violation_rate: the largest rate of violations to accept; None accepts no counterexample.
        confidence: of the bounds of that rate.
        seed: of the order of the cases.

    Returns:
        What was found.

    Raises:
        Violation: see ``call.check_invariant``, as for the next ones.
        NoVerdict: a verdict is not valid.
        Inconclusive: too little was seen to decide.
        UsageError: the protocol cannot serve, or a number is out of range.
        UnknownName: no such protocol.
    """
    __tracebackhide__ = True
    name = "swap_consistent"
    form = PassCriteria(max_violation_rate, confidence, seed)
    return check_invariant(
        judge, cases, Invariant(name, pairs, _observe_swap), find_protocol(protocol, name, _no_pair_reason), form
    )


def identical_responses_tie(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A response against itself is a tie, in one order: the average of both orders ties whatever the judge does.

    Args:
        judge: as in ``swap_consistent``, like the others and what is raised; asked in one order.
        cases: one, or several; each author's response is looked at.
        protocol: one that shows two responses and has ties.
        max_violation_rate: the largest rate of violations to accept.
        confidence: of its bounds.
        seed: of the order of the cases.

    Returns:
        What was found.
    """
    __tracebackhide__ = True
    name = "identical_responses_tie"
    form = PassCriteria(max_violation_rate, confidence, seed)
    invariant = Invariant(
        name, comparable_responses, _observe_identical, without="no response that is as it was written"
    )
    return check_invariant(judge, cases, invariant, find_protocol(protocol, name, _no_ties_reason), form, "tie_rate")


def deterministic(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """Asked the same once more, the judge says the same.

    The second answers are stored beside the first ones, so that a second run of the test asks nothing.

    Args:
        judge: as in ``swap_consistent``, like the others and what is raised; in its own manner.
        cases: one, or several; each pair of responses by different authors is looked at.
        protocol: any.
        max_violation_rate: the largest rate of violations to accept.
        confidence: of its bounds.
        seed: of the order of the cases.

    Returns:
        What was found.
    """
    __tracebackhide__ = True
    name = "deterministic"
    form = PassCriteria(max_violation_rate, confidence, seed)
    return check_invariant(judge, cases, Invariant(name, pairs, _observe_repeat), find_protocol(protocol, name), form)


def _no_pair_reason(protocol: Protocol) -> str | None:
    if protocol.orders == "none":
        return "scores each response alone, so that there is no order"
    return None if protocol.shows in (None, 2) else f"shows {count(protocol.shows, 'response')}, not two"


def _no_ties_reason(protocol: Protocol) -> str | None:
    if protocol.orders != "none" and not protocol.ties:
        return "has no tie to give"
    return _no_pair_reason(protocol)


def _observe_swap(case: Case, pair: Pair, asked: JudgeSetup) -> Plan[Observation]:
    # Of these two only: a protocol that shows more would show the others too.
    alone = replace(case, responses=pair)
    both = yield from compare_responses(alone, *pair, replace(asked, manner=replace(asked.manner, orders="both")))
    if seen := reject_invalid(case, asked, both):
        return seen
    straight, swapped = both.orders()
    if straight.outcome == swapped.outcome:
        return Observation(case)
    wrong = f"{asked.protocol.name} verdict changes when the two responses are shown in the other order"
    orders = (("1 then 2", straight.told(FIRST, SECOND)), ("2 then 1", swapped.told(FIRST, SECOND)))
    return Observation(case, True, wrong=wrong, told=(*orders, *_texts(pair)), margin=abs(straight.lead - swapped.lead))


def _observe_identical(case: Case, response: Response, asked: JudgeSetup) -> Plan[Observation]:
    alone = replace(case, responses=(response, response))
    verdict = yield from compare_responses(
        alone, response, response, replace(asked, manner=replace(asked.manner, orders="given"))
    )
    if seen := reject_invalid(case, asked, verdict):
        return seen
    if verdict.outcome == "tie":
        return Observation(case)
    place = "first" if verdict.outcome == "a" else "second"
    wrong = f"{asked.protocol.name} prefers one of two identical responses: the one that is shown {place}"
    told = (("verdict", verdict.told("the first", "the second")), ("both", response.text))
    return Observation(case, True, wrong=wrong, told=told, margin=abs(verdict.lead))


def _observe_repeat(case: Case, pair: Pair, asked: JudgeSetup) -> Plan[Observation]:
    def later(request: Request) -> Request:
        return replace(request, sample=request.sample + _LATER)

    first, second = yield from gather(
        [compare_responses(case, *pair, asked), adjust_requests(compare_responses(case, *pair, asked), later)]
    )
    if seen := reject_invalid(case, asked, first, second):
        return seen
    if first.outcome == second.outcome:
        return Observation(case)
    wrong = f"{asked.protocol.name} gives another verdict when it is asked the same once more"
    told = (("at first", first.told(FIRST, SECOND)), ("again", second.told(FIRST, SECOND)), *_texts(pair))
    return Observation(case, True, wrong=wrong, told=told, margin=abs(first.lead - second.lead))


def _texts(pair: Pair) -> tuple[tuple[str, str], ...]:
    first, second = (text for _, text in difference(pair[0].text, pair[1].text))
    return ("text 1", first), ("text 2", second)
