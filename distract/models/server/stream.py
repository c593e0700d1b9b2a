"""A stream whose requests run in a thread of their own, so that collecting replies can be interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Collection
from concurrent.futures import Future

from distract.core.backend import Batch
from distract.core.errors import BackendError
from distract.core.records import Reply, Request
from distract.models.server.requests import Session

_PATIENCE = 1.0
"""Seconds to wait for the thread when a stream closes."""

_CLOSE_TIME = 30.0
"""Seconds for the thread to close its connections, ample for a busy machine; after that nothing waits for it."""


class ThreadedStream:
    """A ``Stream`` of replies through a session in another thread."""

    def __init__(self, session: Session, capacity: int) -> None:
        self.capacity = capacity
        self._session = session
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._arrivals: queue.SimpleQueue[tuple[int, Reply] | Exception] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="distract-server", daemon=True)
        self._thread.start()

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request; returns at once."""
        if self._closed:
            raise BackendError("the stream is closed and accepts no more requests")
        self._loop.call_soon_threadsafe(self._begin, ticket, request)

    def collect(self, timeout: float) -> Batch:
        """Replies since the last call; waits at most ``timeout`` seconds for the first."""
        batch: list[tuple[int, Reply]] = []
        with contextlib.suppress(queue.Empty):
            while self._failure is None:
                item = self._arrivals.get(timeout=0.0 if batch else max(0.0, timeout))
                if isinstance(item, Exception):
                    self._failure = item
                else:
                    batch.append(item)
        if self._failure is not None and not batch:
            raise self._failure
        return batch

    def halt(self) -> Collection[int]:
        """See ``Stream.halt``; gives up requests that wait to start or to be retried."""
        given_up: Future[list[int]] = Future()
        self._loop.call_soon_threadsafe(lambda: given_up.set_result(self._halt()))
        return given_up.result()

    def close(self) -> Batch:
        """Abandon requests in flight; returns replies not yet collected."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon_threadsafe(self._done.set)
            # A thread that does not end in time blocks nothing: it is a daemon.
            self._thread.join(_PATIENCE)
        late = [self._arrivals.get_nowait() for _ in range(self._arrivals.qsize())]
        return [item for item in late if not isinstance(item, Exception)]

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._wait_done())

    async def _wait_done(self) -> None:
        await self._done.wait()
        # Cancel only these, since each ends the tasks that it started, in the right order.
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
        # A finished task has queued its reply.
        waiting = {task: ticket for task, ticket in self._tasks.items() if task not in sent and not task.done()}
        for task in waiting:
            task.cancel()
        return list(waiting.values())

    async def _answer_one(self, ticket: int, request: Request) -> None:
        try:
            reply = await self._session.answer(request)
        except Exception as error:
            # collect() raises it again, even if it is a bug: nothing else would show the errors of this thread.
            self._arrivals.put(error)
        else:
            self._arrivals.put((ticket, reply))
