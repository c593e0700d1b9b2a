"""Commands in separate processes, forked from one that has imported everything, so that they start at once.

They are real processes that real signals end; only their imports are not their own.
"""

import asyncio
import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import openai

HUNG = 120.0
"""Seconds after which a command counts as hung; its stack is dumped, and it is killed."""


_STUDIES = ("attack", "consistency", "gate", "leaderboard", "meta")
_LOADED = """
    cli.main core.job models.opener models.catalogue models.server.backend models.fit models.scripted report.progress
    report.unread studies.make.rewrites studies.estimate studies.leaderboard.boards studies.rewrite_view
    studies.attack.session studies.meta.session studies.leaderboard.session studies.consistency.session
    studies.attack.view studies.attack.ranks studies.leaderboard.view
    studies.gate.live studies.gate.view
"""
_MODULES = (
    *(f"distract.{name}" for name in _LOADED.split()),
    *(f"distract.studies.{name}.study" for name in _STUDIES),
    *("numpy", "scipy.stats"),
)


@dataclass
class Process:
    """A command under way.

    Attributes:
        folder: the working directory, with its output in the files ``out`` and ``err``.
        code: the exit code; negative for a signal, None while it runs.
    """

    folder: Path
    pid: int = 0
    code: int | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def send(self, number: int) -> bool:
        """Send a signal; return False if no process receives it."""
        is_begun = self.begun.wait(HUNG)  # else its pid is 0, which is our own process group
        if self.ended.is_set() or not is_begun:
            return False
        os.kill(self.pid, number)
        return True

    def wait(self) -> int:
        """Wait for the exit code."""
        if not self.ended.wait(HUNG):
            self.send(signal.SIGABRT)
            self.ended.wait(HUNG)
            raise AssertionError(f"{self.folder}: hangs\n{self.err[-4000:]}")
        assert self.code is not None
        return self.code

    @property
    def out(self) -> str:
        """The output so far."""
        return (self.folder / "out").read_text(encoding="utf-8", errors="replace")

    @property
    def err(self) -> str:
        """The output on stderr so far."""
        return (self.folder / "err").read_text(encoding="utf-8", errors="replace")


class Forks:
    """A context manager that starts commands; none of them outlives it."""

    def __init__(self) -> None:
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        settings = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        settings |= {"COLUMNS": "80", "OPENBLAS_NUM_THREADS": "1"}
        self._parent = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=settings,
        )
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._parent.pid, signal.SIGKILL)
        self._thread.join()
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.close()
        self._parent.stdout.close()
        self._parent.wait()

    def start(self, folder: Path, arguments: tuple[str, ...], settings: Mapping[str, str]) -> Process:
        """Start ``distract`` in a folder, with additional environment variables."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("out", "err"):  # it may be killed before it opens them
            (folder / name).write_bytes(b"")
        process = Process(folder)
        self._processes.append(process)
        job = {"job": len(self._processes) - 1, "folder": str(folder), "arguments": arguments, "settings": settings}
        assert self._parent.stdin
        self._parent.stdin.write(json.dumps(job).encode() + b"\n")
        self._parent.stdin.flush()
        return process

    def _listen(self) -> None:
        assert self._parent.stdout
        for line in self._parent.stdout:
            record = json.loads(line)
            process = self._processes[record["job"]]
            if "pid" in record:
                process.pid = record["pid"]
                process.begun.set()
            else:
                process.code = record["code"]
                process.ended.set()


def _warm() -> None:
    """Import the modules of the commands except those that import torch; start no thread."""
    from distract.core import registry
    from distract.stats import ratings

    for name in _MODULES:
        importlib.import_module(name)
    for plug_ins in (registry.protocols, registry.attacks, ratings.systems):
        plug_ins()
    asyncio.run(_ask_nobody())
    assert threading.active_count() == 1
    assert "torch" not in sys.modules


async def _ask_nobody() -> None:
    with contextlib.suppress(Exception):  # connections are refused
        async with openai.DefaultAsyncHttpxClient() as client:
            await client.get("http://127.0.0.1:1")


def _serve() -> None:
    """The parent process: reads jobs from stdin, and reports starts and ends on stdout."""
    _warm()
    faulthandler.enable()
    wakes, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    jobs: dict[int, int] = {}
    waiting = b""
    while True:
        ready, _, _ = select.select([0, wakes], [], [])
        if wakes in ready:
            os.read(wakes, 4096)
            while jobs:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                _report(job=jobs.pop(pid), code=os.waitstatus_to_exitcode(status))
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, waiting = (waiting + chunk).split(b"\n")
            for line in lines:
                job = json.loads(line)
                pid = os.fork()
                if not pid:
                    os.close(wakes)
                    os.close(woken)
                    _run_job(job)
                    return
                jobs[pid] = job["job"]
                _report(job=job["job"], pid=pid)


def _report(**values: int) -> None:
    os.write(1, json.dumps(values).encode() + b"\n")


def _run_job(job: dict[str, Any]) -> None:
    signal.set_wakeup_fd(-1)
    for one in (signal.SIGCHLD, signal.SIGINT):  # an early signal must not cause a traceback of this script
        signal.signal(one, signal.SIG_DFL)
    os.chdir(job["folder"])
    os.environ.update(job["settings"])
    for number, path in enumerate((os.devnull, "out", "err")):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["distract", *job["arguments"]]
    from distract.cli.main import main

    main()


if __name__ == "__main__":
    _serve()
