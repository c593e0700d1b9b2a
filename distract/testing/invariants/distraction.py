"""Invariants under rewrites by an attack, which leave the quality of a response alone: its verdict, and its score.

Each is one function that a test calls; what they ask is below. They know no attack by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distract.core.errors import UsageError
from distract.core.plan import Attack, Plan, Protocol
from distract.core.records import Case, Response
from distract.data.good_responses import pairs
from distract.judging.comparison import comparable_responses
from distract.judging.findings import InvariantFinding
from distract.judging.judge import Judge
from distract.testing.invariants.call import Cases, check_cases, check_invariant, find_protocol
from distract.testing.invariants.changes import case_attacks, make_rewrite, recorded_attacks
from distract.testing.invariants.changes import find_attack as attack_of
from distract.testing.invariants.decision import PassCriteria
from distract.testing.invariants.observations import (
    NO_PAIR,
    DecisiveRewrite,
    Invariant,
    JudgeSetup,
    LosingPair,
    Observation,
    PairVerdict,
    compare_again,
    compare_responses,
    find_loser,
    reject_invalid,
)

Pair = tuple[Response, Response]

BEATEN, WINNER = "the rewritten one", "the other one"
"""What messages call a response that had lost, and the one that had won."""


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
    """A response that loses does not win after a rewrite that leaves its quality alone; a tie is no violation.

    Where it fails outside a search by hypothesis, the smallest part of the rewrite is looked for that does the same.

    Args:
        judge: whom to ask, in its own manner.
        cases: one, or several; each pair of responses by different authors is looked at.
        attack: that rewrites; a rewrite that a case records of it is used where it is a faithful one, else its rule
            writes one. None takes the attacks whose rewrites each case records.
        protocol: any.
        max_violation_rate: the largest rate of violations to accept; None accepts no counterexample.
        confidence: of the bounds of that rate.
        seed: of the order of the cases, and of rewrites.

    Returns:
        What was found.

    Raises:
        Violation: see ``call.check_invariant``, as for the next ones.
        NoVerdict: a verdict is not valid.
        Inconclusive: too little was seen to decide.
        UsageError: the attack makes no sense here, or a number is out of range.
        UnknownName: no such protocol or attack.
    """
    __tracebackhide__ = True
    name = "distractor_invariant"
    used, found = find_protocol(protocol, name), check_cases(cases, name)
    attacks = _select_attacks(found, attack, name)

    def subjects(case: Case) -> list[tuple[Pair, Attack]]:
        return [(pair, one) for pair in pairs(case) for one in _attacks_on(case, attack, attacks)]

    return check_invariant(
        judge,
        cases if isinstance(cases, Case) else found,
        Invariant(name, subjects, _observe_distraction, f"{NO_PAIR}, or no rewrite on record", ", ".join(attacks)),
        used,
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
    """The score of a response moves by no more than a tolerance under a rewrite that leaves its quality alone.

    Args:
        judge: as in ``distractor_invariant``, like the others and what is raised.
        cases: one, or several; each author's response is looked at.
        attack: that rewrites.
        tolerance: in points of the scale, 0 or more.
        protocol: one that scores each response.
        max_violation_rate: the largest rate of violations to accept.
        confidence: of its bounds.
        seed: of the order of the cases, and of rewrites.

    Returns:
        What was found.
    """
    __tracebackhide__ = True
    name = "score_stable"
    if not tolerance >= 0:
        raise UsageError(f"{name}: tolerance={tolerance:g}: expected a number of points from 0, such as 0.5")
    used, found = find_protocol(protocol, name, _no_scores_reason), check_cases(cases, name)
    attacks = _select_attacks(found, attack, name)

    def subjects(case: Case) -> list[tuple[Response, Attack]]:
        return [
            (response, one) for response in comparable_responses(case) for one in _attacks_on(case, attack, attacks)
        ]

    def look(case: Case, subject: tuple[Response, Attack], asked: JudgeSetup) -> Plan[Observation]:
        return _observe_rescore(case, subject, asked, tolerance)

    return check_invariant(
        judge,
        cases if isinstance(cases, Case) else found,
        Invariant(name, subjects, look, "no response as it was written, or no rewrite on record", ", ".join(attacks)),
        used,
        PassCriteria(max_violation_rate, confidence, seed),
    )


def _no_scores_reason(protocol: Protocol) -> str | None:
    return None if protocol.rules else "gives no scores"


def _select_attacks(cases: Sequence[Case], attack: str | None, invariant: str) -> Mapping[str, Attack]:
    return recorded_attacks(cases, invariant) if attack is None else {attack: attack_of(attack, invariant)}


def _attacks_on(case: Case, attack: str | None, attacks: Mapping[str, Attack]) -> Sequence[Attack]:
    return case_attacks(case, attacks) if attack is None else tuple(attacks.values())


def _observe_distraction(case: Case, subject: tuple[Pair, Attack], asked: JudgeSetup) -> Plan[Observation]:
    pair, attack = subject
    found = yield from find_loser(case, pair, asked)
    if isinstance(found, Observation):
        return found
    made = yield from make_rewrite(case, found.loser, attack, asked.seed)
    if isinstance(made, str):
        return Observation(case, excluded=made)
    after = yield from compare_again(case, found, made, asked)
    if seen := reject_invalid(case, asked, after):
        return seen
    how = f"the response that had lost wins after its rewrite ({attack.name})"
    return observe_flip(case, found, after, made, asked, how)


def _observe_rescore(
    case: Case, subject: tuple[Response, Attack], asked: JudgeSetup, tolerance: float
) -> Plan[Observation]:
    response, attack = subject
    made = yield from make_rewrite(case, response, attack, asked.seed)
    if isinstance(made, str):
        return Observation(case, excluded=made)
    verdict = yield from compare_responses(case, response, made, asked)
    if seen := reject_invalid(case, asked, verdict):
        return seen
    moved = abs(verdict.lead)
    # Scores are means of floats: what is on the edge is within it.
    if moved <= tolerance + 1e-9:
        return Observation(case)
    (judgment,) = verdict.judgments
    before, after = judgment.scores or (0.0, 0.0)
    wrong = f"{asked.protocol.name} score moves by {moved:.2f} under a rewrite ({attack.name}): more than {tolerance:g}"
    told = (("before", f"score {before:.2f}"), ("after", f"score {after:.2f}"))
    return Observation(case, True, wrong=wrong, told=told, margin=moved, flip=DecisiveRewrite(response, made))


def observe_flip(
    case: Case, found: LosingPair, after: PairVerdict, made: Response, asked: JudgeSetup, how: str
) -> Observation:
    """What came of a response that had lost and was judged again.

    Args:
        case: that it answers.
        found: the pair before.
        after: the verdict on what it became, a, and the response that had won.
        made: what it became.
        asked: how.
        how: it came to win, in words.
    """
    if after.outcome != "a":
        return Observation(case)
    told = (("before", found.before.told(BEATEN, WINNER)), ("after", after.told(BEATEN, WINNER)))
    flip = DecisiveRewrite(found.loser, made, found.winner, found.first)
    wrong = f"{asked.protocol.name} verdict flipped: {how}"
    return Observation(case, True, wrong=wrong, told=told, margin=after.lead - found.before.lead, flip=flip)
