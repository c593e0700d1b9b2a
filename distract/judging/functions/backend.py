"""A judge function as a backend: a request holds the arguments of a call, and its reply the verdict.

Several calls run at once, in threads that a call without end cannot keep the run waiting for. A call that takes longer
than the time limit is *lost*: nobody waits for it any longer, and its thread may never come back. When as many calls
are lost as may run at once, the run ends.

Whatever a call raises is its verdict's fault: only the main thread, which calls nothing, receives Ctrl-C. A coroutine
that blocks its event loop is lost like any other call, and the others go on in a new loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import queue
import random
import threading
import time
import traceback
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from distract.core.backend import Batch, reply_through
from distract.core.errors import BackendError, describe_error, redirect_output
from distract.core.plugin import Protocol
from distract.core.records import NO_REPLY, Reply, Request
from distract.judging.functions import verdicts
from distract.judging.functions.declaration import CALL, RECORDS, JudgeFunction
from distract.judging.functions.digest import identify, list_changes
from distract.judging.functions.protocol import bind, make_protocol

QUEUED = 128
"""Calls that wait beside those in progress, so that the store answers and keeps many at a time."""

ATTEMPTS, PAUSE, IN_A_ROW = 6, 0.5, 3
"""Calls after which a lost connection of the function counts as no answer, seconds before the second one at most, and
requests in a row without an answer that end the run: as for a server."""

ALIVE = 1.0
"""Seconds in which an event loop that no call blocks answers."""

_CONNECTION_ERRORS = {"ConnectionError", "TimeoutError", "Timeout", "TransportError", "APIConnectionError",
                      "ClientConnectionError"}  # fmt: skip
"""Classes of Python, requests, httpx, openai, anthropic and aiohttp; no client need be installed."""

Call = Callable[[Request], Any]
"""Calls the function with the arguments in a request, or makes its coroutine."""


class CallStream:
    """A ``Stream`` of calls, at most ``most`` at once.

    ``call`` makes the call or, with loops to ``start``, its coroutine; ``read`` reads a value.
    """

    def __init__(
        self,
        name: str,
        call: Call,
        read: Callable[[object], Reply],
        *,
        most: int,
        timeout: float,
        fail_fast: bool,
        loops: Loops | None,
    ) -> None:
        self.capacity = most + QUEUED
        self._name, self._call, self._read = name, call, read
        self._most, self._timeout, self._fail_fast = most, timeout, fail_fast
        self._loops, self._tasks, self._room = loops, dict[int, Future[None]](), asyncio.Semaphore(most)
        self._running: dict[int, asyncio.Task[Any] | None] = {}  # the task of each coroutine in progress
        self._work: queue.SimpleQueue[tuple[int, Request] | None] = queue.SimpleQueue()
        self._arrivals: queue.SimpleQueue[tuple[int, Reply | BaseException]] = queue.SimpleQueue()
        self._pending: dict[int, Request] = {}  # requests whose replies are still wanted
        self._begun: dict[int, float] = {}  # when each call in progress began, by ticket
        self._threads = self._lost = self._given_up = 0
        self._is_halted = False
        self._failure: BackendError | None = None
        self._streams = contextlib.ExitStack()
        # Nothing that a function prints may get into the document on stdout.
        self._streams.enter_context(redirect_output())

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request; returns at once."""
        self._pending[ticket] = request
        if self._loops is not None:
            call = self._await_call(ticket, request, self._room)
            task = self._tasks[ticket] = asyncio.run_coroutine_threadsafe(call, self._loops.current)
            task.add_done_callback(partial(self._take_cancelled, ticket, self._room))
            return
        if self._threads - self._lost < min(len(self._pending), self._most):
            self._threads += 1
            threading.Thread(target=self._serve, name="distract-judge", daemon=True).start()
        self._work.put((ticket, request))

    def collect(self, timeout: float) -> Batch:
        """Replies since the last call; waits at most ``timeout`` seconds for the first."""
        self._check()
        arrivals: list[tuple[int, Reply | BaseException]] = []
        with contextlib.suppress(queue.Empty):
            while True:
                arrivals.append(self._arrivals.get(timeout=0.0 if arrivals else timeout))
        batch = []
        for ticket, arrival in arrivals:
            self._tasks.pop(ticket, None)
            if ticket in self._pending:  # else a lost call came back
                del self._pending[ticket]
                self._given_up = 0 if isinstance(arrival, Reply) else self._given_up
                if reply := arrival if isinstance(arrival, Reply) else self._fail(arrival):
                    batch.append((ticket, reply))
        batch = batch or self._drop_late()
        if not batch:
            self._check()
        return batch

    def halt(self) -> Collection[int]:
        """See ``Stream.halt``; gives up calls that have not begun."""
        self._is_halted = True
        waiting = self._pending.keys() - self._begun.keys()
        with contextlib.suppress(queue.Empty):
            while True:
                self._work.get_nowait()
        for ticket in waiting:
            del self._pending[ticket]
            if task := self._tasks.pop(ticket, None):
                task.cancel()
        return waiting

    def close(self) -> Batch:
        """Abandon calls in flight; returns replies not yet collected."""
        self.halt()
        for _ in range(self._threads):
            self._work.put(None)
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._streams.close()
        late = [self._arrivals.get_nowait() for _ in range(self._arrivals.qsize())]
        return [(ticket, reply) for ticket, reply in late if ticket in self._pending and isinstance(reply, Reply)]

    def _serve(self) -> None:
        while item := self._work.get():
            ticket, request = item
            for attempt in itertools.count(1):
                self._begun[ticket] = time.monotonic()
                try:
                    reply: Reply | BaseException = self._finish(self._call(request))
                except BaseException as error:
                    reply = error
                if not self._is_repeated(reply, attempt):
                    break
                delay = pause(attempt)
                self._begun[ticket] = time.monotonic() + delay  # the pause is not the call's time
                time.sleep(delay)
            self._arrivals.put((ticket, reply))
            self._begun.pop(ticket, None)

    async def _await_call(self, ticket: int, request: Request, room: asyncio.Semaphore) -> None:
        async with room:
            for attempt in itertools.count(1):
                if room is not self._room:  # another loop has taken the request
                    return
                self._begun[ticket], self._running[ticket] = time.monotonic(), asyncio.current_task()
                try:
                    call: Awaitable[object] = self._call(request)
                    reply: Reply | BaseException = self._finish(await call)
                except BaseException as error:
                    reply = error
                if not self._is_repeated(reply, attempt):
                    break
                delay = pause(attempt)
                self._begun[ticket] = time.monotonic() + delay
                await asyncio.sleep(delay)
            if room is self._room:
                self._arrivals.put((ticket, reply))
                self._begun.pop(ticket, None)

    def _take_cancelled(self, ticket: int, room: asyncio.Semaphore, task: Future[None]) -> None:
        """Reply for a call that another one cancelled before it began."""
        if task.cancelled() and room is self._room:
            self._arrivals.put((ticket, asyncio.CancelledError()))

    def _finish(self, value: object) -> Reply:
        if asyncio.iscoroutine(value):
            value.close()
            return Reply(failure="returned a coroutine that nobody awaited; declare the function with async def")
        return self._read(value)

    def _is_repeated(self, reply: Reply | BaseException, attempt: int) -> bool:
        is_lost = isinstance(reply, BaseException) and is_disconnection(reply)
        return is_lost and attempt < ATTEMPTS and not self._is_halted

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException) -> Reply | None:
        """Turn an error into a reply; None if it ends the run."""
        if isinstance(error, BackendError):  # the function itself says so
            self._failure = error
        elif is_disconnection(error):
            self._given_up += 1
            cause = f"{describe_error(error)}, {ATTEMPTS} attempts"
            if self._given_up < IN_A_ROW:
                return Reply(failure=f"{NO_REPLY}: {cause}")
            self._failure = BackendError(f"{self._name} reaches no server: {cause}")
        elif self._fail_fast:
            self._failure = BackendError(f"{self._name} raised {describe_error(error)}; --fail-fast stops here")
        else:
            return verdicts.fail(error, "".join(traceback.format_exception(error)))
        return None

    def _drop_late(self) -> list[tuple[int, Reply]]:
        begun, now = self._begun.copy(), time.monotonic()  # the threads change it
        late = [ticket for ticket, begin in begun.items() if ticket in self._pending and now - begin > self._timeout]
        if late and self._loops is not None and not self._loops.is_alive():
            late = self._leave_loop(self._loops, late)
        for ticket in late:
            del self._pending[ticket]
            if task := self._tasks.pop(ticket, None):
                task.cancel()
        self._lost += len(late)
        problem = f"did not return within {self._timeout:g} s"
        if self._lost < self._most:
            return [(ticket, Reply(failure=f"{NO_REPLY}: the function {problem}")) for ticket in late]
        self._failure = BackendError(
            f"{self._lost} calls of {self._name} {problem} each, as many as may run at once (--concurrency); give them "
            "longer with --timeout"
        )
        return []

    def _leave_loop(self, loops: Loops, late: list[int]) -> list[int]:
        """Go on in a new loop; returns the calls that block the old one, or all late ones where that is not known."""
        blocking = asyncio.current_task(loops.current)
        late = [ticket for ticket in late if self._running.get(ticket) is blocking] or late
        self._room = asyncio.Semaphore(self._most)
        for task in self._tasks.values():
            task.cancel()
        self._begun.clear()
        loops.renew()
        for ticket in [ticket for ticket in self._pending if ticket not in late]:
            self.submit(ticket, self._pending[ticket])
        return late


