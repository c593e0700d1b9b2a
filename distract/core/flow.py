"""The run loop for backends that answer each request as it can: no plan waits for another.

Plans are started as long as fewer requests are under way than the backends bear, and each goes on as soon as its own
replies are there; results come in the order of the plans all the same. What another run on the same store asks is put
aside until its reply is stored, or the other run has given it up. Flow knows nothing of protocols, attacks or measures,
nor how a backend does it.
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

from distract.core.backend import Batch, Stream, StreamingBackend
from distract.core.errors import DistractError
from distract.core.exchange import ask_probes
from distract.core.locks import PAUSE, Claims
from distract.core.plan import PENDING, Plan, PlanResult, T, is_enough, step
from distract.core.records import Reply, Request, Role
from distract.core.signals import GRACE, StopSignal, check_signal, hold_signals, is_stopping
from distract.core.store import Store
from distract.core.usage import Answerer, Tally

POLL_SECONDS = 0.1
"""Seconds to wait for a reply before looking around: whether the process is to end, and what other runs have stored."""


@dataclass(slots=True)
class _Channel:
    """A stream with what waits for it and what is under way.

    ``settle`` is called before the first request is sent; ``under_way`` has the request of each ticket and its key,
    and ``aside`` what other runs asked when last ``looked`` at. Models of several roles may share a line.
    """

    stream: Stream
    store: Store
    claims: Claims
    settle: Callable[[], None]
    is_settled: bool = False
    waiting: deque[tuple[bytes, Request]] = field(default_factory=deque)
    under_way: dict[int, tuple[bytes, Request]] = field(default_factory=dict)
    aside: list[tuple[bytes, Request]] = field(default_factory=list)
    looked: float = 0.0
    tickets: int = 0

    def fill(self) -> dict[bytes, Reply]:
        """Submit what waits and nobody else asks, as far as there is room; returns what others have stored."""
        if self.aside and time.monotonic() >= self.looked + PAUSE:
            self.waiting.extendleft(reversed(self.aside))
            self.aside.clear()
            self.looked = time.monotonic()
        stored: dict[bytes, Reply] = {}
        while self.waiting and len(self.under_way) < self.stream.capacity and not is_stopping():
            if not self.is_settled:
                self.settle()
                self.is_settled = True
            room = min(len(self.waiting), self.stream.capacity - len(self.under_way))
            due = [self.waiting.popleft() for _ in range(room)]
            mine = self.claims.take(key for key, _ in due)
            here = self.store.get([key for key, _ in due if key in mine])
            self.claims.give_back(here)
            stored.update(here)
            for key, request in due:
                if key not in mine:
                    self.aside.append((key, request))
                elif key not in here:
                    self.tickets += 1
                    self.under_way[self.tickets] = key, request
                    self.stream.submit(self.tickets, request)
        return stored

    def halt(self) -> None:
        """Send nothing more."""
        for ticket in self.stream.halt():
            self.under_way.pop(ticket, None)

    @property
    def load(self) -> int:
        return len(self.waiting) + len(self.under_way) + len(self.aside)


@dataclass(slots=True, eq=False)
class _ActivePlan:
    """A plan under way: what it asked last, and all that it has heard."""

    index: int
    plan: Plan[Any]
    asked: Sequence[Request] = ()
    keys: list[bytes] = field(default_factory=list)
    heard: dict[bytes, Reply] = field(default_factory=dict)


def execute_streaming(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Answerer],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order; arguments are those of ``loop.execute``."""
    run = _Scheduler(models, tally, progress)
    left, started, results, due = iter(plans), 0, dict[int, T](), 0
    exhausted = False
    with run, hold_signals(run.is_busy):
        while True:
            while not exhausted and run.can_start() and not is_stopping():
                if (plan := next(left, None)) is None:
                    exhausted = True
                    break
                results.update(run.start(_ActivePlan(started, plan)))
                started += 1
            while due in results:
                yield results.pop(due)
                due += 1
            if exhausted and due == started:
                return
            if is_stopping():
                run.drain()
            results.update(run.collect())


