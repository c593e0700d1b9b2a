"""Commands in separate processes, and a server that delays its answers, for tests of kills and signals."""

import asyncio
import hashlib
import os
import queue
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from command_result import CommandResult
from loopback import CHAT, Answer, FakeServer, ReceivedRequest, completion, token

PATIENCE = 300.0
"""Seconds until a test fails; a passing test never waits that long."""


class CommandProcess:
    """A running command, killed at the end of the context. It receives SIGHUP even if the tests run under nohup.

    Args:
        arguments: the command line.
        folder: the working directory.
        before: code to run first in the same process.
    """

    def __init__(self, *arguments: object, folder: Path, before: str = "") -> None:
        line = ["distract", *map(str, arguments)]
        hears = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        script = f"import sys\n{hears}{before}\nsys.argv = {line!r}\nfrom distract.cli.main import main\nmain()\n"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "DISTRACT_"))
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._lines: dict[str, list[str]] = {"out": [], "err": []}
        self._coming: dict[str, queue.SimpleQueue[str]] = {"out": queue.SimpleQueue(), "err": queue.SimpleQueue()}
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        streams = {"out": self.process.stdout, "err": self.process.stderr}
        self._threads = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in streams.items()]
        for thread in self._threads:
            thread.start()

    def says(self, text: str, stream: str = "err") -> str:
        """Wait for a line that contains a text."""
        while text not in (line := self._coming[stream].get(timeout=PATIENCE)):
            assert line, f"it ended without {text!r}: {self.ended()}"
        return line

    def ended(self) -> CommandResult:
        """Wait for the end."""
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return CommandResult(code, "".join(self._lines["out"]), "".join(self._lines["err"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.ended()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _read(self, name: str, stream: IO[str]) -> None:
        for line in stream:
            self._lines[name].append(line)
            self._coming[name].put(line)
        self._coming[name].put("")


def opinion(request: ReceivedRequest) -> dict[str, Any]:
    """A verdict that depends on the request alone."""
    share = hashlib.sha256(request.content.encode()).digest()[0] / 256
    return completion("A", logprobs=[token("A", {"A": 0.1 + 0.7 * share, "B": 0.8 - 0.7 * share})], finish="length")


class HeldServer(FakeServer):
    """Delays its answers until it is freed, but answers probes at once."""

    def __init__(self) -> None:
        super().__init__(opinion)
        self._free = asyncio.Event()
        self._seen = threading.Semaphore(0)

    def saw(self, number: int) -> None:
        """Wait for this number of further requests."""
        for _ in range(number):
            assert self._seen.acquire(timeout=PATIENCE)

    def free(self) -> None:
        """Answer from now on."""
        self._loop.call_soon_threadsafe(self._free.set)

    async def answer(self, request: ReceivedRequest) -> Answer:
        answer = await super().answer(request)
        if request.path == CHAT and not request.is_probe:
            self._seen.release()
            await self._free.wait()
        return answer

    @property
    def contents(self) -> list[bytes]:
        """The requests for verdicts."""
        return [request.raw for request in self.chats]


def count_replies(store: Path) -> int:
    with sqlite3.connect(store) as db:
        ((count,),) = db.execute("select count(*) from replies").fetchall()
    db.close()
    return int(count)


def run_process(*arguments: object, folder: Path, before: str = "") -> CommandResult:
    """Run a command in a process of its own until it ends."""
    with CommandProcess(*arguments, folder=folder, before=before) as command:
        return command.ended()
