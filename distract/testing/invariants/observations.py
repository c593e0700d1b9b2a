"""The questions and observations of invariants: verdicts on two responses, and the result for one subject.

An invariant is a plan for each of its subjects (a pair of responses, a triple, a response and an attack), so that many
subjects are judged as one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from distract.core.plan import Plan
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count_decimals
from distract.core.records import BASELINE, Case, Judgment, Outcome, Response, Row
from distract.data.good_responses import pairs
from distract.judging.comparison import judge_comparison, side
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.studies.attack.flips import strengths

S = TypeVar("S")

Pair = tuple[Response, Response]
Details = tuple[tuple[str, str], ...]
"""Lines of a message as (label, text). The texts are raw, so they may be hostile."""

NO_PAIR = "no two responses by different authors"
TIE = "the two tie"


@dataclass(frozen=True)
class JudgeSetup:
    """The way to ask a judge. ``rule`` decides a scoring protocol; ``helped`` means that there is a reference model."""

    judge: str
    protocol: Protocol
    rule: str | None
    manner: Manner
    helped: bool
    seed: int

    def compare(self, case: Case, first: Response, second: Response) -> Plan[PairVerdict]:
        """Ask which of two responses is better, with the same requests as an attack study, so they share the store."""
        sides = side(first), side(second)
        row = partial(Row, case.id, case.cluster, "flip", self.protocol.name, self.judge, BASELINE, *sides)
        comparison = Comparison(case, first, second)
        result = yield from judge_comparison(row, self.protocol, comparison, self.manner, self.helped)
        return PairVerdict(result.judgments, self.rule, result.excluded)

    def find_loser(self, case: Case, pair: Pair) -> Plan[Defeat | Observation]:
        """Find the loser of a pair, or return the observation for a pair without one."""
        a, b = pair
        verdict = yield from self.compare(case, a, b)
        if invalid := self.reject_invalid(case, verdict):
            return invalid
        if verdict.outcome == "tie":
            return Observation(case, excluded=TIE)
        return Defeat(a, b, True, verdict) if verdict.outcome == "b" else Defeat(b, a, False, verdict.mirror())

    def compare_again(self, case: Case, defeat: Defeat, rewrite: Response) -> Plan[PairVerdict]:
        """Compare the winner with a rewrite of the loser; the rewrite is a in the verdict."""
        if defeat.first:
            return (yield from self.compare(case, rewrite, defeat.winner))
        return (yield from self.compare(case, defeat.winner, rewrite)).mirror()

    def reject_invalid(self, case: Case, *verdicts: PairVerdict) -> Observation | None:
        """The observation for a subject with an excluded or invalid verdict; None if all verdicts are valid."""
        if reason := next((verdict.excluded for verdict in verdicts if verdict.excluded), None):
            return Observation(case, excluded=reason)
        judgments = [judgment for verdict in verdicts for judgment in verdict.judgments]
        failures = [judgment.failure for judgment in judgments if judgment.failure]
        if not failures:
            return None
        reasons = f"{len(failures)} of {len(judgments)} judgments: {', '.join(dict.fromkeys(failures))}"
        problem = f"{self.protocol.name} gave no valid verdict"
        return Observation(case, None, problem=problem, details=(("failed", reasons),))

    def violation(
        self, case: Case, problem: str, details: Details, margin: float, flip: DecisiveRewrite | None = None
    ) -> Observation:
        """The observation for a violation; ``problem`` continues the protocol's name."""
        return Observation(case, True, "", f"{self.protocol.name} {problem}", details, margin, flip)


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """A judge's verdict on two responses, a and b: one judgment for each order shown, or why there is none."""

    judgments: tuple[Judgment, ...]
    rule: str | None
    excluded: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome over all orders; None if any order has no valid verdict."""
        return outcome(self.judgments, self.rule)

    @property
    def lead(self) -> float:
        """The lead of a over b, in a valid verdict."""
        a, b = strengths(self.judgments, self.rule, mirrored=False)
        return a - b

    def mirror(self) -> PairVerdict:
        """Swap a and b."""
        return replace(self, judgments=tuple(judgment.mirror() for judgment in self.judgments))

    def split_orders(self) -> tuple[PairVerdict, ...]:
        """One verdict for each order."""
        return tuple(replace(self, judgments=(judgment,)) for judgment in self.judgments)

    def describe(self, a: str, b: str) -> str:
        """A valid verdict in words and numbers, the winner's first."""
        first, second = strengths(self.judgments, self.rule, mirrored=False)
        b_wins, tie = self.outcome == "b", self.outcome == "tie"
        if b_wins:
            first, second = second, first
        result = "a tie" if tie else f"{b if b_wins else a} wins"
        digits = 0 if self.rule == "rating" else 2 if tie else count_decimals([(first, second)])
        if self.rule:
            return f"{result}: {self.rule} {first:.{digits}f} to {second:.{digits}f}"
        rest = abs(1 - math.fsum((first, second)))
        return f"{result}: {first:.{digits}f} to {second:.{digits}f}, tie {rest:.{digits}f}"


@dataclass(frozen=True, slots=True)
class DecisiveRewrite:
    """A rewrite that changed a verdict.

    ``other`` is the response that the original lost to; None if it was compared with its own original, so that there is
    no smallest change to search for. ``first`` says whether the rewritten response is the first of the pair.
    """

    original: Response
    rewrite: Response
    other: Response | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """The result for one subject.

    ``violated`` is None without a valid verdict. ``excluded`` says why the subject does not test the invariant,
    ``problem`` describes a violation in one sentence, and ``margin`` is larger for clearer violations.
    """

    case: Case
    violated: bool | None = False
    excluded: str = ""
    problem: str = ""
    details: Details = ()
    margin: float = 0.0
    flip: DecisiveRewrite | None = None

    @property
    def is_conclusive(self) -> bool:
        """Whether the subject tests the invariant and has a valid verdict."""
        return not self.excluded and self.violated is not None


@dataclass(frozen=True)
class Invariant(Generic[S]):
    """A property of a judge: the subjects of a case, drawn with a seed, and the plan that observes one of them.

    ``no_subject`` is the reason to report for a case without any.
    """

    name: str
    subjects: Callable[[Case, int], Sequence[S]]
    observe: Callable[[Case, S, JudgeSetup], Plan[Observation]]
    no_subject: str = NO_PAIR
    attack: str = ""


def response_pairs(case: Case, seed: int) -> Sequence[Pair]:
    """All pairs of responses by different authors."""
    return pairs(case)


@dataclass(frozen=True, slots=True)
class Defeat:
    """A pair with a loser; in ``before`` the loser is a. ``first`` says whether it is the first of the pair."""

    loser: Response
    winner: Response
    first: bool
    before: PairVerdict
