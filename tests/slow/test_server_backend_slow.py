"""The backend for OpenAI-compatible servers: faults, answers of any size, judge files."""

import json
import random
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from command_result import Run
from loopback import Answer, FakeServer, FaultProxy, ReceivedRequest, completion
from test_server_backend import FAULTS, ask, backend, prefers_a, tokens_of_vllm, upstream as upstream, words
from test_server_bounds import TOO_LARGE, Endless, ask_texts, compress_answer, serve_odd

from distract.core.backend import StreamingBackend
from distract.core.errors import BackendError
from distract.core.records import Message, Reply, Request
from distract.models.server import calls
from distract.models.server.backend import OpenAI
from distract.models.server.calls import LARGE, MOST, STEP
from distract.models.server.capabilities import Capabilities
from distract.models.server.completions import Completion, Token, read_reply

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")


def test_streaming_backend_costs_nothing_to_construct() -> None:
    judge = OpenAI("gpt-x", base_url="HTTPS://API.OpenAI.com:443/v1/")
    assert isinstance(judge, StreamingBackend)
    assert judge.identity == {"engine": "openai", "model": "gpt-x", "server": "https://api.openai.com/v1"}
    code = "import sys; from distract.models.server.backend import OpenAI; OpenAI('x').identity; "
    code += "assert 'openai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("wrong", FAULTS)
def test_transient_fault_costs_only_time(wrong: str, upstream: FakeServer) -> None:
    requests = [words(f"{wrong} {i}") for i in range(24)]
    with FaultProxy(upstream.url, lambda content, time: wrong if time <= 2 and content[-1] in "048" else None) as proxy:
        replies = ask(backend(proxy.url, timeout=1.0 if wrong == "stall" else 20.0, concurrency=8), *requests)
        # On a busy machine, requests other than the stalled ones may time out.
        assert set(proxy.times.values()) == {1, 3} or wrong == "stall"
    assert [reply.text for reply in replies] == [f"re: {wrong} {i}" for i in range(24)]


def test_mixed_faults_at_64_concurrent_requests_lose_nothing(upstream: FakeServer) -> None:
    draw = random.Random(7)
    # Stalls are rare, because each takes a full timeout.
    weights = [0.1 if wrong == "stall" else 1.0 for wrong in FAULTS]
    drawn = {f"mixed {i}": draw.choices([*FAULTS, None], [*weights, 2.0], k=3) for i in range(200)}
    with FaultProxy(
        upstream.url, lambda content, time: drawn[content][time - 1] if time <= 3 else None, "0.01"
    ) as proxy:
        replies = ask(backend(proxy.url, concurrency=64, timeout=1.0, attempts=12), *map(words, drawn))
        assert proxy.peak <= 64
    assert [reply.text for reply in replies] == [f"re: {content}" for content in drawn]


def test_server_capabilities_are_probed_once() -> None:
    with FakeServer(prefers_a, tokenize=tokens_of_vllm) as server:
        judge = backend(server.url, concurrency=32)
        ask(judge, *(words(str(i)) for i in range(64)))
        ask(judge, *(words(str(i)) for i in range(64)))
        assert [request.path for request in server.asked].count("/v1/models") == 1


@pytest.mark.parametrize("digits", [1, 4299, 4300, 5000])
def test_count_of_thousands_of_digits_crashes_no_command(run: Run, digits: int) -> None:
    """The token count of a stored reply, and the sum of many."""
    text = json.dumps(completion("[[A]]")).replace('"prompt_tokens": 11', f'"prompt_tokens": {"9" * digits}')
    options = ("--attack", "sycophancy", "--protocol", "pairwise", "--limit", 4, "--model-option", "attempts=1")
    with FakeServer(lambda asked: Answer(text.encode())) as server:
        ran = [run("attack", *options, "--judge", f"{server.url}#m", "--out", f"r{n}", "--json") for n in range(2)]
        assert [(one.code, "Traceback" in one.err) for one in ran] == [(0 if digits <= 4300 else 4, False)] * 2
    if digits <= 4300:
        (_, again) = ran
        assert "0 made" in again.err


