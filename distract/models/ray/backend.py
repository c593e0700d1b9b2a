"""A local model on many workers: the driver keeps plans and store, and sends batches to actors of a Ray cluster.

The requests of a round are cut into batches before any is sent. The cut is a function of the round alone, stored
requests included, so that a resumed run, or one on more workers with as many threads each, computes the same numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from weakref import WeakValueDictionary

from distract.core import backend
from distract.core.backend import StreamingBackend, reply_through
from distract.core.records import Request
from distract.models.ray.dispatch import AHEAD, Batch, Dispatcher, LoadableBackend, Pool


class Part:
    """The requests of a round that go to one worker together."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = tuple(requests)
        self.places = {request.key: index for index, request in enumerate(requests)}


def cut_round(requests: Sequence[Request], size: int) -> list[Part]:
    """Cut a round into parts of up to ``size``; prompts with the same beginning stay together."""

    def text(index: int) -> tuple[object, ...]:
        request = requests[index]
        return not request.choices, [message.content for message in request.messages], index

    order = sorted(range(len(requests)), key=text)
    return [Part([requests[index] for index in order[start : start + size]]) for start in range(0, len(order), size)]


class WorkerStream:
    """A ``RoundStream`` of requests at the workers of a dispatcher."""

    def __init__(self, dispatcher: Dispatcher, size: int) -> None:
        self.capacity = AHEAD * size * dispatcher.workers
        self._dispatcher, self._size = dispatcher, size
        self._parts = WeakValueDictionary[str, Part]()  # of the rounds in progress, by the key of a request
        self._filled: dict[Part, dict[int, int]] = {}  # tickets submitted since the last ``collect``

    def announce(self, requests: Sequence[Request]) -> object:
        """See ``RoundStream.announce``."""
        parts = cut_round(requests, self._size)
        self._parts.update((key, part) for part in parts for key in part.places)
        return parts

    def submit(self, ticket: int, request: Request) -> None:
        """See ``Stream.submit``."""
        part = self._parts.get(request.key) or Part([request])  # a probe belongs to no round
        self._filled.setdefault(part, {})[part.places[request.key]] = ticket

    def collect(self, timeout: float) -> backend.Batch:
        """See ``Stream.collect``."""
        for part, tickets in self._filled.items():
            self._dispatcher.add(Batch(part.requests, tickets))
        self._filled = {}
        return self._dispatcher.collect(timeout)

    def halt(self) -> Collection[int]:
        """See ``Stream.halt``."""
        unsent = [ticket for tickets in self._filled.values() for ticket in tickets.values()]
        self._filled = {}
        return [*unsent, *self._dispatcher.halt()]

    def close(self) -> backend.Batch:
        """See ``Stream.close``."""
        self.halt()
        return self._dispatcher.rest()


SIZE = 16
"""Most requests of a batch: fewer share less of their prompts, more leave workers idle at the end."""

STREAMED_SIZE = 256
"""The same for an engine that schedules its own work, and keeps many requests in flight."""


class RayWorkers:
    """A backend whose copies answer on ``width`` workers; replies are stored under the identity of one copy."""

    reads_slots = False

    def __init__(self, backend: LoadableBackend, pool: Pool, workers: int, *, name: str, placement: str = "") -> None:
        self.name, self.width, self.placement = name, workers, placement
        self._backend = backend
        self._dispatcher = Dispatcher(pool, workers, name)

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """See ``Backend.identity``."""
        return self._backend.identity

    @property
    def used(self) -> str | None:
        """See ``LocalBackend.used``."""
        return self._dispatcher.reading

    @property
    def alive(self) -> int:
        """See ``ParallelBackend.alive``."""
        return self._dispatcher.alive

    def open(self) -> WorkerStream:
        """See ``StreamingBackend.open``; workers start with the first request."""
        return WorkerStream(self._dispatcher, STREAMED_SIZE if isinstance(self._backend, StreamingBackend) else SIZE)

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[backend.Batch]:
        """See ``Backend.reply``."""
        stream = self.open()
        layout = stream.announce(requests)
        yield from reply_through(stream, requests, wanted)
        del layout  # until here, so that the stream knows the round
