"""Invariants of verdicts beside each other: asked again, under an order of quality, and on several responses.

Asked again: in the other order, with the same response twice, or simply once more. Of an order of quality: more broken
requirements are worse. On several responses: no cycles, no influence of a third one. The definitions are those of the
studies that measure the same properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from distract.core import registry
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count
from distract.core.records import BASELINE, Case, Request, Response, Row
from distract.data.constraints import check, describe
from distract.data.good_responses import compliant_response
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import adjust_requests
from distract.studies.consistency.session import TURNS, Drawn, draw_quadruples, draw_triples, set_obstacle
from distract.studies.consistency.study import find_chain
from distract.studies.eligibility import pair_obstacle
from distract.testing.invariants.call import invariant
from distract.testing.invariants.changes import make_rewrite
from distract.testing.invariants.failures import difference
from distract.testing.invariants.observations import Details, JudgeSetup, Observation, Pair, PairVerdict, response_pairs

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


MAX_SETS = 4  # limit on the triples, or choices of a pair and two others, in one case

UNINFORMATIVE = Response("(an answer that says nothing)", ("I do not know.",))
"""Stands in for a fourth response if a case has only three."""

TOO_FEW = "fewer than three responses by different authors"


def _triples(case: Case, seed: int) -> Sequence[Drawn]:
    return draw_triples(case, MAX_SETS, seed)


def _quadruples(case: Case, seed: int) -> Sequence[Drawn]:
    return draw_quadruples(case, MAX_SETS, seed) or [
        (*pair, third, UNINFORMATIVE)
        for a, b, c in _triples(case, seed)
        for pair, third in (((a, b), c), ((a, c), b), ((b, c), a))
    ]


def _comparison_obstacle(protocol: Protocol) -> str | None:
    if protocol.orders == "none":
        return "scores each response alone, so its verdicts cannot form a cycle"
    return pair_obstacle(protocol)


@invariant(
    lambda case, seed: [good] if (good := compliant_response(case)) else [],
    measure="severity_accuracy",
    no_subject="no good response is known to meet format requirements",
)
def monotone_in_severity(case: Case, good: Response, setup: JudgeSetup) -> Plan[Observation]:
    """A response that breaks more format requirements does not win over one that breaks fewer; it may tie.

    Compares the good response of a case that meets all its requirements with versions that break one, two and three,
    written by rule or recorded with the same author. The accepted rate is a rate of cases.
    """
    # Only versions by this author: another author's answer may be better or worse for other reasons.
    own = replace(case, responses=tuple(response for response in case.responses if response.author == good.author))
    levels = [good]
    for attack in sorted(filter(_severity, registry.attacks().values()), key=_severity):
        rewrite = yield from make_rewrite(own, good, attack, setup.seed)
        if isinstance(rewrite, Response):
            levels.append(rewrite)
    if len(levels) == 1:
        return Observation(case, excluded="no rule breaks its format requirements")
    pairs = list(combinations(levels, 2))
    verdicts = yield from gather([setup.compare(case, better, worse) for better, worse in pairs])
    violations = [(verdict, pair) for verdict, pair in zip(verdicts, pairs, strict=True) if verdict.outcome == "b"]
    if not violations:
        return setup.reject_invalid(case, *verdicts) or Observation(case)
    verdict, (better, worse) = min(violations, key=lambda violation: violation[0].lead)
    few, many = _severity(better), _severity(worse)
    broken = [item for item in case.constraints if check(item, better.text) and not check(item, worse.text)]
    (_, fewer), (_, more) = difference(better.text, worse.text)
    details = (
        ("verdict", verdict.describe(f"the one that breaks {few}", f"the one that breaks {many}")),
        ("broken", " ".join(map(describe, broken))),
        ("fewer", fewer),
        ("more", more),
    )
    problem = f"prefers the response that breaks more format requirements: {many} against {few}"
    return setup.violation(case, problem, details, -verdict.lead)


def _severity(item: object) -> int:
    return getattr(item, "severity", None) or 0


@invariant(_triples, obstacle=_comparison_obstacle, no_subject=TOO_FEW)
def transitive(case: Case, triple: Drawn, setup: JudgeSetup) -> Plan[Observation]:
    """If a first response wins over a second and the second over a third, the first wins over the third.

    Cases need three responses by different authors; up to four triples are drawn from larger cases. The protocol must
    show two responses side by side.
    """
    places = list(combinations(range(3), 2))
    # Each pair in a case of its own: a protocol that shows more than two would add the third.
    verdicts = yield from gather(
        [setup.compare(replace(case, responses=(triple[i], triple[j])), triple[i], triple[j]) for i, j in places]
    )
    if invalid := setup.reject_invalid(case, *verdicts):
        return invalid
    sides = [side(response) for response in triple]
    wins = [
        (sides[i], sides[j]) if verdict.outcome == "a" else (sides[j], sides[i])
        for (i, j), verdict in zip(places, verdicts, strict=True)
        if verdict.outcome != "tie"
    ]
    if not find_chain(wins)[0]:
        return Observation(case)
    details = (
        *(
            (f"{i + 1} and {j + 1}", verdict.describe(f"response {i + 1}", f"response {j + 1}"))
            for (i, j), verdict in zip(places, verdicts, strict=True)
        ),
        *((f"text {number}", response.text) for number, response in enumerate(triple, 1)),
    )
    is_cycle = len(wins) == len(places)
    shape = "form a cycle" if is_cycle else "break a chain: two wins in a row, and a tie from end to end"
    margin = sum(abs(verdict.lead) for verdict in verdicts)
    return setup.violation(case, f"verdicts on three responses {shape}", details, margin)


@invariant(_quadruples, obstacle=set_obstacle, protocol="triadic", no_subject=TOO_FEW)
def independent_of_irrelevant_response(case: Case, four: Drawn, setup: JudgeSetup) -> Plan[Observation]:
    """The better of two responses does not depend on the third response shown with them.

    Shows the pair in one order with the third response last, then with another third: the case's fourth response or, if
    it has only three, an answer that says nothing. A verdict for the third prefers neither of the pair, so a change to
    or from it is not a violation. The protocol must show three responses.
    """
    a, b, *thirds = four
    before, after = yield from gather([_compare_with_third(case, (a, b, third), setup) for third in thirds])
    if invalid := setup.reject_invalid(case, before, after):
        return invalid
    if {before.outcome, after.outcome} != {"a", "b"}:
        return Observation(case)
    details = (
        ("third", thirds[0].text),
        ("verdict", before.describe(FIRST, SECOND)),
        ("third", thirds[1].text),
        ("verdict", after.describe(FIRST, SECOND)),
        ("text 1", a.text),
        ("text 2", b.text),
    )
    problem = "verdict between two responses reverses when a different third one is shown"
    return setup.violation(case, problem, details, abs(before.lead - after.lead))


def _compare_with_third(case: Case, triple: Drawn, setup: JudgeSetup) -> Plan[PairVerdict]:
    """Judge a pair beside a third response as ``consistency`` does: in this order only, the third last."""
    a, b, _ = triple
    comparison = Comparison(replace(case, responses=triple), b, a, turn=TURNS["last"])
    row = partial(Row, case.id, case.cluster, "set", setup.protocol.name, setup.judge, BASELINE, side(a), side(b))
    one_order = replace(setup.protocol, orders="none")
    result = yield from judge_comparison(row, one_order, comparison, setup.manner, setup.helped)
    return PairVerdict(result.judgments, setup.rule, result.excluded).mirror()
