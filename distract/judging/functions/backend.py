"""A judge function as a backend: a request holds the arguments of a call, and its reply the verdict."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.backend import Batch, reply_through
from distract.core.plugin import Protocol
from distract.core.records import Reply, Request
from distract.judging.functions import verdicts
from distract.judging.functions.declaration import JudgeFunction
from distract.judging.functions.digest import identify
from distract.judging.functions.parameters import bind
from distract.judging.functions.protocol import make_protocol
from distract.judging.functions.stream import CallStream


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
        self.identity: Mapping[str, str] = identify(function)
        self.protocols: tuple[Protocol, ...] = (make_protocol(function, self._binding),)
        self.cache = function.cache
        self._settings: dict[str, Any] = {"most": concurrency, "timeout": timeout, "fail_fast": fail_fast}
        code = function.function
        is_async = inspect.iscoroutinefunction(inspect.unwrap(code)) or inspect.iscoroutinefunction(
            getattr(code, "__call__", None)  # noqa: B004
        )
        self._loop = start_loop(self) if is_async else None

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        return reply_through(self.open(), requests, wanted)

    def open(self) -> CallStream:
        """See ``StreamingBackend.open``."""
        return CallStream(self.name, self._call, self._read, loop=self._loop, **self._settings)

    def _call(self, request: Request) -> Any:
        positional, keywords = self._binding.arrange(json.loads(request.messages[0].content))
        return self._function.function(*positional, **keywords)

    def _read(self, value: object) -> Reply:
        if self._binding.compares:
            return verdicts.read_comparison(value)
        return verdicts.read_score(value, self._function)


def start_loop(owner: object) -> asyncio.AbstractEventLoop:
    """Start an event loop in a thread: a client that a function keeps is bound to the loop of its first call."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    threading.Thread(target=run, name="distract-judges", daemon=True).start()
    weakref.finalize(owner, loop.call_soon_threadsafe, loop.stop)
    return loop
