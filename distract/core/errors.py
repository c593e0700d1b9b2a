"""Everything that distract raises on purpose, in one tree.

It does not know how errors are shown: the command line prints ``str(error)`` on one line and exits
with ``exit_code``; where ``resumes`` is true, it adds that the same command goes on.

    DistractError
    ├── UsageError            2  the command asks for something that cannot be done
    │   ├── UnknownName       2  no such judge, protocol, attack, data set, format …
    │   └── DataError         2  an input file is wrong: file, line, field, what was expected
    ├── PromptError           2  a prompt file is wrong (a bug of the plug-in that ships it)
    ├── PluginError           4  an attack or protocol of yours failed: which, on which case
    ├── InUse                 4  another process is writing the same run folder
    └── BackendError          4  a model or server failed; what was paid for is stored

What a *judge* does wrong (no verdict, a refusal, a truncated answer) is never an exception: it is a
``Judgment`` whose ``failure`` is set.
"""

from __future__ import annotations

import difflib
import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from distract.core.printable import hide_credentials, line

MAX_NAMES = 40
"""Names that still fit into a message."""


def _restore(kind: type[DistractError], arguments: tuple[Any, ...], state: dict[str, Any]) -> DistractError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class DistractError(Exception):
    """Root of the tree; ``str()`` of it is one clear line without passwords, whatever names it tells."""

    exit_code = 2
    resumes = False

    def __str__(self) -> str:
        return hide_credentials(line(super().__str__()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Those with arguments of their own keep the message alone; workers send errors to their parent.
        return _restore, (type(self), self.args, self.__dict__)


class UsageError(DistractError):
    """The command or the call asks for something that cannot be done."""


class UnknownName(UsageError):
    """A name that is not in a registry.

    Args:
        kind: what was looked up, as a reader would say it ("protocol", "data format").
        name: the name given.
        known: the names that exist.
        hint: anything else the reader can do.
        instead: what to write instead, where that is known.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", instead: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        # Where it is known what was meant, another name helps only if it begins alike.
        is_near = near and (not instead or near[0][:3] == name[:3])
        suggestion = f"; did you mean {near[0]!r}?" if is_near else ""
        suggestion += f"; {instead}" if instead else ""
        self.instead = instead
        tail = f" {hint}" if hint else ""
        listed = ", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} names, see `distract list`"
        super().__init__(f"unknown {kind} {name!r}{suggestion} (known: {listed or 'none'}){tail}")


def install_command(extra: str) -> str:
    """The command that installs what an extra brings, as the README has it."""
    return f'pip install ".[{extra}]" in the source folder of distract'


def write_error(error: OSError, path: object, remedy: str) -> Exception:
    """What to raise where a file cannot be written: wrong input, unless the disk failed or a reader went away.

    Args:
        error: what the system said.
        path: the file or folder.
        remedy: what to do, as part of the line.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE):
        return OSError(error.errno, error.strerror, str(path))
    return UsageError(f"{path}: cannot be written ({error.strerror}); {remedy}")


class DataError(UsageError):
    """An input file does not hold what it should.

    Args:
        problem: what is wrong, what was expected, what to do.
        path: the file.
        line: 1-based line in it, where one can be named.
        field: the field, where one can be named.
    """

    def __init__(self, problem: str, *, path: object = None, line: int | None = None, field: str | None = None) -> None:
        where = ":".join(str(part) for part in (path, line) if part is not None)
        named = f"field {field!r}: " if field else ""
        super().__init__(f"{where}: {named}{problem}" if where else f"{named}{problem}")


class PromptError(DistractError):
    """A prompt file has no roles, an unknown slot, or a slot that nothing fills."""


class PluginError(DistractError):
    """A plug-in raised, or returned what it must not."""

    exit_code = 4
    resumes = True


class InUseError(DistractError):
    """Another process is writing the same run folder.

    Args:
        folder: the folder.
        who: which process.
    """

    exit_code = 4

    def __init__(self, folder: object, who: str) -> None:
        super().__init__(f"{folder}: {who} is writing this run; wait until it ends, or name another folder with --out")


class BackendError(DistractError):
    """A model or server failed for a reason that is not the judge's answer."""

    exit_code = 4
    resumes = True


PLUGIN_ERRORS = (Exception, SystemExit, GeneratorExit)
"""What a plug-in may raise. Not KeyboardInterrupt: a Ctrl-C may come while its code runs."""


MAX_MESSAGE = 1000
"""Characters of somebody else's message that are shown."""


def describe_error(error: BaseException) -> str:
    """An error's type and message; the message may be code of a plug-in, and as long as it likes."""
    name = type(error).__name__
    try:
        text = f"{name}: {error}".removesuffix(": ")
    except PLUGIN_ERRORS:
        return name
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} […]"


def describe_import_error(error: BaseException) -> str:
    """What to say where a library that distract needs cannot be imported: it is missing, or too old."""
    return line(
        f"a library is missing or too old ({describe_error(error)}): pip install --upgrade distract brings them all"
    )


@contextmanager
def guard_plugin(where: str) -> Iterator[None]:
    """Turn whatever a plug-in's code raises inside into one line that names it; it keeps no stream that it replaced.

    Args:
        where: which plug-in failed, on which case.

    Raises:
        PluginError: the code raised something that does not already say whose fault it is.
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
