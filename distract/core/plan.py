"""A way of judging as a generator of requests.

``Plan[T]`` yields the requests it needs now, is sent their replies in the same order, and returns a T. It
reads like the paper's description of the method and holds no backend, cache, retry, clock or thread; the
same replies always give the same requests, which is what lets a run resume by replay.

It does not know where replies come from, nor how a prompt is worded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import astuple, dataclass, field
from itertools import chain
from types import NoneType
from typing import Any, Generic, Literal, TypeVar

from distract.core.definitions import check_plugin
from distract.core.prompts import Prompt
from distract.core.records import Case, Constraint, Judgment, Reply, Request, Response

T = TypeVar("T")
Plan = Generator[Sequence[Request], Sequence[Reply], T]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two responses to one case, in the order in which they are to be shown.

    Attributes:
        case: what they answer.
        first: the response called a.
        second: the response called b.
        others: more responses to the case, for a protocol that shows more than two.
        turn: how many places all of them are moved forward, for such a protocol.
    """

    case: Case
    first: Response
    second: Response
    others: tuple[Response, ...] = field(default=(), kw_only=True)
    turn: int = field(default=0, kw_only=True)

    @property
    def shown(self) -> tuple[Response, ...]:
        """All the responses, from the top, moved by ``turn``.

        An other one stands between the two, so that of four neither is above the other more often, whatever the turn.
        """
        together = (self.first, *self.others[:1], self.second, *self.others[1:])
        return together[self.turn :] + together[: self.turn]

    def swap(self) -> Comparison:
        """The same ones in the reverse order."""
        return Comparison(self.case, self.second, self.first, others=self.others[::-1])


@dataclass(frozen=True, slots=True)
class Calls:
    """How many requests a comparison makes in one order, at least 0 each.

    Attributes:
        order: for each comparison and order.
        prompt: once for each prompt, whatever is compared.
        response: once for each response, whatever it is compared with.
        aspects: more of each comparison and order, before the verdict.
        conflict: one more of each comparison and order, where verdicts disagree.
    """

    order: int = 0
    prompt: int = 0
    response: int = 0
    aspects: int = 0
    conflict: int = 0

    def __post_init__(self) -> None:
        if not all(type(number) is int and number >= 0 for number in astuple(self)):
            raise ValueError(f"{self!r}: expected whole numbers from 0")

    def __str__(self) -> str:
        parts = {
            "": self.order,
            " a response": self.response,
            " a prompt": self.prompt,
            " an order": self.aspects,
            " on conflict": self.conflict,
        }
        return " + ".join(f"{number}{what}" for what, number in parts.items() if number)


@dataclass(frozen=True)
class Protocol:
    """A way of asking a judge to compare responses.

    Attributes:
        name: what ``--protocol`` takes.
        summary: one line.
        paper: where it comes from, with the section.
        ask: a plan for the responses in the order given; its judgment calls the comparison's ``first`` a and its
            ``second`` b.
        calls: requests that one comparison makes in one order.
        reads: ``choices`` for a verdict read from the probabilities of its possible words, ``text`` for one read in
            the judge's own words.
        ties: whether a verdict can be a tie.
        rules: how scores become a preference (``score``, ``rating``); empty when the verdict itself is one.
        orders: ``swap`` shows the responses in both orders, ``rotate`` each of them in every place, ``none`` once,
            where order plays no part.
        shows: how many responses, 2 or more; None shows those of the case, up to ten.
        reference: whether it asks a second, stronger model, where the data hold no answer of one: ``required``, or
            ``optional`` where the judge itself can stand in.
        prompts: the prompt files it uses, for the run's record.
        default: whether it is used when no protocol is named.
    """

    name: str
    summary: str
    ask: Callable[[Comparison], Plan[Judgment]]
    calls: Calls
    paper: str = ""
    reads: Literal["choices", "text"] = "choices"
    ties: bool = False
    rules: tuple[str, ...] = ()
    orders: Literal["none", "swap", "rotate"] = "swap"
    shows: int | None = 2
    reference: Literal["", "optional", "required"] = ""
    prompts: tuple[Prompt, ...] = ()
    default: bool = False

    def __post_init__(self) -> None:
        check_plugin("protocol", self, summary=str, ask=Callable, calls=Calls, paper=str, ties=bool, rules=tuple)
        check_plugin("protocol", self, shows=int | None, prompts=tuple, default=bool)
        for field_, known in (
            ("reads", ("choices", "text")),
            ("orders", ("none", "swap", "rotate")),
            ("reference", ("", "optional", "required")),
        ):
            if getattr(self, field_) not in known:
                raise ValueError(f"protocol {self.name}: {field_}={getattr(self, field_)!r} is none of {known}")
        if self.rules and (self.orders != "none" or not {*self.rules} <= {"score", "rating"}):
            raise ValueError(f"protocol {self.name}: rules={self.rules}; expected score or rating, and orders='none'")
        if self.shows is not None and self.shows < 2:
            raise ValueError(f"protocol {self.name}: shows={self.shows}; two responses are the fewest")


