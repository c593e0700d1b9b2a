"""The replies of the embedded judge in the sessions of README and docs, shipped as ``tests/data/page_replies.jsonl``.

The first line states the judge's identity, which is part of every key, and the command that makes the file. Every
other line is a reply, in the order of its key in the store; fields with their default value are left out.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distract.core.records import Reply
from distract.core.store import Store
from distract.models.transformers.backend import embedded_judge

PATH = Path(__file__).parent / "data" / "page_replies.jsonl"
COMMAND = "DISTRACT_PAGES=record pytest tests/slow/test_pages_slow.py"
LACKING = f"tests/data/{PATH.name} lacks a reply; make it again: {COMMAND}"
TOLERANCE = 1e-3
"""Largest difference of a probability between machines; rounding accounts for less than 1e-5."""

Replies = Mapping[str, Reply]
"""Replies by their key in a store, in hexadecimal."""

_DEFAULT = asdict(Reply())


def describe_judge() -> dict[str, str]:
    return dict(embedded_judge().identity)


def read_replies(path: Path = PATH) -> dict[str, Reply]:
    header, *lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    assert header == {**describe_judge(), "command": COMMAND}, f"{path.name} is of another judge; run {COMMAND}"
    return {line.pop("key"): _make_reply(line) for line in lines}


def _make_reply(values: dict[str, Any]) -> Reply:
    shares = values.pop("probabilities", None)
    return Reply(**values, probabilities=None if shares is None else tuple(shares))


def write_replies(replies: Replies, path: Path = PATH) -> None:
    lines: list[dict[str, Any]] = [{**describe_judge(), "command": COMMAND}]
    for key, reply in sorted(replies.items()):
        fields = {name: value for name, value in asdict(reply).items() if value != _DEFAULT[name]}
        lines.append({"key": key, **fields})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def fill_store(path: Path, replies: Replies) -> None:
    """Store replies as if the judge had given them in an earlier run."""
    path.parent.mkdir(parents=True)
    with Store(path, describe_judge()) as store:
        store.put((bytes.fromhex(key), reply) for key, reply in replies.items())


def read_store(path: Path) -> dict[str, Reply]:
    """Return the embedded judge's replies in a store, which may hold those of others."""
    with Store(path, describe_judge()) as store:
        rows = store._file.db.execute("select key from replies where judge = ?", (store._judge,)).fetchall()
        return {key.hex(): reply for key, reply in store.get([key for (key,) in rows]).items()}


def make_key(request: str) -> str:
    """Make the key of a reply from the key of its request, which the rows of a run hold."""
    with Store(Path(":memory:"), describe_judge()) as store:
        return hashlib.sha256(store._judge + request.encode()).hexdigest()


def compare_replies(shipped: Replies, fresh: Replies) -> Iterator[str]:
    """Yield a line for each difference between the shipped replies and those of new sessions."""
    for key in sorted(shipped.keys() | fresh.keys()):
        if key not in fresh:
            yield f"{key}: no session uses this reply"
        elif key not in shipped:
            yield f"{key}: the file lacks this reply"
        elif not _is_alike(shipped[key], fresh[key]):
            yield f"{key}: the file has {shipped[key]}, the model says {fresh[key]}"


def _is_alike(one: Reply, other: Reply) -> bool:
    """Whether two replies have the same text, reason to end and tokens, and almost the same probabilities."""
    (shares, rest), (others, remainder) = (_split_shares(reply) for reply in (one, other))
    is_near = len(shares) == len(others) and all(abs(a - b) <= TOLERANCE for a, b in zip(shares, others, strict=True))
    return is_near and rest == remainder


def _split_shares(reply: Reply) -> tuple[list[float], dict[str, Any]]:
    rest = asdict(reply)
    shares, mass = rest.pop("probabilities"), rest.pop("mass")
    return [*(shares or ()), *([] if mass is None else [mass])], rest
