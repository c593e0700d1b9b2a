"""The backend for OpenAI-compatible servers, against servers on this machine."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from command_result import Run
from loopback import Answer, FakeServer, FaultProxy, completion
from test_server_backend import FAULTS, ask, backend, prefers_a, tokens_of_vllm, words

from distract.core.backend import StreamingBackend
from distract.models.server.backend import OpenAI

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")


# Addresses and keys


def test_streaming_backend_costs_nothing_to_construct() -> None:
    judge = OpenAI("gpt-x", base_url="HTTPS://API.OpenAI.com:443/v1/")
    assert isinstance(judge, StreamingBackend)
    assert judge.identity == {"engine": "openai", "model": "gpt-x", "server": "https://api.openai.com/v1"}
    code = "import sys; from distract.models.server.backend import OpenAI; OpenAI('x').identity; "
    code += "assert 'openai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Faults


@pytest.fixture(scope="module")
def upstream() -> Iterator[FakeServer]:
    with FakeServer(prefers_a) as server:
        yield server


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
    attack = (
        "attack",
        "--attack",
        "sycophancy",
        "--protocol",
        "pairwise",
        "--limit",
        4,
        "--model-option",
        "attempts=1",
        "--judge",
    )
    with FakeServer(lambda asked: Answer(text.encode())) as server:
        ran = [run(*attack, f"{server.url}#m", "--out", f"r{n}", "--json") for n in range(2)]
        assert [(one.code, "Traceback" in one.err) for one in ran] == [(0 if digits <= 4300 else 4, False)] * 2
    if digits <= 4300:
        (_, again) = ran
        assert "0 made" in again.err
