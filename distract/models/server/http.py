"""Calls to one server over HTTP: JSON both ways, bounded in size, and scrubbed of keys before any other use.

The HTTP client is the one that the ``openai`` package installs. That package's own client is not used: it sends
settings from the environment (organization, project, more headers) to any server, and reads answers of any size.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar

from distract.models.server.faults import TransientError, read_refusal, translate_error
from distract.models.server.secrets import Scrub, scrub_values

Read = TypeVar("Read")

MOST = 16 * 2**20
"""Maximum bytes of a body, compressed or not: a hundred times the longest answer with its log-probabilities."""

LARGE = 100_000
"""Bytes above which a body is large: only a few such bodies are received at once, and another thread reads them."""

STEP = 2**16
"""Maximum bytes to unpack at once."""

PLACES = 6
"""Number of large bodies received at once; others wait once they are large. Even with the maximum of 1,000 requests, a
server's bodies stay below 256 MB in total."""

_MB = f"{MOST // 2**20} MB"
_COMPRESSED = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}


class Client:
    """Calls to one server."""

    def __init__(self, http: Any, address: str, *, timeout: float, scrub: Scrub) -> None:
        self.scrub = scrub
        self._http, self._address, self._timeout = http, address, timeout
        self._places, self._reading = asyncio.Semaphore(PLACES), asyncio.Lock()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(self, path: str, payload: Mapping[str, Any] | None, read: Callable[[object], Read]) -> Read:
        """The server's answer, its JSON passed through ``read``; large answers are read in another thread."""
        async with AsyncExitStack() as places:
            try:
                async with asyncio.timeout(self._timeout):
                    status, headers, body = await self._fetch(path, payload, places)
            except Exception as error:
                raise translate_error(error, self.scrub) from None
            answer = partial(self._read, status, headers, body, read)
            if len(body) <= LARGE:
                return answer()
            # Read one at a time, since values take many times the memory of their text.
            async with self._reading:
                return await asyncio.to_thread(answer)

    async def _fetch(
        self, path: str, payload: Mapping[str, Any] | None, places: AsyncExitStack
    ) -> tuple[int, Mapping[str, str], bytearray]:
        """Status, headers and body of an answer; a large body occupies one of the places."""
        url = path if "://" in path else f"{self._address}{path}"
        content = None if payload is None else json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        async with self._http.stream("GET" if payload is None else "POST", url, content=content) as response:
            headers = {str(name).lower(): self.scrub(str(value)) for name, value in response.headers.items()}
            body, has_place = _Body(headers.get("content-encoding", "")), False
            # Read raw bytes, since the client would unpack them without a bound.
            async for chunk in response.aiter_raw():
                while chunk:
                    chunk = body.add(chunk)
                    if len(body.data) > LARGE and not has_place:
                        await places.enter_async_context(self._places)
                        has_place = True
            return response.status_code, headers, body.data

    def _read(self, status: int, headers: Mapping[str, str], body: bytearray, read: Callable[[object], Read]) -> Read:
        is_answer = 200 <= status < 300
        try:
            data = scrub_values(json.loads(body), self.scrub)
        except (ValueError, RecursionError) as error:
            if is_answer:
                is_deep = isinstance(error, RecursionError)
                raise TransientError("the reply is nested too deeply" if is_deep else "the reply is not JSON") from None
            data = self.scrub(body.decode(errors="replace"))
        if is_answer:
            return read(data)
        raise read_refusal(status, headers, data, time.time())


class _Body:
    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in _COMPRESSED:
            raise TransientError("the reply is compressed in a way that was not requested")
        self.data = bytearray()
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if _COMPRESSED[name] else None
        self._received = 0

    def add(self, chunk: bytes) -> bytes:
        """Add a chunk; returns the part not yet unpacked, so that a bomb is unpacked bit by bit."""
        left = b""
        if self._inflate is None:
            self.data += chunk
        else:
            self._received += len(chunk)
            try:
                self.data += self._inflate.decompress(chunk, STEP)
            except zlib.error:
                raise TransientError("the reply is not compressed as the server says") from None
            left = self._inflate.unconsumed_tail
            self._received -= len(left)
        if max(len(self.data), self._received) > MOST:
            raise TransientError(f"the reply is larger than {_MB}")
        return left