class FunctionBackend:
    """A backend that answers by calling a function; see ``OwnBackend``."""

    reads_slots = False
    answers_others = False

    def __init__(
        self,
        function: JudgeFunction,
        *,
        name: str = "",
        concurrency: int = 16,
        timeout: float = 120.0,
        fail_fast: bool = False,
    ) -> None:
        self.name, self._function = name or function.name, function
        self._binding = bind(function.function, self.name)
        self._places: dict[str, bytes] = {}
        self.identity: Mapping[str, str] = identify(function, self._places)
        self.protocols: tuple[Protocol, ...] = (make_protocol(function, self._binding),)
        self.cache = function.cache
        self._settings: dict[str, Any] = {"most": concurrency, "timeout": timeout, "fail_fast": fail_fast}
        code = function.function
        is_async = inspect.iscoroutinefunction(inspect.unwrap(code)) or inspect.iscoroutinefunction(
            getattr(code, "__call__", None)  # noqa: B004
        )
        self._loops = Loops(self) if is_async else None

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        return reply_through(self.open(), requests, wanted)

    def open(self) -> CallStream:
        """See ``StreamingBackend.open``."""
        return CallStream(self.name, self._call, self._read, loops=self._loops, **self._settings)

    def review(self) -> str:
        """Say once what the calls changed in the function; empty if nothing."""
        after, changed = dict[str, bytes](), list[str]()
        with contextlib.suppress(Exception):  # a lost call may be changing it now
            if self._places:
                identify(self._function, after)
                changed = list_changes(self._places, after)
        if not changed:
            return ""
        self._places = {}
        return (
            f"{self.name}: its {', '.join(changed[:3])} changed during the run; replies are stored under the state "
            "before the first call. Declare a version if no verdict depends on it, else cache=False"
        )

    def _call(self, request: Request) -> Any:
        CALL.set(request.key)
        positional, keywords = self._binding.arrange(json.loads(request.messages[0].content))
        return self._function.function(*positional, **keywords)

    def _read(self, value: object) -> Reply:
        for record in RECORDS:
            with contextlib.suppress(BaseException):  # to show a value runs foreign code
                record.append((CALL.get(), "returned", verdicts.show(value)))
        if self._binding.compares:
            return verdicts.read_comparison(value)
        return verdicts.read_score(value, self._function)


