"""Servers on this machine for tests: a scripted one that speaks OpenAI's protocol, and a proxy that injects faults."""

import asyncio
import contextlib
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from distract.models.server.capabilities import PROBES

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it came in; ``at`` is a time of ``time.monotonic``."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    at: float

    @property
    def body(self) -> dict[str, Any]:
        document = json.loads(self.raw or b"{}")
        assert isinstance(document, dict)
        return document

    @property
    def content(self) -> str:
        """The text of the last user message."""
        return str(next(m["content"] for m in reversed(self.body["messages"]) if m["role"] == "user"))

    @property
    def is_probe(self) -> bool:
        """Whether the request is a probe; a system message may be merged into it."""
        return self.path == CHAT and self.content.endswith(tuple(probe.messages[-1].content for probe in PROBES))


@dataclass(frozen=True)
class Answer:
    """The response to send: JSON, or raw bytes."""

    body: object = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    stalled: bool = False
    cut: bool = False

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def refusal(status: int, message: str, **more: str | None) -> Answer:
    """An error in OpenAI's form."""
    return Answer({"error": {"message": message, **more}}, status)


def completion(text: str | None, *, logprobs: object = None, finish: str = "stop", **message: object) -> dict[str, Any]:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    if logprobs is not None:
        choice["logprobs"] = {"content": logprobs}
    usage = {"prompt_tokens": 11, "completion_tokens": 2}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


def token(text: str, likely: Mapping[str, float] | None = None, p: float = 1.0) -> dict[str, Any]:
    """A token with the probabilities of the likely tokens at its place, which may include it."""
    likely = likely or {}
    listed = [{"token": name, "logprob": math.log(share)} for name, share in likely.items()]
    return {"token": text, "logprob": math.log(likely.get(text, p)), "top_logprobs": listed}


