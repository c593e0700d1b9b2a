"""A loopback server that damages some of its answers, and the list of faults."""

import asyncio
import contextlib
import gzip
import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loopback import CHAT, Answer, FakeServer, ReceivedRequest, Script, refusal

KEY = "sk-canary-0123456789abcdefghij"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@dataclass(frozen=True)
class Raw(Answer):
    """Raw bytes with waits between them.

    Attributes:
        steps: the bytes to send, and the seconds to wait after each part.
        end: whether the connection is kept, closed, reset, or closed in one direction only.
    """

    steps: tuple[bytes | float, ...] = ()
    end: str = "close"


Spoil = Callable[[ReceivedRequest, Answer], Answer]


@dataclass(frozen=True)
class Fault:
    """A fault that a server applies to its answer.

    Attributes:
        spoil: maps the request and the right answer to the answer that is sent.
        changes: the answer may be taken as valid, or change the form of later requests.
        answers: the right answer is sent in an unusual form.
        path: the path of the affected requests.
        timeout: the limit for one request, in seconds.
    """

    spoil: Spoil
    changes: bool = False
    answers: bool = False
    path: str = CHAT
    timeout: float = 30.0


class Faulty(FakeServer):
    """A server with a fault.

    Attributes:
        fault: the current fault, or None.
        strikes: whether the fault affects the request of this number, counted from 1 at ``begin``.
        answered: requests whose right answer was sent.
    """

    def __init__(self, chat: Script) -> None:
        super().__init__(chat)
        self.begin(None, lambda number: False)

    def begin(self, fault: Fault | None, strikes: Callable[[int], bool]) -> None:
        """Set the fault and forget earlier requests."""
        self.fault, self.strikes, self.number = fault, strikes, 0
        self.answered: list[bytes] = []
        self.asked.clear()

    async def answer(self, asked: ReceivedRequest) -> Answer:
        answer = await super().answer(asked)
        if self.fault is None or not asked.path.endswith(self.fault.path):
            fault = None
        else:
            self.number += 1
            fault = self.fault if self.strikes(self.number) else None
        if asked.path == CHAT and (fault is None or fault.answers):
            self.answered.append(asked.raw)
        return fault.spoil(asked, answer) if fault else answer

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if not isinstance(answer, Raw):
            return await super()._send(answer, reader, writer)
        for step in answer.steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                writer.write(step)
                await writer.drain()
        if answer.end == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        elif answer.end == "half":
            writer.write_eof()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), 2)
        return answer.end == "keep"


def _headed(body: bytes, *headers: bytes, length: object = None) -> bytes:
    lines = [b"content-length: %s" % str(len(body) if length is None else length).encode(), *headers]
    return _HEAD + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def _raw(*steps: bytes | float, end: str = "close") -> Spoil:
    return lambda asked, answer: Raw(steps=steps, end=end)


def _bytes(change: Callable[[bytes], bytes], *headers: bytes, length: object = None, end: str = "close") -> Spoil:
    """A changed body under a header that may be wrong."""
    return lambda asked, answer: Raw(steps=(_headed(change(answer.raw), *headers, length=length),), end=end)


