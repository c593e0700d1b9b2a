"""Run a gate with code of the user's own in a child process, since such code can end its process with exit code 0.

The child is the same command again. It reports its exit code over a socket, with a token, which no code sends by
accident; an exit without that report is no verdict. It also reports each signal there, so that the parent forwards only
those that did not reach both, as Ctrl-C does, and it ends when the parent does.
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

from distract.cli.shared import PARENT, CommandExit
from distract.core import registry
from distract.core.errors import DataError, PluginError
from distract.core.files import MOST_TEXT, read_bytes
from distract.core.signals import SIGNALS

_CODE = re.compile(r"python:|\.py(?:[:+]|$)|trust.remote.code", re.MULTILINE)
_is_child = False


def find_user_code(arguments: Sequence[str]) -> str:
    """Name what a command may run that is not distract's own, importing nothing; settings of a project name no code."""
    for argument in arguments:
        text = argument
        if argument.endswith(".toml"):
            with suppress(DataError):  # the command says what is wrong
                text = read_bytes(Path(argument.rpartition("=")[2]), MOST_TEXT).decode(errors="replace")
        if _CODE.search(text):
            return argument
    return next((f"plug-in {entry.name!r} ({entry.value})" for entry in registry.installed()), "")


def can_start() -> bool:
    """Whether this process is the command itself: not its child, nor a program that calls the command line."""
    own = sys.argv[1:]
    return os.name == "posix" and not _is_child and sys.orig_argv[-len(own) :] == own


def run(code: str) -> NoReturn:
    """Run this command in a child, and end with its exit code unless it ends without a verdict."""
    token, report, forwarded = secrets.token_hex(16), bytearray(), Counter[int]()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.set_inheritable(True)
    environment = {**os.environ, PARENT: f"{theirs.fileno()}:{token}"}
    # All descriptors are inherited: a path may name one, as /dev/fd/63 does.
    child = subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env=environment, close_fds=False)

    def read() -> None:
        with suppress(BlockingIOError, ConnectionError):
            while part := ours.recv(4096):
                report.extend(part)

    def forward(number: int, frame: FrameType | None) -> None:
        forwarded[number] += 1
        time.sleep(0.1)  # a signal to both reaches the child meanwhile
        read()
        if report.count(number) < forwarded[number]:
            child.send_signal(number)

    for each in SIGNALS:
        if signal.getsignal(each) not in (signal.SIG_IGN, None):
            signal.signal(each, forward)
    status = child.wait()
    read()
    verdict = re.search(rb"%b(\d{3})" % token.encode(), report)
    if verdict and int(verdict[1]) == status:
        raise CommandExit(status)
    end = f"exit status {status}" if status >= 0 else f"signal {-status}, {signal.strsignal(-status)}"
    how = f"with another verdict than its {end}" if verdict else f"without a verdict ({end})"
    error = PluginError(f"the process of the gate ended {how}: {code}, or a library of its own, may have ended it")
    error.exit_code = 4 if status >= 0 else 128 - status
    raise error


def attach() -> Callable[[int], None]:
    """Make this process the child of the command that started it; returns how to report the exit code."""
    global _is_child
    number, token = os.environ.pop(PARENT).split(":")
    link, process, _is_child = socket.socket(fileno=int(number)), os.getpid(), True
    link.set_inheritable(False)
    link.setblocking(False)
    signal.set_wakeup_fd(link.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_with_parent, args=(link,), daemon=True).start()

    def report(code: int) -> None:
        if os.getpid() == process:  # else it is a fork that user code has made
            with suppress(OSError):
                link.sendall(f"{token}{code:03}".encode())

    return report


def _end_with_parent(link: socket.socket) -> None:
    """Wait for the end of the parent, which sends nothing, and then stop this process."""
    select.select([link], [], [])
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        os.kill(os.getpid(), number)
        time.sleep(0.8)  # for replies in flight
