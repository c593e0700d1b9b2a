"""The run loop for streaming backends: no plan waits for another.

Plans start while the backends have spare capacity, and each resumes as soon as its own replies arrive; results still
have the order of the plans. A request that another run on the same store has claimed is deferred until its reply is
stored or the claim is given up.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from distract.core.backend import Batch, RoundStream, Stream, StreamingBackend, find_limit
from distract.core.errors import DistractError
from distract.core.exchange import observe, settle
from distract.core.locks import PAUSE, Claims
from distract.core.plan import PENDING, Plan, PlanResult, T, is_enough, step
from distract.core.records import Reply, Request, Role
from distract.core.signals import GRACE, StopSignal, check_signal, hold_signals, is_stopping
from distract.core.store import Answerer, Store
from distract.core.usage import Tally


@dataclass(slots=True)
class Channel:
    """A stream with its queue and the requests in flight. Models of several roles may share a channel."""

    backend: StreamingBackend
    store: Store
    claims: Claims
    settle: Callable[[Sequence[Request]], bool]  # called before requests are sent, until it returns true
    stream: Stream = field(init=False)
    limit: float = field(init=False)  # requests in flight at most
    is_settled: bool = False
    fresh: dict[bytes, Request] = field(default_factory=dict)  # not yet looked up in the store
    waiting: deque[tuple[bytes, Request]] = field(default_factory=deque)
    in_flight: dict[int, tuple[bytes, Request]] = field(default_factory=dict)  # key and request, by ticket
    deferred: list[tuple[bytes, Request]] = field(default_factory=list)  # claimed by other runs when last checked
    checked: float = 0.0
    tickets: int = 0

    def __post_init__(self) -> None:
        self.stream = self.backend.open()
        self.limit = find_limit(self.stream)

    def announce(self, requests: Sequence[Request]) -> object:
        """Let the stream know the requests of a round as long as the result lives."""
        return self.stream.announce(requests) if requests and isinstance(self.stream, RoundStream) else None

    def fill(self) -> dict[bytes, Reply]:
        """Submit unclaimed requests while there is room; returns replies that others have stored."""
        if self.deferred and time.monotonic() >= self.checked + PAUSE:
            self.waiting.extendleft(reversed(self.deferred))
            self.deferred.clear()
            self.checked = time.monotonic()
        stored: dict[bytes, Reply] = {}
        while self.waiting and len(self.in_flight) < self.limit and not is_stopping():
            if not self.is_settled:
                self.is_settled = self.settle([request for _, request in self.waiting])
            room = int(min(len(self.waiting), self.limit - len(self.in_flight)))
            batch = [self.waiting.popleft() for _ in range(room)]
            claimed = self.claims.take(key for key, _ in batch)
            known = self.store.get([key for key, _ in batch if key in claimed])
            self.claims.give_back(known)
            stored.update(known)
            for key, request in batch:
                if key not in claimed:
                    self.deferred.append((key, request))
                elif key not in known:
                    self.tickets += 1
                    self.in_flight[self.tickets] = key, request
                    self.stream.submit(self.tickets, request)
        return stored

    def halt(self) -> None:
        for ticket in self.stream.halt():
            self.in_flight.pop(ticket, None)

    @property
    def load(self) -> int:
        return len(self.fresh) + len(self.waiting) + len(self.in_flight) + len(self.deferred)


POLL_SECONDS = 0.1
"""Seconds to wait for a reply before checking for signals and for replies that other runs have stored."""


@dataclass(slots=True, eq=False)
class _ActivePlan:
    """A plan in progress: its last requests and all replies it has received."""

    index: int
    plan: Plan[Any]
    requests: Sequence[Request] = ()
    keys: list[bytes] = field(default_factory=list)
    replies: dict[bytes, Reply] = field(default_factory=dict)
    rounds: list[object] = field(default_factory=list)  # what streams know of the last requests


def execute_streaming(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Answerer],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order."""
    run = _Scheduler(models, tally, progress)
    waiting, started, next_result = iter(plans), 0, 0
    exhausted = False
    with run, hold_signals(run.is_busy):
        while True:
            while not exhausted and run.can_start() and not is_stopping():
                if (plan := next(waiting, None)) is None:
                    exhausted = True
                    break
                run.start(_ActivePlan(started, plan))
                started += 1
            run.look_up()
            while next_result in run.results:
                yield run.results.pop(next_result)
                next_result += 1
            if exhausted and next_result == started:
                return
            if is_stopping():
                run.drain()
            run.collect()


