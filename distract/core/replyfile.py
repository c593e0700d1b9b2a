"""The SQLite file of a reply store: opened with care, and watched while it is open.

SQLite keeps using a file that was deleted, replaced or cut short, without an error. This module notices, copies the
readable replies to a new file, and ends the run. It also finds out whether a path is on a network file system, which
cannot hold a store.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.errors import BackendError, UsageError
from distract.core.signals import is_stopping

MOUNTS = Path("/proc/self/mountinfo")
"""What Linux says of its file systems; others say nothing."""

NETWORK_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "coda", "lustre", "gpfs", "beegfs", "fhgfs", "ceph",
     "glusterfs", "orangefs", "panfs", "pvfs2", "wekafs", "gfs2", "ocfs2", "davfs", "mfs", "acfs")
)  # fmt: skip
"""Types of file systems that several machines mount."""

LOCAL_FUSE = frozenset(
    f"fuse.{name}"
    for name in ("fuse-overlayfs", "bindfs", "mergerfs", "unionfs", "encfs", "gocryptfs", "cryfs", "ntfs-3g", "zfs")
)
"""File systems of a program (FUSE) on a local disk; any other is a bucket or another machine's."""

_OCTAL = re.compile(r"\\([0-7]{3})")


def find_type(place: Path) -> str | None:
    """Find the type of the file system that holds a resolved path; None if the system does not say."""
    try:
        lines = MOUNTS.read_bytes().decode(errors="surrogateescape").splitlines()
    except OSError:
        return None
    longest, kind = -1, None
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        # Of several on one point, the last one covers the others.
        if place.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), source.split(" ")[0]
    return kind


def find_network(place: Path) -> str | None:
    """Find the type of the file system that holds a resolved path, if several machines mount it."""
    kind = find_type(place)
    is_remote_fuse = kind == "fuse" or ((kind or "").startswith("fuse.") and kind not in LOCAL_FUSE)
    return kind if kind in NETWORK_TYPES or is_remote_fuse else None


TIMEOUT = 60.0
"""Seconds to wait for another writer."""

_STEP = 0.5
"""Seconds that SQLite waits at a time, during which no signal is handled."""

FAULTS = (sqlite3.Error, ValueError, MemoryError)
"""SQLite's exceptions for a damaged file: its names may not be text, and its sizes may exceed all memory."""

_SCHEMA = """
create table if not exists replies (key blob primary key, judge blob not null, reply text not null) without rowid;
create table if not exists epochs (judge blob primary key, epoch integer not null) without rowid;
"""

_SUFFIXES = ("", "-wal", "-shm")
"""Suffixes of the parts of an open file."""

PartStates = list[tuple[int, int, int]]
"""Device, inode and size of each part."""

_ABSENT = (0, 0, 0)

_COPY_RULES = {
    "epochs": "values (?, ?) on conflict (judge) do update set epoch = max(epoch, excluded.epoch)",
    "replies": "values (?, ?, ?) on conflict (key) do nothing",
}
"""The end of the statement that merges the rows of each table into another file."""


