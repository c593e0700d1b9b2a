"""Test unreadable verdicts: replies kept beside the run, and one example shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, request, verdict
from command_result import Run
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.printable import clean_text
from distract.core.records import Judgment, ParseFailure, Reply, Request, Response, Row, Side
from distract.judging.comparison import judge_comparison
from distract.judging.orders import Manner, majority
from distract.report.unread import MAX_LENGTH, unread_lines


def texts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "texts.jsonl").read_text(encoding="ascii").splitlines()]


def ask_and_read(comparison: Comparison) -> Plan[Judgment]:
    """A third-party protocol with its own parser."""
    yield [request("first")]
    (reply,) = yield [replace(request(f"then {comparison.first.author}"), choices=(), prefill="")]
    return verdict("a") if reply.text == "A" else Judgment(None, read="text", failure="says nothing")


@each("samples", 1, 3)
def test_protocol_with_its_own_parser_shows_its_last_reply(samples: int) -> None:
    x, y = Response("x", ("x",)), Response("y", ("y",))
    own_protocol = Protocol("mine", "one of the tests", ask_and_read, Calls(2))
    row = lambda **more: Row("c", "c", "flip", "mine", "j", "none", Side("x"), Side("y"), **more)  # noqa: E731

    def answer(request: Request) -> Reply:
        return Reply("A" if request.messages[0].content == "then x" else f"B {request.sample}")

    result, rounds = drive(
        judge_comparison(row, own_protocol, Comparison(case(), x, y), Manner(samples=samples), False), answer
    )
    assert [judgment.failure for judgment in result.judgments] == [None, "says nothing"]
    read, unread = ([one for one in judgment.answers if one.failure] for judgment in result.judgments)
    assert (read, [(one.reply.text, one.labels) for one in unread]) == ([], [("B 0", ())])
    assert unread[0].key in {one.key for request in rounds for one in request if one.messages[0].content == "then y"}
    assert {one.key for judgment in result.judgments for one in judgment.answers} == {*result.keys}


def test_majority_keeps_the_reply_of_the_most_frequent_reason() -> None:
    votes = [
        ParseFailure("truncated", Reply("1")),
        ParseFailure("no verdict", Reply("2")),
        ParseFailure("no verdict", Reply("3")),
    ]
    failure = majority([Judgment(None, failure=one) for one in votes]).failure
    assert isinstance(failure, ParseFailure)
    assert (failure, failure.reply.text) == ("no verdict", "2")


VALUES = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text(), max_size=3))


@given(st.lists(st.dictionaries(st.sampled_from(["text", "case", "protocol", "looked_for"]), VALUES), max_size=4))
def test_any_reply_is_shown_on_three_safe_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    damage = ["", "[1]", '{"text": "cut of']
    (folder / "texts.jsonl").write_text("\n".join([*map(json.dumps, rows), *damage]), encoding="utf-8")
    lines = [*unread_lines(folder)]
    assert len(lines) == (3 if rows else 0)
    for one in lines:
        assert clean_text(one) == one
        assert len(one.splitlines()) == 1
        assert not any(mark in one for mark in ("::", "##["))
    if rows:
        assert lines[0].startswith(f"1 of {len(rows)} unreadable answer")
        assert len(lines[1]) < MAX_LENGTH + 99


def test_command_and_report_show_an_example(run: Run) -> None:
    command = ("--judge", "planted:garbage", "--protocol", "pairwise", "--attack", "sycophancy", "--limit", "2")
    attack = run("attack", *command, "--generator", "rules", "--out", "r")
    assert attack.code == 3
    message = "no verdict): looked for [[A or [[B or [[C; the judge said: > banana"
    assert message in attack.words
    assert "all of them: r/texts.jsonl" in attack.words
    assert message in run("report", "r").words
    gate = run("gate", *command, "--generator", "rules", "--max-flip-rate", "0.5", "--out", "g")
    assert (gate.code, "unreadable answers (pairwise, " in gate.words) == (3, True)
    assert "unreadable" not in run("report", "r", "--json").out


def test_readable_replies_write_no_file(run: Run) -> None:
    ran = run("attack", "--judge", "planted:fair", "--limit", "2", "--out", "r")
    assert "unreadable answer" not in ran.out
    assert Path("r/texts.jsonl").read_bytes() == b""