def _halves(*between: float, end: str = "keep") -> Spoil:
    def spoil(asked: ReceivedRequest, answer: Answer) -> Answer:
        whole = _headed(answer.raw)
        return Raw(steps=(*between, whole[: len(whole) // 2], *between, whole[len(whole) // 2 :]), end=end)

    return spoil


def _trickled(asked: ReceivedRequest, answer: Answer) -> Answer:
    whole = _headed(answer.raw)
    steps: list[bytes | float] = []
    for start in range(0, len(whole), 40):
        steps += [0.005, whole[start : start + 40]]
    return Raw(steps=tuple(steps), end="keep")


def _cut(share: float, end: str) -> Spoil:
    def spoil(asked: ReceivedRequest, answer: Answer) -> Answer:
        whole = _headed(answer.raw)
        return Raw(steps=(whole[: int(len(whole) * share)],), end=end)

    return spoil


def _body(value: object, status: int = 200, **headers: str) -> Spoil:
    return lambda asked, answer: Answer(value, status, {name.replace("_", "-"): text for name, text in headers.items()})


def _edit(change: Callable[[dict[str, Any]], object]) -> Spoil:
    """The completion, changed in place or replaced."""

    def spoil(asked: ReceivedRequest, answer: Answer) -> Answer:
        data = json.loads(answer.raw)
        changed = change(data)
        return replace(answer, body=data if changed is None else changed)

    return spoil


def _message(**members: object) -> Spoil:
    return _edit(lambda data: data["choices"][0]["message"].update(members))


def _choice(**members: object) -> Spoil:
    return _edit(lambda data: data["choices"][0].update(members))


def _logprob(value: object) -> Spoil:
    """Every log-probability of a completion, replaced."""

    def change(data: dict[str, Any]) -> None:
        for token in (data["choices"][0].get("logprobs") or {}).get("content") or ():
            for one in (token, *token["top_logprobs"]):
                one["logprob"] = value

    return _edit(change)


def _refused(status: int, message: str = "No, thank you.", **headers: str) -> Spoil:
    answer = replace(refusal(status, message), headers={k.replace("_", "-"): v for k, v in headers.items()})
    return lambda asked, right: answer


def _echoed(asked: ReceivedRequest, answer: Answer) -> Answer:
    return refusal(400, f"your headers: {json.dumps(dict(asked.headers))}")


def _echoed_late(asked: ReceivedRequest, answer: Answer) -> Answer:
    message = asked.headers.get("authorization", "")
    return Answer({"error": {"message": f"busy for {message}"}}, 503, {"x-request-id": message, "x-key": message})


def _echoing(member: str) -> Spoil:
    def spoil(asked: ReceivedRequest, answer: Answer) -> Answer:
        message = f"The key is {asked.headers.get('authorization', '').removeprefix('Bearer ')}, is it not? [[A]]"
        members = {"content": message} if member == "content" else {"content": None, "refusal": message}
        return _edit(lambda data: data["choices"][0].update(message=members, logprobs=None))(asked, answer)

    return spoil


def _itself(status: int) -> Spoil:
    return lambda asked, answer: Answer(b"", status, {"location": asked.path})


def redirect(url: str, status: int) -> Fault:
    """A redirect to another host."""
    return Fault(lambda asked, answer: Answer(b"", status, {"location": f"{url}/chat/completions"}), changes=True)


_HTML = b"<!doctype html><html><title>502</title><body>Bad gateway</body></html>"
_LONG = int("9" * 4200)
_STATUSES = (400, 401, 402, 403, 404, 405, 408, 409, 418, 422, 429, 451, 500, 501, 502, 503, 504, 520, 529, 599)

FAULTS: Mapping[str, Fault] = {
    # the connection
    "closed before the answer": Fault(_raw()),
    "reset before the answer": Fault(_raw(end="reset")),
    "reset in the headers": Fault(_cut(0.1, "reset")),
    "closed in the headers": Fault(_cut(0.1, "close")),
    "reset in the body": Fault(_cut(0.8, "reset")),
    "closed in the body": Fault(_cut(0.8, "close")),
    "half-closed in the body": Fault(_cut(0.8, "half")),
    "closed after each answer": Fault(_halves(end="close"), answers=True),
    "slow first byte": Fault(_halves(0.1), answers=True),
    "trickle": Fault(_trickled, answers=True),
    "silence": Fault(lambda asked, answer: Answer(stalled=True), timeout=1.0),
    "junk for a status line": Fault(_raw(b"SSH-2.0-OpenSSH_9.6\r\n")),
    "HTTP/0.9": Fault(_raw(_HTML)),
    "a header of 200 kB": Fault(_bytes(lambda body: body, b"x: " + b"y" * 200_000)),
    "headers that are none": Fault(_raw(b"HTTP/1.1 200 OK\r\n: : :\r\n\x00\xff\r\n\r\n{}")),
    # the body
    "content-length too long": Fault(_bytes(lambda body: body, length=100_000)),
    "content-length too short": Fault(_bytes(lambda body: body, length=20)),
    "content-length below 0": Fault(_bytes(lambda body: body, length=-1)),
    "content-length of words": Fault(_bytes(lambda body: body, length="many")),
    "truncated JSON": Fault(_bytes(lambda body: body[:-20])),
    "garbage in chunks": Fault(_raw(_HEAD + b"transfer-encoding: chunked\r\n\r\nzzz\r\n{}\r\n0\r\n\r\n")),
    "no last chunk": Fault(_raw(_HEAD + b'transfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n')),
    "garbage for gzip": Fault(_bytes(lambda body: b"\x1f\x8b" + body, b"content-encoding: gzip")),
    "truncated gzip": Fault(_bytes(lambda body: gzip.compress(body)[:-12], b"content-encoding: gzip"), changes=True),
    "an encoding nobody knows": Fault(_bytes(lambda body: body, b"content-encoding: zzz"), changes=True),
    "HTML": Fault(_raw(_headed(_HTML).replace(b"application/json", b"text/html"))),
    "HTML as JSON": Fault(_raw(_headed(_HTML))),
    "nothing": Fault(_body(b"")),
    "204": Fault(_raw(b"HTTP/1.1 204 No Content\r\n\r\n")),
    "a byte order mark": Fault(_bytes(lambda body: b"\xef\xbb\xbf" + body), changes=True),
    "UTF-16": Fault(_bytes(lambda body: body.decode().encode("utf-16")), changes=True),
    "no UTF-8": Fault(_bytes(lambda body: body.replace(b'"object"', b'"obj\xff\xc0ect"')), changes=True),
    "brackets 100,000 deep": Fault(_body(b"[" * 100_000)),
    "events": Fault(_body(b"data: {}\n\ndata: [DONE]\n\n")),
    "a list": Fault(_body([])),
    "null": Fault(_body(None)),
    "a number of 5,000 digits": Fault(_body(b'{"choices": ' + b"9" * 5000 + b"}")),
    # the completion
    "no choices": Fault(_edit(lambda data: data.update(choices=[]))),
    "choices null": Fault(_edit(lambda data: data.update(choices=None))),
    "two choices": Fault(_edit(lambda data: data.update(choices=data["choices"] * 2))),
    "wrong types everywhere": Fault(
        _edit(lambda data: {"choices": [{"message": [1], "finish_reason": {}, "logprobs": "x"}], "usage": 7})
    ),
    "a message of text": Fault(_choice(message="A")),
    "another role": Fault(_message(role="system", tool_calls=[{"function": {"name": "rm"}}]), changes=True),
    "content null": Fault(_edit(lambda data: data["choices"][0].update(message={"content": None}, logprobs=None))),
    "content a number": Fault(_message(content=7), changes=True),
    "content in parts": Fault(_message(content=[{"type": "text", "text": "[[A]]"}, 7, {"type": 9}]), changes=True),
    "content of surrogates": Fault(
        _body(b'{"choices": [{"message": {"content": "\\ud800 [[A]] \\udfff"}, "finish_reason": "stop"}]}'),
        changes=True,
    ),
    "a refusal": Fault(_message(content=None, refusal="I would rather not."), changes=True),
    "a refusal that is an object": Fault(_message(content=None, refusal={"why": ["no"]}), changes=True),
    "filtered": Fault(_choice(finish_reason="content_filter"), changes=True),
    "an error with 200": Fault(_body({"error": {"message": "overloaded", "code": 1}})),
    "a finish reason of another type": Fault(_choice(finish_reason=[{}]), changes=True),
    "no log-probabilities": Fault(_choice(logprobs=None), changes=True),
    "log-probabilities of other tokens": Fault(
        _choice(logprobs={"content": [{"token": "Z", "logprob": -0.1, "top_logprobs": [{"token": 7}]}] * 3}),
        changes=True,
    ),
    "log-probability -9999": Fault(_logprob(-9999.0), changes=True),
    "log-probability above 0": Fault(_logprob(3.5), changes=True),
    "log-probability NaN": Fault(_logprob(float("nan")), changes=True),
    "log-probability of 400 digits": Fault(_logprob(-(10**400)), changes=True),
    "log-probability of text": Fault(_logprob("-0.1"), changes=True),
    "usage of 4,200 digits": Fault(
        _edit(lambda data: data.update(usage={"prompt_tokens": _LONG, "completion_tokens": 1e300})), changes=True
    ),
    "usage below 0": Fault(
        _edit(lambda data: data.update(usage={"prompt_tokens": -5, "completion_tokens": True})), changes=True
    ),
    "the same id always": Fault(_edit(lambda data: data.update(id="chatcmpl-1", model="another")), answers=True),
    # statuses
    **{str(status): Fault(_refused(status)) for status in _STATUSES},
    "413": Fault(_refused(413), changes=True),
    "503 in HTML": Fault(_body(_HTML, 503)),
    "429 with nothing": Fault(_body(b"", 429)),
    "600": Fault(_raw(b"HTTP/1.1 600 What\r\ncontent-length: 2\r\n\r\n{}"), changes=True),
    "an error of wrong types": Fault(_body({"error": [{"message": 7}], "detail": {"loc": [None]}}, 500)),
    **{
        f"429, Retry-After {after!r}": Fault(_refused(429, "Slow down.", retry_after=after))
        for after in ("0", "-5", "nan", "1e999", "soon", "", "Wed, 21 Oct 2015 07:28:00 GMT", "0.02", "²")
    },
    "429, Retry-After in an absurd zone": Fault(
        _refused(429, "Slow down.", retry_after="Wed, 21 Oct 2015 07:28:00 +999999999")
    ),
    # the key
    "the key in a refusal of 400": Fault(_echoed),
    "the key in a fault": Fault(_echoed_late),
    "the key in a content": Fault(_echoing("content"), changes=True),
    "the key in words of refusal": Fault(_echoing("refusal"), changes=True),
    # redirects
    "a redirect to itself, 302": Fault(_itself(302), changes=True),
    "a redirect to itself, 307": Fault(_itself(307)),
    "a redirect to a file": Fault(_body(b"", 307, location="file:///etc/passwd")),
    "a redirect to nowhere": Fault(_body(b"", 308, location="http://[")),
    "a redirect without an address": Fault(_body(b"", 301)),
    # requests other than completions
    "no list of models": Fault(_body(_HTML, 500), path="/models"),
    "models that are none": Fault(_body({"data": [None, 7, {"id": {}, "owned_by": []}]}), True, path="/models"),
    "models of another owner": Fault(_body({"data": [{"id": "m", "owned_by": "me"}]}), True, path="/models"),
    "tokens that are none": Fault(_body({"tokens": ["a", None, 1e9]}), True, path="/tokenize"),
    "tokens that lie": Fault(_body({"tokens": [1]}), True, path="/tokenize"),
    "numbers below 0 for tokens": Fault(_body({"tokens": [-1, 10**30, 5]}), True, path="/tokenize"),
    "no tokens, but HTML": Fault(_body(_HTML), True, path="/tokenize"),
    "a reset for tokens": Fault(_raw(end="reset"), path="/tokenize"),
}
