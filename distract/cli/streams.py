"""Standard streams that cannot break and so change no exit code: only a verdict does.

Everything printed passes through these streams, so they also keep hostile text from reaching a CI runner as commands,
and replace characters that an encoding lacks.
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
    """A standard stream that drops data it cannot write: the disk is full, or the reader has closed the pipe."""

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        """Write as much as possible; count all of it as written."""
        try:
            while (size := super().write(data)) is None:  # it does not block, and its reader is slow
                select.select([], [self], [])
            return size
        except OSError as error:
            self.fault = error
            return len(data)


class _OpenBuffer(io.BufferedWriter):
    """The buffer of a safe stream, which stays open too."""

    def close(self) -> None:
        """Flush only."""
        self.flush()


_COMMAND = re.compile(r"(?:\A|[\r\n])(?:[^\S\r\n]|\x1b\[[\d;]*m)*:(?=:)|##\w*(?=\[)")
"""The beginning of a CI command, except its last character: ``::`` after blanks, ``##[`` anywhere."""

_JOINER = "\u2060"
"""A word joiner, which has no width: inserted before that last character."""

_MAX_LINE = 200
"""Characters of an unfinished line to remember: longer than the beginning of any command."""

_PLAIN = str.maketrans({"–": "-", "−": "-", "·": ".", "█": "#", "→": ">", "≤": "<", "≥": ">", "×": "x", "…": "~"})
"""Substitutes of equal width for distract's own signs, for encodings that lack them."""


def _replace_character(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and (sign := error.object[error.start].translate(_PLAIN)).isascii():
        return sign, error.start + 1
    return codecs.backslashreplace_errors(error)


codecs.register_error("distract", _replace_character)


class _SafeText(io.TextIOWrapper):
    """A text stream that stays open, takes any character, and breaks up commands.

    A plug-in that closes it cannot suppress a verdict.
    """

    _line = ""

    def write(self, text: str) -> int:
        """Write a text with its commands broken up."""
        whole, known = self._line + text, len(self._line)
        places = [place for match in _COMMAND.finditer(whole) if (place := match.end()) >= known]
        parts = [whole[a:b] for a, b in zip([known, *places], [*places, len(whole)], strict=True)]
        # Leading blanks do not matter, and a long line can no longer begin a command.
        self._line = whole[max(whole.rfind("\n"), whole.rfind("\r")) + 1 :].lstrip()
        if len(self._line) > _MAX_LINE:
            self._line = f"-{self._line[-_MAX_LINE:]}"
        super().write(_JOINER.join(parts))
        return len(text)

    def write_command(self, text: str) -> None:
        """Write a command for the runner unchanged."""
        self._line = ""
        super().write(text)

    def close(self) -> None:
        """Flush only."""
        self.flush()


@contextmanager
def guard_streams() -> Iterator[None]:
    """Replace standard output and error with safe streams; open those that are closed.

    Otherwise a file opened later would get the number of a closed stream, and with it everything printed there. The
    process's own streams stay safe; substitutes (of pytest, or a caller) are restored.
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
            continue  # a pure text stream takes any text
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
    """Report in one line an error that could not be caught, such as one while a plan was discarded."""
    with suppress(Exception):
        where = getattr(unraisable.object, "__qualname__", None) or type(unraisable.object).__name__
        why = describe_error(unraisable.exc_value) if unraisable.exc_value else unraisable.exc_type.__name__
        print(f"distract: warning: {line(f'{where}: {why}')}", file=sys.stderr, flush=True)


def output_fault() -> str:
    """Explain why part of the standard output is lost; empty if none is, or if its reader left."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    fault = getattr(raw, "fault", None)
    return "" if fault is None or fault.errno == errno.EPIPE else str(fault.strerror)
