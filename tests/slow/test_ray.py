"""Workers of a real local Ray cluster, with the embedded judge on two CPUs."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE, CommandProcess, count_replies, run_process

from distract.models.transformers import embedded

pytest.importorskip("ray")
from ray.cluster_utils import Cluster

ATTACK = ("attack", "--limit", 3, "--keep-text", "all")
RAY = ("--engine", "ray", "--workers", 2)
TOLERANCE = 1e-4
"""Largest difference of a probability or score between one machine and workers."""

STORE = Path(".distract/replies.sqlite")


CHATTY = "from distract.report import progress\nprogress.SECONDS_BETWEEN_LINES = 0.0"
"""Report progress after each batch."""


run_command = partial(run_process, before=CHATTY)


def children(parent: int) -> Iterator[tuple[int, str]]:
    """The living descendants of a process, with their titles."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if int(status[1]) == parent and status[0] != "Z":
                yield int(folder.name), title
                yield from children(int(folder.name))


def workers(parent: int) -> list[int]:
    return sorted(pid for pid, title in children(parent) if title.startswith("ray::Worker"))


def wait_gone(pids: set[int]) -> set[int]:
    """The processes that are still alive after a while."""
    end = time.monotonic() + 20
    while (left := {pid for pid in pids if _is_alive(pid)}) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def read_rows(folder: Path) -> list[Any]:
    (run,) = (folder / ".distract/runs").iterdir()
    return [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]


def distance(one: Any, other: Any) -> float:
    """The largest difference of two numbers in the same place; infinite if anything else differs."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other)
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return max((distance(one[key], other[key]) for key in one), default=0.0)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return max(map(distance, one, other), default=0.0)
    return 0.0 if one == other else float("inf")


@pytest.fixture(scope="module")
def on_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed run on workers."""
    folder = tmp_path_factory.mktemp("workers")
    result = run_command(*ATTACK, *RAY, "--json", folder=folder)
    assert result.code == 0, result.err
    assert json.loads(result.out)["judge"] == "smollm2-135m"
    plan = "smollm2-135m: 2 workers × 1 CPU with transformers on a local Ray cluster, which has "
    assert plan in result.err
    assert result.err.index(plan) < result.err.index("plan: ")
    assert ", 2 of 2 workers" in result.err
    return folder


@contextmanager
def running(folder: Path, *more: object) -> Iterator[CommandProcess]:
    """A run on workers, with its workers loaded."""
    with CommandProcess(*ATTACK, *RAY, *more, folder=folder, before=CHATTY) as command:
        end = time.monotonic() + PATIENCE
        while len(workers(command.process.pid)) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield command


def test_workers_give_the_verdicts_of_one_machine_in_the_same_order(on_workers: Path, tmp_path: Path) -> None:
    assert run_command(*ATTACK, folder=tmp_path).code == 0
    rows, plain = read_rows(on_workers), read_rows(tmp_path)
    assert len(rows) > 25
    assert distance(rows, plain) <= TOLERANCE
    with sqlite3.connect(on_workers / STORE) as one, sqlite3.connect(tmp_path / STORE) as other:
        query = "select key from replies order by key"
        assert one.execute(query).fetchall() == other.execute(query).fetchall()
    # The key is the engine's, so the plain command needs no reply.
    again = run_command(*ATTACK, "--out", "again", folder=on_workers)
    assert " were stored, 0 made" in again.err


def test_killed_workers_change_no_row(on_workers: Path, tmp_path: Path) -> None:
    draw = random.Random(33)
    with running(tmp_path) as command:
        kills = 0
        while kills < 5:
            time.sleep(draw.uniform(0.3, 3.0))
            alive = workers(command.process.pid)
            if alive:
                os.kill(draw.choice(alive), signal.SIGKILL)
                kills += 1
            assert command.process.poll() is None, "the run ended before five workers were killed"
        result = command.ended()
    assert result.code == 0, result.err
    assert result.err.count("was lost (its process died); it is started again") == 5
    assert "got no answer" not in result.err
    assert count_replies(tmp_path / STORE) == count_replies(on_workers / STORE)
    (run,) = (tmp_path / ".distract/runs").iterdir()
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json", "texts.jsonl"):
        assert (run / name).read_bytes() == (on_workers / ".distract/runs" / run.name / name).read_bytes(), name
    # Stored once, although batches were asked again: every reply that was made is on file.
    counts = json.loads((run / "manifest.json").read_text())["replies"]
    assert counts["made"] == count_replies(tmp_path / STORE)