class Loopback:
    """A context manager: a server on a free port of 127.0.0.1, in its own thread."""

    def __init__(self) -> None:
        self.asked: list[ReceivedRequest] = []
        self.under_way = self.peak = self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._stopping = False
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def chats(self) -> list[ReceivedRequest]:
        """The requests for chat completions, without probes."""
        return [request for request in self.asked if request.path == CHAT and not request.is_probe]

    @property
    def probes(self) -> list[ReceivedRequest]:
        """The requests for chat completions that are probes."""
        return [request for request in self.asked if request.is_probe]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)

    def die(self) -> None:
        """Refuse connections from now on and reset those that are open."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    async def answer(self, request: ReceivedRequest) -> Answer:
        raise NotImplementedError

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        await self._stop()

    async def _stop(self) -> None:
        self._stopping = True
        # Closed in the middle of an accept, a server loses the socket without closing it. So it accepts no more, the
        # connections it has accepted become tasks, and only then is it closed.
        for listener in self._server.sockets:
            self._loop.remove_reader(listener.fileno())
        for _ in range(10):
            await asyncio.sleep(0)
        self._server.close()
        for task, writer in list(self._open.items()):
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while not self._stopping and (arguments := await _read(reader)) is not None:
                self.asked.append(arguments)
                self.under_way += 1
                self.peak = max(self.peak, self.under_way)
                try:
                    gone = not await self._send(await self.answer(arguments), reader, writer)
                finally:
                    self.under_way -= 1
                if gone:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._open.pop(task, None)

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False if the connection must be closed."""
        await asyncio.sleep(answer.delay)
        if answer.stalled:
            await reader.read(1)  # until the client goes away
            return False
        raw = answer.raw
        headers = {"content-type": "application/json", "content-length": str(len(raw)), **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        sent = raw[: len(raw) // 2] if answer.cut else raw
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode() + sent)
        await writer.drain()
        return not answer.cut


Script = Callable[[ReceivedRequest], Answer | dict[str, Any]]


def continues(request: ReceivedRequest) -> dict[str, Any]:
    """The answer of a server without restrictions to a probe."""
    if "continue_final_message" in request.body:
        return completion("A", logprobs=[token("A", {"A": 0.9})], finish="length")
    return completion("OK")


class FakeServer(Loopback):
    """Answers as scripted; by default it has a model ``m`` owned by ``owner``, and is asked for completions only.

    Probes are answered by ``probed``.
    """

    def __init__(
        self, chat: Script, *, owner: str = "vllm", tokenize: Script | None = None, probed: Script = continues
    ) -> None:
        super().__init__()
        self.chat, self.owner, self.tokenize, self.probed = chat, owner, tokenize, probed

    async def answer(self, request: ReceivedRequest) -> Answer:
        if request.path == CHAT:
            result = self.probed(request) if request.is_probe else self.chat(request)
        elif request.path == "/v1/models":
            result = Answer({"object": "list", "data": [{"id": "m", "owned_by": self.owner}]})
        elif request.path == "/tokenize" and self.tokenize:
            result = self.tokenize(request)
        else:
            result = Answer({"detail": "Not Found"}, 404)
        return result if isinstance(result, Answer) else Answer(result)


Plan = Callable[[str, int], str | None]
"""Maps the last user message and the number of its attempt (from 1) to the name of a fault."""


class FaultProxy(Loopback):
    """Forwards to a server and injects the faults of a plan into chat completions.

    The faults: ``429`` (with Retry-After), ``500``, ``cut``, ``stall``, ``reset``; ``null``, ``length``, ``refusal``,
    ``garbage``, ``none`` (no choice) and ``two`` change what the server replied.
    """

    def __init__(self, upstream: str, plan: Plan, retry_after: str = "0.05") -> None:
        super().__init__()
        parts = urlsplit(upstream)
        self._where = (parts.hostname or "", parts.port or 80)
        self._plan, self._after = plan, retry_after
        self.times: Counter[str] = Counter()

    async def answer(self, request: ReceivedRequest) -> Answer:
        wrong = None
        if request.path == CHAT:
            self.times[request.content] += 1
            wrong = self._plan(request.content, self.times[request.content])
        match wrong:
            case "429":
                return Answer({"error": {"message": "slow down"}}, 429, {"retry-after": self._after})
            case "500":
                return Answer({"error": {"message": "out of order"}}, 500)
            case "stall":
                return Answer(stalled=True)
            case "reset":
                raise ConnectionResetError
        answer = await self._forwarded(request)
        return _spoilt(answer, wrong) if wrong else answer

    async def _forwarded(self, request: ReceivedRequest) -> Answer:
        reader, writer = await asyncio.open_connection(*self._where)
        try:
            forwarded = {k: v for k, v in request.headers.items() if k not in ("host", "connection", "accept-encoding")}
            head = "".join(f"{name}: {value}\r\n" for name, value in forwarded.items())
            # HTTP 1.0: the end of the connection ends the reply, and there are no chunks.
            writer.write(f"{request.method} {request.path} HTTP/1.0\r\nhost: x\r\n{head}\r\n".encode() + request.raw)
            first = await reader.readline()
            headers = await _headers(reader)
            length = headers.get("content-length")
            raw = await (reader.readexactly(int(length)) if length else reader.read())
            return Answer(raw, int(first.split()[1]))
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def _spoilt(answer: Answer, wrong: str) -> Answer:
    if wrong == "cut":
        return Answer(answer.raw, cut=True)
    if wrong == "garbage":
        return Answer(answer.raw[:-2] + b"oops")
    data = json.loads(answer.raw)
    (choice,) = choices = data["choices"]
    if wrong == "null":
        choice |= {"message": {"role": "assistant", "content": None}, "logprobs": None}
    elif wrong == "refusal":
        choice |= {
            "message": {"role": "assistant", "content": None, "refusal": "I would rather not."},
            "logprobs": None,
        }
    elif wrong == "length":
        choice |= {"finish_reason": "length"}
        choice["message"]["content"] = choice["message"]["content"][:4]
    else:
        data["choices"] = {"none": [], "two": choices * 2}[wrong]
    return Answer(data, answer.status)


async def _read(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    """The next request of a connection; None at its end."""
    first = await reader.readline()
    if not first:
        return None
    method, path, _ = first.decode().split()
    headers = await _headers(reader)
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method, path, headers, raw, time.monotonic())


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers
