"""A way of judging as a generator of requests.

``Plan[T]`` yields the requests it needs now, is sent their replies in the same order, and returns a T. It
reads like the paper's description of the method and holds no backend, cache, retry, clock or thread; the
same replies always give the same requests, which is what lets a run resume by replay.

It does not know where replies come from, nor how a prompt is worded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from distract.prompts import Prompt
from distract.records import Case, Constraint, Judgment, Outcome, Reply, Request, Response

T = TypeVar("T")
Plan = Generator[Sequence[Request], Sequence[Reply], T]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two responses to one case, in the order in which they are to be shown."""

    case: Case
    first: Response
    second: Response

    def swapped(self) -> Comparison:
        """The same two in the other order."""
        return Comparison(self.case, self.second, self.first)


@dataclass(frozen=True)
class Protocol:
    """A way of asking a judge to compare two responses.

    Attributes:
        name: what ``--protocol`` takes.
        summary: one line.
        calls: requests that one comparison makes.
        compare: a plan that returns one judgment per order shown, all in terms of first = a, second = b.
        rules: how scores become a preference (``score``, ``rating``); empty when the verdict itself is one.
        prompts: the prompt files it uses, for the run's record.
        default: whether it is used when no protocol is named.
    """

    name: str
    summary: str
    calls: int
    compare: Callable[[Comparison], Plan[tuple[Judgment, ...]]]
    rules: tuple[str, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    default: bool = False


@dataclass(frozen=True)
class Attack:
    """A way of rewriting a response that should not change its quality.

    Attributes:
        name: what ``--attack`` takes.
        summary: one line.
        rewrite: the rule writer: one turn of a response, the constraints it must keep, and an integer that
            varies its choices, to the rewritten turn. Deterministic.
        marker: measures the wanted feature in a text (more is more); None for a control, which wants none.
        default: whether it is used when no attack is named.
        severity: how many of the constraints it breaks, for an attack that lowers quality on purpose; else None.
        max_new_content: the largest share of content words that are new in a faithful rewrite, 0 to 1; None sets
            no limit.
        prompt: what a generator model is asked, with any of the slots ``question``, ``response``, ``requirements``
            and ``feedback``; None leaves the writing to ``rewrite``.
    """

    name: str
    summary: str
    rewrite: Callable[[str, tuple[Constraint, ...], int], str]
    marker: Callable[[str], float] | None = None
    default: bool = False
    severity: int | None = None
    max_new_content: float | None = None
    prompt: Prompt | None = None

    @property
    def control(self) -> bool:
        """True for an attack that distracts nobody and measures the noise floor."""
        return self.marker is None and self.severity is None


@dataclass(frozen=True)
class Degradation:
    """A response made worse by a known amount, and perhaps distracting too (``severity-2+assertiveness``).

    Attributes:
        lower: an attack with a severity.
        distractor: what is then done to the worse response; None leaves it as it is.
    """

    lower: Attack
    distractor: Attack | None = None

    @property
    def name(self) -> str:
        """What ``--attack`` takes."""
        return self.lower.name + (f"+{self.distractor.name}" if self.distractor else "")

    @property
    def severity(self) -> int:
        """How many constraints the worse response breaks."""
        assert self.lower.severity is not None
        return self.lower.severity


class Open(list[Request]):
    """Requests of plans that do not wait for each other: replies may be sent as they come.

    In the place of a reply that is still to come stands ``PENDING``; what is yielded next asks for it again.
    """


PENDING = Reply(failure="still to come")
"""Told from a reply by identity."""


@dataclass(slots=True)
class _Child:
    """A plan among several: what it asked last, and what it has heard of that; None before it is started."""

    index: int
    plan: Plan[Any]
    asked: Sequence[Request] = ()
    heard: list[Reply] | None = None

    def pending(self) -> list[tuple[int, Request]]:
        """What it has asked and not heard, with the place of each."""
        return [(at, self.asked[at]) for at, reply in enumerate(self.heard or ()) if reply is PENDING]

    def ready(self) -> bool:
        """Whether it can go on: with any reply if it is open, else with all."""
        pending = len(self.pending())
        return not pending or (isinstance(self.asked, Open) and pending < len(self.asked))


def gather(plans: Sequence[Plan[T]]) -> Plan[list[T]]:
    """Step many plans together, so that a round of all of them is one batch and none has to wait for another.

    Args:
        plans: generators that have not been started.

    Yields:
        ``Open`` requests: all that the plans wait for.

    Returns:
        Their results, in the order of ``plans``.
    """
    results: dict[int, T] = {}

    def step(child: _Child) -> bool:
        try:
            child.asked = next(child.plan) if child.heard is None else child.plan.send(child.heard)
        except StopIteration as done:
            results[child.index] = done.value
            return False
        child.heard = [PENDING] * len(child.asked)
        return True

    waiting = [child for child in map(_Child, range(len(plans)), plans) if step(child)]
    while waiting:
        places = [(child.heard or [], at, one) for child in waiting for at, one in child.pending()]
        replies = yield Open(one for _, _, one in places)
        for (heard, at, _), reply in zip(places, replies, strict=True):
            heard[at] = reply
        waiting = [child for child in waiting if not child.ready() or step(child)]
    return [results[index] for index in range(len(plans))]


def both_orders(ask: Callable[[Comparison], Plan[Judgment]], comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    """Ask in both orders at once and map the second answer back.

    Args:
        ask: a plan for one order, which returns a judgment where a is the response shown first.
        comparison: the two responses.

    Returns:
        Two judgments, both in terms of the given order.
    """
    straight, swapped = yield from gather([ask(comparison), ask(comparison.swapped())])
    return straight, swapped.mirrored()


def vote(ask: Callable[[int], Plan[Judgment]], samples: int) -> Plan[Judgment]:
    """Majority of several samples (self-consistency).

    Args:
        ask: a plan for one sample, given its index.
        samples: how many, at least 1.

    Returns:
        A judgment whose probabilities are the shares of the valid votes; an equality for the most votes is a
        tie, and it fails only when every sample did.
    """
    votes = yield from gather([ask(index) for index in range(samples)])
    counts = Counter(v.preferred for v in votes if v.preferred is not None)
    valid = sum(counts.values())
    if not valid:
        return Judgment(None, read=votes[0].read, failure=votes[0].failure)
    most = counts.most_common()
    winner: Outcome = "tie" if len(most) > 1 and most[0][1] == most[1][1] else most[0][0]
    shares = (counts["a"] / valid, counts["b"] / valid, counts["tie"] / valid)
    return Judgment(winner, probabilities=shares, read=votes[0].read)
