"""A stream to a backend in use by the run loop: its queue, and the requests in flight."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from distract.core.backend import RoundStream, Stream, StreamingBackend, find_limit
from distract.core.locks import PAUSE, Claims
from distract.core.records import Reply, Request
from distract.core.signals import is_stopping
from distract.core.store import Store


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
