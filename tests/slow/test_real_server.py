"""The command line against vLLM's own server on loopback, through a proxy that injects faults: nothing is lost.

Runs where vLLM is installed (see .ci/run).
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import request
from loopback import FaultProxy
from processes import count_replies
from vllm_servers import NAME

from distract.models.server.backend import OpenAI

pytestmark = pytest.mark.vllm

AGAIN = ("429", "500", "cut", "reset", "garbage", "none", "two", "stall")
"""Faults after which a request is asked again."""


def attack(url: str, folder: Path, *more: str) -> list[str]:
    """The arguments of a short run in a separate process."""
    command = [sys.executable, "-m", "distract", "attack", "--judge", f"{url}#{NAME}", "--attack", "sycophancy"]
    command += ["--protocol", "pairwise", "--limit", "2", "--json", "--store", str(folder / "replies.sqlite")]
    return [*command, "--out", str(folder / "run"), *more]


def run_command(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def quiet(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    """The results of the run without any fault, and its number of replies."""
    folder = tmp_path_factory.mktemp("quiet")
    done = run_command(attack(server, folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"], count_replies(folder / "replies.sqlite")


def assert_same_results(results: list[dict[str, Any]], quiet: list[dict[str, Any]]) -> None:
    """Compare figures; the engine rounds by batch, so that means differ in the third decimal, but no count does."""
    for figure, expected in zip(results, quiet, strict=True):
        decimals = {name: value for name, value in expected.items() if isinstance(value, float)}
        assert {name: figure[name] for name in decimals} == pytest.approx(decimals, rel=0.02, abs=0.02)
        assert {**figure, **decimals} == expected


def test_transient_faults_do_not_change_a_run(server: str, quiet: tuple[Any, int], tmp_path: Path) -> None:
    faults = iter(AGAIN * 100)
    lock = threading.Lock()

    def plan(content: str, time: int) -> str | None:
        with lock:
            return next(faults) if time == 1 else None

    with FaultProxy(server, plan) as proxy:
        done = run_command(attack(proxy.url, tmp_path, "--model-option", "timeout=20"))
        assert done.returncode == 0, done.stderr
        assert_same_results(json.loads(done.stdout)["results"], quiet[0])
        assert count_replies(tmp_path / "replies.sqlite") == quiet[1]
        assert "got no answer" not in done.stderr


@pytest.mark.parametrize(
    ("fault", "message"), [("null", "no reply: empty reply"), ("refusal", "refused: I would rather not.")]
)
def test_refusal_of_a_real_judge_is_a_failed_judgment(fault: str, message: str, server: str, tmp_path: Path) -> None:
    with FaultProxy(server, lambda content, time: fault) as proxy:
        done = run_command(attack(proxy.url, tmp_path))
    assert done.returncode == 3, done.stderr
    assert "no verdict was valid" in done.stderr.splitlines()[-1]
    rows = [json.loads(line) for line in (tmp_path / "run" / "rows.jsonl").read_text().splitlines()]
    assert {judgment["failure"] for row in rows for judgment in row["judgments"]} == {message}


def test_dead_server_loses_no_paid_reply(server: str, quiet: tuple[Any, int], tmp_path: Path) -> None:
    alive, contents = 3, list[str]()

    def plan(content: str, time: int) -> str | None:
        contents.append(content)
        return "reset" if len(contents) > alive else None

    with FaultProxy(server, plan) as proxy:
        command = attack(proxy.url, tmp_path, "--concurrency", "1", "--model-option", "attempts=2")
        died = run_command(command)
        assert died.returncode == 4, died.stderr
        last = died.stderr.splitlines()[-1]
        assert last.startswith(f"distract: the server {proxy.url} does not answer")
        assert last.endswith("the same command resumes")
        count = count_replies(tmp_path / "replies.sqlite")
        assert count == alive
        alive = 10**6
        contents.clear()
        done = run_command(command)
        assert done.returncode == 0, done.stderr
        assert len(contents) == quiet[1] - count
        assert_same_results(json.loads(done.stdout)["results"], quiet[0])


def test_ctrl_c_ends_soon_keeps_replies_and_explains_resuming(
    server: str, quiet: tuple[Any, int], tmp_path: Path
) -> None:
    stalled, contents = True, list[str]()

    def plan(content: str, time: int) -> str | None:
        contents.append(content)
        return "stall" if stalled and len(contents) > 3 else None

    with FaultProxy(server, plan) as proxy:
        command = attack(proxy.url, tmp_path, "--concurrency", "64")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        store = tmp_path / "replies.sqlite"
        while (len(contents) < 8 or not store.exists() or count_replies(store) < 3) and (time.monotonic() < deadline):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        # The process must end within seconds; the calls under way would take two minutes.
        _, error_output = process.communicate(timeout=30)
        assert process.returncode == 130, error_output
        assert error_output.splitlines()[-1] == "distract: stopped; the same command resumes"
        assert "Traceback" not in error_output
        assert count_replies(tmp_path / "replies.sqlite") == 3
        stalled = False
        done = run_command(command)
        assert done.returncode == 0, done.stderr
        assert_same_results(json.loads(done.stdout)["results"], quiet[0])


def test_64_concurrent_requests_each_get_their_own_reply(server: str) -> None:
    requests = [request(f"Which is larger, {number} or 50? Answer A, B or C.") for number in range(72)]

    def replies(backend: OpenAI, number: int) -> dict[int, Any]:
        batches = backend.reply(requests, frozenset(range(number)))
        return {index: reply for batch in batches for index, reply in batch}

    with FaultProxy(server, lambda content, time: None) as proxy:
        many = replies(OpenAI(NAME, base_url=proxy.url, concurrency=64), len(requests))
        assert proxy.peak == 64
    few = replies(OpenAI(NAME, base_url=server, concurrency=2), 12)
    assert (len(many), len(few)) == (72, 12)
    for index, reply in few.items():
        assert reply.probabilities == pytest.approx(many[index].probabilities, abs=1e-3)
