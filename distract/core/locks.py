"""Who is asking what: runs that share a store of replies wait for each other instead of asking twice.

A claim on a request is a lock on one byte of a file beside the store, so that the system itself gives it back when a
process dies. Claims know nothing of replies. Where the system has no such locks (Windows, some network drives), only
the threads of one process wait for each other.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from distract.core import files

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PLACES = 2**30
"""Bytes to lock, none of which is ever written: two requests that meet in one only wait for each other."""

PAUSE = 0.1
"""Seconds between two looks at what others ask."""

_LOCKED_ERRORS = (errno.EACCES, errno.EAGAIN)


@dataclass(slots=True)
class _LockFile:
    """The file of a store, for a whole process: the system's locks are a process's, and keep no threads apart.

    All claims share it, since closing one of several files on the same path would give back the locks of all.
    ``holders`` has the claims that hold a place, ``askers`` those that hold any by their thread.
    """

    path: Path
    file: IO[bytes] | None = None
    users: int = 0
    fault: str = ""
    holders: dict[int, Claims] = field(default_factory=dict)
    askers: dict[int, Claims] = field(default_factory=dict)
    alone: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        if fcntl is not None:
            try:
                self.file = files.open_lock(self.path)
            except OSError as error:
                self._give_up(error)

    def lock(self, place: int) -> bool:
        """Lock a place unless another process has; what cannot be locked counts as locked."""
        return fcntl is None or self._set(fcntl.LOCK_EX | fcntl.LOCK_NB, place)

    def unlock(self, place: int) -> None:
        if fcntl is not None:
            self._set(fcntl.LOCK_UN, place)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def _set(self, how: int, place: int) -> bool:
        if self.file is not None:
            try:
                fcntl.lockf(self.file, how, 1, place)
            except OSError as error:
                if error.errno in _LOCKED_ERRORS:
                    return False
                self._give_up(error)
        return True

    def _give_up(self, error: OSError) -> None:
        self.close()
        self.fault = f"{self.path}: {error.strerror}"


_LOCK_FILES: dict[Path, _LockFile] = {}
_MUTEX = threading.Lock()


class Claims:
    """The claims of one run loop on requests of a store; a context manager, which gives all of them back.

    Nobody waits while it holds claims of its own. A model that asks another judge of the same store while it answers
    holds those of the question that it answers, so it claims nothing and waits for nobody.
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
        """Why processes cannot wait for each other here; empty where they do."""
        return self._locks.fault if self._locks else ""

    def take(self, keys: Iterable[bytes]) -> set[bytes]:
        """Claim keys without waiting; returns those that nobody else asks for."""
        if not self._locks:
            return set(keys)
        with self._locks.alone:
            if self._locks.askers.setdefault(self._thread, self) is not self:
                return set(keys)
            taken = set[bytes]()
            # The system looks through all locks of a file for each one; this order is the fastest.
            for place, key in sorted(((_place(key), key) for key in keys), reverse=True):
                if place not in self._locks.holders and self._locks.lock(place):
                    self._locks.holders[place] = self
                    self._held.add(place)
                    taken.add(key)
            self._free_thread()
            return taken

    def give_back(self, keys: Iterable[bytes]) -> None:
        """Give claims back; those that are not held are left as they are."""
        self._give_back(map(_place, keys))

    def take_batches(self, keys: Collection[bytes]) -> Iterator[set[bytes]]:
        """All of the keys in parts, each held until the next one is asked for; waits where others hold them.

        Whoever is handed a part looks into the store first: another process may have stored replies and given the keys
        back.
        """
        left = set(keys)
        while left:
            if part := self.take(left):
                yield part
                self.give_back(part)
                left -= part
            else:
                time.sleep(PAUSE)

    def __enter__(self) -> Claims:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back(self._held.copy())
        if self._locks:
            with _MUTEX:
                self._locks.users -= 1
                if not self._locks.users:
                    _LOCK_FILES.pop(self._locks.path).close()

    def _give_back(self, places: Iterable[int]) -> None:
        if self._locks:
            with self._locks.alone:
                for place in sorted(self._held.intersection(places)):
                    self._held.remove(place)
                    del self._locks.holders[place]
                    self._locks.unlock(place)
                self._free_thread()

    def _free_thread(self) -> None:
        """Let other claims of this thread be taken where these hold nothing."""
        assert self._locks is not None
        if not self._held and self._locks.askers.get(self._thread) is self:
            del self._locks.askers[self._thread]


def _place(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") % PLACES
