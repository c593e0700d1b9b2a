"""The standard streams of a command, which cannot break and so change no exit code: only a verdict does."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any


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
