"""Invariants of asking again: in the other order, with the same response twice, or simply once more."""

from __future__ import annotations

from dataclasses import replace

from distract.core.plan import Plan, gather
from distract.core.plugin import Protocol
from distract.core.printable import count
from distract.core.records import Case, Request, Response
from distract.judging.comparison import comparable_responses
from distract.judging.orders import adjust_requests
from distract.testing.invariants.call import invariant
from distract.testing.invariants.messages import difference
from distract.testing.invariants.observations import Details, JudgeSetup, Observation, Pair, response_pairs

_SAMPLE_OFFSET = 1_000_000_000
"""Added to the sample index of repeated requests: larger than any index that a protocol uses."""

FIRST, SECOND = "response 1", "response 2"


def _pair_obstacle(protocol: Protocol) -> str | None:
    if protocol.orders == "none":
        return "scores each response alone, so there is no order"
    return None if protocol.shows in (None, 2) else f"shows {count(protocol.shows, 'response')}, not two"


def _tie_obstacle(protocol: Protocol) -> str | None:
    if protocol.orders != "none" and not protocol.ties:
        return "has no ties"
    return _pair_obstacle(protocol)


@invariant(response_pairs, obstacle=_pair_obstacle)
def swap_consistent(case: Case, pair: Pair, setup: JudgeSetup) -> Plan[Observation]:
    """The verdict on two responses is the same in both orders; a win in one and a tie in the other is a violation too.

    Asks in both orders, whatever the judge's settings. The protocol must show two responses side by side.
    """
    # Drop the other responses: a protocol that shows more than two would add them.
    alone = replace(case, responses=pair)
    both = yield from replace(setup, manner=replace(setup.manner, orders="both")).compare(alone, *pair)
    if invalid := setup.reject_invalid(case, both):
        return invalid
    straight, swapped = both.split_orders()
    if straight.outcome == swapped.outcome:
        return Observation(case)
    verdicts = (("1 then 2", straight.describe(FIRST, SECOND)), ("2 then 1", swapped.describe(FIRST, SECOND)))
    problem = "verdict changes when the two responses are shown in the other order"
    return setup.violation(case, problem, (*verdicts, *_texts(pair)), abs(straight.lead - swapped.lead))


@invariant(
    lambda case, seed: comparable_responses(case),
    obstacle=_tie_obstacle,
    measure="tie_rate",
    no_subject="no original response without severity",
)
def identical_responses_tie(case: Case, response: Response, setup: JudgeSetup) -> Plan[Observation]:
    """A response against itself is a tie. Asks in one order, since the average of both orders always ties.

    The protocol must show two responses and have ties.
    """
    alone = replace(case, responses=(response, response))
    one_order = replace(setup, manner=replace(setup.manner, orders="given"))
    verdict = yield from one_order.compare(alone, response, response)
    if invalid := setup.reject_invalid(case, verdict):
        return invalid
    if verdict.outcome == "tie":
        return Observation(case)
    place = "first" if verdict.outcome == "a" else "second"
    details = (("verdict", verdict.describe("the first", "the second")), ("both", response.text))
    problem = f"prefers one of two identical responses: the one shown {place}"
    return setup.violation(case, problem, details, abs(verdict.lead))


@invariant(response_pairs)
def deterministic(case: Case, pair: Pair, setup: JudgeSetup) -> Plan[Observation]:
    """The judge gives the same verdict when asked the same question again.

    The store keeps the second answers beside the first, so a second run of the test makes no calls.
    """

    def repeat(request: Request) -> Request:
        return replace(request, sample=request.sample + _SAMPLE_OFFSET)

    first, second = yield from gather([setup.compare(case, *pair), adjust_requests(setup.compare(case, *pair), repeat)])
    if invalid := setup.reject_invalid(case, first, second):
        return invalid
    if first.outcome == second.outcome:
        return Observation(case)
    verdicts = (("at first", first.describe(FIRST, SECOND)), ("again", second.describe(FIRST, SECOND)))
    problem = "gives a different verdict when asked the same question again"
    return setup.violation(case, problem, (*verdicts, *_texts(pair)), abs(first.lead - second.lead))


def _texts(pair: Pair) -> Details:
    first, second = (text for _, text in difference(pair[0].text, pair[1].text))
    return ("text 1", first), ("text 2", second)
