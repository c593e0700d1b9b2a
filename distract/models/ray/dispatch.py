"""Spread batches over workers, and replace workers that die.

A batch that returns to the queue keeps its composition: which worker answers, and which one dies, changes no reply.
Workers are seen through ``Pool``, so that tests and ``benchmarks/scale.py`` need no cluster.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from distract.core import backend
from distract.core.backend import Backend
from distract.core.errors import BackendError
from distract.core.printable import count
from distract.core.records import NO_REPLY, Reply, Request
from distract.models.transformers.embedded import print_note

DEATHS = 3
"""Deaths of workers after which a batch is halved to find the request that kills them."""

FAILED_STARTS = 5
"""Deaths in a row while it loads after which a worker is given up."""

POISONS = 3
"""Requests in a row over which workers die after which the run ends: the fault is not in the requests."""

_PATIENCE = 30.0
"""Seconds without any running worker after which the wait is explained."""

AHEAD = 2
"""Batches that a worker has at most: the one that it answers, and the next, so that it never waits for the driver."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that a worker gets together."""

    requests: tuple[Request, ...]
    tickets: Mapping[int, int]  # of those to answer, by index in ``requests``
    deaths: int = 0  # workers that died over it
    state: Literal["whole", "half", "alone"] = "whole"

    def split(self) -> list[Batch]:
        """The batches in the place of one over which too many workers died; none if a single request is left.

        Two halves first leave the composition as it is, since workers may have died by chance. If workers still die
        over one of them, nothing but its own requests is read.
        """
        pairs = sorted(self.tickets.items())
        if self.state == "half" or (len(pairs) == 1 < len(self.requests)):
            return [self._take(pairs, "alone")]
        middle = len(pairs) // 2
        parts = [part for part in (pairs[:middle], pairs[middle:]) if middle]
        return [self._take(part, "half" if self.state == "whole" else "alone") for part in parts]

    def _take(self, pairs: Sequence[tuple[int, int]], state: Literal["half", "alone"]) -> Batch:
        """Take some of the tickets; a batch that was split is split again at its first death."""
        if state == "half":
            return Batch(self.requests, dict(pairs), DEATHS - 1, state)
        requests = tuple(self.requests[index] for index, _ in pairs)
        return Batch(requests, {at: ticket for at, (_, ticket) in enumerate(pairs)}, DEATHS - 1, state)


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded its model."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Replies to the oldest batch of a worker by ticket, and how it read the prompts, if known."""

    replies: backend.Batch
    reading: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker has died."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker reports an error that any other worker would meet too."""

    reason: str


Outcome = Ready | Answers | Lost | Failed


class Pool(Protocol):
    """Workers by number, from 0."""

    def start(self, worker: int) -> None:
        """Start a worker, or one in the place of a dead one; ``Ready`` follows, or ``Lost`` or ``Failed``."""

    def give(self, worker: int, batch: Batch) -> None:
        """Give a batch to a running worker and return at once; ``Answers`` follow, or ``Lost`` or ``Failed``."""

    def wait(self, timeout: float) -> Sequence[tuple[int, Outcome]]:
        """Return outcomes since the last call; wait at most ``timeout`` seconds for the first.

        A worker answers its batches in order. ``Lost`` is reported once for all that it had, after its answers.
        """

    def stop(self) -> None:
        """End all workers and forget their outcomes; they can be started again."""

    def check(self) -> None:
        """Raise ``BackendError`` if no worker can start any more."""


