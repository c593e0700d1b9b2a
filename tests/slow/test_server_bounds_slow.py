"""Test answers of any size: oversized ones are cut off, and large ones delay no other."""

from __future__ import annotations

import weakref

import pytest
from loopback import Answer, FakeServer, completion
from test_server_bounds import TOO_LARGE, Endless, ask, compress_answer, serve_odd, words

from distract.core.errors import BackendError
from distract.core.records import Message, Reply, Request
from distract.models.server import http
from distract.models.server.backend import OpenAI
from distract.models.server.capabilities import Capabilities
from distract.models.server.completions import Completion, Token, read_reply
from distract.models.server.http import LARGE, MOST, STEP

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")


def test_server_with_oversized_answers_ends_the_run() -> None:
    with Endless(lambda request: Answer(b"endless")) as server, pytest.raises(BackendError, match=TOO_LARGE) as error:
        ask(server.url, *map(str, range(20)), concurrency=2)
    assert str(error.value).endswith("(2 attempts)")
    assert len(server.chats) <= 16


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compression_bomb_is_unpacked_up_to_the_limit(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    add = http._Body.add

    def added(self: http._Body, chunk: bytes) -> bytes:
        before = len(self.data)
        try:
            return add(self, chunk)
        finally:
            held.append((len(self.data), len(self.data) - before))

    monkeypatch.setattr(http._Body, "add", added)
    with serve_odd(compress_answer(completion("a" * (4 * MOST)), encoding)) as server:
        odd, fine = ask(server.url, "odd", "fine")
    assert (odd.failure, fine.text) == (f"no reply: {TOO_LARGE}, 2 attempts", "fine")
    assert max(total for total, _ in held) <= MOST + STEP
    assert max(step for _, step in held) <= STEP


def test_verdict_search_takes_linear_time() -> None:
    """The search takes seconds; restarting it at every token would take many minutes."""
    request = Request((Message("user", "x"),), choices=("A", "B"), prefill="[[")
    likely = (("A", -0.1),)
    for unit in (("[[", " "), ("[[", "A", "]] or [[", "B"), ("[[" * 400,)):
        tokens = tuple(Token(text, likely) for text in unit) * (100_000 // len(unit) // len(unit[0]))
        whole = "So: " + "".join(token.text for token in tokens)
        result = Completion(whole, "stop", None, (Token("So: ", likely), *tokens), 1, 1)
        reply = read_reply(request, {"logprobs": True}, (), result)
        assert reply is not None
        assert reply.text == whole


def test_few_large_answers_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[http._Body] = weakref.WeakSet()
    peak = [0]
    add = http._Body.add

    def added(self: http._Body, chunk: bytes) -> bytes:
        alive.add(self)
        left = add(self, chunk)
        peak[0] = max(peak[0], sum(len(body.data) for body in alive))
        return left

    monkeypatch.setattr(http._Body, "add", added)
    monkeypatch.setattr(http, "PLACES", 2)
    size = 3 * 2**20
    with FakeServer(lambda request: completion("x" * size)) as server:
        judge = OpenAI("m", base_url=server.url, concurrency=24)
        judge.learn(Reply(text=Capabilities(continues=False).write()))
        requests = [words(str(i)) for i in range(24)]
        batches = list(judge.reply(requests, frozenset(range(24))))
    assert all(len(reply.text) == size for batch in batches for _, reply in batch)
    assert size < peak[0] <= 2 * (size + STEP) + 22 * (LARGE + STEP)
