"""Test claims on requests: waiting for other processes, and claims of processes that die."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import locks as module
from distract.core.locks import PAUSE, PLACES, Claims

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


def start_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


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
    def other() -> None:
        with Claims(tmp_path / "." / "s") as claims:
            taken.append(claims.take(KEYS[1:3]))

    taken = list[set[bytes]]()
    with Claims(tmp_path / "s") as own_lock:
        assert own_lock.take([KEYS[1]]) == {KEYS[1]}
        start_thread(other).join(10)
        assert taken == [{KEYS[2]}]
        # Closing a file releases all locks that a process holds on it.
        assert read_line(started(HOLD, tmp_path / "s", 1, 2)) == "1"
    start_thread(other).join(10)
    assert taken[1] == {KEYS[1]}


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
    assert sorted(key for part in parts for key in part) == twins
    assert [len(part) for part in parts] == [1, 1]


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


def break_locking(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def lockf(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("distract.core.locks.fcntl.lockf", lockf)


def break_lock_creation(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def lock_file(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("distract.core.files.open_lock", lock_file)


@each("spoil, why", (break_locking, "No locks available"), (break_lock_creation, "Permission denied"))
def test_without_locking_everything_is_granted_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[..., None], why: str
) -> None:
    def other() -> None:
        with Claims(tmp_path / "s") as claims:
            taken.append(claims.take([KEYS[1]]))

    taken = list[set[bytes]]()
    spoil(monkeypatch, tmp_path / "s")
    with Claims(tmp_path / "s") as claims:
        assert claims.take(KEYS) == set(KEYS)
        assert claims.fault == f"{tmp_path / 's.lock'}: {why}"
        start_thread(other).join(10)
    assert taken == [set()]  # within a process, threads still share their claims


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
