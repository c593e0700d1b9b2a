"""Every reply ever paid for, in one SQLite file shared by all runs and processes of a folder.

A reply's key is the SHA-256 of everything that determines it: the judge's identity, its epoch and the request. A new
epoch begins when a user states that another judge may have the same identity: older replies stay in the file but are
no longer used. A batch is one transaction, so that a killed process loses at most the forward pass in progress.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.backend import Backend
from distract.core.errors import BackendError, DistractError, UsageError
from distract.core.locks import Claims
from distract.core.records import Reply, Request, dump_json, token_count
from distract.core.replyfile import FAULTS, ReplyFile

DEFAULT_PATH = Path(files.HOME, "replies.sqlite")


class Store:
    """Replies of one judge in a store file.

    ``epoch`` is the judge's newest when the store was opened: the milliseconds since 1970 at its beginning, so that it
    differs between files; 0 if none was begun.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], reads_slots: bool = False) -> None:
        self.path = path
        self._identity: list[Any] = sorted(identity.items())
        self._reads_slots = reads_slots
        self._new_keys = set[bytes]()
        try:
            self._file = ReplyFile(path)
            try:
                query = "select epoch from epochs where judge = ?"
                newest = self._file.db.execute(query, (_digest(self._identity),)).fetchone()
                self._use_epoch(newest[0] if newest else 0)
            except BaseException:
                self._file.close()
                raise
        except (*FAULTS, OSError) as error:
            raise UsageError(
                f"{path}: not usable as a store of replies ({error}); name another file with --store"
            ) from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            self._file.look()
        except DistractError:
            if problem[0] is None:  # else show the other error
                raise
        finally:
            self._file.close()

    def check(self) -> None:
        if not self._new_keys:
            return
        with self._file.used() as db:
            db.execute("pragma shrink_memory")  # which drops the cache, so that the file itself is read
        if missing := len(self._new_keys) - len(self.get(list(self._new_keys))):
            raise BackendError(f"{self.path}: the store of replies has lost {missing:,} replies during the run")
        self._new_keys.clear()

    def renew(self) -> None:
        """Begin a new epoch of the judge: no older reply is used again, by this process or a later one."""
        with self._file.used() as db, self._file.writing():
            ((epoch,),) = db.execute(
                "insert into epochs values (?, ?) "
                "on conflict (judge) do update set epoch = max(excluded.epoch, epoch + 1) returning epoch",
                (_digest(self._identity), round(time.time() * 1000)),
            ).fetchall()
            self._use_epoch(epoch)

    def _use_epoch(self, epoch: int) -> None:
        if not isinstance(epoch, int):
            raise sqlite3.DatabaseError("the epoch of a judge is damaged")
        self.epoch = epoch
        self._judge = _digest([*self._identity, epoch] if epoch else self._identity)
        self._begun = hashlib.sha256(self._judge)

    def key(self, request: Request) -> bytes:
        """Hash everything that determines the reply to a request (SHA-256)."""
        digest = self._begun.copy()
        digest.update(request.key.encode())
        if self._reads_slots and request.slots is not None:
            responses = [(r.author, r.turns, r.attack, r.severity) for r in request.slots.shown]
            text = dump_json([request.slots.case, responses, request.slots.outcomes])
            digest.update(text.encode())
        return digest.digest()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        replies: dict[bytes, Reply] = {}
        with self._file.used() as db:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"select key, reply from replies where key in ({marks})"
                stored = dict(db.execute(query, part).fetchall())
                try:
                    replies.update((key, _decode(key, text)) for key, text in stored.items())
                except (ValueError, TypeError, RecursionError) as error:
                    why = "a stored reply is damaged; name another file with --store"
                    raise UsageError(f"{self.path}: {why}") from error
        return replies

    def put(self, replies: Iterable[tuple[bytes, Reply]]) -> None:
        """Store a batch in one transaction; a stored reply stays, and unanswered requests are left out."""
        rows = [(key, self._judge, _encode(key, reply)) for key, reply in replies if reply.answered]
        self._file.insert(rows)
        self._new_keys.update(key for key, _, _ in rows)

    def claims(self) -> Claims:
        return Claims(None if str(self.path) == ":memory:" else self.path)

    def __len__(self) -> int:
        with self._file.used() as db:
            (count,) = db.execute("select count(*) from replies where judge = ?", (self._judge,)).fetchone()
        return int(count)


def _digest(identity: Sequence[Any]) -> bytes:
    return hashlib.sha256(json.dumps(identity).encode()).digest()


_get_values = attrgetter(*Reply.__slots__)


def _encode(key: bytes, reply: Reply) -> str:
    """Encode a reply as JSON that ends in a checksum: a bit flipped on disk must not become another verdict."""
    values = dump_json(_get_values(reply))
    return f"{values[:-1]}, {_checksum(key, values[:-1])}]"


def _decode(key: bytes, text: str) -> Reply:
    """Decode a reply; earlier versions wrote no checksum."""
    words, probabilities, mass, finish, failure, tokens_in, tokens_out, *sums = json.loads(text)
    if sums and sums != [_checksum(key, text.rpartition(", ")[0])]:
        raise ValueError("its checksum does not match")
    shares = (*(probabilities or ()), *([] if mass is None else [mass]))
    if not (
        type(words) is type(finish) is str
        and isinstance(failure, str | None)
        and isinstance(probabilities, list | None)
        and all(type(share) in (int, float) and -0.01 < share < 1.01 for share in shares)
        and type(tokens_in) is type(tokens_out) is int
    ):
        raise TypeError("a value has the wrong type")
    choices = None if probabilities is None else tuple(probabilities)
    return Reply(words, choices, mass, finish, failure, token_count(tokens_in), token_count(tokens_out))


def _checksum(key: bytes, text: str) -> int:
    return zlib.crc32(text.encode(), zlib.crc32(key))


Answerer = tuple[Backend, Store]
"""A backend and the store of its replies."""
