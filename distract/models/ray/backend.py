"""A local model on many workers: the driver keeps plans and store, and sends batches to actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from distract.core.backend import Batch, StreamingBackend, reply_through
from distract.core.records import Request
from distract.models.ray.dispatch import Dispatcher, Pool
from distract.models.ray.loadable import LoadableBackend
from distract.models.ray.stream import WorkerStream

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

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        stream = self.open()
        layout = stream.announce(requests)
        yield from reply_through(stream, requests, wanted)
        del layout  # until here, so that the stream knows the round
