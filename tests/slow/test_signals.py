"""Test Ctrl-C and SIGTERM: requests under way finish and are stored, for a few seconds, unless the signal repeats."""

import signal
from pathlib import Path

import pytest
from command_result import CommandResult
from loopback import Answer, FakeServer, ReceivedRequest, refusal
from processes import CommandProcess, HeldServer, count_replies

from distract.core import signals

pytest.importorskip("openai")

ATTACK = ("attack", "--limit", 8, "--protocol", "pairwise", "--attack", "assertiveness", "--generator", "rules")
KEPT = ("--out", "r", "--store", "s")
SIGNALS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
LAST = "distract: stopped; the same command resumes"
FOR_EVER = "from distract.core import signals\nsignals.GRACE = 10000.0"
"""A wait longer than any test: code that ends earlier has not waited."""

HALTED = """
from distract.models.server import backend
halt = backend.ThreadedStream.halt
def told(self):
    given_up = halt(self)
    print("halted", flush=True)
    return given_up
backend.ThreadedStream.halt = told
"""
"""Signals the end of sending to a server."""

TOLD = """
from distract.models.server import places
pause = places.Place.pause
def told(self, seconds):
    pause(self, seconds)
    print("paused", flush=True)
places.Place.pause = told
"""
"""Signals that a server has requested a pause."""

LOCAL = f"""
{FOR_EVER}
import pathlib, time
from distract.models import scripted
plant = scripted.make_planted
longer = plant("longer")
def slow(request):
    print("asked", flush=True)
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return longer._answer_one(request)
scripted.BATCH = 5
scripted.make_planted = lambda spec: scripted.ScriptedBackend(slow, name=spec) if spec == "longer" else plant(spec)
"""


def check_stopped(ran: CommandResult, code: int) -> None:
    assert (ran.code, ran.err.splitlines()[-1], "Traceback" in ran.err) == (code, LAST, False)


def at_server(server: FakeServer, folder: Path, before: str = FOR_EVER, concurrency: int = 4) -> CommandProcess:
    where = ("--judge", "openai:m", "--base-url", server.url, "--concurrency", concurrency)
    return CommandProcess(*ATTACK, *where, *KEPT, "--model-option", "timeout=100", folder=folder, before=before)


@SIGNALS
def test_requests_under_way_finish_and_no_more_are_sent(tmp_path: Path, number: int, code: int) -> None:
    with HeldServer() as server:
        with at_server(server, tmp_path, FOR_EVER + HALTED) as command:
            server.saw(4)
            command.process.send_signal(number)
            command.says("stopping: waiting up to")
            command.says("halted")
            server.free()
            ran = command.ended()
        check_stopped(ran, code)
        assert ran.err.count("halted\n") == 1
        assert "replies: 0 were stored, 6 made" in ran.err
        assert count_replies(tmp_path / "s") == 2 + 4
        assert len(server.chats) == 4
        with at_server(server, tmp_path) as again:
            assert again.ended().code == 0
        assert len(server.chats) == len({request.raw for request in server.chats})


@SIGNALS
def test_second_signal_ends_at_once(tmp_path: Path, number: int, code: int) -> None:
    with HeldServer() as server:
        with at_server(server, tmp_path) as command:
            server.saw(4)
            command.process.send_signal(number)
            command.says("stopping: waiting up to")
            command.process.send_signal(number)
            ran = command.ended()
        check_stopped(ran, code)
        assert count_replies(tmp_path / "s") == 2


def test_wait_after_a_signal_is_bounded(tmp_path: Path) -> None:
    with HeldServer() as server:
        with at_server(server, tmp_path, FOR_EVER.replace("10000.0", "0.1")) as command:
            server.saw(4)
            command.process.send_signal(signal.SIGTERM)
            ran = command.ended()
        check_stopped(ran, 143)


def test_stopping_does_not_wait_for_a_retry(tmp_path: Path) -> None:
    def busy(request: ReceivedRequest) -> Answer:
        answer = refusal(429, "slow down")
        return Answer(answer.body, 429, {"retry-after": "250"})

    with FakeServer(busy) as server, at_server(server, tmp_path, FOR_EVER + TOLD, 1) as command:
        command.says("paused")
        command.process.send_signal(signal.SIGINT)
        ran = command.ended()
        check_stopped(ran, 130)
        assert "got no answer" not in ran.err
        assert len(server.chats) == 1


@SIGNALS
def test_local_batch_finishes_and_no_other_begins(tmp_path: Path, number: int, code: int) -> None:
    command = (*ATTACK, "--judge", "planted:longer", *KEPT)
    with CommandProcess(*command, folder=tmp_path, before=LOCAL) as running:
        running.says("asked")
        running.process.send_signal(number)
        running.says("stopping: waiting up to")
        (tmp_path / "go").touch()
        ran = running.ended()
    check_stopped(ran, code)
    assert (count_replies(tmp_path / "s"), ran.err.count("asked\n")) == (5, 5)


def test_signal_is_held_once_and_only_while_busy() -> None:
    notices = list[str]()
    is_busy = False
    with signals.raise_signals(lambda: notices.append("wait")):
        with signals.hold_signals(lambda: is_busy), pytest.raises(signals.StopSignal):
            signal.raise_signal(signal.SIGINT)
        assert (signals.is_stopping(), notices) == (False, [])
        is_busy = True
        with pytest.raises(signals.StopSignal) as stopped, signals.hold_signals(lambda: is_busy):
            signal.raise_signal(signal.SIGTERM)
        assert (stopped.value.exit_code, signals.is_stopping(), notices) == (143, True, ["wait"])
        with pytest.raises(signals.StopSignal), signals.hold_signals():
            signal.raise_signal(signal.SIGTERM)
    assert not signals.is_stopping()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_errors_while_stopping_do_not_replace_the_signal() -> None:
    def fail() -> None:
        with signals.hold_signals():
            signal.raise_signal(signal.SIGINT)
            raise ValueError

    with signals.raise_signals(), pytest.raises(signals.StopSignal):
        fail()
