"""Test claims on requests: waiting for other processes, and claims of processes that die."""

import errno
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from builders import request
from hypothesis import given, strategies as st
from loops import each
from processes import CommandProcess, HeldServer
from test_flow import Recording, Shuffled

from distract.core import locks as module
from distract.core.locks import PAUSE, PLACES, Claims
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.store import Store
from distract.core.usage import Tally
from distract.report.progress import usage_lines

pytest.importorskip("fcntl")

KEYS = [bytes([number]) * 32 for number in range(20)]

HOLD = """
import sys
from pathlib import Path
from distract.core.locks import Claims

with Claims(Path(sys.argv[1])) as claims:
    print(len(claims.take([bytes([int(n)]) * 32 for n in sys.argv[2:]])), flush=True)
    sys.stdin.read()
"""

TAKE_TURNS = """
import random, sys
from pathlib import Path
from distract.core.locks import Claims

draw, folder = random.Random(int(sys.argv[2])), Path(sys.argv[1]).parent
for _ in range(10):
    with Claims(Path(sys.argv[1])) as claims:
        for mine in claims.take_batches([bytes([n]) * 32 for n in draw.sample(range(6), 3)]):
            held = [folder / f"held-{key[0]}" for key in mine]
            for one in held:
                one.touch(exist_ok=False)
            for one in held:
                one.unlink()
"""


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a script in a separate process, which ends with the test."""
    with ExitStack() as stack:

        def start(script: str, *arguments: object) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", script, *map(str, arguments)]
            pipe = subprocess.PIPE
            process = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
            stack.callback(process.kill)
            return process

        yield start


Start = Callable[..., "subprocess.Popen[str]"]


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def take_in_thread(store: Path, keys: Sequence[bytes]) -> set[bytes]:
    """What another thread may claim."""
    taken = list[set[bytes]]()

    def take() -> None:
        with Claims(store) as claims:
            taken.append(claims.take(keys))

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(10)
    return taken[0]


def test_locks_exclude_other_processes_until_they_die(
    tmp_path: Path, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "replies.sqlite"
    other = started(HOLD, store, 1, 2)
    assert read_line(other) == "2"
    with Claims(store) as claims:
        assert claims.take(KEYS[2:5]) == {KEYS[3], KEYS[4]}
        claims.give_back([KEYS[3]])
        assert read_line(started(HOLD, store, 1, 3, 4)) == "1"
        pauses = list[float]()

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            other.kill()
            other.wait()

        monkeypatch.setattr("distract.core.locks.time.sleep", pause)
        assert list(claims.take_batches([KEYS[2], KEYS[5]])) == [{KEYS[5]}, {KEYS[2]}]
        assert pauses == [PAUSE]


def test_link_to_a_store_shares_its_locks(tmp_path: Path, started: Start) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "s")
    with Claims(tmp_path / "link") as claims:
        assert claims.take([KEYS[1]]) == {KEYS[1]}
        assert read_line(started(HOLD, tmp_path / "deep" / "s", 1)) == "0"


def test_overlapping_locks_never_deadlock(tmp_path: Path, started: Start) -> None:
    running = [started(TAKE_TURNS, tmp_path / "s", seed) for seed in range(3)]
    for one in running:
        _, err = one.communicate(timeout=60)
        assert (one.returncode, err) == (0, "")


def test_threads_release_only_their_own_locks(tmp_path: Path, started: Start) -> None:
    with Claims(tmp_path / "s") as own_lock:
        assert own_lock.take([KEYS[1]]) == {KEYS[1]}
        assert take_in_thread(tmp_path / "." / "s", KEYS[1:3]) == {KEYS[2]}
        # Closing a file releases all locks that a process holds on it.
        assert read_line(started(HOLD, tmp_path / "s", 1, 2)) == "1"
    assert take_in_thread(tmp_path / "s", KEYS[1:2]) == {KEYS[1]}


def test_nested_locking_takes_nothing_and_waits_for_nothing(tmp_path: Path, started: Start) -> None:
    assert read_line(started(HOLD, tmp_path / "s", 7)) == "1"
    with Claims(tmp_path / "s") as outer, Claims(tmp_path / "s") as inner:
        assert outer.take(KEYS[5:8]) == {KEYS[5], KEYS[6]}
        assert list(inner.take_batches([KEYS[1], KEYS[5], KEYS[7]])) == [{KEYS[1], KEYS[5], KEYS[7]}]
        assert read_line(started(HOLD, tmp_path / "s", 1, 5, 6)) == "1"
        outer.give_back(KEYS)
        assert inner.take([KEYS[5], KEYS[7]]) == {KEYS[5]}


def test_process_may_lock_two_keys_in_one_slot_in_turn(tmp_path: Path) -> None:
    twins = [number.to_bytes(8, "big") * 4 for number in (3, 3 + PLACES)]
    with Claims(tmp_path / "s") as claims:
        parts = list(claims.take_batches(twins))
    assert (sorted(key for part in parts for key in part), [len(part) for part in parts]) == (twins, [1, 1])


@given(st.lists(st.sampled_from(KEYS)))
def test_errors_release_locks(tmp_path_factory: pytest.TempPathFactory, keys: list[bytes]) -> None:
    store = tmp_path_factory.mktemp("claims") / "s"

    def fail() -> None:
        with Claims(store) as claims:
            assert claims.take(keys) == set(keys)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not module._LOCK_FILES
    with Claims(store) as claims:
        assert claims.take(keys) == set(keys)


def break_call(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(name, fail)


@each(
    "name, number, why",
    ("distract.core.locks.fcntl.lockf", errno.ENOLCK, "No locks available"),
    ("distract.core.files.open_lock", errno.EACCES, "Permission denied"),
)
def test_without_locking_everything_is_granted_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int, why: str
) -> None:
    break_call(monkeypatch, name, number)
    with Claims(tmp_path / "s") as claims:
        assert (claims.take(KEYS), claims.fault) == (set(KEYS), f"{tmp_path / 's.lock'}: {why}")
        # Within a process, threads still share their claims.
        assert take_in_thread(tmp_path / "s", [KEYS[1]]) == set()


def test_in_memory_store_has_no_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Claims(None) as claims:
        assert claims.take(KEYS) == set(KEYS)
    assert list(tmp_path.iterdir()) == []


def test_thousands_of_locks_are_held_at_once(tmp_path: Path, started: Start) -> None:
    many = [number.to_bytes(8, "big") * 4 for number in range(0, 4000 * 7, 7)]
    with Claims(tmp_path / "s") as claims:
        assert claims.take([*many, KEYS[1]]) == {*many, KEYS[1]}
        assert read_line(started(HOLD, tmp_path / "s", 1, 2)) == "1"


pytest.importorskip("openai")

ATTACK = ("attack", "--limit", 8, "--protocol", "pairwise", "--attack", "assertiveness", "--generator", "rules")

LOCAL = """
import pathlib, time
from distract.models import scripted
planted = scripted.make_planted
longer = planted("longer")
def slow(request):
    with open("asked", "a") as file:
        file.write(request.key + "\\n")
    print("asked", flush=True)
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return longer._answer_one(request)
scripted.BATCH = 5
scripted.make_planted = lambda spec: scripted.ScriptedBackend(slow, name=spec) if spec == "longer" else planted(spec)
"""


def rows(folder: Path, run: str) -> bytes:
    return (folder / run / "rows.jsonl").read_bytes()


def at_server(server: HeldServer, folder: Path, out: str, store: str = "s") -> CommandProcess:
    where = ("--judge", "openai:m", "--base-url", server.url, "--concurrency", 4, "--model-option", "timeout=100")
    return CommandProcess(*ATTACK, *where, "--out", out, "--store", store, folder=folder)


def local(folder: Path, out: str, store: str = "s") -> CommandProcess:
    where = ("--judge", "planted:longer", "--out", out, "--store", store)
    return CommandProcess(*ATTACK, *where, folder=folder, before=LOCAL)


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """A folder with the run of each judge alone, and its number of requests."""
    folder = tmp_path_factory.mktemp("lone")
    with HeldServer() as server, at_server(server, folder, "server") as one:
        server.free()
        assert one.ended().code == 0
        count = len(server.chats)
    (folder / "go").touch()
    with local(folder, "local", "t") as one:
        assert one.ended().code == 0
    return folder, count, len((folder / "asked").read_text().split())


def test_two_commands_send_a_server_request_once(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with HeldServer() as server, at_server(server, tmp_path, "a") as one, at_server(server, tmp_path, "b") as two:
        for command in (one, two):
            command.says("plan:")
        server.saw(4)
        server.free()
        ended = [one.ended(), two.ended()]
        assert [ran.code for ran in ended] == [0, 0], ended
        assert len(server.probes) == 2
        assert (len(server.contents), set(Counter(server.contents).values())) == (lone[1], {1})
    assert rows(tmp_path, "a") == rows(tmp_path, "b") == rows(lone[0], "server")


def test_two_commands_ask_a_local_model_once(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with local(tmp_path, "a") as one, local(tmp_path, "b") as two:
        for command in (one, two):
            command.says("plan:")
        (tmp_path / "go").touch()
        ended = [one.ended(), two.ended()]
        assert [ran.code for ran in ended] == [0, 0], ended
    contents = (tmp_path / "asked").read_text().split()
    assert (len(contents), len(set(contents))) == (lone[2], lone[2])
    assert rows(tmp_path, "a") == rows(tmp_path, "b") == rows(lone[0], "local")


def test_other_command_takes_over_killed_server_requests(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with HeldServer() as server, at_server(server, tmp_path, "a") as one:
        server.saw(4)
        with at_server(server, tmp_path, "b") as two:
            two.says("plan:")
            one.process.kill()
            server.saw(4)
            server.free()
            assert two.ended().code == 0
        assert sorted(Counter(server.contents).values()) == [1] * (lone[1] - 4) + [2] * 4
    assert rows(tmp_path, "b") == rows(lone[0], "server")


def test_other_command_takes_over_killed_local_requests(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with local(tmp_path, "a") as one:
        one.says("asked")
        with local(tmp_path, "b") as two:
            two.says("plan:")
            one.process.kill()
            (tmp_path / "go").touch()
            assert two.ended().code == 0
    counts = Counter((tmp_path / "asked").read_text().split())
    assert sorted(counts.values()) == [1] * (lone[2] - 1) + [2]
    assert rows(tmp_path, "b") == rows(lone[0], "local")


def test_second_command_on_a_run_folder_names_the_first(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with HeldServer() as server, at_server(server, tmp_path, "a") as one:
        server.saw(4)
        with at_server(server, tmp_path, "a", "another") as two:
            ran = two.ended()
        who = f"a: process {one.process.pid} is writing this run; wait until it ends, or name another folder"
        assert (ran.code, who in ran.err, ran.out) == (4, True, "")
        server.free()
        assert (one.ended().code, len(server.chats)) == (0, lone[1])
    assert rows(tmp_path, "a") == rows(lone[0], "server")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {path.name for path in (lone[0] / "server").iterdir()}
    assert "run.lock" not in {path.name for path in (tmp_path / "a").iterdir()}


def test_killed_command_frees_its_run_folder_at_once(lone: tuple[Path, int, int], tmp_path: Path) -> None:
    with HeldServer() as server:
        with at_server(server, tmp_path, "a") as one:
            server.saw(4)
        assert (tmp_path / "a" / "run.lock").read_text().startswith(f"{one.process.pid} ")
        server.free()
        for words in ("replies: 0 were stored", "this run is complete"):
            with at_server(server, tmp_path, "a") as two:
                ran = two.ended()
                assert (ran.code, words in ran.err) == (0, True), ran.err
    assert rows(tmp_path, "a") == rows(lone[0], "server")


class Together(Shuffled):
    """A stream that opens only after all threads have reached this point."""

    def __init__(self, barrier: threading.Barrier, **more: Any) -> None:
        super().__init__(**more)
        self._barrier = barrier

    def open(self) -> Self:
        self._barrier.wait(60)
        return super().open()


@pytest.mark.parametrize("kind", ["stream", "rounds"])
def test_threads_on_one_store_send_each_request_once(tmp_path: Path, kind: str) -> None:
    barrier = threading.Barrier(3)
    streams = [Together(barrier, seed=seed, capacity=3) for seed in range(3)]
    backends: list[Any] = streams if kind == "stream" else [Recording() for _ in range(3)]
    results: dict[int, list[list[str]]] = {}
    tallies = [Tally() for _ in backends]

    def plan(index: int) -> Plan[list[str]]:
        heard = []
        for step in range(3):
            replies = yield [request(f"{index} {step}"), request(f"common {step}")]
            heard += [reply.text for reply in replies]
        return heard

    def work(number: int) -> None:
        backend = backends[number]
        with Store(tmp_path / "s", {"model": "one"}) as store:
            if kind == "rounds":
                barrier.wait(60)
            plans = (plan(index) for index in range(12))
            results[number] = list(execute(plans, {"judge": (backend, store)}, chunk=4, tally=tallies[number]))

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results[0] == results[1] == results[2]
    counts = Counter(text for one in backends for text in (one.asked if kind == "stream" else one.answered))
    assert (len(counts), set(counts.values()), sum(tally.made for tally in tallies)) == (39, {1}, 39)


@pytest.mark.parametrize("backend", [Shuffled(), Recording()], ids=["stream", "rounds"])
def test_unlockable_store_is_used_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    def plan() -> Plan[str]:
        (reply,) = yield [request("x")]
        return reply.text

    break_call(monkeypatch, "distract.core.locks.fcntl.lockf", errno.ENOLCK)
    messages = list[list[str]]()
    for _ in range(2):
        tally = Tally()
        with Store(tmp_path / "s", {"model": "one"}) as store:
            assert len(list(execute([plan(), plan()], {"judge": (backend, store)}, tally=tally))) == 2
        messages.append([line for line in usage_lines(tally, {}) if "cannot be locked" in line])
    # If all replies are stored, no process waits for another.
    assert [len(lines) for lines in messages] == [1, 0]
    assert messages[0][0].startswith(f"warning: the store cannot be locked ({tmp_path / 's.lock'}: No locks available)")
