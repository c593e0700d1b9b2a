"""Plans: ways of judging, written as generators of requests.

``Plan[T]`` yields the requests it needs now, receives their replies in the same order, and returns a T. It reads like
the paper's description of the method and holds no backend, cache, retry, clock or thread. The same replies always
lead to the same requests, so that a run can resume by replay.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from distract.core.records import Reply, Request

T = TypeVar("T")
Plan = Generator[Sequence[Request], Sequence[Reply], T]


class OpenRequests(list[Request]):
    """Requests of plans that do not wait for each other: some replies may be ``PENDING``."""


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
    on_replies: Callable[
        [Sequence[Request], Sequence[Reply]], Sequence[Reply] | PlanResult[T] | None
    ] = lambda requests, replies: None,
    guard: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Plan[T]:
    """Watch or change the requests and replies between a plan and its driver; always close the plan.

    ``on_requests`` receives the plan's requests and returns the requests to yield instead; ``on_replies`` receives
    these and their replies, some ``PENDING``, and may return others to send instead. Either may return a ``PlanResult``
    to end. ``guard`` makes the context for each step of the plan; neither function runs in it.
    """
    replies: Sequence[Reply] | None = None
    try:
        while True:
            with guard():
                requests = step(plan, replies)
            if isinstance(requests, PlanResult) or isinstance(requests := on_requests(requests), PlanResult):
                return requests.value
            replies = yield requests
            changed = on_replies(requests, replies)
            if isinstance(changed, PlanResult):
                return changed.value
            replies = replies if changed is None else changed
    finally:
        with suppress(RuntimeError):  # a plan that keeps asking instead of ending
            plan.close()


@dataclass(slots=True)
class _Child:
    index: int
    plan: Plan[Any]
    requests: Sequence[Request] = ()  # the last ones it yielded
    replies: list[Reply] | None = None  # received so far for those; None before the plan is started
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
        # Let all plans receive before any continues: the next step of one may depend on pending requests of another.
        arrived = iter(replies)
        ready = [child.receive(arrived) for child in waiting]
        waiting = [child for child, can_go_on in zip(waiting, ready, strict=True) if not can_go_on or go_on(child)]
    return [results[index] for index in range(len(plans))]
