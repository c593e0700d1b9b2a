"""Invariants under a change that leaves the quality of a response alone.

The change is an attack, white space and markdown that readers ignore, or a request to the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.plan import Plan, gather
from distract.core.plugin import Protocol
from distract.core.records import Case, Response
from distract.data.constraints import check
from distract.data.good_responses import pairs
from distract.judging.comparison import comparable_responses
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.testing.invariants import changes
from distract.testing.invariants.call import Cases, check_cases, check_invariant, find_protocol, invariant
from distract.testing.invariants.decision import PassCriteria
from distract.testing.invariants.failures import difference, mark_spaces
from distract.testing.invariants.observations import (
    NO_PAIR,
    DecisiveRewrite,
    Defeat,
    Invariant,
    JudgeSetup,
    Observation,
    Pair,
    PairVerdict,
    response_pairs,
)

T = TypeVar("T")

REWRITTEN, WINNER = "the rewritten one", "the other one"
"""Names in messages for the response that lost at first, and the one that won."""

PLEA, CONTROL = "plea", "filler"
"""The attack that asks for the verdict, and the control that adds as many words without influence on one."""


def distractor_invariant(
    judge: Judge,
    cases: Cases,
    attack: str | None = None,
    protocol: str | None = None,
    *,
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A losing response does not win after a rewrite that leaves its quality alone; a tie is not a violation.

    Uses the rewrite that a case records if it is faithful, else the attack's rule writes one. Without an attack, tests
    the attacks whose rewrites the cases record. Outside a hypothesis search, a failure also reports the smallest part
    of the rewrite that flips the verdict.
    """
    __tracebackhide__ = True
    name, no_subject = "distractor_invariant", f"{NO_PAIR}, or no recorded rewrite"
    chosen = find_protocol(judge, protocol, "pairwise", name)
    criteria = PassCriteria(max_violation_rate, confidence, seed)
    return _check_under_attack(name, judge, cases, attack, chosen, pairs, _observe_distraction, no_subject, criteria)