class _Scheduler:
    """The channels to the backends, and the plans that wait for each request."""

    def __init__(self, models: Mapping[Role, Answerer], tally: Tally, progress: Callable[[Tally], None] | None) -> None:
        self.results: dict[int, Any] = {}  # of finished plans, by index
        self._tally, self._progress = tally, progress
        self._channels: dict[Role, Channel] = {}
        self._distinct: list[Channel] = []
        self._owners: dict[bytes, list[_ActivePlan]] = {}
        self._unanswered: dict[bytes, Reply] = {}
        claims: dict[Path, Claims] = {}
        with ExitStack() as stack:
            for role, (backend, store) in models.items():
                shared = [other for other in self._channels if models[other][0] is backend]
                assert isinstance(backend, StreamingBackend)
                if shared:
                    self._channels[role] = self._channels[shared[0]]
                    continue
                if store.path not in claims:
                    claims[store.path] = stack.enter_context(store.claims())
                shared_claims = claims[store.path]
                begin = partial(settle, role, (backend, store), tally=tally, claims=shared_claims)
                channel = self._channels[role] = Channel(backend, store, shared_claims, begin)
                self._distinct.append(channel)
                stack.callback(self._close, channel)
            self._end = stack.pop_all()

    def __enter__(self) -> _Scheduler:
        return self

    def __exit__(self, *problem: Any) -> None:
        """Stop all requests in flight and keep the replies so far; after a failure, wait briefly for the rest.

        A signal may have arrived during the failure, and then ends the run in its place. It may also have arrived while
        a model was being probed: that wait is over, but the other models still have to be waited for.
        """
        with self._end:
            causes = (problem[1], getattr(problem[1], "__context__", None))
            is_held = isinstance(problem[1], StopSignal) and not problem[1].is_urgent
            # If a signal asked to wait for requests in flight, there are none left.
            if self.is_busy() and (is_held or any(isinstance(cause, Exception) for cause in causes)):
                self._drain(GRACE)

    def is_busy(self) -> bool:
        return any(channel.in_flight for channel in self._distinct)

    def can_start(self) -> bool:
        return all(channel.load < channel.stream.capacity for channel in self._distinct)

    def start(self, active: _ActivePlan) -> None:
        if not self._send(active, None):
            self._advance(active)

    def look_up(self) -> None:
        """Answer requests from the store, and let those that it lacks wait for their turn."""
        while any(channel.fresh for channel in self._distinct):
            for channel in self._distinct:
                fresh, channel.fresh = channel.fresh, {}
                stored = channel.store.get(list(fresh)) if fresh else {}
                channel.waiting.extend((key, request) for key, request in fresh.items() if key not in stored)
                self._count_stored(len(stored))
                self._deliver(stored)

    def collect(self) -> None:
        count = len(self.results)
        for channel in self._distinct:
            self._fill(channel)
        busy = [channel for channel in self._distinct if channel.in_flight]
        if not busy and len(self.results) == count:
            time.sleep(PAUSE)  # other runs have claimed everything
        for channel in busy:
            # With several channels, a silent one must not hold up the others.
            batch = channel.stream.collect(POLL_SECONDS / 2 if len(busy) > 1 else POLL_SECONDS)
            self._deliver(self._receive(channel, batch))
            self._fill(channel)

    def drain(self) -> None:
        """Keep arriving replies until nothing is in flight, because the process was asked to end."""
        self._drain(math.inf)
        check_signal()

    def _drain(self, seconds: float) -> None:
        """Send nothing more, and keep replies as they arrive; a failing channel does not stop the others."""
        for channel in self._distinct:
            channel.halt()
        end, left = time.monotonic() + seconds, list(self._distinct)
        while (left := [channel for channel in left if channel.in_flight]) and time.monotonic() < end:
            for channel in list(left):
                try:
                    batch = channel.stream.collect(POLL_SECONDS / 2)
                except DistractError:
                    left.remove(channel)  # it failed for good
                    continue
                with suppress(DistractError):  # the store reports where it kept the rest
                    self._receive(channel, batch)

    def _close(self, channel: Channel) -> None:
        self._receive(channel, channel.stream.close())
        self._tally.unshared = self._tally.unshared or channel.claims.fault

    def _fill(self, channel: Channel) -> None:
        """Keep a channel busy, and resume the plans whose replies other runs have stored."""
        while stored := channel.fill():
            self._count_stored(len(stored))
            self._deliver(stored)

    def _deliver(self, replies: Mapping[bytes, Reply]) -> None:
        moved: dict[int, _ActivePlan] = {}
        for key, reply in replies.items():
            for active in self._owners.pop(key):
                active.replies[key] = reply
                moved[active.index] = active
        for active in moved.values():
            self._advance(active)

    def _receive(self, channel: Channel, batch: Batch) -> dict[bytes, Reply]:
        if not batch:
            return {}
        received = [(*channel.in_flight[ticket], reply) for ticket, reply in batch]
        replies = {key: reply for key, _, reply in received}
        try:
            channel.store.put(replies.items())
        except DistractError:
            self._forget(channel, batch)
            raise
        channel.claims.give_back(replies)
        self._forget(channel, batch)
        for key, request, reply in received:
            self._tally.count_replies(request.to, [reply])
            if not reply.answered:
                self._unanswered[key] = reply
        for role in {request.to for _, request, _ in received}:
            observe(channel.backend, role, self._tally)
        if self._progress:
            self._progress(self._tally)
        return replies

    def _forget(self, channel: Channel, batch: Batch) -> None:
        # Deliver only after storing, which a signal may interrupt.
        for ticket, _ in batch:
            del channel.in_flight[ticket]

    def _count_stored(self, number: int) -> None:
        self._tally.stored += number
        if number and self._progress:
            self._progress(self._tally)

    def _advance(self, active: _ActivePlan) -> None:
        while is_enough(active.requests, replies := [active.replies.get(key, PENDING) for key in active.keys]):
            if self._send(active, replies):
                return

    def _send(self, active: _ActivePlan, replies: Sequence[Reply] | None) -> bool:
        """Take a plan one step further; returns whether it is done."""
        requests = step(active.plan, replies)
        if isinstance(requests, PlanResult):
            self.results[active.index] = requests.value
            return True
        self._queue_requests(active, requests)
        return False

    def _queue_requests(self, active: _ActivePlan, requests: Sequence[Request]) -> None:
        active.requests = requests
        active.keys = [self._channels[request.to].store.key(request) for request in requests]
        open_ = {key: one for key, one in zip(active.keys, requests, strict=True) if key not in active.replies}
        active.rounds = [
            channel.announce([one for one in open_.values() if self._channels[one.to] is channel])
            for channel in self._distinct
        ]
        fresh: dict[bytes, Request] = {}
        for key, request in zip(active.keys, requests, strict=True):
            if key in active.replies or key in fresh:
                continue
            if key in self._unanswered:
                active.replies[key] = self._unanswered[key]
            elif key in self._owners:
                if active not in self._owners[key]:
                    self._owners[key].append(active)
            else:
                fresh[key] = request
                self._owners[key] = [active]
                self._channels[request.to].fresh[key] = request
        self._tally.ask(fresh.values())