@dataclass(slots=True)
class Dispatcher:
    """Gives batches to workers in the order in which they were added."""

    pool: Pool
    workers: int
    name: str  # of the model, for messages
    reading: str | None = None  # how workers read prompts
    _queue: deque[Batch] = field(default_factory=deque)
    _running: dict[int, deque[Batch]] = field(default_factory=dict)  # batches of each running worker, oldest first
    _starting: set[int] = field(default_factory=set)
    _failed_starts: Counter[int] = field(default_factory=Counter)
    _poisons: int = 0  # requests in a row over which workers died
    _failure: BackendError | None = None
    _idle_since: float | None = None  # since when no worker runs; None before the first is started
    _ready: list[tuple[int, Reply]] = field(default_factory=list)

    @property
    def alive(self) -> int:
        """The number of workers that are running."""
        return len(self._running)

    def add(self, batch: Batch) -> None:
        """Queue a batch."""
        self._queue.append(batch)

    def collect(self, timeout: float) -> backend.Batch:
        """Send what workers have room for, and return replies by ticket; wait about ``timeout`` seconds for the first.

        Raises ``BackendError`` if a worker cannot load its model, or none is left.
        """
        if self._failure:
            raise self._failure
        if self._queue:
            self._start()
        self._send()
        try:
            for worker, outcome in self.pool.wait(timeout):
                self._take(worker, outcome)
        except BackendError as error:
            self._stop()
            self._failure = error
            if not self._ready:
                raise
        self._send()
        self._explain_wait()
        return self._take_ready()

    def halt(self) -> list[int]:
        """Send nothing more; returns the tickets of batches that no worker has begun."""
        batches = [*self._queue]
        self._queue.clear()
        return [ticket for batch in batches for ticket in batch.tickets.values()]

    def rest(self) -> backend.Batch:
        """Return uncollected replies; workers that are busy end, since nobody waits for their replies."""
        if self._queue or any(self._running.values()):
            self._stop()
        self._failure = None
        return self._take_ready()

    def _take_ready(self) -> backend.Batch:
        ready, self._ready = self._ready, []
        return ready

    def _stop(self) -> None:
        self.pool.stop()
        self._queue.clear()
        self._running.clear()
        self._starting.clear()

    def _start(self) -> None:
        for worker in range(self.workers):
            is_known = worker in self._running or worker in self._starting
            if not is_known and self._failed_starts[worker] < FAILED_STARTS:
                self._starting.add(worker)
                self.pool.start(worker)

    def _send(self) -> None:
        for load in range(AHEAD):  # nobody gets a second batch before all have one
            for worker, batches in self._running.items():
                if self._queue and len(batches) == load and not (load and self._is_suspect(batches)):
                    batches.append(self._queue.popleft())
                    self.pool.give(worker, batches[-1])

    def _is_suspect(self, batches: Sequence[Batch]) -> bool:
        """Whether one of the batches of a worker, or the next one, must have its worker to itself.

        A worker that dies over a batch can take with it the answers to the one before, which would be blamed.
        """
        return any(batch.deaths for batch in (*batches, self._queue[0]))

    def _take(self, worker: int, outcome: Outcome) -> None:
        match outcome:
            case Ready():
                self._starting.discard(worker)
                self._running[worker] = deque()
                self._failed_starts[worker] = 0
            case Answers(replies, reading):
                self._running[worker].popleft()
                self.reading = reading
                self._poisons = 0
                self._ready.extend(replies)
            case Failed(reason):
                raise BackendError(f"{self.name}: worker {worker + 1} of {self.workers}: {reason}")
            case Lost(reason):
                self._replace(worker, reason)

    def _replace(self, worker: int, reason: str) -> None:
        """Start another worker in the place of a dead one; its batches go first."""
        batches = self._running.pop(worker, deque())
        if worker in self._starting:
            self._starting.discard(worker)
            self._failed_starts[worker] += 1
        is_given_up = self._failed_starts[worker] >= FAILED_STARTS
        what = "is given up" if is_given_up else "is started again"
        print_note(f"{self.name}: worker {worker + 1} was lost ({reason}); it {what}")
        if batches:
            batch = batches.popleft()
            self._queue.extendleft(reversed(batches))
            self._retry(replace(batch, deaths=batch.deaths + 1))
        if is_given_up and not self._running and not self._starting:
            raise BackendError(f"{self.name}: no worker is left: each died {FAILED_STARTS} times in a row as it loaded")

    def _retry(self, batch: Batch) -> None:
        """Queue a batch over which a worker died, or find the request that kills them."""
        if batch.deaths < DEATHS:
            self._queue.appendleft(batch)
        elif parts := batch.split():
            self._queue.extendleft(reversed(parts))
        else:
            failure = f"{NO_REPLY}: {count(batch.deaths, 'worker')} died over this request"
            self._ready.extend((ticket, Reply(failure=failure)) for ticket in batch.tickets.values())
            self._poisons += 1
            if self._poisons >= POISONS:
                raise BackendError(f"{self.name}: workers die over every request; look for the reason in their logs")

    def _explain_wait(self) -> None:
        """Print a note if no worker has run for long."""
        now = time.monotonic()
        if self._running or self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since > _PATIENCE:
            self.pool.check()
            print_note(f"{self.name}: no worker runs yet; they load the model, or wait for resources of the cluster")
            self._idle_since = now


class LoadableBackend(Backend, Protocol):
    """A backend that can be sent to another process before it has loaded its model."""

    def load(self) -> None:
        """Load the model now instead of at the first request."""