def test_a_lost_node_gives_its_requests_to_the_others(tmp_path: Path) -> None:
    """Two nodes of a cluster that runs already, one of which goes while its worker answers."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        address = ("--model-option", f"ray-address={cluster.address}")
        with CommandProcess("attack", "--limit", 4, *RAY, *address, folder=tmp_path, before=CHATTY) as command:
            assert "which has 2 CPUs on 2 machines" in command.says("2 workers × 1 CPU")
            command.says(", 2 of 2 workers")
            cluster.remove_node(node, allow_graceful=False)
            result = command.ended()
        assert result.code == 0, result.err
        assert result.err.count("was lost") == 1
        assert f"replies: 0 were stored, {count_replies(tmp_path / STORE)} made" in result.err
    finally:
        cluster.shutdown()


@pytest.mark.vllm
def test_a_worker_runs_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
    small = ("attack", "--limit", 1, "--protocol", "pairwise", "--model-option", "max-length=4096")
    plain = run_command(*small, "--engine", "vllm", "--out", "plain", folder=tmp_path)
    assert plain.code == 0, plain.err
    worker = ("--engine", "ray", "--workers", 1, "--model-option", "worker-engine=vllm")
    stored = run_command(*small, *worker, "--out", "stored", folder=tmp_path)
    # The key is the engine's, so nothing is asked again.
    assert " 0 made" in stored.err
    result = run_command(*small, *worker, "--out", "own", "--store", "own.sqlite", folder=tmp_path)
    assert result.code == 0, result.err
    rows = [
        [json.loads(line) for line in (tmp_path / name / "rows.jsonl").read_text().splitlines()]
        for name in ("plain", "own")
    ]
    assert distance(*rows) <= TOLERANCE


def test_ctrl_c_stores_what_is_in_flight_and_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path) as command:
        command.says(" replies, ")
        processes = {pid for pid, _ in children(command.process.pid)}
        assert len(processes) > 4
        command.process.send_signal(signal.SIGINT)
        result = command.ended()
    assert result.code == 130
    assert result.err.endswith("distract: stopped; the same command resumes\n")
    assert not wait_gone(processes)
    assert f"{count_replies(tmp_path / STORE)} made" in result.err


def test_a_worker_that_cannot_load_says_so_once(tmp_path: Path) -> None:
    """A folder whose weights are cut off: only loading them shows it."""
    model = tmp_path / "model"
    shutil.copytree(embedded.ensure(), model)
    weights = model / "model.safetensors"
    os.truncate(weights, weights.stat().st_size // 2)
    begun: list[int] = []
    with CommandProcess("attack", "--judge", "./model", *RAY, "--limit", 4, folder=tmp_path) as command:
        watch = threading.Thread(target=_watch, args=(command.process.pid, begun), daemon=True)
        watch.start()
        result = command.ended()
    assert result.code == 4, result.err
    assert result.err.count("cannot load") == 1
    assert result.err.splitlines()[-1].startswith("distract: ./model: worker ")
    assert not wait_gone(set(begun))
    assert count_replies(tmp_path / STORE) == 0


def _watch(parent: int, begun: list[int]) -> None:
    while _is_alive(parent):
        begun.extend(pid for pid, _ in children(parent) if pid not in begun)
        time.sleep(0.2)


NOISY = """
import os, sys
from distract.core.records import Message, Reply, Request
from distract.models.ray.backend import RayWorkers
from distract.models.ray.cluster import RayPool, Share

class Noisy:
    identity, reads_slots = {"model": "noisy"}, False

    def load(self):
        print("loading")
        print("\x1b[2Jloading", file=sys.stderr, flush=True)

    def reply(self, requests, wanted):
        for index in sorted(wanted):
            if requests[index].messages[0].content == "poison":
                os.abort()
            yield [(index, Reply(text=requests[index].messages[0].content))]

workers = RayWorkers(Noisy(), RayPool(Noisy(), None, 2, Share(0, 1)), 2, name="noisy")
requests = [Request((Message("user", text),)) for text in ("a", "b", "poison", "c")]
replies = dict(pair for batch in workers.reply(requests, frozenset(range(4))) for pair in batch)
print([replies[index].failure or replies[index].text for index in range(4)])
"""


def test_logs_reach_standard_error_and_a_request_that_kills_workers_gets_no_reply(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", NOISY], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "['a', 'b', 'no reply: 3 workers died over this request', 'c']\n"
    assert "distract: worker 1: loading\n" in result.stderr
    assert "distract: worker 2: \\x1b[2Jloading\n" in result.stderr
    assert "\x1b" not in result.stderr


def test_more_workers_than_fit_are_refused_before_anything_loads(tmp_path: Path) -> None:
    result = run_command("attack", "--limit", 4, "--engine", "ray", "--workers", 500, folder=tmp_path)
    assert result.code == 2
    assert result.err.startswith("distract: 500 workers × 1 CPU do not fit: a local Ray cluster has ")
    assert not (tmp_path / ".distract").exists()
