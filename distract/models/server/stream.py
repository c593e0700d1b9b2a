"""A stream whose requests are under way in a thread of its own, so that whoever collects can be interrupted.

It knows threads and queues; what answers a request is given to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import Protocol

from distract.core.backend import Batch
from distract.core.errors import BackendError
from distract.core.records import Reply, Request

_PATIENCE = 1.0
"""Seconds that whoever closes a stream waits for its thread."""

_CLOSE_TIME = 30.0
"""Seconds for its thread to let go of connections, which a busy machine may need; nobody waits for it by then."""


class RequestHandler(Protocol):
    """What answers requests, in an event loop."""

    async def answer(self, request: Request) -> Reply:
        """The reply to one request."""
        ...

    def halt(self) -> Collection[object]:
        """Send nothing more; returns the tasks whose requests are being answered."""
        ...

    async def close(self) -> None:
        """Let go of what is held."""
        ...


class ThreadedStream:
    """A ``Stream`` of what a session answers."""

    def __init__(self, session: RequestHandler, capacity: int) -> None:
        self.capacity = capacity
        self._session = session
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._came: queue.SimpleQueue[tuple[int, Reply] | Exception] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="distract-server", daemon=True)
        self._thread.start()

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request; returns at once."""
        if self._closed:
            raise BackendError("the stream is closed: it takes no more requests")
        self._loop.call_soon_threadsafe(self._begin, ticket, request)

    def collect(self, timeout: float) -> Batch:
        """The replies that came since the last call; waits ``timeout`` seconds at most for the first."""
        batch: list[tuple[int, Reply]] = []
        with contextlib.suppress(queue.Empty):
            while self._failure is None:
                item = self._came.get(timeout=0.0 if batch else max(0.0, timeout))
                if isinstance(item, Exception):
                    self._failure = item
                else:
                    batch.append(item)
        if self._failure is not None and not batch:
            raise self._failure
        return batch

    def halt(self) -> Collection[int]:
        """See ``Stream.halt``; what waits for its turn, or to be sent again, is given up."""
        given_up: Future[list[int]] = Future()
        self._loop.call_soon_threadsafe(lambda: given_up.set_result(self._halt()))
        return given_up.result()

    def close(self) -> Batch:
        """Abandon what is under way; returns what came and was not collected."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon_threadsafe(self._done.set)
            # A thread that does not end in time holds nobody up: it is a daemon.
            self._thread.join(_PATIENCE)
        late: list[tuple[int, Reply]] = []
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._came.get_nowait()
                if not isinstance(item, Exception):
                    late.append(item)
        return late

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._wait_done())

    async def _wait_done(self) -> None:
        await self._done.wait()
        # Only these: what they started in turn is ended by them, in the order in which it must be.
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._session.close(), _CLOSE_TIME)

    def _begin(self, ticket: int, request: Request) -> None:
        task = self._loop.create_task(self._answer_one(ticket, request))
        # The loop itself holds tasks only weakly.
        self._tasks[task] = ticket
        task.add_done_callback(self._tasks.pop)

    def _halt(self) -> list[int]:
        sent = self._session.halt()
        # One that is done has put its reply where it is collected.
        waiting = {task: ticket for task, ticket in self._tasks.items() if task not in sent and not task.done()}
        for task in waiting:
            task.cancel()
        return list(waiting.values())

    async def _answer_one(self, ticket: int, request: Request) -> None:
        try:
            reply = await self._session.answer(request)
        except Exception as error:
            # Raised again where replies are collected, mistakes of our own too: nobody looks into this thread.
            self._came.put(error)
        else:
            self._came.put((ticket, reply))
