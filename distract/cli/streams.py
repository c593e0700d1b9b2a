"""The standard streams of a command, which cannot break and so change no exit code: only a verdict does.

Whatever is printed passes these streams, so this is where text that somebody else wrote is kept from giving commands to
a runner of CI, and where an encoding that lacks a character gets another one.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from distract.core.errors import describe_error
from distract.core.printable import line


class _SafeStream(io.FileIO):
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


class _OpenBuffer(io.BufferedWriter):
    """The buffer of such a stream, which stays open too."""

    def close(self) -> None:
        """Write what is held back."""
        self.flush()


_COMMAND = re.compile(r"(?:\A|[\r\n])(?:[^\S\r\n]|\x1b\[[\d;]*m)*:(?=:)|##\w*(?=\[)")
"""The beginning of a command to a runner of CI, but for its last character: ``::`` after blanks, ``##[`` anywhere."""

_JOINER = "\u2060"
"""A word joiner, which has no width: it stands before the last character of such a beginning."""

_MAX_LINE = 200
"""Characters of an unfinished line that are remembered: any beginning of a command is shorter."""

_PLAIN = str.maketrans({"–": "-", "−": "-", "·": ".", "█": "#", "→": ">", "≤": "<", "≥": ">", "×": "x", "…": "~"})
"""What stands for our own signs, at the same width, where an encoding lacks them."""


def _replace_character(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and (sign := error.object[error.start].translate(_PLAIN)).isascii():
        return sign, error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error("distract", _replace_character)


class _SafeText(io.TextIOWrapper):
    """A standard stream of text that stays open, takes any character, and in which no text is a command.

    A plug-in that closes it takes no verdict's words.
    """

    _line = ""

    def write(self, text: str) -> int:
        """Write a text, its commands broken up."""
        whole, known = self._line + text, len(self._line)
        places = [place for match in _COMMAND.finditer(whole) if (place := match.end()) >= known]
        parts = [whole[a:b] for a, b in zip([known, *places], [*places, len(whole)], strict=True)]
        # Leading blanks change nothing, and what is long enough begins no command any more.
        self._line = whole[max(whole.rfind("\n"), whole.rfind("\r")) + 1 :].lstrip()
        if len(self._line) > _MAX_LINE:
            self._line = f"-{self._line[-_MAX_LINE:]}"
        super().write(_JOINER.join(parts))
        return len(text)

    def write_command(self, text: str) -> None:
        """Write a command to the runner, as it is."""
        self._line = ""
        super().write(text)

    def close(self) -> None:
        """Write what is held back."""
        self.flush()


@contextmanager
def guard_streams() -> Iterator[None]:
    """Make standard output and error such streams; open those that are closed.

    A file opened later would otherwise get the number of a closed one, and with it whatever is printed there. The
    process's own streams stay so; what somebody has put in their place (pytest, a caller) is put back.
    """
    others = {}
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        stream = getattr(sys, name)
        if name == "stdin" or isinstance(stream, _SafeText):
            continue
        if stream is getattr(sys, f"__{name}__"):
            raw = _SafeStream(os.devnull, "w") if stream is None else _SafeStream(number, "w", closefd=False)
            buffer: Any = _OpenBuffer(raw)
        elif (buffer := getattr(stream, "buffer", None)) is None or stream.closed:
            continue  # no stream of bytes: it takes any text
        else:
            stream.flush()
            others[name] = stream
        wrapper = _SafeText(
            buffer,
            encoding=getattr(stream, "encoding", "utf-8"),
            errors="distract",
            line_buffering=getattr(stream, "line_buffering", True),
            write_through=getattr(stream, "write_through", False),
        )
        setattr(sys, name, wrapper)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _print_unraisable
    try:
        yield
    finally:
        for name, stream in others.items():
            with suppress(Exception):
                getattr(sys, name).flush()
            setattr(sys, name, stream)


def _print_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Say in one line what was raised where nobody could catch it, such as while a plug-in's plan was thrown away."""
    with suppress(Exception):
        where = getattr(unraisable.object, "__qualname__", None) or type(unraisable.object).__name__
        why = describe_error(unraisable.exc_value) if unraisable.exc_value else unraisable.exc_type.__name__
        print(f"distract: warning: {line(f'{where}: {why}')}", file=sys.stderr, flush=True)


def output_fault() -> str:
    """Why part of the standard output is lost; empty where none is, or where its reader did not want it."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    fault = getattr(raw, "fault", None)
    return "" if fault is None or fault.errno == errno.EPIPE else str(fault.strerror)