def test_server_with_oversized_answers_ends_the_run() -> None:
    with Endless(lambda request: Answer(b"endless")) as server, pytest.raises(BackendError, match=TOO_LARGE) as error:
        ask_texts(server.url, *map(str, range(20)), concurrency=2)
    assert str(error.value).endswith("(2 attempts)")
    assert len(server.chats) <= 16


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compression_bomb_is_unpacked_up_to_the_limit(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    add = calls._Body.add

    def added(self: calls._Body, chunk: bytes) -> bytes:
        before = len(self.data)
        try:
            return add(self, chunk)
        finally:
            held.append((len(self.data), len(self.data) - before))

    monkeypatch.setattr(calls._Body, "add", added)
    with serve_odd(compress_answer(completion("a" * (4 * MOST)), encoding)) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
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
        result = Completion(whole, "stop", None, None, False, (Token("So: ", likely), *tokens), 1, 1)
        reply = read_reply(request, {"logprobs": True}, (), result)
        assert reply is not None
        assert reply.text == whole


def test_few_large_answers_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[calls._Body] = weakref.WeakSet()
    peak = [0]
    add = calls._Body.add

    def added(self: calls._Body, chunk: bytes) -> bytes:
        alive.add(self)
        left = add(self, chunk)
        peak[0] = max(peak[0], sum(len(body.data) for body in alive))
        return left

    monkeypatch.setattr(calls._Body, "add", added)
    monkeypatch.setattr(calls, "PLACES", 2)
    size = 3 * 2**20
    with FakeServer(lambda request: completion("x" * size)) as server:
        judge = OpenAI("m", base_url=server.url, concurrency=24)
        judge.learn(Reply(text=Capabilities(continues=False).write()))
        requests = [words(str(i)) for i in range(24)]
        batches = list(judge.reply(requests, frozenset(range(24))))
    assert all(len(reply.text) == size for batch in batches for _, reply in batch)
    assert size < peak[0] <= 2 * (size + STEP) + 22 * (LARGE + STEP)


PAIR = "[system]\nCompare.\n[user]\n{question}\n<1>{response_a}</1>\n<2>{response_b}</2>\n"
FILES = {
    "words": f"prompt = '''{PAIR}End with one line:\nWinner: {{A|B|tie}}'''\n",
    "json": """prompt = '''{question}\n<1>{response}</1>\nAnswer with {"score": 7, "reason": "..."}'''
[verdict]\njson = "$.score"\nscale = [0, 10]\npass_mark = 6\n""",
    "regex": f"prompt = '''{PAIR}'''\n[verdict]\nregex = 'verdict=(?P<verdict>first|second)'\n"
    "words = ['first', 'second']\n",
}
ANSWERS = {
    "words": "Both are fine, though.\n**Winner:** {}",
    "json": 'Here you are:\n```json\n{{"score": {}, "reason": "..."}}\n```',
    "regex": "<verdict={}>",
}
WORDS = {"words": ("A", "B"), "regex": ("first", "second")}


def answer(kind: str, request: ReceivedRequest) -> dict[str, Any]:
    """Prefer the longer response."""
    lengths = [len(part.split("<", 1)[0]) for part in request.content.split(">")[1::2]]
    verdict = str(min(10, lengths[0] // 60)) if kind == "json" else WORDS[kind][lengths[1] > lengths[0]]
    reply: dict[str, Any] = completion(ANSWERS[kind].format(verdict))
    return reply


@pytest.mark.parametrize("kind", [*FILES])
def test_judge_file_runs_on_a_server(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeServer(lambda request: answer(kind, request)) as server:
        head = f"model = 'openai:m'\nbase_url = '{server.url}'\nconcurrency = 4\ntemperature = 0.2\nmax_tokens = 77\n"
        Path("judge.toml").write_text(head + FILES[kind])
        tried = run("try", "judge.toml")
        assert tried.code == 0, tried.err
        assert "read: " in tried.out
        assert ANSWERS[kind].format(0)[:8] in tried.out
        body = server.chats[0].body
        assert body.get("max_tokens", body.get("max_completion_tokens")) == 77
        assert (body["temperature"], len(server.chats)) == (0.2, 2)
        attacked = run("attack", "--judge", "judge.toml", "--limit", "6", "--out", "r", "--json")
        assert attacked.code == 0, attacked.err
        assert server.peak <= 4
    assert all(result["invalid"] == 0 for result in attacked.results)
    flips = [r for r in attacked.results if r["measure"] == "flip_rate" and r["attack"] == "sycophancy"]
    assert flips[0]["n"] > 0
    assert flips[0]["value"] > 0.5
    run_file = json.loads(Path("r/run.json").read_text())
    assert run_file["parameters"]["identity"]["engine"] == "openai"
