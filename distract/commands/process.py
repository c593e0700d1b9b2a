"""The process around a command: standard streams that cannot break, and signals that unwind what runs.

Neither may change an exit code: only a verdict does.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end, which tells it from a KeyboardInterrupt that some code raised.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextmanager
def raised_signals() -> Iterator[None]:
    """Raise ``Stopped`` for Ctrl-C and SIGTERM inside; a signal that is ignored stays so."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {one: handler for one in SIGNALS if (handler := signal.getsignal(one)) not in (signal.SIG_IGN, None)}
    try:
        for one in before:
            signal.signal(one, _stop)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


class _Stream(io.FileIO):
    """A standard stream that drops what it cannot write: its disk is full, or its reader has gone."""

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        """Write what can be written; all of it counts as written."""
        try:
            while (size := super().write(data)) is None:  # it does not block, and its reader is slow
                select.select([], [self], [])
            return size
        except OSError as error:
            self.fault = error
            return len(data)


class _Text(io.TextIOWrapper):
    """Such a stream of text, which stays open: a plug-in that closes it takes no verdict's words."""

    def close(self) -> None:
        """Write what is held back."""
        self.flush()


def keep_streams() -> None:
    """Make standard output and error such streams, where they are the process's own; open those that are closed.

    A file opened later would otherwise get the number of a closed one, and with it whatever is printed there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        stream = getattr(sys, name)
        if name == "stdin" or stream is not getattr(sys, f"__{name}__"):
            continue
        raw = _Stream(os.devnull, "w") if stream is None else _Stream(number, "w", closefd=False)
        wrapper = _Text(
            io.BufferedWriter(raw),
            encoding=getattr(stream, "encoding", "utf-8"),
            errors=getattr(stream, "errors", "backslashreplace"),
            line_buffering=getattr(stream, "line_buffering", True),
            write_through=getattr(stream, "write_through", False),
        )
        setattr(sys, name, wrapper)


def lost_output() -> str:
    """Why part of the standard output is lost; empty where none is, or where its reader did not want it."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    fault = getattr(raw, "fault", None)
    return "" if fault is None or fault.errno == errno.EPIPE else str(fault.strerror)
