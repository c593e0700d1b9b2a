"""Commands killed at random moments and resumed, alone and two on one store, lose no reply and repeat no request.

A kill comes at a certain request, before or after its answer, or after a time. A counting server records the requests,
and files are compared with those of the same command without a kill in a separate interpreter.
"""

import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import write_rows
from forks import Forks, Process
from fuzzer import Fuzz
from loopback import CHAT, Answer, FakeServer, ReceivedRequest, completion, token

KILLS = 100
"""The number of kills in each of the two tests."""

_PAIRWISE = "--protocol pairwise --attack sycophancy"
COMMANDS = {
    "attack": f"attack --judge openai:j --generator rules {_PAIRWISE} --limit all",
    "attack with a generator": "attack --judge planted:bold --generator openai:g --attack sycophancy --limit all",
    "attack with both": "attack --judge openai:j --generator openai:g --attack assertiveness --protocol pairwise",
    # Without --trust-store, a gate repeats some stored requests to check that the judge is unchanged.
    "gate": f"gate --judge openai:j --generator rules {_PAIRWISE} --max-flip-rate 0.5 --trust-store",
    "rewrite": "rewrite --generator openai:g --attack sycophancy --limit all",
    "meta": "meta --judge openai:j --protocol pairwise --control --limit all",
    "consistency": "consistency --judge openai:j --protocol pairwise --limit 1",
    "leaderboard": f"leaderboard --judge openai:j --generator rules {_PAIRWISE} --lowest 1 --draws 10 --limit 2",
}
SHARES = (0.6, 0.25, 0.1, 0.05)
STOPPED = {signal.SIGKILL: {-9}, signal.SIGTERM: {-15, 143}, signal.SIGINT: {-2, 130}}
WAITED = 4.0
"""Seconds after which a stopped command may abandon requests under way."""


def answer(request: ReceivedRequest) -> dict[str, Any]:
    """Replies of a generator that sometimes fails and of a judge; both depend on the request alone."""
    digest = hashlib.sha256(request.content.encode()).digest()
    if request.body["model"] == "g":
        text = request.content.partition("# Response to rewrite\n")[2].partition("\n\n# Format")[0]
        return completion(f"What a great question! {text}" if digest[0] % 3 else "No.")
    names = sorted("ABCD", key=lambda name: digest[ord(name) % 32])
    likely = dict(zip(names, SHARES, strict=True))
    return completion(names[0], logprobs=[token(names[0], likely)], finish="length")


@dataclass
class Run:
    """One start of a command.

    Attributes:
        key: identifies the command to the server.
        command: of ``COMMANDS``.
        signals: the signals that kill it.
        concurrency: the number of its concurrent requests.
        moment: the number of the request at which the signals are sent; 0 if they are sent after a time.
        is_late: the signals are sent after the answer to that request.
        asked: its requests that count as paid.
        killed: when the first signal was sent.
    """

    key: str
    command: str
    concurrency: int = 4
    signals: tuple[int, ...] = ()
    moment: int = 0
    is_late: bool = False
    asked: list[ReceivedRequest] = field(default_factory=list)
    process: Process | None = None
    killed: float | None = None
    ended: float = 0.0

    def kill(self) -> None:
        assert self.process is not None
        for number in self.signals:
            if self.process.send(number) and self.killed is None:
                self.killed = time.monotonic()

    @property
    def spares(self) -> int:
        """The number of replies that may be lost: none after one polite signal with time to stop."""
        if self.killed is None:
            return 0
        if len(self.signals) == 1 and self.signals[0] != signal.SIGKILL and self.ended - self.killed < WAITED:
            return 0
        # The stream of each of the two models accepts four times as many requests as run concurrently.
        return 4 * self.concurrency * 2


