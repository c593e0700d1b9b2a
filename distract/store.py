"""Every reply ever paid for, in one SQLite file shared by all runs and processes of a folder.

A reply is found again by the SHA-256 of everything that determines it: the judge's identity, its epoch and the request.
A new epoch begins where a user says that another judge may stand behind the same identity: older replies stay on file
and are no longer used. A batch is one transaction, so that a killed process loses at most the forward in progress. It
knows nothing of runs, rows or measures.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from distract.claims import Claims
from distract.errors import BackendError, UsageError
from distract.records import Reply, Request, flat

DEFAULT = Path(".distract/replies.sqlite")

TIMEOUT = 60.0
"""Seconds to wait for another process that writes."""

_SCHEMA = """
create table if not exists replies (key blob primary key, judge blob not null, reply text not null) without rowid;
create table if not exists epochs (judge blob primary key, epoch integer not null) without rowid;
"""


class Store:
    """Replies of one judge in a store file.

    Args:
        path: the file; made with its folder when absent.
        identity: what the judge is, from ``Backend.identity``.
        reads_slots: from ``Backend.reads_slots``; the slots then determine the reply too.

    Attributes:
        epoch: of the judge, the newest when the store was opened: milliseconds since 1970 at its beginning, so that it
            is another one in another file too; 0 where none was begun.

    Raises:
        UsageError: the file cannot be opened or is no store.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], reads_slots: bool = False) -> None:
        self.path = path
        self._who: list[Any] = sorted(identity.items())
        self._reads_slots = reads_slots
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
            _set_wal(self._db)
            self._db.execute("pragma synchronous = normal")
            self._db.executescript(_SCHEMA)
            self._db.execute("select key, judge, reply from replies limit 1").fetchone()
            newest = self._db.execute("select epoch from epochs where judge = ?", (_digest(self._who),)).fetchone()
            self._enter(newest[0] if newest else 0)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(
                f"{path}: not usable as a store of replies ({error}); name another file with --store"
            ) from error

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def renew(self) -> None:
        """Begin a new epoch of the judge: no reply stored before is used again, by this process or a later one."""
        with self._one_line():
            ((epoch,),) = self._db.execute(
                "insert into epochs values (?, ?) "
                "on conflict (judge) do update set epoch = max(excluded.epoch, epoch + 1) returning epoch",
                (_digest(self._who), round(time.time() * 1000)),
            ).fetchall()
        self._enter(epoch)

    def _enter(self, epoch: int) -> None:
        """Use the replies of an epoch."""
        self.epoch = epoch
        self._judge = _digest([*self._who, epoch] if epoch else self._who)
        self._begun = hashlib.sha256(self._judge)

    def key(self, request: Request) -> bytes:
        """SHA-256 of what determines the reply to a request."""
        digest = self._begun.copy()
        digest.update(request.key.encode())
        if self._reads_slots and request.slots is not None:
            shown = ", ".join([_text((r.author, r.turns, r.attack, r.severity)) for r in request.slots.shown])
            # What ``json.dumps`` of all of it gives: a response is shown in many requests.
            text = f"[{_text(request.slots.case)}, [{shown}], {_text(request.slots.outcomes)}]"
            digest.update(text.encode())
        return digest.digest()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """The stored replies among ``keys``."""
        found: dict[bytes, Reply] = {}
        with self._one_line():
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"select key, reply from replies where key in ({marks})"
                stored = dict(self._db.execute(query, part).fetchall())
                try:
                    replies = [_reply(values) for values in json.loads(f"[{','.join(stored.values())}]")]
                    found.update(zip(stored, replies, strict=True))
                except (ValueError, TypeError, RecursionError) as error:
                    why = "a stored reply is damaged; name another file with --store"
                    raise UsageError(f"{self.path}: {why}") from error
        return found

    def put(self, replies: Iterable[tuple[bytes, Reply]]) -> None:
        """Store a batch in one transaction; a reply already there stays, and what was not answered is left out."""
        rows = [(key, self._judge, _encode(reply)) for key, reply in replies if reply.answered]
        with self._one_line():
            self._db.execute("begin immediate")
            self._db.executemany("insert or ignore into replies values (?, ?, ?)", rows)
            self._db.execute("commit")

    def claims(self) -> Claims:
        """Claims on requests whose replies are to be stored here; one for each run loop."""
        return Claims(None if str(self.path) == ":memory:" else self.path)

    def __len__(self) -> int:
        """How many replies of this judge and epoch are stored."""
        (count,) = self._db.execute("select count(*) from replies where judge = ?", (self._judge,)).fetchone()
        return int(count)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """What SQLite cannot do in the middle of a run (a full disk, a damaged file), as an error of ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise BackendError(f"{self.path}: the store of replies failed: {error}") from error


def _set_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite's own timeout does not wait for this when two processes begin at once."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            db.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _digest(who: Sequence[Any]) -> bytes:
    return hashlib.sha256(json.dumps(who).encode()).digest()


_text = lru_cache(maxsize=256)(json.dumps)


def _encode(reply: Reply) -> str:
    return flat(
        [
            reply.text,
            reply.probabilities,
            reply.mass,
            reply.finish,
            reply.failure,
            reply.tokens_in,
            reply.tokens_out,
        ]
    )


def _reply(values: list[Any]) -> Reply:
    words, probabilities, *rest = values
    return Reply(words, None if probabilities is None else tuple(probabilities), *rest)
