"""File locks: only one process writes a run folder, and no two runs send the same request for one store.

The system releases them when a process dies. A run folder has a lock file that names its process. A claim on a
request is a lock on one byte of a file beside the store. Where the system has no such locks (Windows, some network
drives), only the threads of one process exclude each other.
"""

from __future__ import annotations

import errno
import os
import platform
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from distract.core import files
from distract.core.errors import InUseError, UsageError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = "run.lock"
"""Name of the locked file in a run folder."""

PLACES = 2**30
"""Bytes to lock, never written: two requests that share one only wait for each other."""

PAUSE = 0.1
"""Seconds between two checks of what others have claimed."""

_LOCKED_ERRORS = (errno.EACCES, errno.EAGAIN)


@dataclass(slots=True)
class _LockFile:
    """The lock file of a store, for a whole process: file locks belong to a process and do not separate threads.

    All claims share it, because closing any file on the same path would release the locks of all.
    """

    path: Path
    file: IO[bytes] | None = None
    users: int = 0
    fault: str = ""
    holders: dict[int, Claims] = field(default_factory=dict)
    askers: dict[int, Claims] = field(default_factory=dict)  # those that hold a place, by thread
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        if fcntl is not None:
            try:
                self.file = files.open_lock(self.path)
            except OSError as error:
                self._give_up(error)

    def lock(self, place: int) -> bool:
        """Lock a place unless another process holds it; where locking fails, it counts as locked."""
        return fcntl is None or self._set(fcntl.LOCK_EX | fcntl.LOCK_NB, place)

    def unlock(self, place: int) -> None:
        if fcntl is not None:
            self._set(fcntl.LOCK_UN, place)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def _set(self, operation: int, place: int) -> bool:
        if self.file is not None:
            try:
                fcntl.lockf(self.file, operation, 1, place)
            except OSError as error:
                if error.errno in _LOCKED_ERRORS:
                    return False
                self._give_up(error)
        return True

    def _give_up(self, error: OSError) -> None:
        self.close()
        self.fault = f"{self.path}: {error.strerror}"


_LOCK_FILES: dict[Path, _LockFile] = {}
_FOLDERS = set[Path]()  # that this process writes
_MUTEX = threading.Lock()


class Claims:
    """The claims of one run loop on requests of a store; a context manager that releases them.

    A run loop never waits while it holds claims. If a model asks another judge of the same store while it answers, the
    thread already holds claims, so the inner loop claims nothing and does not wait for other runs.
    """

    def __init__(self, store: Path | None) -> None:
        self._thread = threading.get_ident()
        self._held = set[int]()
        self._locks: _LockFile | None = None
        if store:
            path = Path(f"{os.path.realpath(store)}.lock")
            with _MUTEX:
                if path not in _LOCK_FILES:
                    _LOCK_FILES[path] = _LockFile(path)
                    _LOCK_FILES[path].open()
                self._locks = _LOCK_FILES[path]
                self._locks.users += 1

    @property
    def fault(self) -> str:
        """The reason why processes cannot wait for each other; empty if they can."""
        return self._locks.fault if self._locks else ""

    def take(self, keys: Iterable[bytes]) -> set[bytes]:
        """Claim keys without waiting; returns those that no other run has claimed."""
        if not self._locks:
            return set(keys)
        with self._locks.mutex:
            if self._locks.askers.setdefault(self._thread, self) is not self:
                return set(keys)
            claimed = set[bytes]()
            # The system scans all locks of a file for each one; this order is the fastest.
            for place, key in sorted(((_place(key), key) for key in keys), reverse=True):
                if place not in self._locks.holders and self._locks.lock(place):
                    self._locks.holders[place] = self
                    self._held.add(place)
                    claimed.add(key)
            self._free_thread()
            return claimed

    def give_back(self, keys: Iterable[bytes]) -> None:
        self._give_back(map(_place, keys))

    def take_batches(self, keys: Collection[bytes]) -> Iterator[set[bytes]]:
        """Yield all keys in batches, each held until the next one is requested; wait for keys that other runs hold.

        Check the store for each batch first: another process may have stored the replies and released the keys.
        """
        left = set(keys)
        while left:
            if batch := self.take(left):
                yield batch
                self.give_back(batch)
                left -= batch
            else:
                time.sleep(PAUSE)

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *problem: object) -> None:
        self._give_back(self._held.copy())
        if self._locks:
            with _MUTEX:
                self._locks.users -= 1
                if not self._locks.users:
                    _LOCK_FILES.pop(self._locks.path).close()

    def _give_back(self, places: Iterable[int]) -> None:
        if self._locks:
            with self._locks.mutex:
                for place in sorted(self._held.intersection(places)):
                    self._held.remove(place)
                    del self._locks.holders[place]
                    self._locks.unlock(place)
                self._free_thread()

    def _free_thread(self) -> None:
        """Let other claims of this thread lock places if these hold none."""
        assert self._locks is not None
        if not self._held and self._locks.askers.get(self._thread) is self:
            del self._locks.askers[self._thread]


def _place(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") % PLACES


@contextmanager
def occupy(folder: Path) -> Iterator[None]:
    """Keep other processes and threads from writing a folder; without file locks (Windows), only threads."""
    path = folder.resolve() / LOCK_NAME
    with _MUTEX:
        # File locks belong to a process and never stop its own threads.
        if path in _FOLDERS:
            raise InUseError(folder, f"process {os.getpid()}")
        _FOLDERS.add(path)
    try:
        file = _acquire(path, folder)
        try:
            yield
        finally:
            with suppress(OSError, UsageError):
                files.remove(path)
            file.close()
    finally:
        _FOLDERS.discard(path)


def _acquire(path: Path, folder: Path) -> IO[bytes]:
    while True:
        file = files.open_lock(path)
        try:
            _lock_folder(file, folder)
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


def _lock_folder(file: IO[bytes], folder: Path) -> None:
    try:
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ERRORS:
            raise InUseError(folder, _holder(file.read(500))) from None
        # Continue without a lock on a file system that has none.


def _holder(text: bytes) -> str:
    """Name the process in a lock file, which any program may have written."""
    pid, _, host = text.decode(errors="replace").partition(" ")
    if not (pid.isascii() and pid.isdecimal()):
        return "another process"
    return f"process {pid}" + (f" on {host.strip()}" if host.strip() != platform.node() else "")
