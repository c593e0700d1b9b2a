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
from distract.core.printable import digits
from distract.core.records import BASELINE, Case, Judgment, Outcome, Response, Row
from distract.judging.comparison import judged, side
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.studies.attack.flips import strengths

S = TypeVar("S")

NO_PAIR = "no two responses by different authors"
TIE = "the two tie"
"""Why a pair without a loser says nothing."""


@dataclass(frozen=True)
class Asked:
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
class Verdict:
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

    def mirrored(self) -> Verdict:
        """The same with a and b exchanged."""
        return replace(self, judgments=tuple(judgment.mirrored() for judgment in self.judgments))

    def orders(self) -> tuple[Verdict, ...]:
        """Each order by itself."""
        return tuple(replace(self, judgments=(judgment,)) for judgment in self.judgments)

    def told(self, a: str, b: str) -> str:
        """It in words and numbers, the winner's first; the verdict is a valid one."""
        first, second = strengths(self.judgments, self.rule, mirrored=False)
        if won := self.outcome == "b":
            first, second = second, first
        says = "a tie" if self.outcome == "tie" else f"{b if won else a} wins"
        few = 0 if self.rule == "rating" else 2 if self.outcome == "tie" else digits([(first, second)])
        if self.rule:
            return f"{says}: {self.rule} {first:.{few}f} to {second:.{few}f}"
        tie = abs(1 - math.fsum((first, second)))
        return f"{says}: {first:.{few}f} to {second:.{few}f}, tie {tie:.{few}f}"


@dataclass(frozen=True, slots=True)
class Flipped:
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
class Seen:
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
    flip: Flipped | None = None


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
    look: Callable[[Case, S, Asked], Plan[Seen]]
    without: str = NO_PAIR
    attack: str = ""


def compared(case: Case, first: Response, second: Response, asked: Asked) -> Plan[Verdict]:
    """Ask which of two responses is better; the requests are those of an audit."""
    sides = side(first), side(second)
    row = partial(Row, case.id, case.cluster, "flip", asked.protocol.name, asked.judge, BASELINE, *sides)
    comparison = Comparison(case, first, second)
    done = yield from judged(row, asked.protocol, comparison, asked.manner, asked.helped)
    return Verdict(done.judgments, asked.rule, done.excluded)


def unusable(case: Case, asked: Asked, *verdicts: Verdict) -> Seen | None:
    """What came of a subject of which a verdict was not asked or is not valid; None where all are."""
    if why := next((verdict.excluded for verdict in verdicts if verdict.excluded), None):
        return Seen(case, excluded=why)
    judgments = [one for verdict in verdicts for one in verdict.judgments]
    failures = [one.failure for one in judgments if one.failure]
    if not failures:
        return None
    wrong = f"{asked.protocol.name} gave no valid verdict, so that nothing can be said"
    told = ("failed", f"{len(failures)} of {len(judgments)} judgments: {', '.join(dict.fromkeys(failures))}")
    return Seen(case, None, wrong=wrong, told=(told,))


@dataclass(frozen=True, slots=True)
class Lost:
    """A pair with a loser; ``before`` is in terms of the loser and the winner, ``first`` says that the loser is a."""

    loser: Response
    winner: Response
    first: bool
    before: Verdict


def lost(case: Case, pair: tuple[Response, Response], asked: Asked) -> Plan[Lost | Seen]:
    """Find which of two responses loses; what came of a pair where none does."""
    a, b = pair
    verdict = yield from compared(case, a, b, asked)
    if seen := unusable(case, asked, verdict):
        return seen
    if verdict.outcome == "tie":
        return Seen(case, excluded=TIE)
    if verdict.outcome == "b":
        return Lost(a, b, True, verdict)
    return Lost(b, a, False, verdict.mirrored())


def anew(case: Case, found: Lost, made: Response, asked: Asked) -> Plan[Verdict]:
    """Ask again with something else in the loser's place; in terms of that and the winner."""
    if found.first:
        return (yield from compared(case, made, found.winner, asked))
    return (yield from compared(case, found.winner, made, asked)).mirrored()
