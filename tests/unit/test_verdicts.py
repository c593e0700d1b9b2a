"""Test reading verdicts from probabilities and from text."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, request, scored, verdict
from command_result import Run
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.printable import clean_text
from distract.core.records import Judgment, Outcome, ParseFailure, Reply, Request, Response, Row, Side
from distract.judging.comparison import judge_comparison
from distract.judging.orders import Manner, majority
from distract.judging.parsers import OUTPUT
from distract.judging.verdicts import outcome, pick_largest, read_comparison, read_rating
from distract.report.unread import MAX_LENGTH, unread_lines

ABC: dict[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}


@each(
    "reply, preferred, failure, read",
    (Reply(probabilities=(0.2, 0.7, 0.1), mass=0.9), "b", None, "choices"),
    (Reply(probabilities=(0.4, 0.4, 0.2), mass=0.9), "tie", None, "choices"),
    (Reply(probabilities=(0.5, 0.2, 0.2), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(float("nan"),) * 3, mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(0.5, 0.5, float("nan")), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(1.5, -0.5, 0.0), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(0.5, 0.5), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(text="B]]"), "b", None, "text"),
    (Reply(text="I cannot"), None, "no verdict", "text"),
    (Reply(text="I think", finish="length"), None, "truncated", "text"),
    (Reply(failure="too long: 9 tokens"), None, "too long", "text"),
)
def test_comparison_reads_probabilities_and_words(
    reply: Reply, preferred: str | None, failure: str | None, read: str
) -> None:
    judgment = read_comparison(reply, "[[", ABC)
    assert (judgment.preferred, judgment.read) == (preferred, read)
    assert (judgment.failure or "").startswith(failure or "")
    assert (judgment.failure is None) == (preferred is not None)


def test_rating_weights_by_probability_and_takes_the_lowest() -> None:
    assert read_rating(Reply(probabilities=(0.25, 0.25, 0.5)), "[[", (1, 2, 3)) == (2.25, 3)
    assert read_rating(Reply(probabilities=(0.5, 0.5, 0.0)), "[[", (1, 2, 3)) == (1.5, 1)
    assert read_rating(Reply(probabilities=(0.5, 0.0, 0.5)), "[[", (3, 2, 1)) == (2.0, 1)
    assert read_rating(Reply(text="3]]"), "[[", (1, 2, 3)) == (3.0, 3)
    assert read_rating(Reply(text="9]]"), "[[", (1, 2, 3)) == "no verdict"


@each(
    "judgments, rule, expected",
    ([verdict("a"), verdict("a")], None, "a"),
    ([verdict("a"), verdict("b")], None, "tie"),
    ([verdict("a", (0.6, 0.3, 0.1)), verdict("b", (0.4, 0.5, 0.1))], None, "a"),
    # The tie has the largest weight although neither order names it.
    ([verdict("a", (0.5, 0.06, 0.44)), verdict("b", (0.06, 0.5, 0.44))], None, "tie"),
    ([verdict("a"), verdict(None)], None, None),
    ([], None, None),
    ([scored((5.2, 5.1), (5, 5))], "score", "a"),
    ([scored((5.2, 5.1), (5, 5))], "rating", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "score", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "rating", "b"),
)
def test_outcome_combines_both_orders(judgments: list[Judgment], rule: str | None, expected: Outcome | None) -> None:
    assert outcome(judgments, rule) == expected


@given(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_largest_choice_mirrors(p: tuple[float, float, float]) -> None:
    mirrored = {"a": "b", "b": "a", "tie": "tie"}[pick_largest((p[1], p[0], p[2]))]
    assert pick_largest(p) == mirrored


@each(
    "text, finish, preferred",
    ("a)\n\nThis output is more precise.", "stop", "a"),
    ("b). It is precise.", "stop", None),
    ("a)", "length", "a"),
    ("b)\n\nOutput (a) is longer, and it does not", "length", "b"),
    ("a)\nOutput (b)", "stop", None),
    ("a) is more precise than Output (b).", "stop", None),
    ("a) follows the format requirements better.", "stop", "a"),
    ("b) is better at following the format.", "stop", "b"),
    ("b) is better at grammar.", "stop", None),
)
def test_prefilled_answer_begins_with_the_verdict(text: str, finish: str, preferred: Outcome | None) -> None:
    assert read_comparison(Reply(text, finish=finish), "Output (", {"a": "a", "b": "b"}, OUTPUT).preferred == preferred


@each("text", "A]]\n\nOn reflection I withdraw this verdict and give none.", "A]]?\nI cannot say.")
def test_later_statement_about_a_verdict_is_read(text: str) -> None:
    assert read_comparison(Reply(text), "[[", ABC).failure == "no verdict"


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