class _Scheduler:
    """The lines to the backends, and who waits for what."""

    def __init__(self, models: Mapping[Role, Answerer], tally: Tally, progress: Callable[[Tally], None] | None) -> None:
        self._tally, self._progress = tally, progress
        self._lines: dict[Role, _Channel] = {}
        self._distinct: list[_Channel] = []
        self._owners: dict[bytes, list[_ActivePlan]] = {}
        self._unanswered: dict[bytes, Reply] = {}
        claims: dict[Path, Claims] = {}
        with ExitStack() as stack:
            for role, (backend, store) in models.items():
                shared = [other for other in self._lines if models[other][0] is backend]
                assert isinstance(backend, StreamingBackend)
                if shared:
                    self._lines[role] = self._lines[shared[0]]
                    continue
                if store.path not in claims:
                    claims[store.path] = stack.enter_context(store.claims())
                mine = claims[store.path]
                begin = partial(ask_probes, role, (backend, store), tally, mine)
                line = self._lines[role] = _Channel(backend.open(), store, mine, begin)
                self._distinct.append(line)
                stack.callback(self._close, line)
            self._end = stack.pop_all()

    def __enter__(self) -> _Scheduler:
        return self

    def __exit__(self, *problem: Any) -> None:
        """Stop all that is under way and keep what has come; where something failed, wait for the rest a little.

        A signal may have come while something failed, and then ends the run in its place. One may also have come while
        a model was asked its probes: that wait is over, the one for the other models is not.
        """
        with self._end:
            causes = (problem[1], getattr(problem[1], "__context__", None))
            is_held = isinstance(problem[1], StopSignal) and not problem[1].is_urgent
            # After the wait that a signal asks for, nothing is under way any more.
            if self.is_busy() and (is_held or any(isinstance(one, Exception) for one in causes)):
                self._drain(GRACE)

    def is_busy(self) -> bool:
        """Whether requests are under way that are paid for."""
        return any(line.under_way for line in self._distinct)

    def can_start(self) -> bool:
        """Whether another plan should be started: every plan may come to ask any of the models."""
        return all(line.load < line.stream.capacity for line in self._distinct)

    def start(self, going: _ActivePlan) -> dict[int, Any]:
        """Begin a plan; returns its result by its index if it is done already."""
        return self._send(going, None) or self._advance(going)

    def collect(self) -> dict[int, Any]:
        """Wait for replies and go on with the plans that they are for; returns the results of those that are done."""
        results: dict[int, Any] = {}
        for line in self._distinct:
            self._fill(line, results)
        busy = [line for line in self._distinct if line.under_way]
        if not busy and not results:
            time.sleep(PAUSE)  # everything is asked by other runs
        for line in busy:
            # With several, none may be kept waiting while another has nothing to say.
            batch = line.stream.collect(POLL_SECONDS / 2 if len(busy) > 1 else POLL_SECONDS)
            self._deliver(self._receive(line, batch), results)
            self._fill(line, results)
        return results

    def drain(self) -> None:
        """Keep what is under way until all has come or the process is stopped, which is asked to end."""
        self._drain(math.inf)
        check_signal()

    def _drain(self, seconds: float) -> None:
        """Send nothing more, and keep what is under way as it comes; one line that fails stops no other."""
        for line in self._distinct:
            line.halt()
        end, left = time.monotonic() + seconds, list(self._distinct)
        while (left := [line for line in left if line.under_way]) and time.monotonic() < end:
            for line in list(left):
                try:
                    batch = line.stream.collect(POLL_SECONDS / 2)
                except DistractError:
                    left.remove(line)  # it failed for good
                    continue
                with suppress(DistractError):  # the store says where it keeps what it could not take
                    self._receive(line, batch)

    def _close(self, line: _Channel) -> None:
        self._receive(line, line.stream.close())
        self._tally.unshared = self._tally.unshared or line.claims.fault

    def _fill(self, line: _Channel, results: dict[int, Any]) -> None:
        """Keep a line busy, and go on with the plans whose replies other runs have stored."""
        while stored := line.fill():
            self._count_stored(len(stored))
            self._deliver(stored, results)

    def _deliver(self, replies: Mapping[bytes, Reply], results: dict[int, Any]) -> None:
        """Hand replies to the plans that wait for them; ``results`` gains those of plans that are done."""
        moved: dict[int, _ActivePlan] = {}
        for key, reply in replies.items():
            for going in self._owners.pop(key):
                going.heard[key] = reply
                moved[going.index] = going
        for going in moved.values():
            results.update(self._advance(going))

    def _receive(self, line: _Channel, batch: Batch) -> dict[bytes, Reply]:
        """Store a batch and count it; returns the replies by key."""
        if not batch:
            return {}
        received = [(*line.under_way[ticket], reply) for ticket, reply in batch]
        replies = {key: reply for key, _, reply in received}
        try:
            line.store.put(replies.items())
        except DistractError:
            self._forget(line, batch)
            raise
        line.claims.give_back(replies)
        self._forget(line, batch)
        for key, request, reply in received:
            self._tally.count_replies(request.to, [reply])
            if not reply.answered:
                self._unanswered[key] = reply
        if self._progress:
            self._progress(self._tally)
        return replies

    def _forget(self, line: _Channel, batch: Batch) -> None:
        """Take what has come for no longer under way: only now, since a signal may come while it is being stored."""
        for ticket, _ in batch:
            del line.under_way[ticket]

    def _count_stored(self, number: int) -> None:
        self._tally.stored += number
        if number and self._progress:
            self._progress(self._tally)

    def _advance(self, going: _ActivePlan) -> dict[int, Any]:
        """Send a plan what is there, until it is done or waits."""
        while is_enough(going.asked, replies := [going.heard.get(key, PENDING) for key in going.keys]):
            if results := self._send(going, replies):
                return results
        return {}

    def _send(self, going: _ActivePlan, replies: Sequence[Reply] | None) -> dict[int, Any]:
        """Take a plan one step further; returns its result by its index if it is done."""
        asked = step(going.plan, replies)
        if isinstance(asked, PlanResult):
            return {going.index: asked.value}
        self._queue_requests(going, asked)
        return {}

    def _queue_requests(self, going: _ActivePlan, asked: Sequence[Request]) -> None:
        """Note what a plan waits for, and queue what nobody has asked for and no store holds."""
        going.asked = asked
        going.keys = [self._lines[request.to].store.key(request) for request in asked]
        fresh: dict[bytes, Request] = {}
        for key, request in zip(going.keys, asked, strict=True):
            if key in going.heard or key in fresh:
                continue
            if key in self._unanswered:
                going.heard[key] = self._unanswered[key]
            elif key in self._owners:
                if going not in self._owners[key]:
                    self._owners[key].append(going)
            else:
                fresh[key] = request
        self._tally.ask(fresh.values())
        for line in self._distinct:
            mine = [key for key, request in fresh.items() if self._lines[request.to] is line]
            found = line.store.get(mine) if mine else {}
            going.heard.update(found)
            for key in mine:
                if key not in found:
                    self._owners[key] = [going]
                    line.waiting.append((key, fresh[key]))
            self._count_stored(len(found))
