"""The right to write a run folder, which one process holds at a time: a locked file in it that names the process.

The system releases the lock when a process dies, so a file left behind stops no one.
"""

from __future__ import annotations

import errno
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from distract.core import files
from distract.core.errors import InUseError, UsageError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = "run.lock"

_folders = set[Path]()
_mutex = threading.Lock()


@contextmanager
def occupy(folder: Path) -> Iterator[None]:
    """Keep other processes and threads from writing a folder; without file locks (Windows), only threads."""
    path = folder.resolve() / LOCK_NAME
    with _mutex:
        # File locks belong to a process and never stop its own threads.
        if path in _folders:
            raise InUseError(folder, f"process {os.getpid()}")
        _folders.add(path)
    try:
        file = _acquire(path, folder)
        try:
            yield
        finally:
            with suppress(OSError, UsageError):
                files.remove(path)
            file.close()
    finally:
        _folders.discard(path)


def _acquire(path: Path, folder: Path) -> IO[bytes]:
    while True:
        file = files.open_lock(path)
        try:
            _lock(file, folder)
            # The previous holder may have removed the file that is locked now.
            if os.path.samestat(os.fstat(file.fileno()), path.lstat()):
                file.truncate(0)
                file.write(f"{os.getpid()} {platform.node()}\n".encode())
                file.flush()
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[bytes], folder: Path) -> None:
    try:
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise InUseError(folder, _holder(file.read(500))) from None
        # On a file system without locks, go on without one.


def _holder(text: bytes) -> str:
    """Name the process in a lock file, which any program may have written."""
    pid, _, host = text.decode(errors="replace").partition(" ")
    if not (pid.isascii() and pid.isdecimal()):
        return "another process"
    return f"process {pid}" + (f" on {host.strip()}" if host.strip() != platform.node() else "")
