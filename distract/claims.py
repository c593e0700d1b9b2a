"""Who is asking what: processes that share a store of replies wait for each other instead of asking twice.

A claim on a request is a lock on one byte of a file beside the store, so that the system itself gives it back when a
process dies. It knows nothing of replies. Where the system has no such locks (Windows) nothing is claimed, and two
processes may ask the same at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distract.errors import UsageError

PLACES = 2**30
"""Bytes to lock, none of which is ever written: two requests that meet in one only wait for each other."""


class Claims:
    """The claims of one process on the requests of a store.

    Args:
        store: the store's file; the locks are on a file beside it.

    Raises:
        UsageError: the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Kept open: closing any file of this name would give all locks of the process back.
            self._file = path.open("ab")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror}); name another store") from error
        # The system's locks are those of a process: they do not keep its threads apart.
        self._alone = threading.RLock()

    @contextmanager
    def held(self, keys: Iterable[bytes]) -> Iterator[None]:
        """Hold the claims on these keys; waits for other processes that hold any of them.

        Claims are never taken while others are held, and in one order, so that no two processes wait for each other.
        """
        try:
            import fcntl
        except ImportError:
            yield
            return
        places = sorted({int.from_bytes(key[:8], "big") % PLACES for key in keys})
        with self._alone:
            try:
                for place in places:
                    fcntl.lockf(self._file, fcntl.LOCK_EX, 1, place)
                yield
            finally:
                for place in places:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Give up the file."""
        self._file.close()
