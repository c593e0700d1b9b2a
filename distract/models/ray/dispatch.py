"""Spread the requests of a round over workers.

The round is cut into batches before any is sent, as a function of its requests alone, and a batch that returns to the
queue keeps its composition: which worker answers, and which one dies, changes no reply. Workers are seen through
``Pool``, so that tests and ``benchmarks/scale.py`` need no cluster.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from distract.core import backend
from distract.core.errors import BackendError
from distract.core.printable import count
from distract.core.records import NO_REPLY, Reply, Request
from distract.core.signals import is_stopping
from distract.models.transformers.embedded import print_note

DEATHS = 3
"""Deaths of workers after which a batch is halved to find the request that kills them."""

FAILED_STARTS = 5
"""Deaths in a row after which a worker that has answered nothing in between is given up."""

POLL_SECONDS = 0.1
_PATIENCE = 30.0
"""Seconds without any running worker after which the wait is explained."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that a worker gets together."""

    requests: tuple[Request, ...]
    places: tuple[int, ...]  # index of each request in the round
    wanted: frozenset[int]  # indexes in ``requests`` of those without a reply
    deaths: int = 0  # workers that died over it

    def halve(self) -> list[Batch]:
        """Split the wanted requests into two batches, each of which is split at its first death."""
        wanted = sorted(self.wanted)
        middle = len(wanted) // 2
        return [
            Batch(
                tuple(self.requests[index] for index in part),
                tuple(self.places[index] for index in part),
                frozenset(range(len(part))),
                DEATHS - 1,
            )
            for part in (wanted[:middle], wanted[middle:])
        ]


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded its model."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Replies to the wanted requests of a batch, and the way in which the worker read the prompts, if known."""

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

    def send(self, worker: int, batch: Batch) -> None:
        """Give a batch to an idle worker and return at once; ``Answers`` follow, or ``Lost`` or ``Failed``."""

    def wait(self, timeout: float) -> Sequence[tuple[int, Outcome]]:
        """Return outcomes since the last call; wait at most ``timeout`` seconds for the first."""

    def stop(self) -> None:
        """End all workers and forget their outcomes; they can be started again."""


def cut_batches(requests: Sequence[Request], wanted: frozenset[int], least: int, most: int) -> list[Batch]:
    """Cut a round into batches in the order of its plans; prompts that share their beginning stay together.

    ``least`` and ``most`` bound the number of requests of a batch. Stored requests stay in their batch, because
    replies depend on its composition; a batch of stored requests alone is left out.
    """

    def text(index: int) -> tuple[object, ...]:
        request = requests[index]
        return not request.choices, [message.content for message in request.messages], index

    order = sorted(range(len(requests)), key=text)
    parts = [order[start : start + most] for start in range(0, len(order), most)]
    if len(parts) > 1 and len(parts[-1]) < least:
        parts[-2:] = [parts[-2] + parts[-1]]
    batches = [
        Batch(
            tuple(requests[index] for index in part),
            tuple(part),
            frozenset(at for at, index in enumerate(part) if index in wanted),
        )
        for part in parts
    ]
    return sorted((batch for batch in batches if batch.wanted), key=lambda batch: min(batch.places))


@dataclass(slots=True)
class Dispatcher:
    """Gives batches to idle workers, and replaces workers that die."""

    pool: Pool
    workers: int
    name: str  # of the model, for messages
    reading: str | None = None  # the way in which workers read prompts
    _states: dict[int, Batch | None] = field(default_factory=dict)  # of running workers; None for an idle one
    _starting: set[int] = field(default_factory=set)
    _failed_starts: Counter[int] = field(default_factory=Counter)

    @property
    def alive(self) -> int:
        """The number of workers that are running."""
        return len(self._states)

    def answer(self, batches: Iterable[Batch]) -> Iterator[backend.Batch]:
        """Answer all batches; yields replies with their index in the round.

        If the process is stopping, sends nothing more and ends when nothing is in flight.
        """
        queue = deque(batches)
        is_finished = False
        try:
            if queue:
                self._start()
            idle_since = time.monotonic()
            while queue or any(self._states.values()):
                if is_stopping():
                    queue.clear()
                for worker, batch in self._states.items():
                    if batch is None and queue:
                        self._states[worker] = queue.popleft()
                        self.pool.send(worker, self._states[worker])  # type: ignore[arg-type]
                for worker, outcome in self.pool.wait(POLL_SECONDS):
                    if replies := self._take(worker, outcome, queue):
                        yield replies
                idle_since = self._explain_wait(idle_since)
            is_finished = True
        finally:
            if not is_finished:  # later rounds must not receive the replies of this one
                self.stop()

    def stop(self) -> None:
        """End all workers."""
        self.pool.stop()
        self._states.clear()
        self._starting.clear()

    def _start(self) -> None:
        for worker in range(self.workers):
            is_known = worker in self._states or worker in self._starting
            if not is_known and self._failed_starts[worker] < FAILED_STARTS:
                self._starting.add(worker)
                self.pool.start(worker)

    def _take(self, worker: int, outcome: Outcome, queue: deque[Batch]) -> backend.Batch:
        match outcome:
            case Ready():
                self._starting.discard(worker)
                self._states[worker] = None
            case Answers(replies, reading):
                batch = self._states[worker]
                assert batch is not None
                self._states[worker], self.reading = None, reading
                self._failed_starts[worker] = 0
                return [(batch.places[index], reply) for index, reply in replies]
            case Failed(reason):
                raise BackendError(f"{self.name}: worker {worker + 1} of {self.workers}: {reason}")
            case Lost(reason):
                return self._replace(worker, reason, queue)
        return ()

    def _replace(self, worker: int, reason: str, queue: deque[Batch]) -> backend.Batch:
        """Start another worker in the place of a dead one; its batch goes first."""
        batch = self._states.pop(worker, None)
        self._starting.discard(worker)
        self._failed_starts[worker] += 1
        is_given_up = self._failed_starts[worker] >= FAILED_STARTS
        what = "is given up" if is_given_up else "is started again"
        print_note(f"{self.name}: worker {worker + 1} was lost ({reason}); it {what}")
        if is_given_up and not self._states and not self._starting:
            raise BackendError(f"{self.name}: no worker is left, since each died {FAILED_STARTS} times in a row")
        self._start()
        if batch is None:
            return ()
        batch = replace(batch, deaths=batch.deaths + 1)
        if batch.deaths < DEATHS:
            queue.appendleft(batch)
        elif len(batch.wanted) > 1:
            queue.extendleft(reversed(batch.halve()))
        else:
            (index,) = batch.wanted
            failure = f"{NO_REPLY}: {count(batch.deaths, 'worker')} died over this request"
            return [(batch.places[index], Reply(failure=failure))]
        return ()

    def _explain_wait(self, since: float) -> float:
        """Print a note if no worker has run for long; returns since when."""
        now = time.monotonic()
        if self._states or since == math.inf:
            return now if self._states else since
        if now - since < _PATIENCE:
            return since
        print_note(f"{self.name}: no worker runs yet; they load the model, or wait for resources of the cluster")
        return math.inf
