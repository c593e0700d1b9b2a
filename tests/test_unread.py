"""What a judge said where its verdict could not be read: kept beside the run, and one example shown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, finish, request, set_up, verdict
from commanding import Ran
from hypothesis import given
from hypothesis import strategies as st

from distract import session
from distract.backends.scripted import Scripted
from distract.errors import BackendError
from distract.judging.compare import judged
from distract.manner import Manner, majority
from distract.plan import Calls, Comparison, Plan, Protocol
from distract.printable import plain
from distract.records import Judgment, Reply, Request, Response, Row, Side, Unread
from distract.report.unread import MOST, unread_lines
from distract.runfolder import Loaded, load

HOSTILE = "\x1b[31m::error::[bold]I must not say\ud800 ##[error]\u202e"
PROTOCOLS = ("absolute", "cot", "cot-consistency", "metric", "multi-role-round1", "pairwise", "prepair", "rank")


def moody(asked: Request) -> Reply:
    """A judge whose answers depend on nothing but the request: some say nothing, some too much, some never come."""
    mood = random.Random(asked.key).choice(["verdict", "verdict", "silent", "cut", "refused", "away"])
    outcomes = [text for _, text in asked.slots.outcomes] if asked.slots else []
    if mood == "verdict" or not outcomes:
        return Reply(outcomes[0] if outcomes else "An analysis.")
    said = {"silent": Reply(HOSTILE), "cut": Reply("At length: it", finish="length"), "away": Reply(failure="no reply")}
    return said.get(mood, Reply(failure="refused"))


def carried(folder: Path, store: Path, backend: Scripted) -> Loaded:
    how: dict[str, Any] = {"attacks": ("sycophancy",), "limit": 5, "seed": 0}
    selected = session.select(data="tweakset", generator="rules", **how)
    setup = set_up("moody", backend, folder, PROTOCOLS, manner=Manner(samples=3))
    return finish(session.prepare(selected, setup), store).run


def texts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "texts.jsonl").read_text(encoding="ascii").splitlines()]


def test_every_answer_that_could_not_be_read_is_kept_once(tmp_path: Path) -> None:
    loaded = carried(tmp_path / "r", tmp_path / "s", Scripted(moody))
    kept = texts(tmp_path / "r")
    assert {one["protocol"] for one in kept} == {*PROTOCOLS}
    # What the judge of this test says for a verdict is no ranking.
    assert {one["text"] for one in kept if one["protocol"] != "rank"} == {HOSTILE, "At length: it", ""}
    assert len({one["key"] for one in kept}) == len(kept)
    rows = {(r.case, r.design, r.protocol, r.attack, r.target, r.a, r.b): r for r in loaded.rows}
    seen = set[str]()
    for one in kept:
        place = [one[name] for name in ("case", "design", "protocol", "attack", "target")]
        found = rows[(*place, Side(**one["a"]), Side(**one["b"]))]
        assert one["key"] in found.keys
        assert found.judgments[one["order"]].failure == one["failure"]
        seen.add(one["failure"])
    assert {"no verdict", "truncated", "refused"} <= seen
    failed = [(r, j) for r in loaded.rows for j in r.judgments if j.failure and not j.failure.startswith("no reply")]
    assert {(r.protocol, r.case) for r, _ in failed} == {(one["protocol"], one["case"]) for one in kept}
    looked = {one["protocol"]: one["looked_for"] for one in kept}
    assert looked["cot"] == ["Therefore, Output (a) is better.", "Therefore, Output (b) is better."]
    assert looked["rank"] == ["[[...]]"]
    assert looked["absolute"] == [f"[[{n}" for n in range(1, 8)]


def test_it_is_no_part_of_the_run_and_is_the_same_after_a_kill(tmp_path: Path) -> None:
    whole = carried(tmp_path / "whole", tmp_path / "s1", Scripted(moody))
    calls = list[Request]()

    def breaks(asked: Request) -> Reply:
        calls.append(asked)
        if len(calls) > 90:
            raise BackendError("the model broke")
        return moody(asked)

    with pytest.raises(BackendError):
        carried(tmp_path / "r", tmp_path / "s2", Scripted(breaks))
    carried(tmp_path / "r", tmp_path / "s2", Scripted(moody))
    names = ("texts.jsonl", "rows.jsonl", "summary.json", "run.json")
    for name in names:
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert "texts.jsonl" not in json.loads((tmp_path / "r" / "manifest.json").read_text())["checksums"]
    (tmp_path / "r" / "texts.jsonl").unlink()  # as in a run of before
    assert load(tmp_path / "r").flaw is None
    assert load(tmp_path / "r").rows == whole.rows
    assert [*unread_lines(tmp_path / "r")] == []


def ask_and_read(comparison: Comparison) -> Plan[Judgment]:
    """A protocol of somebody else, that reads its verdicts itself."""
    yield [request("first")]
    (reply,) = yield [replace(request(f"then {comparison.first.author}"), choices=(), prefill="")]
    return verdict("a") if reply.text == "A" else Judgment(None, read="text", failure="says nothing")


@pytest.mark.parametrize("samples", [1, 3])
def test_a_protocol_that_reads_by_itself_is_told_by_its_last_reply(samples: int) -> None:
    x, y = Response("x", ("x",)), Response("y", ("y",))
    mine = Protocol("mine", "one of the tests", ask_and_read, Calls(2))
    row = lambda **more: Row("c", "c", "flip", "mine", "j", "none", Side("x"), Side("y"), **more)  # noqa: E731

    def answer(asked: Request) -> Reply:
        return Reply("A" if asked.messages[0].content == "then x" else f"B {asked.sample}")

    found, rounds = drive(judged(row, mine, Comparison(case(), x, y), Manner(samples=samples), False), answer)
    assert [judgment.failure for judgment in found.judgments] == [None, "says nothing"]
    unread = found.judgments[1].failure
    assert isinstance(unread, Unread)
    assert (unread.reply.text, unread.wanted) == ("B 0", ())
    assert unread.key in {one.key for asked in rounds for one in asked if one.messages[0].content == "then y"}


def test_the_majority_keeps_the_reply_of_the_most_frequent_reason() -> None:
    votes = [Unread("truncated", Reply("1")), Unread("no verdict", Reply("2")), Unread("no verdict", Reply("3"))]
    failure = majority([Judgment(None, failure=one) for one in votes]).failure
    assert isinstance(failure, Unread)
    assert (failure, failure.reply.text) == ("no verdict", "2")


VALUES = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text(), max_size=3))


@given(st.lists(st.dictionaries(st.sampled_from(["text", "case", "protocol", "looked_for"]), VALUES), max_size=4))
def test_whatever_was_said_is_shown_on_three_safe_lines(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    damage = ["", "[1]", '{"text": "cut of']
    (folder / "texts.jsonl").write_text("\n".join([*map(json.dumps, found), *damage]), encoding="utf-8")
    lines = [*unread_lines(folder)]
    assert len(lines) == (3 if found else 0)
    for one in lines:
        assert plain(one) == one
        assert len(one.splitlines()) == 1
        assert not any(mark in one for mark in ("::", "##["))
    if found:
        assert lines[0].startswith(f"1 of {len(found)} unreadable answer")
        assert len(lines[1]) < MOST + 99


def test_an_example_is_shown_by_the_command_and_by_the_report(run: Callable[..., Ran]) -> None:
    command = ("--judge", "planted:garbage", "--protocol", "pairwise", "--attack", "sycophancy", "--limit", "2")
    attack = run("attack", *command, "--generator", "rules", "--out", "r")
    assert attack.code == 3
    said = "(pairwise, tweak-025, no verdict): looked for [[A or [[B or [[C; the judge said: > banana"
    assert said in attack.words
    assert "every one: r/texts.jsonl" in attack.words
    assert said in run("report", "r").words
    gate = run("gate", *command, "--generator", "rules", "--max-flip-rate", "0.5", "--out", "g")
    assert (gate.code, "unreadable answers (pairwise, " in gate.words) == (3, True)
    assert "unreadable" not in run("report", "r", "--json").out


def test_what_is_read_leaves_nothing(run: Callable[..., Ran]) -> None:
    ran = run("attack", "--judge", "planted:fair", "--limit", "2", "--out", "r")
    assert "unreadable" not in ran.out
    assert Path("r/texts.jsonl").read_bytes() == b""
