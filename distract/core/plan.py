"""Plans: a way of judging as a generator of requests.

``Plan[T]`` yields the requests it needs now, receives their replies in the same order, and returns a T. It reads like
the paper's description of the method and holds no backend, cache, retry, clock or thread. The same replies always
lead to the same requests, so that a run can resume by replay.
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
        case: the case that they answer.
        first: the response called a.
        second: the response called b.
        others: more responses to the case, for a protocol that shows more than two.
        turn: how many places to move all of them forward, for such a protocol.
    """

    case: Case
    first: Response
    second: Response
    others: tuple[Response, ...] = field(default=(), kw_only=True)
    turn: int = field(default=0, kw_only=True)

    @property
    def shown(self) -> tuple[Response, ...]:
        """All the responses, from the top, moved by ``turn``."""
        # With four, neither of the two is above the other more often, whatever the turn.
        responses = (self.first, *self.others[:1], self.second, *self.others[1:])
        return responses[self.turn :] + responses[: self.turn]

    def swap(self) -> Comparison:
        """Return the comparison in the reverse order."""
        return Comparison(self.case, self.second, self.first, others=self.others[::-1])


@dataclass(frozen=True, slots=True)
class Calls:
    """How many requests a comparison makes, at least 0 each.

    Attributes:
        order: per comparison and order.
        prompt: once per prompt, whatever is compared.
        response: once per response, whatever it is compared with.
        aspects: more per comparison and order, before the verdict.
        conflict: more per comparison and order, if verdicts disagree.
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
        numbers = (self.order, self.response, self.prompt, self.aspects, self.conflict)
        units = ("", " a response", " a prompt", " an order", " on conflict")
        return " + ".join(f"{number}{unit}" for number, unit in zip(numbers, units, strict=True) if number)


@dataclass(frozen=True)
class Protocol:
    """A way of asking a judge to compare responses.

    Attributes:
        name: the value of ``--protocol``.
        summary: one line.
        paper: the source, with the section.
        ask: makes a plan for the responses in the order given; its judgment calls the comparison's ``first`` a.
        calls: requests per comparison and order.
        reads: what holds a verdict: ``choices`` (the probabilities of its words) or ``text`` (the judge's own words).
        ties: whether a verdict can be a tie.
        rules: how scores become a preference (``score``, ``rating``); empty if the verdict itself is one.
        orders: ``swap`` (both orders), ``rotate`` (each response in every place) or ``none`` (order plays no part).
        shows: number of responses to show, 2 or more; None shows those of the case, up to ten.
        reference: whether it asks a second, stronger model if the data hold no reference answer: ``required``, or
            ``optional`` if the judge itself can stand in.
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
        for field_, known in _PROTOCOL_VALUES.items():
            if getattr(self, field_) not in known:
                raise ValueError(f"protocol {self.name}: {field_}={getattr(self, field_)!r} is none of {known}")
        if self.rules and (self.orders != "none" or not {*self.rules} <= {"score", "rating"}):
            raise ValueError(f"protocol {self.name}: rules={self.rules}; expected score or rating, and orders='none'")
        if self.shows is not None and self.shows < 2:
            raise ValueError(f"protocol {self.name}: shows={self.shows}; two responses are the fewest")


_PROTOCOL_VALUES = {
    "reads": ("choices", "text"),
    "orders": ("none", "swap", "rotate"),
    "reference": ("", "optional", "required"),
}


@dataclass(frozen=True, eq=False)  # its functions may be any callables, hashable or not
class Attack:
    """A way of rewriting a response that should not change its quality.

    Attributes:
        name: the value of ``--attack``.
        summary: one line.
        rewrite: the rule: rewrites a turn of a response, under constraints; an integer varies its choices.
        marker: measures the intended feature in a text (more is more); None for a control, which intends none.
        default: whether it is used when no attack is named.
        severity: how many of the constraints it breaks, if it lowers quality on purpose; else None.
        max_new_content: largest share of content words that may be new in a faithful rewrite, 0 to 1; None: no limit.
        prompt: prompt for a generator model, with any of the slots ``question``, ``response``, ``requirements`` and
            ``feedback``; None leaves the writing to ``rewrite``.
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
        """Whether the attack distracts no judge and only measures the noise."""
        return self.marker is None and self.severity is None


@dataclass(frozen=True)
class Degradation:
    """A response made worse by a known amount, and perhaps distracting too (``severity-2+assertiveness``)."""

    lower: Attack  # an attack with a severity
    distractor: Attack | None = None  # applied to the worse response

    @property
    def name(self) -> str:
        """The value of ``--attack``."""
        return self.lower.name + (f"+{self.distractor.name}" if self.distractor else "")

    @property
    def severity(self) -> int:
        """How many constraints the worse response breaks."""
        assert self.lower.severity is not None
        return self.lower.severity


class OpenRequests(list[Request]):
    """Requests of plans that do not wait for each other: ``PENDING`` may stand in for some replies."""


PENDING = Reply(failure="still to come")
"""Compared with replies by identity."""


@dataclass(frozen=True, slots=True)
class PlanResult(Generic[T]):
    """The value that a plan returned."""

    value: T


def is_enough(requests: Sequence[Request], replies: Sequence[Reply]) -> bool:
    """Whether a plan can receive these replies: all of them, or any if its requests are ``OpenRequests``."""
    pending = sum(reply is PENDING for reply in replies)
    return not pending or (isinstance(requests, OpenRequests) and pending < len(replies))


def step(plan: Plan[T], replies: Sequence[Reply] | None = None) -> Sequence[Request] | PlanResult[T]:
    """Start a plan, or send it replies; returns its next requests or its result."""
    try:
        return next(plan) if replies is None else plan.send(replies)
    except StopIteration as done:
        return PlanResult(done.value)


def drive(plan: Plan[T], answer: Callable[[Sequence[Request]], Sequence[Reply] | PlanResult[T]]) -> T:
    """Drive a new plan to its result; ``answer`` returns the replies to a round, or a ``PlanResult`` to end with."""
    requests = step(plan)
    while not isinstance(requests, PlanResult):
        replies = answer(requests)
        requests = replies if isinstance(replies, PlanResult) else step(plan, replies)
    return requests.value


def tap(
    plan: Plan[T],
    on_requests: Callable[[Sequence[Request]], Sequence[Request] | PlanResult[T]] = lambda requests: requests,
    on_replies: Callable[[Sequence[Request], Sequence[Reply]], PlanResult[T] | None] = lambda requests, replies: None,
    guard: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Plan[T]:
    """Watch or change what passes between a plan and its driver; close the plan, however it ends.

    ``on_requests`` receives what the plan yields and returns what to yield instead; ``on_replies`` receives that and
    the replies, some ``PENDING``. Either may return a ``PlanResult`` to end. ``guard`` makes the context for each step
    of the plan; neither function runs in it.
    """
    replies: Sequence[Reply] | None = None
    try:
        while True:
            with guard():
                requests = step(plan, replies)
            if isinstance(requests, PlanResult) or isinstance(requests := on_requests(requests), PlanResult):
                return requests.value
            replies = yield requests
            if end := on_replies(requests, replies):
                return end.value
    finally:
        with suppress(RuntimeError):  # a plan that keeps asking instead of ending
            plan.close()


@dataclass(slots=True)
class _Child:
    index: int
    plan: Plan[Any]
    requests: Sequence[Request] = ()  # its last ones
    replies: list[Reply] | None = None  # to those, so far; None before the plan is started
    pending: Sequence[Request] = ()

    def receive(self, replies: Iterator[Reply]) -> bool:
        """Take the replies to the pending requests; returns whether the plan can go on."""
        assert self.replies is not None
        self.replies = [next(replies) if reply is PENDING else reply for reply in self.replies]
        pairs = zip(self.requests, self.replies, strict=True)
        self.pending = [request for request, reply in pairs if reply is PENDING]
        return is_enough(self.requests, self.replies)


def gather(plans: Sequence[Plan[T]]) -> Plan[list[T]]:
    """Step new plans together, so that a round is one batch and none waits for another; returns their results."""
    if len(plans) == 1:
        return [(yield from plans[0])]
    results: dict[int, T] = {}

    def go_on(child: _Child) -> bool:
        requests = step(child.plan, child.replies)
        if isinstance(requests, PlanResult):
            results[child.index] = requests.value
            return False
        child.requests = child.pending = requests
        child.replies = [PENDING] * len(requests)
        return True

    waiting = [child for child in map(_Child, range(len(plans)), plans) if go_on(child)]
    while waiting:
        requests = OpenRequests(chain.from_iterable([child.pending for child in waiting]))
        replies = yield requests
        if len(replies) != len(requests):
            raise ValueError(f"{len(replies)} replies to {len(requests)} requests")
        # All receive before any goes on: the next step of one may depend on what is pending with another.
        arrived = iter(replies)
        ready = [child.receive(arrived) for child in waiting]
        waiting = [child for child, can_go_on in zip(waiting, ready, strict=True) if not can_go_on or go_on(child)]
    return [results[index] for index in range(len(plans))]