@dataclass(frozen=True, eq=False)  # what it calls may be anything, so it need not be hashable
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

    def __post_init__(self) -> None:
        check_plugin("attack", self, summary=str, rewrite=Callable, marker=(Callable, NoneType), default=bool)
        check_plugin("attack", self, severity=int | None, prompt=Prompt | None)
        if self.max_new_content is not None and not 0 <= self.max_new_content <= 1:
            raise ValueError(f"attack {self.name}: max_new_content={self.max_new_content!r}; expected a share or None")

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


class OpenRequests(list[Request]):
    """Requests of plans that do not wait for each other: replies may be sent as they come.

    In the place of a reply that is still to come stands ``PENDING``; what is yielded next asks for it again.
    """


PENDING = Reply(failure="still to come")
"""Told from a reply by identity."""


@dataclass(frozen=True, slots=True)
class PlanResult(Generic[T]):
    """What a plan returned."""

    value: T


def is_enough(requests: Sequence[Request], replies: Sequence[Reply]) -> bool:
    """Whether a plan can be sent these replies: any of them where its requests are ``Open``, else all."""
    pending = sum(reply is PENDING for reply in replies)
    return not pending or (isinstance(requests, OpenRequests) and pending < len(replies))


def step(plan: Plan[T], replies: Sequence[Reply] | None = None) -> Sequence[Request] | PlanResult[T]:
    """Start a plan, or send it replies; returns what it asks next, or its result."""
    try:
        return next(plan) if replies is None else plan.send(replies)
    except StopIteration as done:
        return PlanResult(done.value)


def drive(plan: Plan[T], answer: Callable[[Sequence[Request]], Sequence[Reply] | PlanResult[T]]) -> T:
    """Carry a new plan to its result; ``answer`` gives the replies to each round, or a ``PlanResult`` to end with."""
    asked = step(plan)
    while not isinstance(asked, PlanResult):
        replies = answer(asked)
        asked = replies if isinstance(replies, PlanResult) else step(plan, replies)
    return asked.value


def tap(
    plan: Plan[T],
    on_requests: Callable[[Sequence[Request]], Sequence[Request] | PlanResult[T]] = lambda requests: requests,
    on_replies: Callable[[Sequence[Request], Sequence[Reply]], PlanResult[T] | None] = lambda requests, replies: None,
    guard: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Plan[T]:
    """Watch or change what passes between a plan and whoever drives it; closes the plan, however it ends.

    Args:
        plan: not started.
        on_requests: given what the plan yields, returns what to yield instead (``Open`` if replies may come in parts),
            or a ``PlanResult`` to end with.
        on_replies: given what was yielded and the replies to it, some ``PENDING``; may return a ``PlanResult`` too.
        guard: makes the context in which the plan takes each step; neither function runs in it.
    """
    replies: Sequence[Reply] | None = None
    try:
        while True:
            with guard():
                asked = step(plan, replies)
            if isinstance(asked, PlanResult) or isinstance(asked := on_requests(asked), PlanResult):
                return asked.value
            replies = yield asked
            if end := on_replies(asked, replies):
                return end.value
    finally:
        with suppress(RuntimeError):  # one that asks on instead of ending hides nothing
            plan.close()


@dataclass(slots=True)
class _Child:
    """A plan among several: what it asked last, what it has heard of that, and what it still waits for.

    ``heard`` is None before it is started.
    """

    index: int
    plan: Plan[Any]
    asked: Sequence[Request] = ()
    heard: list[Reply] | None = None
    pending: Sequence[Request] = ()

    def receive(self, replies: Iterator[Reply]) -> bool:
        """Take the replies to what is pending; returns whether it can go on: with any if it is open, else with all."""
        assert self.heard is not None
        self.heard = [next(replies) if reply is PENDING else reply for reply in self.heard]
        self.pending = [one for one, reply in zip(self.asked, self.heard, strict=True) if reply is PENDING]
        return is_enough(self.asked, self.heard)


def gather(plans: Sequence[Plan[T]]) -> Plan[list[T]]:
    """Step many plans together, so that a round of all of them is one batch and none has to wait for another.

    Args:
        plans: generators that have not been started.

    Yields:
        ``Open`` requests: all that the plans wait for; what a single one yields itself.

    Returns:
        Their results, in the order of ``plans``.
    """
    if len(plans) == 1:
        return [(yield from plans[0])]
    results: dict[int, T] = {}

    def go_on(child: _Child) -> bool:
        asked = step(child.plan, child.heard)
        if isinstance(asked, PlanResult):
            results[child.index] = asked.value
            return False
        child.asked = child.pending = asked
        child.heard = [PENDING] * len(asked)
        return True

    waiting = [child for child in map(_Child, range(len(plans)), plans) if go_on(child)]
    while waiting:
        asked = OpenRequests(chain.from_iterable([child.pending for child in waiting]))
        replies = yield asked
        if len(replies) != len(asked):
            raise ValueError(f"{len(replies)} replies to {len(asked)} requests")
        # All of them hear before any goes on: what one does next may depend on what is pending with another.
        coming = iter(replies)
        ready = [child.receive(coming) for child in waiting]
        waiting = [child for child, able in zip(waiting, ready, strict=True) if not able or go_on(child)]
    return [results[index] for index in range(len(plans))]
