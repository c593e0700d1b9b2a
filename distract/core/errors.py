"""All exceptions that distract raises on purpose, in one tree.

The command line prints ``str(error)`` on one line and exits with ``exit_code``; if ``resumes`` is true, it adds that
the same command resumes.

    DistractError
    ├── UsageError            2  the command cannot be carried out as given
    │   ├── UnknownName       2  no such judge, protocol, attack, data set, format …
    │   └── DataError         2  an input file is wrong: file, line, field, what was expected
    ├── PromptError           2  a prompt file is wrong (a bug of the plug-in that ships it)
    ├── JudgeChanged          3  another judge answers than before, or nothing shows whether it is the same
    ├── PluginError           4  a user's attack or protocol failed; names it and the case
    ├── InUseError            4  another process is writing the same run folder
    └── BackendError          4  a model or server failed; paid replies are stored

What a *judge* does wrong (no verdict, a refusal, a truncated answer) is never an exception: it is a ``Judgment`` whose
``failure`` is set.
"""

from __future__ import annotations

import difflib
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distract.core.printable import hide_credentials, line
from distract.core.signals import StopSignal

MAX_NAMES, FEW = 8, 3
"""Maximum number of names in a message, and how many of more there are to name."""

_LISTED = dict.fromkeys(
    ("attack", "generator", "judge", "measure", "protocol", "rating system", "reference", "section", "verifier"),
    "distract list",
) | dict.fromkeys(("model option", "setting"), "distract list options")
"""Kinds of names that a command lists, and the command."""


