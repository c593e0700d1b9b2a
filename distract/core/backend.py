"""Backends: requests in, replies out, nothing else.

A backend answers a round of requests at once (``Backend``) or each as it can (``StreamingBackend``: a server, or an
engine that schedules by itself).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from distract.core.errors import DistractError
from distract.core.records import Reply, Request
from distract.core.signals import is_stopping

Batch = Sequence[tuple[int, Reply]]
"""Replies that became available together, each with the index of its request."""


class Backend(Protocol):
    """What answers requests.

    Attributes:
        identity: everything about the model that determines its replies (model, revision, engine, dtype …);
            it never loads weights, and hashes a local folder's files once. It is part of every reply's key in the
            store.
        reads_slots: True when replies depend on ``Request.slots`` and not on the text alone.
    """

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything about the model that determines its replies."""
        ...

    @property
    def reads_slots(self) -> bool:
        """Whether replies depend on ``Request.slots``."""
        ...

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """Answer ``requests[i]`` for every i in ``wanted``, in any order, a batch at a time.

        A backend that packs several requests into one forward plans its packing over *all* of
        ``requests`` and then leaves out what is not wanted, so that the numbers of a resumed run are those of an
        uninterrupted one. Answers in words, which are handed over as each is complete, may differ by rounding.

        Args:
            requests: one round of the run, without repetitions.
            wanted: indices of those whose replies are not stored.

        Yields:
            Batches of (index, reply); each is stored before the next is asked for.

        Raises:
            BackendError: the model cannot be loaded or failed.
        """
        ...


class Stream(Protocol):
    """Requests under way at a backend that answers each as it can.

    Attributes:
        capacity: how many requests are worth having here at once, at least 1; more would only wait.
    """

    @property
    def capacity(self) -> int:
        """How many requests are worth having here at once."""
        ...

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request; returns at once. ``ticket`` comes back with its reply and is unique in this stream."""
        ...

    def collect(self, timeout: float) -> Batch:
        """The replies that came since the last call, as (ticket, reply); waits for the first, about ``timeout`` s.

        Raises:
            BackendError: the backend failed for good. What came before has been returned, or is by ``close``.
            UsageError: a server has no such model, or wants another key.
        """
        ...

    def halt(self) -> Collection[int]:
        """Send nothing more; returns the tickets of requests that are given up. The others are still collected."""
        ...

    def close(self) -> Batch:
        """Abandon what is under way, within a second or so; returns what came and was not collected."""
        ...


@runtime_checkable
class StreamingBackend(Backend, Protocol):
    """A backend that answers each request as it can; ``reply`` is ``reply_through(self.open(), ...)``."""

    def open(self) -> Stream:
        """Begin; the stream is closed by who opened it."""
        ...


@runtime_checkable
class ProbingBackend(Backend, Protocol):
    """A backend that has to learn how it is asked; see ``probing.settle``.

    Attributes:
        probes: requests to ask in this order, before any other.
    """

    @property
    def probes(self) -> Sequence[Request]:
        """Requests to ask in this order, before any other."""
        ...

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        """Ask as the reply to a probe says; returns all that is known by then, as JSON values."""
        ...


@runtime_checkable
class RemoteBackend(Backend, Protocol):
    """A backend whose model others run, and may exchange without a change of its identity."""

    @property
    def reported(self) -> Sequence[str]:
        """Names of the models that have answered so far, as the server says."""
        ...


@runtime_checkable
class LocalBackend(Backend, Protocol):
    """A backend that runs its model here and finds out in which way it can read prompts."""

    @property
    def used(self) -> str | None:
        """The way in which it has read prompts; None where it has read nothing yet."""
        ...


def reply_through(stream: Stream, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
    """What ``Backend.reply`` yields, from a stream, which is closed at the end.

    Raises:
        BackendError: the backend failed; what came before has been yielded.
    """
    left, under_way = sorted(wanted, reverse=True), 0
    try:
        while left or under_way:
            if is_stopping():
                left, under_way = [], under_way - len(stream.halt())
            while left and under_way < stream.capacity:
                stream.submit(left[-1], requests[left.pop()])
                under_way += 1
            if under_way and (batch := stream.collect(0.1)):
                under_way -= len(batch)
                yield batch
    except (DistractError, KeyboardInterrupt):
        if late := stream.close():
            yield late
        raise
    finally:
        stream.close()
