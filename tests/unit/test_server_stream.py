"""Test that closing a stream in a thread is complete even with a slow session."""

import asyncio
import threading
from typing import Any

from builders import request

from distract.core.records import Reply, Request
from distract.models.server.requests import Session
from distract.models.server.stream import ThreadedStream


class Slow(Session):
    """Answers at once and closes slowly."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    async def answer(self, request: Request) -> Reply:
        return Reply(text="x")

    def halt(self) -> set[asyncio.Task[Any] | None]:
        return set()

    async def close(self) -> None:
        await asyncio.sleep(1.2)
        self.gone.set()


def test_slow_connections_are_closed_completely() -> None:
    # The garbage collector reports an open connection later, as a warning in another test.
    session = Slow()
    stream = ThreadedStream(session, capacity=1)
    stream.submit(0, request("x"))
    assert stream.collect(20.0) == [(0, Reply(text="x"))]
    assert stream.close() == []
    assert session.gone.wait(20.0)
