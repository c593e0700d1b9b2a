"""Claims on requests: who waits for whom, and what becomes of those of a process that dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distract.claims import Claims
from distract.errors import UsageError

pytest.importorskip("fcntl")

KEYS = [bytes([number]) * 32 for number in range(20)]

HOLD = """
import sys, time
from pathlib import Path
from distract.claims import Claims

with Claims(Path(sys.argv[1])).held([bytes([int(n)]) * 32 for n in sys.argv[2:]]):
    print("held", flush=True)
    time.sleep(600)
"""

TAKE_TURNS = """
import random, sys, time
from pathlib import Path
from distract.claims import Claims

draw, claims, folder = random.Random(int(sys.argv[2])), Claims(Path(sys.argv[1])), Path(sys.argv[1]).parent
for _ in range(150):
    mine = draw.sample(range(6), 3)
    with claims.held(bytes([n]) * 32 for n in mine):
        for n in mine:
            (folder / f"held-{n}").touch(exist_ok=False)
        time.sleep(0.0005)
        for n in mine:
            (folder / f"held-{n}").unlink()
"""


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Waiter:
    """A thread that wants claims, and gives them back as soon as it has got them."""

    def __init__(self, claims: Claims, keys: list[bytes]) -> None:
        self._thread = threading.Thread(target=self._run, args=(claims, keys), daemon=True)
        self._thread.start()

    def got_them(self, within: float) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self, claims: Claims, keys: list[bytes]) -> None:
        with claims.held(keys):
            pass


def test_a_claim_waits_for_another_process_and_is_free_when_that_dies(tmp_path: Path) -> None:
    store = tmp_path / "deep" / "replies.sqlite"
    with started(HOLD, store, 1, 2) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        claims = Claims(store)
        with claims.held([KEYS[3], KEYS[4]]):
            pass  # what nobody has claimed is there at once
        waiter = Waiter(claims, [KEYS[4], KEYS[2]])
        assert not waiter.got_them(0.1)
        other.kill()
        assert waiter.got_them(10)
        claims.close()


def test_overlapping_claims_in_any_order_neither_meet_nor_wait_in_a_circle(tmp_path: Path) -> None:
    running = [started(TAKE_TURNS, tmp_path / "s", seed) for seed in range(3)]
    for one in running:
        _, err = one.communicate(timeout=60)
        assert (one.returncode, err) == (0, "")


def test_threads_wait_for_each_other_whichever_of_the_claims_they_use(tmp_path: Path) -> None:
    one, two = Claims(tmp_path / "s"), Claims(tmp_path / "." / "s")
    with one.held([KEYS[1]]):
        waiter = Waiter(two, [KEYS[1]])
        assert not waiter.got_them(0.05)
    assert waiter.got_them(10)
    one.close()
    two.close()


def test_closing_one_of_two_gives_back_nothing_of_the_other(tmp_path: Path) -> None:
    one, two = Claims(tmp_path / "s"), Claims(tmp_path / "s")
    with one.held([KEYS[1]]):
        two.close()
        with started(HOLD, tmp_path / "s", 1) as other:
            time.sleep(0.5)
            assert other.poll() is None
            other.kill()
            assert other.communicate()[0] == ""
    one.close()


def test_claims_within_claims_claim_nothing_more(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "s")
    with claims.held([KEYS[5]]), claims.held([KEYS[1]]), started(HOLD, tmp_path / "s", 1) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        other.kill()
    claims.close()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from(KEYS)))
def test_what_was_held_is_free_again_after_an_error(
    tmp_path_factory: pytest.TempPathFactory, keys: list[bytes]
) -> None:
    claims = Claims(tmp_path_factory.mktemp("claims") / "s")
    with pytest.raises(ZeroDivisionError), claims.held(keys):
        raise ZeroDivisionError
    waiter = Waiter(claims, keys)
    assert waiter.got_them(10)
    claims.close()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"s\.lock: cannot be written \(.*\); name another store"):
        Claims(tmp_path / "file" / "s")


def test_very_many_keys_are_claimed_at_once_and_keep_others_out(tmp_path: Path) -> None:
    many = [number.to_bytes(8, "big") * 4 for number in range(20_000)]
    holder = started(HOLD, tmp_path / "s", 1)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiter = Waiter(claims := Claims(tmp_path / "s"), many)
        waiter._thread.join(0.2)
        assert waiter._thread.is_alive()
    finally:
        holder.kill()
        holder.communicate()
    waiter._thread.join(10)
    assert not waiter._thread.is_alive()
    claims.close()