def _restore(kind: type[DistractError], arguments: tuple[Any, ...], state: dict[str, Any]) -> DistractError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class DistractError(Exception):
    """Root of the tree; ``str()`` is one clear line without passwords, even in names."""

    exit_code = 2
    resumes = False

    def __str__(self) -> str:
        return hide_credentials(line(super().__str__()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors to their parent. Errors with other arguments keep only the message.
        return _restore, (type(self), self.args, self.__dict__)


class UsageError(DistractError):
    """The command or call cannot be carried out as given."""


class UnknownName(UsageError):
    """A name that is not in a registry.

    Args:
        kind: the kind of name, in a reader's words ("protocol", "data format").
        name: the unknown name.
        known: the names that exist.
        hint: further advice.
        instead: what to write instead, if known.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", instead: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        # If ``instead`` gives the right spelling, a similar name helps only if it begins alike.
        is_near = near and (not instead or near[0][:3] == name[:3])
        suggestion = f"; did you mean {near[0]!r}?" if is_near else ""
        suggestion += f"; {instead}" if instead else ""
        self.instead = instead
        tail = f"; {hint}" if hint else ""
        more = f"; see `{_LISTED[kind]}`" if len(names) > MAX_NAMES and kind in _LISTED else ""
        known = "" if instead else f" (known: {list_names(names)}{more})"
        super().__init__(f"unknown {kind} {name!r}{suggestion}{known}{tail}")


def list_names(names: Sequence[str]) -> str:
    """List names for a message: all, or the first few and how many more there are."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:FEW])} and {len(names) - FEW} more"


def install_command(extra: str) -> str:
    limits = "" if extra == "vllm" else "-c constraints.txt "  # vLLM pins a torch of its own
    return f'pip install {limits}".[{extra}]" in the source folder of distract'


def import_library(module: str, extra: str, user: str) -> Any:
    """Import a module that need not be installed, and return its package; ``user`` names what needs it."""
    try:
        return __import__(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(f"{user} needs {package}, which is not installed: {install_command(extra)}") from error


def write_error(error: OSError, path: object, remedy: str) -> Exception:
    """Choose the error for a file that cannot be written: wrong input, unless the disk failed or a reader left."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE):
        return OSError(error.errno, error.strerror, str(path))
    return UsageError(f"{path}: cannot be written ({error.strerror}); {remedy}")


class DataError(UsageError):
    """An input file has the wrong content.

    Args:
        problem: what is wrong, what was expected, what to do.
        path: the file.
        line: 1-based line number, if known.
        field: the field, if known.
    """

    def __init__(self, problem: str, *, path: object = None, line: int | None = None, field: str | None = None) -> None:
        where = ":".join(str(part) for part in (path, line) if part is not None)
        prefix = f"{where}: " if where else ""
        super().__init__(prefix + (f"field {field!r}: " if field else "") + problem)


class PromptError(DistractError):
    """A prompt file lacks roles, has an unknown slot, or has a slot without a value."""


class JudgeChanged(DistractError):
    """The judge that answers now is not the one that answered before, or nothing shows whether it is."""

    exit_code = 3


class PluginError(DistractError):
    """A plug-in raised an error, or returned something invalid."""

    exit_code = 4
    resumes = True


class InUseError(DistractError):
    """Another process is writing the same run folder."""

    exit_code = 4

    def __init__(self, folder: object, process: str) -> None:
        super().__init__(
            f"{folder}: {process} is writing this run; wait until it ends, or name another folder with --out"
        )


class BackendError(DistractError):
    """A model or server failed for a reason that is not the judge's answer."""

    exit_code = 4
    resumes = True


PLUGIN_ERRORS = (Exception, SystemExit, GeneratorExit)
"""The exceptions to catch from a plug-in. KeyboardInterrupt is left out: the user may press Ctrl-C meanwhile."""

MAX_MESSAGE = 1000
"""Maximum number of characters to show of a foreign error message."""


def describe_error(error: BaseException) -> str:
    """Describe an error by type and message; the message may run a plug-in's code, and be of any length."""
    name = type(error).__name__
    try:
        text = f"{name}: {error}".removesuffix(": ")
    except StopSignal:
        raise
    except BaseException:
        return name
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} […]"


def describe_import_error(error: BaseException) -> str:
    return line(
        f"a library is missing or too old ({describe_error(error)}): pip install --upgrade distract brings them all"
    )


@contextmanager
def guard_plugin(where: str) -> Iterator[None]:
    """Turn any exception of a plug-in into one line that names the plug-in; restore the standard streams.

    ``where`` names the plug-in and the case. Errors that already name their culprit pass through.
    """
    streams = sys.stdout, sys.stderr
    try:
        yield
    except (UsageError, PluginError, BackendError):
        raise
    except PLUGIN_ERRORS as error:
        raise PluginError(f"{where}: {describe_error(error)}") from error
    finally:
        sys.stdout, sys.stderr = streams


_REDIRECTED: list[int] = []
"""Copies of descriptor 1 from before it was redirected, the outermost first."""


@contextmanager
def restore_output() -> Iterator[None]:
    """Let descriptor 1 be standard output again, for a file that a user has there."""
    if not _REDIRECTED:
        yield
        return
    os.dup2(_REDIRECTED[0], 1)
    try:
        yield
    finally:
        os.dup2(2, 1)


@contextmanager
def redirect_output() -> Iterator[None]:
    """Send standard output to stderr, also that of C code and of child processes: stdout is for our document alone.

    The working folder, which user code may change, is the same again at the end, because paths are relative to it.
    """
    import ctypes

    stdout, descriptor, folder = sys.stdout, None, None
    with suppress(OSError):  # it may be gone
        folder = Path.cwd()
    with suppress(Exception):  # where it is closed, nothing needs protection
        descriptor = os.dup(1)
        stdout.flush()
        os.dup2(2, 1)
        _REDIRECTED.append(descriptor)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        if descriptor in _REDIRECTED:
            _REDIRECTED.remove(descriptor)
        with suppress(Exception):
            ctypes.CDLL(None).fflush(None)  # the buffer of C's printf
            sys.__stdout__.flush()  # type: ignore[union-attr]
        sys.stdout = stdout
        with suppress(OSError):
            os.chdir(folder or Path())
        if descriptor is not None:
            os.dup2(descriptor, 1)
            os.close(descriptor)
