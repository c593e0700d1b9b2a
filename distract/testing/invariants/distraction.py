"""Invariants under rewrites by an attack, which leave the quality of a response alone: its verdict, and its score.

Each is one function that a test calls; what they ask is below. They know no attack by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distract.core.errors import UsageError
from distract.core.plan import Attack, Plan, Protocol
from distract.core.records import Case, Response
from distract.data.good_responses import pairs
from distract.judging.comparison import usable
from distract.judging.findings import Finding
from distract.judging.judge import Judge
from distract.testing.invariants.call import Cases, decided, given, of_name
from distract.testing.invariants.changes import carried, made_of, of_cases
from distract.testing.invariants.changes import of_name as attack_of
from distract.testing.invariants.decision import Form
from distract.testing.invariants.observations import (
    NO_PAIR,
    Asked,
    Flipped,
    Invariant,
    Lost,
    Seen,
    Verdict,
    anew,
    compared,
    lost,
    unusable,
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
) -> Finding:
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
        Violation: see ``call.decided``, as for the next ones.
        NoVerdict: a verdict is not valid.
        Inconclusive: too little was seen to decide.
        UsageError: the attack makes no sense here, or a number is out of range.
        UnknownName: no such protocol or attack.
    """
    __tracebackhide__ = True
    name = "distractor_invariant"
    used, found = of_name(protocol, name), given(cases, name)
    attacks = _attacks(found, attack, name)

    def subjects(case: Case) -> list[tuple[Pair, Attack]]:
        return [(pair, one) for pair in pairs(case) for one in _under(case, attack, attacks)]

    return decided(
        judge,
        cases if isinstance(cases, Case) else found,
        Invariant(name, subjects, _distracted, f"{NO_PAIR}, or no rewrite on record", ", ".join(attacks)),
        used,
        Form(max_violation_rate, confidence, seed),
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
) -> Finding:
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
    used, found = of_name(protocol, name, _scoring), given(cases, name)
    attacks = _attacks(found, attack, name)

    def subjects(case: Case) -> list[tuple[Response, Attack]]:
        return [(response, one) for response in usable(case) for one in _under(case, attack, attacks)]

    def look(case: Case, subject: tuple[Response, Attack], asked: Asked) -> Plan[Seen]:
        return _rescored(case, subject, asked, tolerance)

    return decided(
        judge,
        cases if isinstance(cases, Case) else found,
        Invariant(name, subjects, look, "no response as it was written, or no rewrite on record", ", ".join(attacks)),
        used,
        Form(max_violation_rate, confidence, seed),
    )


def _scoring(protocol: Protocol) -> str | None:
    return None if protocol.rules else "gives no scores"


def _attacks(cases: Sequence[Case], attack: str | None, invariant: str) -> Mapping[str, Attack]:
    return of_cases(cases, invariant) if attack is None else {attack: attack_of(attack, invariant)}


def _under(case: Case, attack: str | None, attacks: Mapping[str, Attack]) -> Sequence[Attack]:
    return carried(case, attacks) if attack is None else tuple(attacks.values())


def _distracted(case: Case, subject: tuple[Pair, Attack], asked: Asked) -> Plan[Seen]:
    pair, attack = subject
    found = yield from lost(case, pair, asked)
    if isinstance(found, Seen):
        return found
    made = yield from made_of(case, found.loser, attack, asked.seed)
    if isinstance(made, str):
        return Seen(case, excluded=made)
    after = yield from anew(case, found, made, asked)
    if seen := unusable(case, asked, after):
        return seen
    how = f"the response that had lost wins after its rewrite ({attack.name})"
    return flipped(case, found, after, made, asked, how)


def _rescored(case: Case, subject: tuple[Response, Attack], asked: Asked, tolerance: float) -> Plan[Seen]:
    response, attack = subject
    made = yield from made_of(case, response, attack, asked.seed)
    if isinstance(made, str):
        return Seen(case, excluded=made)
    verdict = yield from compared(case, response, made, asked)
    if seen := unusable(case, asked, verdict):
        return seen
    moved = abs(verdict.lead)
    # Scores are means of floats: what is on the edge is within it.
    if moved <= tolerance + 1e-9:
        return Seen(case)
    (judgment,) = verdict.judgments
    before, after = judgment.scores or (0.0, 0.0)
    wrong = f"{asked.protocol.name} score moves by {moved:.2f} under a rewrite ({attack.name}): more than {tolerance:g}"
    told = (("before", f"score {before:.2f}"), ("after", f"score {after:.2f}"))
    return Seen(case, True, wrong=wrong, told=told, margin=moved, flip=Flipped(response, made))


def flipped(case: Case, found: Lost, after: Verdict, made: Response, asked: Asked, how: str) -> Seen:
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
        return Seen(case)
    told = (("before", found.before.told(BEATEN, WINNER)), ("after", after.told(BEATEN, WINNER)))
    flip = Flipped(found.loser, made, found.winner, found.first)
    wrong = f"{asked.protocol.name} verdict flipped: {how}"
    return Seen(case, True, wrong=wrong, told=told, margin=after.lead - found.before.lead, flip=flip)