class Watched(FakeServer):
    """A server that kills the commands that send requests."""

    def __init__(self) -> None:
        super().__init__(answer)
        self.runs: dict[str, Run] = {}

    async def answer(self, request: ReceivedRequest) -> Answer:
        run = self.runs.get(request.headers["authorization"])
        if run is None or request.path != CHAT:
            return await super().answer(request)
        run.asked.append(request)
        is_due = len(run.asked) == run.moment
        if is_due and not run.is_late:
            run.kill()
        answer = await super().answer(request)
        await asyncio.sleep(request.raw[-9] % 8 / 1000)
        if is_due and run.is_late:
            asyncio.get_running_loop().call_later(request.raw[-7] % 4 / 1000, run.kill)
        return answer


@dataclass(frozen=True)
class Reference:
    """A command without a kill: its exit code, requests and files."""

    code: int
    asked: Counter[bytes]
    files: dict[str, bytes]
    replies: set[tuple[bytes, str]]


@dataclass
class House:
    """The server, the processes and the data of the commands."""

    server: Watched
    forks: Forks
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)
    references: dict[str, Reference] = field(default_factory=dict)

    def arguments(self, command: str, store: str) -> tuple[str, ...]:
        data = self.folder / ("many.jsonl" if command in ("consistency", "leaderboard") else "pairs.jsonl")
        out = "rewrites.jsonl" if command == "rewrite" else "run"
        more = ("--data", str(data), "--base-url", self.server.url, "--out", out, "--store", store)
        return (*COMMANDS[command].split(), *more)

    def begin(self, command: str, concurrency: int = 4) -> Run:
        run = Run(f"Bearer sk-run-{next(self.numbers):08}", command, concurrency)
        self.server.runs[run.key] = run
        return run

    def reference(self, command: str) -> Reference:
        if command not in self.references:
            run, place = self.begin(command), self.folder / "left in peace" / command
            place.mkdir(parents=True)
            settings = os.environ | {"OPENAI_API_KEY": run.key.removeprefix("Bearer "), "COLUMNS": "80"}
            arguments = [sys.executable, "-m", "distract", *self.arguments(command, "replies.sqlite")]
            ended = subprocess.run(arguments, cwd=place, env=settings, capture_output=True, text=True, check=False)
            assert ended.returncode in (0, 1, 3), ended.stderr
            sent = Counter(one.raw for one in run.asked)
            assert len(sent) > 5
            replies = read_store(place / "replies.sqlite")
            self.references[command] = Reference(ended.returncode, sent, read_run_files(place), replies)
        return self.references[command]


def write_cases(path: Path, number: int, authors: str) -> None:
    """Write data whose responses are all distinct and can be rewritten by rule."""
    text = "I think that number {} might be what {} would perhaps take, since it seems to be {} of them."
    lines = list[dict[str, Any]]()
    for index in range(number):
        responses = [{"author": one, "text": text.format(index, one, ord(one))} for one in authors]
        line = {"id": f"c{index}", "prompt": f"Which number, and why? This is question {index}."}
        lines.append({**line, "responses": responses, "preferred": authors[index % 2]})
    write_rows(path, lines)


def read_run_files(folder: Path) -> dict[str, bytes]:
    """The reproducible files of a command, without manifests and versions."""
    files = [folder / "rewrites.jsonl", *(folder / "run").glob("*")]
    paths = [file for file in files if file.exists() and file.name not in ("manifest.json", "run.json")]
    return {file.name: file.read_bytes() for file in paths}


