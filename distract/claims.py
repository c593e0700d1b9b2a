"""Who is asking what: processes that share a store of replies wait for each other instead of asking twice.

A claim on a request is a lock on one byte of a file beside the store, so that the system itself gives it back when a
process dies. It knows nothing of replies. Where the system has no such locks (Windows) nothing is claimed, and two
processes may ask the same at the same time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from distract import files
from distract.errors import BackendError, unwritable

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PLACES = 2**30
"""Bytes to lock, none of which is ever written: two requests that meet in one only wait for each other."""

MANY = 500
"""Locks above which all places are locked as one: the system looks through a process's locks for each new one."""


@dataclass(slots=True)
class _Locks:
    """The file of a store, for a whole process: the system's locks are a process's, and keep no threads apart.

    All claims share it, since closing one of several files on the same path would give back the locks of all.
    """

    file: IO[bytes]
    users: int = 0
    held: bool = False
    alone: threading.RLock = field(default_factory=threading.RLock)


_OPEN: dict[Path, _Locks] = {}
_OPENING = threading.Lock()


class Claims:
    """The claims of one process on the requests of a store.

    Args:
        store: the store's file; the locks are on a file beside it.

    Raises:
        UsageError: the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self.path = Path(f"{os.path.realpath(store)}.lock")
        with _OPENING:
            if self.path not in _OPEN:
                try:
                    _OPEN[self.path] = _Locks(files.lock_file(self.path))
                except OSError as error:
                    raise unwritable(error, self.path, "name another store") from error
            self._locks = _OPEN[self.path]
            self._locks.users += 1

    @contextmanager
    def held(self, keys: Iterable[bytes]) -> Iterator[None]:
        """Hold the claims on these keys; waits for other processes and threads that hold any of them.

        Claims are taken in one order, and never while others are held, so that nobody waits in a circle: a model that
        asks another judge of the same store while it answers claims nothing more.

        Raises:
            BackendError: the file system has no locks.
        """
        places = sorted({int.from_bytes(key[:8], "big") % PLACES for key in keys})
        with self._locks.alone:
            if fcntl is None or self._locks.held or not places:
                yield
                return
            parts = [(place, 1) for place in places] if len(places) <= MANY else [(0, PLACES)]
            self._locks.held = True
            try:
                for place, length in parts:
                    self._lock(fcntl.LOCK_EX, place, length)
                yield
            finally:
                self._locks.held = False
                for place, length in parts:
                    self._lock(fcntl.LOCK_UN, place, length)

    def close(self) -> None:
        """Give up the file."""
        with _OPENING:
            self._locks.users -= 1
            if not self._locks.users:
                _OPEN.pop(self.path).file.close()

    def _lock(self, how: int, place: int, length: int) -> None:
        try:
            fcntl.lockf(self._locks.file, how, length, place)
        except OSError as error:
            raise BackendError(f"{self.path}: cannot be locked ({error.strerror}); name another store") from error
