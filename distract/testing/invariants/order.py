"""Invariants of asking again: in the other order, with the same response twice, or simply once more.

Each is one function that a test calls; what they ask is above it. They change no text.
"""

from __future__ import annotations

from dataclasses import replace

from distract.core.plan import Plan, Protocol, gather
from distract.core.printable import count
from distract.core.records import Case, Request, Response
from distract.data.good_responses import pairs
from distract.judging.comparison import usable
from distract.judging.findings import Finding
from distract.judging.judge import Judge
from distract.judging.orders import adjusted
from distract.testing.invariants.call import Cases, decided, of_name
from distract.testing.invariants.decision import Form
from distract.testing.invariants.messages import difference
from distract.testing.invariants.observations import Asked, Invariant, Seen, compared, unusable

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
) -> Finding:
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
        Violation: see ``call.decided``, as for the next ones.
        NoVerdict: a verdict is not valid.
        Inconclusive: too little was seen to decide.
        UsageError: the protocol cannot serve, or a number is out of range.
        UnknownName: no such protocol.
    """
    __tracebackhide__ = True
    name = "swap_consistent"
    form = Form(max_violation_rate, confidence, seed)
    return decided(judge, cases, Invariant(name, pairs, _swapped), of_name(protocol, name, _side_by_side), form)


def identical_responses_tie(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Finding:
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
    form = Form(max_violation_rate, confidence, seed)
    invariant = Invariant(name, usable, _alike, without="no response that is as it was written")
    return decided(judge, cases, invariant, of_name(protocol, name, _with_ties), form, "tie_rate")


def deterministic(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Finding:
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
    form = Form(max_violation_rate, confidence, seed)
    return decided(judge, cases, Invariant(name, pairs, _twice), of_name(protocol, name), form)


def _side_by_side(protocol: Protocol) -> str | None:
    if protocol.orders == "none":
        return "scores each response alone, so that there is no order"
    return None if protocol.shows in (None, 2) else f"shows {count(protocol.shows, 'response')}, not two"


def _with_ties(protocol: Protocol) -> str | None:
    if protocol.orders != "none" and not protocol.ties:
        return "has no tie to give"
    return _side_by_side(protocol)


def _swapped(case: Case, pair: Pair, asked: Asked) -> Plan[Seen]:
    # Of these two only: a protocol that shows more would show the others too.
    alone = replace(case, responses=pair)
    both = yield from compared(alone, *pair, replace(asked, manner=replace(asked.manner, orders="both")))
    if seen := unusable(case, asked, both):
        return seen
    straight, swapped = both.orders()
    if straight.outcome == swapped.outcome:
        return Seen(case)
    wrong = f"{asked.protocol.name} verdict changes when the two responses are shown in the other order"
    orders = (("1 then 2", straight.told(FIRST, SECOND)), ("2 then 1", swapped.told(FIRST, SECOND)))
    return Seen(case, True, wrong=wrong, told=(*orders, *_texts(pair)), margin=abs(straight.lead - swapped.lead))


def _alike(case: Case, response: Response, asked: Asked) -> Plan[Seen]:
    alone = replace(case, responses=(response, response))
    verdict = yield from compared(
        alone, response, response, replace(asked, manner=replace(asked.manner, orders="given"))
    )
    if seen := unusable(case, asked, verdict):
        return seen
    if verdict.outcome == "tie":
        return Seen(case)
    place = "first" if verdict.outcome == "a" else "second"
    wrong = f"{asked.protocol.name} prefers one of two identical responses: the one that is shown {place}"
    told = (("verdict", verdict.told("the first", "the second")), ("both", response.text))
    return Seen(case, True, wrong=wrong, told=told, margin=abs(verdict.lead))


def _twice(case: Case, pair: Pair, asked: Asked) -> Plan[Seen]:
    def later(request: Request) -> Request:
        return replace(request, sample=request.sample + _LATER)

    first, second = yield from gather([compared(case, *pair, asked), adjusted(compared(case, *pair, asked), later)])
    if seen := unusable(case, asked, first, second):
        return seen
    if first.outcome == second.outcome:
        return Seen(case)
    wrong = f"{asked.protocol.name} gives another verdict when it is asked the same once more"
    told = (("at first", first.told(FIRST, SECOND)), ("again", second.told(FIRST, SECOND)), *_texts(pair))
    return Seen(case, True, wrong=wrong, told=told, margin=abs(first.lead - second.lead))


def _texts(pair: Pair) -> tuple[tuple[str, str], ...]:
    first, second = (text for _, text in difference(pair[0].text, pair[1].text))
    return ("text 1", first), ("text 2", second)