def read_store(path: Path) -> set[tuple[bytes, str]]:
    """The replies in a store that passes the integrity check."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        return set(db.execute("select key, reply from replies"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("kills")
    write_cases(folder / "pairs.jsonl", 6, "xy")
    write_cases(folder / "many.jsonl", 3, "wxyz")
    with Watched() as server, Forks() as forks:
        yield House(server, forks, folder)


def finish(house: House, command: str, folder: Path, draw: Random) -> list[Run]:
    """Run a command until it finishes, with up to five kills."""
    runs: list[Run] = []
    reference = house.reference(command)
    for left in reversed(range(6)):
        run = house.begin(command, draw.choice((1, 2, 4)))
        after = None
        if left:
            number = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
            is_impatient = number != signal.SIGKILL and draw.random() < 0.25
            run.signals = (number, number) if is_impatient else (number,)
            run.is_late = draw.random() < 0.5
            if draw.random() < 0.8:
                run.moment = draw.randint(1, draw.choice((3, 8, reference.asked.total())))
            else:
                after = draw.uniform(0.0, 0.4)
        key = run.key.removeprefix("Bearer ")
        arguments = (*house.arguments(command, "../replies.sqlite"), "--concurrency", str(run.concurrency))
        run.process = house.forks.start(folder, arguments, {"OPENAI_API_KEY": key})
        if after is not None:
            timer = threading.Timer(after, run.kill)
            timer.start()
        code = run.process.wait()
        run.ended = time.monotonic()
        if after is not None:
            timer.cancel()
            timer.join()
        runs.append(run)
        error = run.process.err
        assert "Traceback" not in error, error
        if run.killed is None or code not in STOPPED[signal.Signals(run.signals[0])]:
            run.killed = None  # too late
            assert code == reference.code, f"{command} ended with {code}: {error}"
            assert read_run_files(folder) == reference.files
            break
        if code > 0:
            assert error.endswith("distract: stopped; the same command resumes\n"), error
        again = Counter(one.raw for one in run.asked)
        assert again.keys() <= reference.asked.keys(), "a kill makes no new request"
    return runs


def check(house: House, folder: Path, commands: list[str], draw: Random) -> int:
    """Run commands concurrently on one store; return the number of kills they survived."""
    folder.mkdir()
    draws = [Random(draw.random()) for _ in commands]
    places = [folder / str(index) for index in range(len(commands))]
    for command in commands:
        house.reference(command)
    with ThreadPoolExecutor(len(commands)) as pool:
        finished = list(pool.map(lambda one: finish(house, *one), zip(commands, places, draws, strict=True)))
    runs = [run for command_run in finished for run in command_run]
    allowed = Counter[bytes]()
    for command in commands:
        allowed |= house.reference(command).asked
    _nothing_twice(runs, allowed)
    assert read_store(folder / "replies.sqlite") == set().union(*(house.reference(one).replies for one in commands))
    held = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"sk-run-" not in held
    for run in runs:
        del house.server.runs[run.key]
    return sum(run.killed is not None for run in runs)


def _nothing_twice(runs: list[Run], allowed: Counter[bytes]) -> None:
    requests = sorted(((one, run) for run in runs for one in run.asked), key=lambda pair: pair[0].at)
    askers: dict[bytes, list[tuple[ReceivedRequest, Run]]] = {}
    lost = Counter[str]()
    for one, run in requests:
        earlier = askers.setdefault(one.raw, [])
        if len(earlier) >= allowed[one.raw]:
            before = earlier[-allowed[one.raw]][1]
            assert before.killed is not None, "asked again though the reply came"
            assert before.killed <= one.at, "asked by two at once"
            lost[before.key] += 1
        earlier.append((one, run))
    assert askers.keys() == allowed.keys()
    for run in runs:
        place = f"{run.signals} at request {run.moment} of {run.command}"
        assert lost[run.key] <= run.spares, f"{lost[run.key]} replies lost to {place}"


def test_repeated_kills_lose_no_reply_and_repeat_no_request(house: House, fuzz: Fuzz, tmp_path: Path) -> None:
    folders = map(tmp_path.joinpath, map(str, count()))
    fuzz.each(KILLS, lambda draw: check(house, next(folders), [draw.choice([*COMMANDS])], draw))


def test_two_commands_on_a_store_lose_and_repeat_nothing(house: House, fuzz: Fuzz, tmp_path: Path) -> None:
    folders = map(tmp_path.joinpath, map(str, count()))

    def both(draw: Random) -> int:
        one, other = draw.choice([*COMMANDS]), draw.choice([*COMMANDS])
        # In half of the cases, run the same command in another run folder, which needs the same replies.
        return check(house, next(folders), [one, one if draw.random() < 0.5 else other], draw)

    fuzz.each(KILLS, both)
