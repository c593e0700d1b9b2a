"""A local model on many workers: the driver keeps plans and store, and sends batches to actors of a Ray cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from distract.core.backend import Batch, StreamingBackend
from distract.core.records import Request
from distract.models.ray.dispatch import Dispatcher, Pool, cut_batches
from distract.models.ray.loadable import LoadableBackend

SIZES = (8, 32)
"""Least and most requests of a batch: fewer share less of their prompts, more leave workers idle at the end."""

STREAMED_SIZES = (64, 512)
"""The same for an engine that keeps many requests in flight by itself."""

ROUNDS = 4
"""Batches for each worker in a round, so that none waits long for the others."""


class RayWorkers:
    """A backend whose copies answer on ``width`` workers; replies are stored under the identity of one copy."""

    reads_slots = False

    def __init__(self, backend: LoadableBackend, pool: Pool, workers: int, *, name: str, placement: str = "") -> None:
        self.name, self.width, self.placement = name, workers, placement
        self._backend = backend
        self._sizes = STREAMED_SIZES if isinstance(backend, StreamingBackend) else SIZES
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

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``; yields a batch as soon as a worker has answered it."""
        least, most = self._sizes
        size = max(least, min(most, math.ceil(len(requests) / (ROUNDS * self.width))))
        yield from self._dispatcher.answer(cut_batches(requests, wanted, least, size))
