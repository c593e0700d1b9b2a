"""Test the reply store: keys, transactions, two processes, damage."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from builders import request
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import BackendError, UsageError
from distract.core.records import Reply, Response, Slots
from distract.core.store import Store

WHO = {"model": "m", "engine": "scripted"}


def change_store(path: Path, statement: str, *values: object) -> None:
    """Change a store's file by another connection."""
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(statement, values)


def test_stored_reply_is_available_in_another_session(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "replies.sqlite"
    reply = Reply("ä\x00[[A]]", (0.1, 0.2, 0.7), 0.123456789012345, "choices", None, 11, 0)
    with Store(path, WHO) as store:
        store.put([(store.key(request()), reply)])
    with Store(path, WHO) as store:
        assert store.get([store.key(request()), store.key(request("other"))]) == {store.key(request()): reply}
        assert len(store) == 1
    with Store(path, {**WHO, "model": "n"}) as store:
        assert not store.get([store.key(request())])
        assert len(store) == 0


@given(st.text(), st.text())
def test_keys_differ_exactly_when_the_request_does(one: str, two: str) -> None:
    with Store(Path(":memory:"), WHO) as store:
        assert (store.key(request(one)) == store.key(request(two))) == (one == two)
        assert store.key(request(one)) != store.key(request(one, sample=1))


def test_slots_enter_the_key_only_for_a_judge_that_reads_them() -> None:
    one, two = (request(slots=Slots(name, (Response("x", ("t",)),), ())) for name in ("c1", "c2"))
    with Store(Path(":memory:"), WHO) as reads_text, Store(Path(":memory:"), WHO, reads_slots=True) as reads_slots:
        assert reads_text.key(one) == reads_text.key(two)
        assert reads_slots.key(one) != reads_slots.key(two)


@given(st.text(), st.text(), st.text(), st.sampled_from([None, 1, 3]))
def test_key_is_a_digest_of_identity_and_request_as_json(
    case: str, text: str, label: str, severity: int | None
) -> None:
    responses = (Response("x", (text, "t")), Response("y", (text,), "f", severity))
    arguments = request(text, slots=Slots(case, responses, (("first", label),)))
    who = hashlib.sha256(json.dumps(sorted(WHO.items())).encode()).digest()
    slots = (
        case,
        [(r.author, r.turns, r.attack, r.severity) for r in responses],
        arguments.slots and arguments.slots.outcomes,
    )
    with Store(Path(":memory:"), WHO, reads_slots=True) as store:
        whole = who + arguments.key.encode() + json.dumps(slots).encode()
        assert store.key(arguments) == hashlib.sha256(whole).digest()


def test_existing_reply_stays(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        key = store.key(request())
        store.put([(key, Reply("first"))])
        store.put([(key, Reply("second"))])
        assert store.get([key])[key].text == "first"


def test_more_keys_than_one_query_takes_are_read(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        keys = [store.key(request(str(i))) for i in range(1201)]
        store.put((key, Reply(str(i))) for i, key in enumerate(keys))
        replies = store.get(keys)
        assert [replies[key].text for key in keys] == [str(i) for i in range(1201)]


def test_invalid_store_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are not the replies you are looking for, " * 50)
    for place in (path, tmp_path):
        with pytest.raises(UsageError, match="not usable as a store"):
            Store(place, WHO)


def test_damage_during_a_run_is_our_error(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        change_store(tmp_path / "s", "drop table replies")
        with pytest.raises(BackendError, match="store of replies failed"):
            store.get([store.key(request())])


@each("stored", "cut off", "", "null", "5", '["", 3]', b"[", "[" * 20_000, "[null], [null]")
def test_damaged_reply_is_one_clear_line(tmp_path: Path, stored: str | bytes) -> None:
    with Store(tmp_path / "s", WHO) as store:
        keys = [store.key(request(name)) for name in ("one", "two")]
        store.put([(key, Reply("fine")) for key in keys])
        change_store(tmp_path / "s", "update replies set reply = ? where key = ?", stored, keys[0])
        with pytest.raises(UsageError, match="a stored reply is damaged; name another file with --store"):
            store.get(keys)
