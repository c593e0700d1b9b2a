"""Backends take requests and return replies.

A backend answers a round of requests at once (``Backend``), or each when it is ready (``StreamingBackend``: a server,
or an engine that schedules its own work).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from distract.core import plugin
from distract.core.errors import DistractError
from distract.core.records import Reply, Request, Role
from distract.core.signals import is_stopping

DATE: Mapping[str, str] = {
    "%d": "26", "%-d": "26", "%e": "26", "%b": "Jul", "%B": "July", "%m": "07", "%-m": "7", "%Y": "2024", "%y": "24",
    "%a": "Fri", "%A": "Friday", "%j": "208", "%F": "2024-07-26", "%H": "00", "%I": "12", "%M": "00", "%S": "00",
    "%p": "AM", "%h": "Jul", "%D": "07/26/24", "%x": "07/26/24", "%T": "00:00:00", "%X": "00:00:00", "%R": "00:00",
    "%c": "Fri Jul 26 00:00:00 2024",
}  # fmt: skip
"""The date that chat templates write as today's, by format code: one that moves would change a judge overnight."""

TEMPLATE: Mapping[str, Any] = {"enable_thinking": False, "date_string": f"{DATE['%d']} {DATE['%b']} {DATE['%Y']}"}
"""Values for chat templates on every engine and server: a verdict must not depend on who runs the model."""

Batch = Sequence[tuple[int, Reply]]
"""Replies that became available together, each with the index of its request."""


class Backend(Protocol):
    """A model that answers requests."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything about the model that determines its replies (model, revision, engine, dtype …).

        Part of every reply's key in the store. Reading it never loads weights; files of a local folder are hashed once.
        """

    @property
    def reads_slots(self) -> bool:
        """Whether replies depend on ``Request.slots`` and not on the text alone."""

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """Answer ``requests[i]`` for every i in ``wanted``, in any order, a batch at a time.

        Each batch is stored before the next is requested. A backend that packs several requests into one forward pass
        plans its packing over *all* of the round's distinct ``requests`` and then leaves out the others, so that a
        resumed run computes the same numbers as an uninterrupted one. Answers in words, which are yielded one by one
        as they complete, may differ by rounding. Raises ``BackendError`` if the model cannot be loaded or fails.
        """


class Stream(Protocol):
    """Requests in flight at a backend that answers each when it is ready."""

    @property
    def capacity(self) -> int:
        """The number of requests to keep in flight, at least 1; further ones would only wait."""

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request and return at once. ``ticket``, unique in this stream, identifies its reply."""

    def collect(self, timeout: float) -> Batch:
        """Return replies since the last call, as (ticket, reply); wait up to about ``timeout`` seconds for the first.

        Raises ``BackendError`` if the backend failed for good, and ``UsageError`` if a server lacks the model or
        rejects the key. Earlier replies have been returned, or ``close`` returns them.
        """

    def halt(self) -> Collection[int]:
        """Send nothing more; returns the tickets of abandoned requests. The others can still be collected."""

    def close(self) -> Batch:
        """Abandon the requests in flight, within about a second; returns uncollected replies."""


@runtime_checkable
class StreamingBackend(Backend, Protocol):
    """A backend that answers each request when it is ready; ``reply`` is ``reply_through(self.open(), ...)``."""

    def open(self) -> Stream:
        """Open a stream, which the caller closes."""


@runtime_checkable
class ProbingBackend(Backend, Protocol):
    """A backend that has to learn how to put its requests; see ``exchange.ask_probes``."""

    @property
    def probes(self) -> Sequence[Request]:
        """Requests to send in this order, before any other."""

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        """Adapt to the reply to a probe; returns everything learnt so far, as JSON values."""


@runtime_checkable
class RemoteBackend(Backend, Protocol):
    """A backend whose model runs elsewhere, where it may be replaced without a change of identity."""

    @property
    def reported(self) -> Sequence[str]:
        """Names of the models that have answered so far, as reported by the server."""

    @property
    def fingerprints(self) -> Sequence[str]:
        """Names of the configurations that have answered so far (``system_fingerprint``), likewise."""


@runtime_checkable
class PooledBackend(Backend, Protocol):
    """A backend whose model runs on servers that share the requests, and so must answer alike."""

    @property
    def members(self) -> Mapping[str, Backend]:
        """A backend for each server that is not left out, by name, that asks this one alone; at least one."""

    def hurry(self) -> Backend:
        """Return the same model, giving up soon where a server does not answer."""

    def leave_out(self, member: str) -> None:
        """Send nothing more to a server."""


@runtime_checkable
class LocalBackend(Backend, Protocol):
    """A backend that runs its model on this machine and finds out how it can read prompts."""

    @property
    def used(self) -> str | None:
        """The way in which it has read prompts; None if it has read none yet."""


def is_pinned(backend: Backend) -> bool:
    """Whether the identity of a model names its very weights, so that no other can answer in its place."""
    return isinstance(backend, LocalBackend)


@runtime_checkable
class RoundStream(Stream, Protocol):
    """A stream that sends the requests of a round in parts, whatever is stored of them.

    It takes a round as a whole; ``capacity`` only says when to begin with further plans.
    """

    def announce(self, requests: Sequence[Request]) -> object:
        """Learn the distinct requests of a round before any is submitted; they stay known as long as the result."""


@runtime_checkable
class ParallelBackend(StreamingBackend, Protocol):
    """A backend whose copies answer parts of a round at the same time; its streams are ``RoundStream``s."""

    @property
    def width(self) -> int:
        """The number of copies."""

    @property
    def alive(self) -> int:
        """The number of copies that are running."""

    @property
    def placement(self) -> str:
        """Where the copies run, in a few words."""


@runtime_checkable
class OwnBackend(Backend, Protocol):
    """A backend that brings its own protocols: a function, a reward model, a model with its user's prompt."""

    @property
    def protocols(self) -> tuple[plugin.Protocol, ...]:
        """The protocols to use when none is named, at least one."""

    @property
    def answers_others(self) -> bool:
        """Whether it can answer other protocols too, as a model can and a function cannot."""


def own_protocols(backend: Backend) -> tuple[plugin.Protocol, ...]:
    """Return the protocols that a backend brings; empty for most."""
    return backend.protocols if isinstance(backend, OwnBackend) else ()


def describe_rendering(models: Mapping[Role, Backend]) -> list[str]:
    """Say what had to be changed about prompts that chat templates make, by the identities of models."""
    thinking = "opens a thought, which is closed at once: the model answers without thinking"
    changes = {"thinking": thinking, "date": f"writes today's date, for which it gets {TEMPLATE['date_string']}"}
    pairs = [(role, changes[name]) for role, one in models.items() for name in changes if name in one.identity]
    return [f"the chat template of the {role} {change}" for role, change in pairs]


def find_limit(stream: Stream) -> float:
    """The number of requests to submit to a stream at most."""
    return math.inf if isinstance(stream, RoundStream) else stream.capacity


def reply_through(stream: Stream, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
    """Implement ``Backend.reply`` with a stream, and close the stream."""
    left, in_flight = sorted(wanted, reverse=True), 0
    try:
        while left or in_flight:
            if is_stopping():
                left, in_flight = [], in_flight - len(stream.halt())
            while left and in_flight < find_limit(stream):
                stream.submit(left[-1], requests[left.pop()])
                in_flight += 1
            if in_flight and (batch := stream.collect(0.1)):
                in_flight -= len(batch)
                yield batch
    except (DistractError, KeyboardInterrupt):
        if late := stream.close():
            yield late
        raise
    finally:
        stream.close()
