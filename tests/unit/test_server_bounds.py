"""Test answers of any size: oversized ones are cut off, and large ones delay no other."""

import asyncio
import gzip
import json
import threading
import zlib
from typing import Any

import pytest
from loopback import CHAT, Answer, FakeServer, ReceivedRequest, completion
from loops import each
from test_server_backend import words

from distract.core.errors import BackendError, UsageError
from distract.core.records import Reply
from distract.models.server.backend import OpenAI
from distract.models.server.http import LARGE, MOST, PLACES, STEP
from distract.models.server.secrets import scrub_values

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")

TOO_LARGE = "the reply is larger than 16 MB"


def ask_texts(url: str, *contents: str, **more: Any) -> list[Reply]:
    """The replies to text requests, in order."""
    judge = OpenAI("m", base_url=url, **{"backoff": 0.0, "timeout": 20.0, "attempts": 2, "concurrency": 1, **more})
    requests = [words(content) for content in contents]
    pairs = [pair for batch in judge.reply(requests, frozenset(range(len(requests)))) for pair in batch]
    return [reply for _, reply in sorted(pairs, key=lambda pair: pair[0])]


def compress_answer(body: object, encoding: str = "gzip") -> Answer:
    raw = json.dumps(body).encode()
    return Answer(
        gzip.compress(raw) if "gzip" in encoding else zlib.compress(raw), headers={"content-encoding": encoding}
    )


def serve_odd(answer: Answer) -> FakeServer:
    """A server with an unusual answer to ``odd``."""
    return FakeServer(lambda request: answer if request.content == "odd" else completion("fine"))


class Endless(FakeServer):
    """A server with an endless answer to ``odd``, which counts the bytes it sends."""

    sent = 0
    step = b"x" * 2**16
    pace = 0.0

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.raw == b"headers":
            writer.write(b"HTTP/1.1 200 X\r\n" + b"x: y\r\n" * 2**16)
            await writer.drain()
            return False
        if answer.raw != b"endless":
            return await super()._send(answer, reader, writer)
        status = f"HTTP/1.1 {answer.status} X\r\ntransfer-encoding: chunked\r\n"
        writer.write(f'{status}content-type: application/json\r\n\r\n1\r\n"\r\n'.encode())
        while not writer.transport.is_closing():
            writer.write(b"%x\r\n%s\r\n" % (len(self.step), self.step))
            await writer.drain()
            await asyncio.sleep(self.pace)
            self.sent += len(self.step)
        return False


def endless(request: ReceivedRequest) -> Answer | dict[str, Any]:
    return Answer(b"endless") if request.content == "odd" else completion("fine")


@each("status", 200, 400, 429, 500)
def test_endless_answer_fails_after_the_usual_attempts(status: int) -> None:
    with Endless(
        lambda request: Answer(b"endless", status) if request.content == "odd" else completion("fine")
    ) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
        assert [request.content for request in server.chats].count("odd") == 2
    assert (odd.failure, fine.text) == (f"no reply: {TOO_LARGE}, 2 attempts", "fine")
    # The bound allows for data in the buffers of both machines.
    assert server.sent < 2 * (MOST + 2**24)


def test_endless_headers_fail_after_the_usual_attempts() -> None:
    with Endless(lambda request: Answer(b"headers") if request.content == "odd" else completion("fine")) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
    assert (odd.failure or "").startswith("no reply: ")
    assert len(odd.failure or "") < 100
    assert fine.text == "fine"


def test_trickling_answer_times_out_like_any_other() -> None:
    with Endless(endless) as server:
        server.step, server.pace = b"x", 0.02
        odd, fine = ask_texts(server.url, "odd", "fine", timeout=0.5)
    assert (odd.failure, fine.text) == ("no reply: no reply in time, 2 attempts", "fine")


@each("encoding", "gzip", "X-GZIP", "deflate")
def test_answer_may_be_compressed(encoding: str) -> None:
    text = "".join(chr(97 + i * i % 23) for i in range(300_000))
    with serve_odd(compress_answer(completion(text), encoding)) as server:
        assert ask_texts(server.url, "odd")[0].text == text
        assert {request.headers["accept-encoding"] for request in server.asked} == {"gzip"}


@each(
    "answer, message",
    (Answer(b"{}", headers={"content-encoding": "br"}), "compressed in a way that was not requested"),
    (Answer(b"{}", headers={"content-encoding": "gzip, gzip"}), "compressed in a way that was not requested"),
    (Answer(b"{}", headers={"content-encoding": "gzip"}), "not compressed as the server says"),
    (Answer(b"[" * 200_000), "the reply is nested too deeply"),
    (Answer(b"[" * 2_000 + b"]" * 2_000), "the reply is nested too deeply"),
    (Answer(b"\xff{"), "the reply is not JSON"),
    (Answer(b"9" * 5000), "the reply is not JSON"),
    (Answer(b""), "the reply is not JSON"),
    (Answer(b"x" * 2**20, 500), "500: xxxx"),
    (Answer(b"[" * 200_000, 503), "503: [[[["),
)
def test_undecodable_answer_is_one_line(answer: Answer, message: str) -> None:
    with serve_odd(answer) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
    assert message in (odd.failure or "")
    assert len((odd.failure or "").splitlines()) == 1
    assert len(odd.failure or "") < 300
    assert fine.text == "fine"


@each("path", "/v1/models", "/tokenize")
def test_model_and_token_lists_are_bounded(path: str) -> None:
    class Full(FakeServer):
        async def answer(self, request: ReceivedRequest) -> Answer:
            return (
                Answer(b'{"data":[' + b"{}," * (MOST // 3) + b"{}]}")
                if request.path == path
                else await super().answer(request)
            )

    with Full(lambda request: completion("x")) as server, pytest.raises(BackendError, match=TOO_LARGE):
        ask_texts(server.url, "a")
    assert len(server.asked) <= 4


def test_large_answers_are_read_off_the_timing_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[bool, set[str]] = {False: set(), True: set()}

    def noted(value: object, scrub: Any) -> object:
        places[len(json.dumps(value)) > LARGE].add(threading.current_thread().name)
        return scrub_values(value, scrub)

    monkeypatch.setattr("distract.models.server.http.scrub_values", noted)
    with FakeServer(lambda request: completion(request.content * (200_000 if request.content == "L" else 1))) as server:
        large, small = ask_texts(server.url, "L", "s")
    assert (len(large.text), small.text, places[False]) == (200_000, "s", {"distract-server"})
    assert places[True]
    assert "distract-server" not in places[True]


def test_documented_memory_limit_holds() -> None:
    assert PLACES * (MOST + STEP) + 1000 * (LARGE + STEP) < 256 * 2**20


def test_redirect_is_reported_and_not_followed() -> None:
    with FakeServer(lambda request: completion("elsewhere")) as other:
        to = other.url.replace("//", "//user:pass-word@") + "/chat/completions"
        moved = Answer({}, 307, {"location": to})
        there = FakeServer(lambda request: moved, probed=lambda request: moved)
        with there as server, pytest.raises((BackendError, UsageError), match="307 it has moved to http") as error:
            ask_texts(server.url, "a")
        assert other.asked == []
    assert "pass-word" not in str(error.value)


def test_requests_are_sent_verbatim() -> None:
    with FakeServer(lambda request: completion("x")) as server:
        ask_texts(server.url, 'é日本 \ud800 \x00 "q"')
        assert server.chats[0].content == 'é日本 \ufffd \x00 "q"'
        assert {request.path for request in server.asked} >= {CHAT, "/v1/models", "/tokenize"}
        assert {request.headers["content-type"] for request in server.asked} == {"application/json"}
