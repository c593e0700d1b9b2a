"""Run a gate with code of the user's own in a child process, since such code can end its process with exit code 0.

The child is the same command again. It reports its exit code over a socket, with a token, which no code sends by
accident; an exit without that report is no verdict. The child also reports its signals there, so that the parent
forwards those of its own that did not reach both, as Ctrl-C does, and it ends when the parent does.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from distract.cli.settings import CODE
from distract.cli.shared import PARENT, CommandExit
from distract.core import registry
from distract.core.errors import PluginError
from distract.core.signals import SIGNALS

ECHO = 0.1
"""Seconds in which a signal to both processes reaches the child."""

PATIENCE = 0.8
"""Seconds between the signals to a child without a parent; replies in flight have twice as long."""

_is_child = False


def find_user_code(arguments: Sequence[str]) -> str:
    """Name what a command may run that is not distract's own; empty for nothing. Imports none of it.

    Settings of a project cannot name code. Any argument with the name of a Python file counts, whatever it is for.
    """
    for argument in arguments:
        text = argument
        if argument.endswith(".toml"):
            with suppress(OSError):
                text = Path(argument.rpartition("=")[2]).read_text("utf-8", errors="replace")
            if re.search(r"python:|trust.remote.code", text):
                return argument
        elif CODE.search(argument) or re.search("trust.remote.code", argument):
            return argument
    return next((f"plug-in {entry.name!r} ({entry.value})" for entry in registry.installed()), "")


def can_start() -> bool:
    """Whether this process is the command itself: not its child, nor a program that calls the command line."""
    own = sys.argv[1:]
    return os.name == "posix" and not _is_child and sys.orig_argv[-len(own) :] == own


def run(code: str) -> NoReturn:
    """Run this command in a child and end with its exit code, unless it ends without a verdict."""
    token = secrets.token_hex(16).encode()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.set_inheritable(True)
    environment = {**os.environ, PARENT: f"{theirs.fileno()}:{token.decode()}"}
    # All descriptors are inherited: a path may name one, as /dev/fd/63 does.
    child = subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env=environment, close_fds=False)
    theirs.close()
    report, forwarded = bytearray(), Counter[int]()

    def read() -> None:
        with suppress(BlockingIOError):
            while part := ours.recv(4096):
                report.extend(part)

    def forward(number: int, frame: FrameType | None) -> None:
        forwarded[number] += 1
        time.sleep(ECHO)
        read()
        if report.count(number) < forwarded[number]:
            child.send_signal(number)

    before = {each: old for each in SIGNALS if (old := signal.getsignal(each)) not in (signal.SIG_IGN, None)}
    try:
        for each in before:
            signal.signal(each, forward)
        status = child.wait()
        read()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    verdict = re.search(token + rb"(\d{3})", report)
    if verdict and int(verdict[1]) == status:
        raise CommandExit(status)
    end = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
    problem = f"with another verdict than its {end}" if verdict else f"without a verdict ({end})"
    error = PluginError(f"the process of the gate ended {problem}: {code}, or a library of its own, may have ended it")
    error.exit_code = 4 if status >= 0 else 128 - status
    raise error


def attach() -> Callable[[int], None]:
    """Make this process the child of the command that started it; returns how to report the exit code."""
    global _is_child
    number, _, token = os.environ.pop(PARENT).partition(":")
    link, process, _is_child = socket.socket(fileno=int(number)), os.getpid(), True
    link.set_inheritable(False)
    link.setblocking(False)
    signal.set_wakeup_fd(link.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_with_parent, args=(link,), name="distract-parent", daemon=True).start()

    def report(code: int) -> None:
        if os.getpid() == process:  # else it is a fork that user code has made
            with suppress(OSError):
                link.send(f"{token}{code:03}".encode())

    return report


def _end_with_parent(link: socket.socket) -> None:
    """Wait for the end of the parent, which sends nothing, and then stop this process."""
    select.select([link], [], [])
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        os.kill(os.getpid(), number)
        time.sleep(PATIENCE)
