"""Invariants under an attack that leaves the quality of a response alone: its verdict, and its score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.plugin import Attack, Protocol
from distract.core.records import Case, Response
from distract.data.good_responses import pairs
from distract.judging.comparison import comparable_responses
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.testing.invariants.call import Cases, check_cases, check_invariant, find_protocol
from distract.testing.invariants.changes import case_attacks, find_attack, make_rewrite, recorded_attacks
from distract.testing.invariants.decision import PassCriteria
from distract.testing.invariants.observations import (
    NO_PAIR,
    DecisiveRewrite,
    Defeat,
    Invariant,
    JudgeSetup,
    Observation,
    Pair,
    PairVerdict,
    compare_again,
    compare_responses,
    find_loser,
    reject_invalid,
)

T = TypeVar("T")

REWRITTEN, WINNER = "the rewritten one", "the other one"
"""What messages call the response that lost at first, and the one that won."""


def distractor_invariant(
    judge: Judge,
    cases: Cases,
    attack: str | None = None,
    protocol: str = "pairwise",
    *,
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A losing response does not win after a rewrite that leaves its quality alone; a tie is no violation.

    Uses the rewrite that a case records if it is faithful, else the attack's rule writes one. Without an attack, tests
    the attacks whose rewrites the cases record. Outside a hypothesis search, a failure also reports the smallest part
    of the rewrite that flips the verdict.
    """
    __tracebackhide__ = True
    return _check_under_attack(
        "distractor_invariant",
        judge,
        cases,
        attack,
        find_protocol(protocol, "distractor_invariant"),
        pairs,
        _observe_distraction,
        f"{NO_PAIR}, or no recorded rewrite",
        PassCriteria(max_violation_rate, confidence, seed),
    )


def score_stable(
    judge: Judge,
    cases: Cases,
    attack: str | None = None,
    tolerance: float = 0.5,
    *,
    protocol: str = "absolute",
    max_violation_rate: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> InvariantFinding:
    """A rewrite that leaves quality alone moves the score of a response by at most ``tolerance`` points of the scale.

    The protocol must score each response. Chooses rewrites like ``distractor_invariant``.
    """
    __tracebackhide__ = True
    name = "score_stable"
    if not tolerance >= 0:
        raise UsageError(f"{name}: tolerance={tolerance:g}: expected a number of points from 0, such as 0.5")

    def observe(case: Case, subject: tuple[Response, Attack], setup: JudgeSetup) -> Plan[Observation]:
        return _observe_rescore(case, subject, setup, tolerance)

    return _check_under_attack(
        name,
        judge,
        cases,
        attack,
        find_protocol(protocol, name, _score_obstacle),
        comparable_responses,
        observe,
        "no original response without severity, or no recorded rewrite",
        PassCriteria(max_violation_rate, confidence, seed),
    )


def _score_obstacle(protocol: Protocol) -> str | None:
    return None if protocol.rules else "gives no scores"


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
    attacks = recorded_attacks(checked, name) if attack is None else {attack: find_attack(attack, name)}

    def subjects(case: Case, seed: int) -> list[tuple[T, Attack]]:
        applicable = case_attacks(case, attacks) if attack is None else tuple(attacks.values())
        return [(target, applied) for target in targets(case) for applied in applicable]

    tested = Invariant(name, subjects, observe, no_subject, ", ".join(attacks))
    return check_invariant(judge, cases if isinstance(cases, Case) else checked, tested, protocol, criteria)


def _observe_distraction(case: Case, subject: tuple[Pair, Attack], setup: JudgeSetup) -> Plan[Observation]:
    pair, attack = subject
    defeat = yield from find_loser(case, pair, setup)
    if isinstance(defeat, Observation):
        return defeat
    rewrite = yield from make_rewrite(case, defeat.loser, attack, setup.seed)
    if isinstance(rewrite, str):
        return Observation(case, excluded=rewrite)
    after = yield from compare_again(case, defeat, rewrite, setup)
    if invalid := reject_invalid(case, setup, after):
        return invalid
    cause = f"the losing response wins after its rewrite ({attack.name})"
    return observe_flip(case, defeat, after, rewrite, setup, cause)


def _observe_rescore(
    case: Case, subject: tuple[Response, Attack], setup: JudgeSetup, tolerance: float
) -> Plan[Observation]:
    response, attack = subject
    rewrite = yield from make_rewrite(case, response, attack, setup.seed)
    if isinstance(rewrite, str):
        return Observation(case, excluded=rewrite)
    verdict = yield from compare_responses(case, response, rewrite, setup)
    if invalid := reject_invalid(case, setup, verdict):
        return invalid
    shift = abs(verdict.lead)
    # Scores are means of floats: a shift on the edge is within the tolerance.
    if shift <= tolerance + 1e-9:
        return Observation(case)
    (judgment,) = verdict.judgments
    before, after = judgment.scores or (0.0, 0.0)
    problem = (
        f"{setup.protocol.name} score moves by {shift:.2f} under a rewrite ({attack.name}): more than {tolerance:g}"
    )
    details = (("before", f"score {before:.2f}"), ("after", f"score {after:.2f}"))
    flip = DecisiveRewrite(response, rewrite)
    return Observation(case, True, problem=problem, details=details, margin=shift, flip=flip)


def observe_flip(
    case: Case, defeat: Defeat, after: PairVerdict, rewrite: Response, setup: JudgeSetup, cause: str
) -> Observation:
    """The observation for a loser that was rewritten and judged again."""
    if after.outcome != "a":
        return Observation(case)
    details = (("before", defeat.before.describe(REWRITTEN, WINNER)), ("after", after.describe(REWRITTEN, WINNER)))
    flip = DecisiveRewrite(defeat.loser, rewrite, defeat.winner, defeat.first)
    problem = f"{setup.protocol.name} verdict flipped: {cause}"
    return Observation(case, True, problem=problem, details=details, margin=after.lead - defeat.before.lead, flip=flip)