def is_disconnection(error: BaseException) -> bool:
    """Tell whether a connection failed, also where the function raised its own error about it."""
    for _ in range(20):  # a chain may be a circle
        if _CONNECTION_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
            return True
        earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if earlier is None:
            break
        error = earlier
    return False


def pause(attempt: int) -> float:
    """Seconds to wait after a failed attempt, as for a server."""
    from distract.models.server.requests import backoff

    return backoff(PAUSE, attempt, random.Random())


class Loops:
    """An event loop in a thread, renewed when it is blocked: a client that a function keeps is bound to its loop."""

    def __init__(self, owner: object) -> None:
        self._ended = threading.Event()
        weakref.finalize(owner, self._end)
        self.renew()

    def renew(self) -> None:
        """Start a loop in a new thread; nobody waits for the old one."""
        self.current = loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, args=(loop,), name="distract-judges", daemon=True).start()

    def is_alive(self) -> bool:
        """Whether the loop answers."""
        beat = threading.Event()
        self.current.call_soon_threadsafe(beat.set)
        return beat.wait(ALIVE)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while not self._ended.is_set():
                with contextlib.suppress(BaseException):  # a task of the function's own ended, or it stopped the loop
                    loop.run_forever()
        finally:
            loop.close()

    def _end(self) -> None:
        self._ended.set()
        self.current.call_soon_threadsafe(self.current.stop)
