"""What an invariant asks of a judge and what it sees: verdicts on two responses, and what came of one subject.

An invariant is a plan for each of its subjects (a pair of responses, a triple, a response and an attack), so that many
are asked as one batch. It knows no invariant by name, decides nothing and prints nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from distract.core.plan import Comparison, Plan, Protocol
from distract.core.printable import count_decimals
from distract.core.records import BASELINE, Case, Judgment, Outcome, Response, Row
from distract.judging.comparison import judge_comparison, side
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.studies.attack.flips import strengths

S = TypeVar("S")

NO_PAIR = "no two responses by different authors"
TIE = "the two tie"
"""Why a pair without a loser says nothing."""


@dataclass(frozen=True)
class JudgeSetup:
    """How a judge is asked.

    Attributes:
        judge: its name.
        protocol: how.
        rule: by which a scoring protocol is decided; None for others.
        manner: in which orders, and how often.
        helped: whether there is a reference model.
        seed: of what is drawn and of rewrites.
    """

    judge: str
    protocol: Protocol
    rule: str | None
    manner: Manner
    helped: bool
    seed: int


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a judge says of two responses, a and b.

    Attributes:
        judgments: one for each order that was shown, all in terms of a and b; empty where it was not asked.
        rule: as in ``Asked``.
        excluded: why it was not asked.
    """

    judgments: tuple[Judgment, ...]
    rule: str | None
    excluded: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """What all orders together say; None where any of them says nothing."""
        return outcome(self.judgments, self.rule)

    @property
    def lead(self) -> float:
        """By how much a stands above b; the verdict is a valid one."""
        a, b = strengths(self.judgments, self.rule, mirrored=False)
        return a - b

    def mirror(self) -> PairVerdict:
        """The same with a and b exchanged."""
        return replace(self, judgments=tuple(judgment.mirror() for judgment in self.judgments))

    def orders(self) -> tuple[PairVerdict, ...]:
        """Each order by itself."""
        return tuple(replace(self, judgments=(judgment,)) for judgment in self.judgments)

    def told(self, a: str, b: str) -> str:
        """It in words and numbers, the winner's first; the verdict is a valid one."""
        first, second = strengths(self.judgments, self.rule, mirrored=False)
        if won := self.outcome == "b":
            first, second = second, first
        says = "a tie" if self.outcome == "tie" else f"{b if won else a} wins"
        few = 0 if self.rule == "rating" else 2 if self.outcome == "tie" else count_decimals([(first, second)])
        if self.rule:
            return f"{says}: {self.rule} {first:.{few}f} to {second:.{few}f}"
        tie = abs(1 - math.fsum((first, second)))
        return f"{says}: {first:.{few}f} to {second:.{few}f}, tie {tie:.{few}f}"


@dataclass(frozen=True, slots=True)
class DecisiveRewrite:
    """A rewrite that made a difference.

    Attributes:
        original: the response before.
        rewrite: what it became.
        other: the one that it lost to, and now wins against; None where it was not compared with another: then no
            smallest change can be looked for.
        first: whether the rewritten one is the comparison's first.
    """

    original: Response
    rewrite: Response
    other: Response | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of one subject.

    Attributes:
        case: that it belongs to.
        violated: whether it violates the invariant; None where a verdict was not valid.
        excluded: why it says nothing about the invariant; empty where it does.
        wrong: of a violation, or of what is missing: in one sentence.
        told: more about it, a (label, text) for each line; the texts are as they are, hostile ones too.
        margin: how clear a violation is; more is clearer.
        flip: of a violation by a rewrite.
    """

    case: Case
    violated: bool | None = False
    excluded: str = ""
    wrong: str = ""
    told: tuple[tuple[str, str], ...] = ()
    margin: float = 0.0
    flip: DecisiveRewrite | None = None


@dataclass(frozen=True)
class Invariant(Generic[S]):
    """A property of a judge.

    Attributes:
        name: of the function that tests it.
        subjects: of a case: whatever may violate it.
        look: the plan for one of them.
        without: why a case has none.
        attack: that plays a part in it; empty without.
    """

    name: str
    subjects: Callable[[Case], Sequence[S]]
    look: Callable[[Case, S, JudgeSetup], Plan[Observation]]
    without: str = NO_PAIR
    attack: str = ""


def compare_responses(case: Case, first: Response, second: Response, asked: JudgeSetup) -> Plan[PairVerdict]:
    """Ask which of two responses is better; the requests are those of an audit."""
    sides = side(first), side(second)
    row = partial(Row, case.id, case.cluster, "flip", asked.protocol.name, asked.judge, BASELINE, *sides)
    comparison = Comparison(case, first, second)
    done = yield from judge_comparison(row, asked.protocol, comparison, asked.manner, asked.helped)
    return PairVerdict(done.judgments, asked.rule, done.excluded)


def reject_invalid(case: Case, asked: JudgeSetup, *verdicts: PairVerdict) -> Observation | None:
    """What came of a subject of which a verdict was not asked or is not valid; None where all are."""
    if why := next((verdict.excluded for verdict in verdicts if verdict.excluded), None):
        return Observation(case, excluded=why)
    judgments = [one for verdict in verdicts for one in verdict.judgments]
    failures = [one.failure for one in judgments if one.failure]
    if not failures:
        return None
    wrong = f"{asked.protocol.name} gave no valid verdict, so that nothing can be said"
    told = ("failed", f"{len(failures)} of {len(judgments)} judgments: {', '.join(dict.fromkeys(failures))}")
    return Observation(case, None, wrong=wrong, told=(told,))


@dataclass(frozen=True, slots=True)
class LosingPair:
    """A pair with a loser; ``before`` is in terms of the loser and the winner, ``first`` says that the loser is a."""

    loser: Response
    winner: Response
    first: bool
    before: PairVerdict


def find_loser(case: Case, pair: tuple[Response, Response], asked: JudgeSetup) -> Plan[LosingPair | Observation]:
    """Find which of two responses loses; what came of a pair where none does."""
    a, b = pair
    verdict = yield from compare_responses(case, a, b, asked)
    if seen := reject_invalid(case, asked, verdict):
        return seen
    if verdict.outcome == "tie":
        return Observation(case, excluded=TIE)
    if verdict.outcome == "b":
        return LosingPair(a, b, True, verdict)
    return LosingPair(b, a, False, verdict.mirror())


def compare_again(case: Case, found: LosingPair, made: Response, asked: JudgeSetup) -> Plan[PairVerdict]:
    """Ask again with something else in the loser's place; in terms of that and the winner."""
    if found.first:
        return (yield from compare_responses(case, made, found.winner, asked))
    return (yield from compare_responses(case, found.winner, made, asked)).mirror()
