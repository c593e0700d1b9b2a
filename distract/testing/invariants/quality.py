"""Invariants of an order of quality: by format requirements broken, without circles, whatever else is shown.

Each is one function that a test calls; what they ask is below. The definitions are those of the measures of the same
things (``audit``, ``consistency``). They know no attack by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from distract.core import registry
from distract.core.plan import Comparison, Plan, Protocol, gather
from distract.core.records import BASELINE, Case, Response, Row
from distract.data.constraints import check, describe
from distract.data.good_responses import compliant_response
from distract.judging.comparison import judge_comparison, side
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.studies.consistency.design import TURNS, set_obstacle, triple_obstacle
from distract.studies.consistency.draw import Quadruple, Triple, draw_quadruples, draw_triples
from distract.studies.consistency.measures import compare_outcomes, find_chain
from distract.testing.invariants.call import Cases, check_invariant, find_protocol
from distract.testing.invariants.changes import make_rewrite
from distract.testing.invariants.decision import PassCriteria
from distract.testing.invariants.messages import difference
from distract.testing.invariants.observations import (
    Invariant,
    JudgeSetup,
    Observation,
    PairVerdict,
    compare_responses,
    reject_invalid,
)

SETS = 4
"""The most triples, or choices of a pair and two others, that are looked at in one case."""

SILENT = Response("(an answer that says nothing)", ("I do not know.",))
"""What takes the place of a third response where a case has three."""

TOO_FEW = "fewer than three responses by different authors"


def monotone_in_severity(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A response that breaks more format requirements does not win over one that breaks fewer.

    Of each case with a good response that meets all its requirements: that one, and versions of it that break one, two
    and three, as far as they can be made by rule or are recorded with the same author. A tie is no violation.

    Args:
        judge: whom to ask, in its own manner.
        cases: one, or several, with format requirements.
        protocol: any.
        max_violation_rate: the largest rate of cases with a violation to accept; None accepts no counterexample.
        confidence: of the bounds of that rate.
        seed: of the order of the cases, and of what is broken.

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
    name = "monotone_in_severity"

    def subjects(case: Case) -> list[Response]:
        good = compliant_response(case)
        return [] if good is None else [good]

    invariant = Invariant(
        name, subjects, _observe_severity, without="no good response is known to meet format requirements"
    )
    form = PassCriteria(max_violation_rate, confidence, seed)
    return check_invariant(judge, cases, invariant, find_protocol(protocol, name), form, "severity_accuracy")


def transitive(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "pairwise",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """Where a response wins over a second one and that over a third, the first wins over the third.

    Args:
        judge: as in ``monotone_in_severity``, like the others and what is raised.
        cases: one, or several, with three responses by different authors; of more, some triples are drawn.
        protocol: one that shows two responses side by side.
        max_violation_rate: the largest rate of violations to accept.
        confidence: of its bounds.
        seed: of the order of the cases, and of the triples.

    Returns:
        What was found.
    """
    __tracebackhide__ = True
    name = "transitive"

    def subjects(case: Case) -> list[Triple]:
        return draw_triples(case, SETS, seed)

    form = PassCriteria(max_violation_rate, confidence, seed)
    invariant = Invariant(name, subjects, _observe_triple, without=TOO_FEW)
    return check_invariant(judge, cases, invariant, find_protocol(protocol, name, _no_comparisons_reason), form)


def independent_of_irrelevant_response(
    judge: Judge,
    cases: Cases,
    *,
    protocol: str = "triadic",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """Which of two responses is better does not depend on which third one is shown with them.

    The pair is shown in one order with the third response last, then with another in its place: the fourth response of
    the case or, where it has three, an answer that says nothing. A verdict for the third prefers neither of the pair,
    and a change to or from that is no violation.

    Args:
        judge: as in ``monotone_in_severity``, like the others and what is raised.
        cases: one, or several, with three responses or more by different authors.
        protocol: one that shows three.
        max_violation_rate: the largest rate of violations to accept.
        confidence: of its bounds.
        seed: of the order of the cases, and of which responses are shown.

    Returns:
        What was found.
    """
    __tracebackhide__ = True
    name = "independent_of_irrelevant_response"

    def subjects(case: Case) -> list[Quadruple]:
        found = draw_quadruples(case, SETS, seed)
        return found or [
            (one, other, third, SILENT)
            for a, b, c in draw_triples(case, SETS, seed)
            for one, other, third in ((a, b, c), (a, c, b), (b, c, a))
        ]

    form = PassCriteria(max_violation_rate, confidence, seed)
    invariant = Invariant(name, subjects, _observe_thirds, without=TOO_FEW)
    return check_invariant(judge, cases, invariant, find_protocol(protocol, name, set_obstacle), form)


def _no_comparisons_reason(protocol: Protocol) -> str | None:
    if protocol.orders == "none":
        return "scores each response alone, so that its verdicts cannot go in a circle"
    return triple_obstacle(protocol)


def _observe_severity(case: Case, good: Response, asked: JudgeSetup) -> Plan[Observation]:
    levels = [good]
    for attack in sorted(
        (one for one in registry.attacks().values() if one.severity), key=lambda one: one.severity or 0
    ):
        # Only of its own words: another author's answer may be worse or better for other reasons.
        own = replace(case, responses=tuple(one for one in case.responses if one.author == good.author))
        made = yield from make_rewrite(own, good, attack, asked.seed)
        if isinstance(made, Response):
            levels.append(made)
    if len(levels) == 1:
        return Observation(case, excluded="no rule breaks its format requirements")
    found = list(combinations(levels, 2))
    verdicts = yield from gather([compare_responses(case, better, worse, asked) for better, worse in found])
    wrong = [(pair, one) for pair, one in zip(found, verdicts, strict=True) if one.outcome == "b"]
    if not wrong:
        return reject_invalid(case, asked, *verdicts) or Observation(case)
    (better, worse), verdict = min(wrong, key=lambda one: one[1].lead)
    few, many = better.severity or 0, worse.severity or 0
    broken = [one for one in case.constraints if check(one, better.text) and not check(one, worse.text)]
    told = (
        ("verdict", verdict.told(f"the one that breaks {few}", f"the one that breaks {many}")),
        ("broken", " ".join(map(describe, broken))),
        *zip(("fewer", "more"), (text for _, text in difference(better.text, worse.text)), strict=True),
    )
    says = f"{asked.protocol.name} prefers the response that breaks more format requirements: {many} against {few}"
    return Observation(case, True, wrong=says, told=told, margin=-verdict.lead)


def _observe_triple(case: Case, triple: Triple, asked: JudgeSetup) -> Plan[Observation]:
    pairs = list(combinations(range(3), 2))
    names = [f"response {number}" for number in (1, 2, 3)]
    plans = []
    for i, j in pairs:
        # A case of these two only: a protocol that shows more would take the others from it.
        alone = replace(case, responses=(triple[i], triple[j]))
        plans.append(compare_responses(alone, triple[i], triple[j], asked))
    verdicts = yield from gather(plans)
    if seen := reject_invalid(case, asked, *verdicts):
        return seen
    sides = [side(response) for response in triple]
    won = [
        (sides[i], sides[j]) if verdict.outcome == "a" else (sides[j], sides[i])
        for (i, j), verdict in zip(pairs, verdicts, strict=True)
        if verdict.outcome != "tie"
    ]
    if not find_chain(won)[0]:
        return Observation(case)
    told = (
        *(
            (f"{i + 1} and {j + 1}", verdict.told(names[i], names[j]))
            for (i, j), verdict in zip(pairs, verdicts, strict=True)
        ),
        *((f"text {number}", response.text) for number, response in enumerate(triple, 1)),
    )
    circle = len(won) == len(pairs)
    how = "go in a circle" if circle else "break a chain: two wins in a row, and a tie from end to end"
    wrong = f"{asked.protocol.name} verdicts on three responses {how}"
    return Observation(case, True, wrong=wrong, told=told, margin=sum(abs(verdict.lead) for verdict in verdicts))


def _observe_thirds(case: Case, four: Quadruple, asked: JudgeSetup) -> Plan[Observation]:
    a, b, *thirds = four
    before, after = yield from gather([_compare_with_third(case, (a, b, third), asked) for third in thirds])
    if seen := reject_invalid(case, asked, before, after):
        return seen
    reversed_, _ = compare_outcomes(before.outcome or "tie", after.outcome or "tie")
    if not reversed_:
        return Observation(case)
    names = ("response 1", "response 2")
    told = (
        ("third", thirds[0].text),
        ("verdict", before.told(*names)),
        ("third", thirds[1].text),
        ("verdict", after.told(*names)),
        ("text 1", a.text),
        ("text 2", b.text),
    )
    wrong = f"{asked.protocol.name} verdict between two responses reverses when another third one is shown with them"
    return Observation(case, True, wrong=wrong, told=told, margin=abs(before.lead - after.lead))


def _compare_with_third(case: Case, shown: Sequence[Response], asked: JudgeSetup) -> Plan[PairVerdict]:
    """A pair beside a third response, as ``consistency`` shows it: in this one order, the third last."""
    a, b, third = shown
    comparison = Comparison(replace(case, responses=(a, b, third)), b, a, turn=TURNS["last"])
    row = partial(Row, case.id, case.cluster, "set", asked.protocol.name, asked.judge, BASELINE, side(a), side(b))
    done = yield from judge_comparison(
        row, replace(asked.protocol, orders="none"), comparison, asked.manner, asked.helped
    )
    return PairVerdict(done.judgments, asked.rule, done.excluded).mirror()