class ReplyFile:
    """A file of replies, open as ``db``; ``look`` may have to continue in another file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: PartStates = []
        self._is_given_up = False
        files.check_links(path)
        # A hostile repository may contain a link in order to create a file somewhere else.
        if path.is_symlink() and not (path.exists() and path.stat().st_size):
            raise OSError("it is a link that does not lead to a store")
        place = path if path.name == ":memory:" else Path(os.path.realpath(path))
        if place is not path and (kind := find_network(place)) is not None:
            raise UsageError(
                f"{path}: is on a network file system ({kind}); the write-ahead log of a store needs memory that all "
                "its processes share, which no network file system gives; name a file on a local disk with --store, "
                "one for each machine, and merge shards (--shard, `distract merge`)"
            )
        self._set_connection(_open(place), place)

    @contextmanager
    def used(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; report failures, and changes to the file, in one line."""
        self._restore_size()
        before = self._part_states()  # store first, even if the file was moved
        try:
            yield self.db
        except FAULTS as error:
            self.look(before)
            raise BackendError(f"{self._path}: the store of replies failed: {error}") from error
        self.look(before)

    def insert(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add replies in one transaction; stored ones stay. If that fails, write them to a spare file."""
        try:
            with self.used() as db, self.writing():
                db.executemany(f"insert into replies {_COPY_RULES['replies']}", rows)
        except BackendError as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                with suppress(*FAULTS), self.writing():  # the file was cut short before they were written
                    self.db.executemany(f"insert into replies {_COPY_RULES['replies']}", rows)
                raise
            self._is_given_up = True
            place = self._spare_path
            with suppress(*FAULTS, OSError, UsageError):
                db = _open(place)
                with closing(db), db:
                    db.execute("begin immediate")
                    db.executemany(f"insert into replies {_COPY_RULES['replies']}", rows)
                raise BackendError(
                    f"{error}; the replies that it could not store are in {place}, which is also a store"
                ) from error
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction; waits for another writer, unless the process is stopping."""
        start = time.monotonic()
        while True:
            try:
                self.db.execute("begin immediate")
                break
            except sqlite3.OperationalError as error:
                is_late = self._is_given_up or is_stopping() or time.monotonic() > start + TIMEOUT
                if "locked" not in str(error) or is_late:
                    raise
        with self.db:  # rolls back after an error
            yield

    def look(self, *earlier: PartStates) -> None:
        self._restore_size()
        for now in (*earlier, self._part_states()):
            pairs = list(zip(now, self._seen, strict=True))
            is_there = [part[:2] == before[:2] for part, before in pairs]
            is_cut = all(is_there) and any(part[2] < before[2] for part, before in pairs)
            if is_cut or not all(is_there):
                break
        else:
            self._seen = now
            return
        loss = "lost its -wal or -shm file" if is_there[0] else "was deleted, moved or replaced"
        loss = "was cut short" if is_cut else loss
        try:
            outcome = self._rescue(is_there, is_cut)
        except (*FAULTS, OSError, UsageError) as error:
            outcome = f"its replies cannot be kept ({error})"
        raise BackendError(f"{self._path}: the store of replies {loss} during the run; {outcome}")

    def close(self) -> None:
        self.db.close()

    def _set_connection(self, db: sqlite3.Connection, place: Path) -> None:
        self.db, self._place = db, place
        self._paths = [Path(f"{place}{end}") for end in _SUFFIXES]
        self._seen = self._part_states()

    def _rescue(self, is_there: Sequence[bool], is_cut: bool) -> str:
        """Copy the readable replies to a new file, and continue with that one; returns a sentence that names it."""
        old, home = self.db, self._place
        places = [self._spare_path]
        if not is_cut:
            with suppress(*FAULTS):  # the file itself, even if it was moved
                is_busy, *_ = old.execute("pragma wal_checkpoint(truncate)").fetchone()
                if is_there[0] and not is_busy:
                    self._seen = self._part_states()
                    return "its replies are kept there"
        if not is_there[0]:
            places.insert(0, home)
            for path, is_left, before in list(zip(self._paths, is_there, self._seen, strict=True))[1:]:
                if is_left and before != _ABSENT:  # SQLite would take it for part of the new file
                    files.remove(path)
        db, place = _open_first(places)
        with db:
            db.execute("begin immediate")
            for table, rule in _COPY_RULES.items():
                db.executemany(f"insert into {table} {rule}", _read_rows(old, table))
        count = db.total_changes
        self._set_connection(db, place)
        old.close()
        where = "there" if place == home else f"in {place}"
        return f"{f'what can be read ({count:,} of its replies) is' if is_cut else 'its replies are'} kept {where}"

    @property
    def _spare_path(self) -> Path:
        """A file for replies that the store can no longer hold."""
        return self._place.with_stem(f"{self._place.stem}.kept-{os.getpid()}")

    def _restore_size(self) -> None:
        """Restore the size of the mapped part: if it is too short, the system kills the process."""
        with suppress(OSError):
            if self._paths[2].stat().st_size < self._seen[2][2]:
                os.truncate(self._paths[2], self._seen[2][2])

    def _part_states(self) -> PartStates:
        parts = []
        for path in self._paths:
            try:
                state = path.stat()
                parts.append((state.st_dev, state.st_ino, state.st_size))
            except OSError:
                parts.append(_ABSENT)
        return parts


def _open_first(places: Sequence[Path]) -> tuple[sqlite3.Connection, Path]:
    for place in places[:-1]:
        with suppress(*FAULTS, OSError):
            return _open(place), place
    return _open(places[-1]), places[-1]


def _open(path: Path) -> sqlite3.Connection:
    if path.name != ":memory:":
        files.make_folder(path.parent)
        if path.exists() and not path.is_file():
            raise OSError("it is not a regular file")
        for end in (*_SUFFIXES[1:], "-journal"):
            files.check_ownership(Path(f"{path}{end}"))
        files.touch(path)  # SQLite gives its other files the mode of this one
    db = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
    try:
        tables = {name for (name,) in _retry_execute(db, "select name from sqlite_master where type = 'table'")}
        if tables and "replies" not in tables:
            raise sqlite3.DatabaseError("it is a database of another program")
        _retry_execute(db, "pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.executescript(_SCHEMA)
        db.execute("select key, judge, reply from replies limit 1").fetchone()
        db.execute(f"pragma busy_timeout = {1000 * _STEP:.0f}")
    except BaseException:
        db.close()
        raise
    return db


def _retry_execute(db: sqlite3.Connection, statement: str) -> list[Any]:
    """Execute a statement; SQLite's own timeout does not apply if two processes create a file at once."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return db.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _read_rows(db: sqlite3.Connection, table: str) -> Iterator[Any]:
    """Read the rows of a table, up to the first damage."""
    with suppress(*FAULTS):
        yield from db.execute(f"select * from {table}")
