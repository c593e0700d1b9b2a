"""The run loop for backends that answer each request as it can: no plan waits for another.

Plans are started as long as fewer requests are under way than the backends bear, and each goes on as soon as its own
replies are there; results come in the order of the plans all the same. It knows nothing of protocols, attacks or
measures, nor how a backend does it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distract.backends import Batch, Stream, Streaming
from distract.plan import PENDING, Open, Plan, T
from distract.probes import settle
from distract.records import Reply, Request, Role
from distract.store import Store
from distract.tally import Model, Tally

PATIENCE = 0.5
"""Seconds to wait for a reply before looking around; a Ctrl-C does not wait for it."""


@dataclass(slots=True)
class _Line:
    """A stream with what waits for it and what is under way.

    ``settle`` is called before the first request is sent; ``under_way`` has the request of each ticket and its key.
    Models of several roles may share a line.
    """

    stream: Stream
    store: Store
    settle: Callable[[], None]
    is_settled: bool = False
    waiting: deque[tuple[bytes, Request]] = field(default_factory=deque)
    under_way: dict[int, tuple[bytes, Request]] = field(default_factory=dict)
    tickets: int = 0

    def fill(self) -> None:
        if self.waiting and not self.is_settled:
            self.settle()
            self.is_settled = True
        while self.waiting and len(self.under_way) < self.stream.capacity:
            self.tickets += 1
            self.under_way[self.tickets] = self.waiting.popleft()
            self.stream.submit(self.tickets, self.under_way[self.tickets][1])

    @property
    def load(self) -> int:
        return len(self.waiting) + len(self.under_way)


@dataclass(slots=True, eq=False)
class _Going:
    """A plan under way: what it asked last, and all that it has heard."""

    index: int
    plan: Plan[Any]
    asked: Sequence[Request] = ()
    keys: list[bytes] = field(default_factory=list)
    heard: dict[bytes, Reply] = field(default_factory=dict)


def flow(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Model],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order; arguments are those of ``run.execute``.

    Args:
        plans: started here, as many as keep the backends busy.
        models: all of whose backends are ``Streaming``.
        tally: counts what is used.
        progress: called after every batch of replies.

    Yields:
        The plans' results.

    Raises:
        BackendError: a backend failed; all replies received before are stored.
    """
    run = _Flow(models, tally, progress)
    left, started, results, due = iter(plans), 0, dict[int, T](), 0
    exhausted = False
    try:
        while True:
            while not exhausted and run.hungry():
                try:
                    going = _Going(started, next(left))
                except StopIteration:
                    exhausted = True
                    break
                started += 1
                results.update(run.start(going))
            while due in results:
                yield results.pop(due)
                due += 1
            if exhausted and due == started:
                return
            results.update(run.collect())
    finally:
        run.close()


class _Flow:
    """The lines to the backends, and who waits for what."""

    def __init__(self, models: Mapping[Role, Model], tally: Tally, progress: Callable[[Tally], None] | None) -> None:
        self._tally, self._progress = tally, progress
        self._lines: dict[Role, _Line] = {}
        self._owners: dict[bytes, list[_Going]] = {}
        self._unanswered: dict[bytes, Reply] = {}
        try:
            for role, (backend, store) in models.items():
                shared = [other for other in self._lines if models[other][0] is backend]
                assert isinstance(backend, Streaming)
                begin = partial(settle, role, (backend, store), tally)
                self._lines[role] = self._lines[shared[0]] if shared else _Line(backend.open(), store, begin)
        except BaseException:
            self.close()
            raise
        self._distinct = list({id(line): line for line in self._lines.values()}.values())

    def hungry(self) -> bool:
        """Whether another plan should be started: every plan may come to ask any of the models."""
        return all(line.load < line.stream.capacity for line in self._distinct)

    def start(self, going: _Going) -> dict[int, Any]:
        """Begin a plan; returns its result by its index if it is done already."""
        try:
            self._ask(going, next(going.plan))
        except StopIteration as done:
            return {going.index: done.value}
        return self._advance(going)

    def collect(self) -> dict[int, Any]:
        """Wait for replies and go on with the plans that they are for; returns the results of those that are done."""
        busy = [line for line in self._distinct if line.load]
        results: dict[int, Any] = {}
        for line in busy:
            line.fill()
        for line in busy:
            # With several, none may be kept waiting while another has nothing to say.
            batch = line.stream.collect(PATIENCE / 10 if len(busy) > 1 else PATIENCE)
            moved: dict[int, _Going] = {}
            for key, reply in self._receive(line, batch):
                for going in self._owners.pop(key):
                    going.heard[key] = reply
                    moved[going.index] = going
            for going in moved.values():
                results.update(self._advance(going))
            line.fill()
        return results

    def close(self) -> None:
        """Stop all that is under way and keep what has come."""
        for line in {id(line): line for line in self._lines.values()}.values():
            self._receive(line, line.stream.close())

    def _receive(self, line: _Line, batch: Batch) -> list[tuple[bytes, Reply]]:
        """Store a batch and count it; returns the replies by key."""
        if not batch:
            return []
        received = [(*line.under_way.pop(ticket), reply) for ticket, reply in batch]
        line.store.put((key, reply) for key, _, reply in received)
        for key, request, reply in received:
            self._tally.receive(request.to, [reply])
            if not reply.answered:
                self._unanswered[key] = reply
        if self._progress:
            self._progress(self._tally)
        return [(key, reply) for key, _, reply in received]

    def _advance(self, going: _Going) -> dict[int, Any]:
        """Send a plan what is there, until it is done or waits."""
        while True:
            replies = [going.heard.get(key, PENDING) for key in going.keys]
            pending = sum(reply is PENDING for reply in replies)
            if pending and (pending == len(replies) or not isinstance(going.asked, Open)):
                return {}
            try:
                self._ask(going, going.plan.send(replies))
            except StopIteration as done:
                return {going.index: done.value}

    def _ask(self, going: _Going, asked: Sequence[Request]) -> None:
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
            self._tally.stored += len(found)
            for key in mine:
                if key not in found:
                    self._owners[key] = [going]
                    line.waiting.append((key, fresh[key]))
            if found and self._progress:
                self._progress(self._tally)