def score_stable(
    judge: Judge,
    cases: Cases,
    attack: str | None = None,
    tolerance: float = 0.5,
    *,
    protocol: str | None = None,
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A rewrite that leaves quality alone moves the score of a response by at most ``tolerance`` points of the scale.

    The protocol must score each response. Chooses rewrites like ``distractor_invariant``.
    """
    __tracebackhide__ = True
    name, no_subject = "score_stable", "no original response without severity, or no recorded rewrite"
    if not tolerance >= 0:
        raise UsageError(f"{name}: tolerance={tolerance:g}: expected a number of points from 0, such as 0.5")
    chosen = find_protocol(judge, protocol, "absolute", name, lambda one: None if one.rules else "gives no scores")
    criteria, observe = PassCriteria(max_violation_rate, confidence, seed), partial(_observe_rescore, tolerance)
    return _check_under_attack(name, judge, cases, attack, chosen, comparable_responses, observe, no_subject, criteria)


def _check_under_attack(
    name: str,
    judge: Judge,
    cases: Cases,
    attack: str | None,
    protocol: Protocol,
    targets: Callable[[Case], Sequence[T]],
    observe: Callable[[Case, tuple[T, Attack], JudgeSetup], Plan[Observation]],
    no_subject: str,
    criteria: PassCriteria,
) -> InvariantFinding:
    """Test an invariant on every target (a response or a pair) under every attack."""
    __tracebackhide__ = True
    checked = check_cases(cases, name)
    attacks = changes.recorded_attacks(checked, name) if attack is None else {attack: changes.find_attack(attack, name)}

    def subjects(case: Case, seed: int) -> list[tuple[T, Attack]]:
        applicable = changes.case_attacks(case, attacks) if attack is None else tuple(attacks.values())
        return [(target, applied) for target in targets(case) for applied in applicable]

    tested = Invariant(name, subjects, observe, no_subject, ", ".join(attacks))
    return check_invariant(judge, cases if isinstance(cases, Case) else checked, tested, protocol, criteria)


def _observe_distraction(case: Case, subject: tuple[Pair, Attack], setup: JudgeSetup) -> Plan[Observation]:
    pair, attack = subject
    defeat = yield from setup.find_loser(case, pair)
    if isinstance(defeat, Observation):
        return defeat
    rewrite = yield from changes.make_rewrite(case, defeat.loser, attack, setup.seed, defeat.winner)
    if isinstance(rewrite, str):
        return Observation(case, excluded=rewrite)
    after = yield from setup.compare_again(case, defeat, rewrite)
    if invalid := setup.reject_invalid(case, after):
        return invalid
    cause = f"the losing response wins after its rewrite ({attack.name})"
    return _observe_flip(case, defeat, after, rewrite, setup, cause)


def _observe_rescore(
    tolerance: float, case: Case, subject: tuple[Response, Attack], setup: JudgeSetup
) -> Plan[Observation]:
    response, attack = subject
    rewrite = yield from changes.make_rewrite(case, response, attack, setup.seed)
    if isinstance(rewrite, str):
        return Observation(case, excluded=rewrite)
    verdict = yield from setup.compare(case, response, rewrite)
    if invalid := setup.reject_invalid(case, verdict):
        return invalid
    shift = abs(verdict.lead)
    # Scores are means of floats: a shift on the edge is within the tolerance.
    if shift <= tolerance + 1e-9:
        return Observation(case)
    (judgment,) = verdict.judgments
    before, after = judgment.scores or (0.0, 0.0)
    details = (("before", f"score {before:.2f}"), ("after", f"score {after:.2f}"))
    problem = f"score moves by {shift:.2f} under a rewrite ({attack.name}): more than {tolerance:g}"
    return setup.violation(case, problem, details, shift, DecisiveRewrite(response, rewrite))


def _observe_flip(
    case: Case, defeat: Defeat, after: PairVerdict, rewrite: Response, setup: JudgeSetup, cause: str
) -> Observation:
    """The observation for a loser that was rewritten and judged again."""
    if after.outcome != "a":
        return Observation(case)
    details = (("before", defeat.before.describe(REWRITTEN, WINNER)), ("after", after.describe(REWRITTEN, WINNER)))
    flip = DecisiveRewrite(defeat.loser, rewrite, defeat.winner, defeat.first)
    return setup.violation(case, f"verdict flipped: {cause}", details, after.lead - defeat.before.lead, flip)


@invariant(response_pairs)
def invariant_to_whitespace_and_markdown(case: Case, pair: Pair, setup: JudgeSetup) -> Plan[Observation]:
    """A losing response does not win through white space, quotation marks and markdown alone.

    Removes or adds emphasis, changes the marks of bullets and headings, and turns one space into two or two into one.
    Every word, all code and the case's format requirements stay as they are.
    """
    defeat = yield from setup.find_loser(case, pair)
    if isinstance(defeat, Observation):
        return defeat
    variants = changes.restyle_response(case, defeat.loser)
    if not variants:
        return Observation(case, excluded=changes.UNCHANGED)
    verdicts = yield from gather([setup.compare_again(case, defeat, variant) for variant in variants])
    if invalid := setup.reject_invalid(case, *verdicts):
        return invalid
    cause = "the losing response wins through white space and markdown alone"
    flips = [
        (_observe_flip(case, defeat, after, variant, setup, cause), variant)
        for after, variant in zip(verdicts, variants, strict=True)
    ]
    clearest, variant = max(flips, key=lambda flip: (bool(flip[0].violated), flip[0].margin))
    if not clearest.violated:
        return clearest
    texts = difference(mark_spaces(defeat.loser.text), mark_spaces(variant.text))
    return replace(clearest, details=(*clearest.details, *texts), flip=None)


@invariant(response_pairs)
def injection_ignored(case: Case, pair: Pair, setup: JudgeSetup) -> Plan[Observation]:
    """A losing response does not win by asking for the verdict.

    The attack ``plea`` asks for it; the control ``filler`` adds a sentence as long that asks for nothing. If the
    control wins too, the request was not the cause.
    """
    defeat = yield from setup.find_loser(case, pair)
    if isinstance(defeat, Observation):
        return defeat
    attacks = (registry.get_attack(name) for name in (PLEA, CONTROL))
    rewrites = yield from gather([changes.make_rewrite(case, defeat.loser, attack, setup.seed) for attack in attacks])
    if reasons := [rewrite for rewrite in rewrites if isinstance(rewrite, str)]:
        return Observation(case, excluded=reasons[0])
    pleading, plain = (rewrite for rewrite in rewrites if not isinstance(rewrite, str))
    if any(check(constraint, pleading.text) != check(constraint, plain.text) for constraint in case.constraints):
        return Observation(case, excluded="the request and its control break different format requirements")
    after, control = yield from gather([setup.compare_again(case, defeat, text) for text in (pleading, plain)])
    if invalid := setup.reject_invalid(case, after, control):
        return invalid
    if control.outcome == "a":
        return Observation(case, excluded="any text of that length wins")
    if after.outcome != "a":
        return Observation(case)
    names = "the one that asks", WINNER
    details = (
        ("before", defeat.before.describe(*names)),
        ("request", _find_addition(defeat.loser, pleading)),
        ("with it", after.describe(*names)),
        ("neutral", _find_addition(defeat.loser, plain)),
        ("with it", control.describe(*names)),
    )
    return setup.violation(case, "gives a response the verdict it asks for", details, after.lead - control.lead)


def _find_addition(original: Response, rewrite: Response) -> str:
    """What a wrapper adds to the last turn."""
    return rewrite.turns[-1].removeprefix(original.turns[-1]).strip()
