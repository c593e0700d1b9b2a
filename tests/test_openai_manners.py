"""How a server wants to be asked, found by probes: the same figures whatever comes first; and what it will not answer."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Asked, FakeServer, Script, completion, refused, token

from distract import conduct, session
from distract.backends import Probing
from distract.backends.openai import OpenAI
from distract.backends.openai_manners import PROBES, Manners
from distract.errors import BackendError, UsageError
from distract.probing import settle
from distract.records import Message, Reply, Request
from distract.run import answer, execute
from distract.runfolder import load
from distract.store import Store
from distract.tally import Tally

pytest.importorskip("openai")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OPENAI_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def backend(url: str, **more: Any) -> OpenAI:
    return OpenAI("m", base_url=url, **{"backoff": 0.0, "timeout": 20.0, **more})


def words(content: str, **more: Any) -> Request:
    return Request((Message("user", content),), **more)


# A server of any manners, whose every answer follows from its request alone


def judge(
    *, start: str = "continued", likely: int = 20, logprobs: str = "told", system: bool = True, reasons: bool = False
) -> Script:
    """A judge with a mind of its own on each prompt.

    Args:
        start: of an answer: ``continued``, ``ignored``, ``refused`` (by name) or ``rejected`` (without a reason).
        likely: the most likely tokens that it tells of.
        logprobs: ``told``, ``left out``, or ``refused``.
        system: whether it takes a system's part.
        reasons: whether it is a reasoning model.
    """

    def script(asked: Asked) -> dict[str, Any] | Answer:
        body, begun = asked.body, asked.body["messages"][-1]["role"] == "assistant"
        if not system and body["messages"][0]["role"] == "system":
            return refused(400, "System role not supported")
        if reasons and "max_tokens" in body:
            return refused(400, "'max_tokens' is not supported with this model", param="max_tokens")
        if reasons and "temperature" in body:
            return refused(400, "'temperature' does not support this value", param="temperature")
        if begun and start == "refused":
            return refused(400, "Unrecognized request argument supplied: continue_final_message")
        if begun and start == "rejected":
            return refused(400, "Bad request")
        if body.get("logprobs") and logprobs == "refused":
            return refused(403, "You are not allowed to request logprobs from this model")
        if body.get("top_logprobs", 0) > likely:
            return refused(400, f"Requested sample logprobs of 20, which is greater than max allowed: {likely}")
        named = [label for label in "1234567" if f"[[{label}]]" in asked.content] or ["A", "B", "C"]
        number = int.from_bytes(hashlib.sha256(asked.content.encode()).digest()[:4], "big")
        first = "A" if asked.is_probe else named[number % len(named)]
        share = 0.9 if asked.is_probe else 0.5 + number % 400 / 1000
        others = {name: (1 - share) / len(named) for name in named}
        choice = token(first, {**others, first: share})
        tells = bool(body.get("logprobs")) and logprobs == "told"
        if begun and start == "continued":
            text = first if body.get("max_tokens") == 1 else f"{first}]]"
            return completion(text, logprobs=[choice] if tells else None)
        whole = f"[[{first}]]"
        if body.get("max_tokens") == 1:
            return completion("[[", logprobs=[token("[[", {"[[": 0.9, "A": 0.05})] if tells else None, finish="length")
        spelled = [token("[["), choice, token("]]")]
        return completion(whole, logprobs=spelled if tells else None)

    return script


MANNERS = {
    "continues": judge(),
    "refuses the start": judge(start="refused"),
    "rejects the start": judge(start="rejected"),
    "ignores the start": judge(start="ignored"),
    "continues without log-probabilities": judge(logprobs="left out"),
    "ignores the start, without log-probabilities": judge(start="ignored", logprobs="left out"),
    "refuses log-probabilities": judge(logprobs="refused"),
    "5 likely tokens": judge(likely=5),
    "5 likely tokens, ignores the start": judge(likely=5, start="ignored"),
    "no system role": judge(system=False),
    "reasons": judge(reasons=True, start="refused", logprobs="refused"),
}
FILES = ("rows.jsonl", "summary.json", "rewrites.jsonl")


def shuffled(script: Script, seed: int) -> Script:
    """The same answers in another order."""
    draw = random.Random(seed)

    def late(asked: Asked) -> Answer:
        found = script(asked)
        given = found if isinstance(found, Answer) else Answer(found)
        return Answer(given.body, given.status, given.headers, delay=draw.random() * 0.004)

    return late


def attacked(url: str, folder: Path, *, concurrency: int = 16, **more: Any) -> Tally:
    """A run with a store of its own, in ``folder``."""
    selected = session.select(data="tweakset", limit=2, attacks=("assertiveness",))
    prepared = session.prepare(
        selected,
        judge="j",
        backend=backend(url, concurrency=concurrency, **more),
        protocols=("pairwise", "absolute", "prepair"),
        out=folder / "r",
    )
    tally = Tally()
    with conduct.stores(prepared.models, folder / "store") as models:
        session.run(prepared, models, tally)
    return tally


def contents(folder: Path) -> list[bytes]:
    return [(folder / "r" / name).read_bytes() for name in FILES]


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "r" / "manifest.json").read_text())
    return found


@pytest.mark.parametrize("kind", MANNERS)
def test_a_run_is_the_same_whatever_the_order_of_replies_and_however_many_at_once(kind: str, tmp_path: Path) -> None:
    found = list[list[bytes]]()
    for number, concurrency in enumerate((1, 4, 16)):
        script = shuffled(MANNERS[kind], number)
        with FakeServer(script, owner="someone", probed=script) as server:
            tally = attacked(server.url, tmp_path / str(number), concurrency=concurrency)
            # What the probes have found out is not refused again.
            assert len(server.chats) == tally.made - len(PROBES)
        found.append(contents(tmp_path / str(number)))
        assert manifest(tmp_path / str(number))["complete"] is True
    assert found[0] == found[1] == found[2]
    reads = {judgment.read for row in load(tmp_path / "0" / "r").rows for judgment in row.judgments}
    told = manifest(tmp_path / "0")["replies"]["manners"]["judge"]
    assert ("choices" in reads) is ("log-prob" not in kind and kind != "reasons")
    assert told["continues"] is ("start" not in kind and kind != "reasons")
    assert (told["top"], told["systemless"], told["reasons"]) == (
        5 if "5 likely" in kind else 20,
        kind == "no system role",
        kind == "reasons",
    )
    assert "manners" not in (tmp_path / "0" / "r" / "run.json").read_text()


@pytest.mark.parametrize("kind", ["continues", "ignores the start", "5 likely tokens, ignores the start"])
@pytest.mark.parametrize("others", [-1, 0, 7])
def test_a_killed_run_goes_on_in_the_same_manners_without_a_second_probe(
    kind: str, others: int, tmp_path: Path
) -> None:
    script, left = MANNERS[kind], 10**6

    def mortal(asked: Asked) -> dict[str, Any] | Answer:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionResetError
        return script(asked)

    with FakeServer(mortal, owner="someone", probed=mortal) as server:
        attacked(server.url, tmp_path / "whole")
        probes = [asked.content for asked in server.probes]
        left = len(probes) + others
        with pytest.raises(BackendError, match="does not answer"):
            attacked(server.url, tmp_path / "killed", concurrency=1, attempts=1)
        left = 10**6
        attacked(server.url, tmp_path / "killed")
        # Killed between the probes, the second one is asked twice: the first time it got no answer.
        assert len(server.probes) == 2 * len(probes) + (others < 0)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
