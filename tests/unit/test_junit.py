"""JUnit XML of a gate: it states the decision, whatever the names contain.

``data/junit.xsd`` combines the requirements of the schemas of Ant and Jenkins.
"""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from gate_builders import FLIP, FLIPS, MIXED, check, golden, hostile, skipped, verdict
from hypothesis import given
from loops import each
from markdown_it import MarkdownIt

from distract.studies.attack.flips import Flip
from distract.studies.gate import github
from distract.studies.gate.evidence import findings
from distract.studies.gate.junit import format_junit
from distract.studies.gate.verdict import Verdict

junitparser = pytest.importorskip("junitparser")
SCHEMA = pytest.importorskip("xmlschema").XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")
BEGAN = datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC)
TAGS = {"pass": None, "skipped": "skipped", "fail": "failure", "inconclusive": "error"}


def document(gate_verdict: Verdict, flips: Any = FLIPS, judge: str = "planted:longer", **more: Any) -> str:
    return format_junit(gate_verdict, flips, judge=judge, **{"began": BEGAN, "seconds": 1.25, **more})


def faults(text: str) -> list[tuple[str, str, str | None]]:
    """Name, class and fault of each case; the text fits the schema."""
    SCHEMA.validate(text.encode())
    root = ET.fromstring(text.encode())
    return [
        (case.attrib["name"], case.attrib["classname"], next((child.tag for child in case), None))
        for case in root.iter("testcase")
    ]


def test_document_matches_the_golden_file() -> None:
    text = document(MIXED)
    assert text == golden("gate.junit.xml", text)
    assert faults(text) == [
        ("prolixity", "distract.pairwise", "failure"),
        ("prolixity", "distract.absolute by score", None),
        ("sycophancy", "distract.pairwise", "error"),
        ("prolixity", "distract.base", "failure"),
        ("prolixity", "distract.prepair", "skipped"),
    ]


@each(
    "part, instead",
    (' hostname="localhost"', ""), ("04:05", "04:05Z"), ("04:05", "04:05.5"), (' type="flip_rate"', ""),
        ("<system-err />", ""), ("<testsuites>", '<testsuites tests="5">'), ('time="1.250"', 'time="1e9"'),
        ('time="0.000"', ""), ("<properties>", "<properties/><properties>"), ("<skipped ", "<omitted "),
        ("<system-out>", "<system-out><b/>"), (' id="0"', ""), ('errors="1"', 'errors="one"'),
)  # fmt: skip
def test_schema_rejects_malformed_documents(part: str, instead: str) -> None:
    text = document(MIXED)
    assert SCHEMA.is_valid(text.encode())
    assert part in text
    assert not SCHEMA.is_valid(text.replace(part, instead, 1).encode())


def test_second_reader_reads_the_same() -> None:
    (suite,) = junitparser.JUnitXml.fromstring(document(MIXED).encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped, suite.time) == (5, 2, 1, 1, 1.25)
    assert {one.name: one.value for one in suite.properties()}["judge"] == "planted:longer"
    results = [case.result for case in suite]
    assert [len(result) for result in results] == [1, 0, 1, 1, 1]
    failure = results[0][0]
    assert (failure.type, failure.message) == ("flip_rate", "lower bound 0.183 is above 0.1")
    for part in ("12 of 40", "18.3–44.1", "0.001 after Holm", "threshold: 10%", "case c7: weak-model", "0.12 : 0.88"):
        assert part in failure.text
    assert "flip rate under the control: 5.0%; flips only in this run 10, only in the reference 0" in results[3][0].text
    assert (results[2][0].type, results[3][0].type) == ("inconclusive", "excess_flip_rate")


GATE = ("gate", "distract", "error")
SOUND, BAD, OPEN = (check(decision, attack="f") for decision in ("pass", "fail", "inconclusive"))


@each(
    "gate_verdict, expected",
    (verdict("inconclusive"), [GATE]),
        (verdict("fail"), [GATE]),
        (verdict("pass"), [GATE]),  # no gate produces this, and its document does not pass
        (verdict("pass", SOUND), [("f", "distract.pairwise", None)]),
        (verdict("pass", skipped(attack="f")), [("f", "distract.pairwise", "skipped"), GATE]),
        (verdict("inconclusive", SOUND), [("f", "distract.pairwise", None), GATE]),
        (verdict("inconclusive", BAD), [("f", "distract.pairwise", "failure"), GATE]),
        (verdict("fail", SOUND), [("f", "distract.pairwise", None), GATE]),
        (verdict("inconclusive", OPEN), [("f", "distract.pairwise", "error")]),
        (verdict("inconclusive", OPEN, certify=True), [("f", "distract.pairwise", "failure")]),
        (
            verdict("fail", BAD, skipped(attack="g")),
            [("f", "distract.pairwise", "failure"), ("g", "distract.pairwise", "skipped")],
        ),
)  # fmt: skip
def test_each_check_has_its_outcome(gate_verdict: Verdict, expected: list[tuple[str, str, str | None]]) -> None:
    assert faults(document(gate_verdict)) == expected
    if GATE in expected:
        assert f'<error type="inconclusive" message="{gate_verdict.reason}">' in document(gate_verdict)


def test_times_are_in_utc_and_name_no_machine() -> None:
    east = BEGAN.astimezone(timezone(timedelta(hours=9)))
    assert document(MIXED, began=east) == document(MIXED)
    assert 'timestamp="2026-11-22T03:04:05" hostname="localhost"' in document(MIXED)
    assert 'time="100000.000"' in document(MIXED, seconds=1e5)
    assert faults(document(MIXED, seconds=1e5))


def test_characters_forbidden_in_xml_are_shown() -> None:
    text = document(verdict("fail", check("fail", reason="a\x1b[1m\ufffe\ud800b", attack="\x00")))
    assert 'message="a\\x1b[1m\\ufffe\\ud800b"' in text
    assert faults(text)[0][0] == "\\x00"


@given(hostile())
def test_no_text_adds_or_hides_a_case(drawn: tuple[Verdict, dict[tuple[str, str], tuple[Flip, ...]], str]) -> None:
    gate_verdict, flips, judge = drawn
    tags = [tag for _, _, tag in faults(document(gate_verdict, flips, judge))]
    expected = [
        "failure" if one.state == "inconclusive" and one.check and gate_verdict.certify
        else "error" if one.check is None
        else TAGS[one.state]
        for one in findings(gate_verdict)
    ]  # fmt: skip
    assert tags == expected
    assert gate_verdict.decision == "pass" or "failure" in tags or "error" in tags


MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {"<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"}
STRUCTURE = {
    *("heading", "inline", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"),
    *("html_block", "html_inline", "text", "text_special", "strong"),
}
Drawn = tuple[Verdict, dict[tuple[str, str], tuple[Flip, ...]], str]


def read(command: str) -> tuple[str, str, str]:
    """Level, title and message of a command, as the runner parses it."""
    assert len(command.splitlines()) == 1
    assert command.isprintable() or all(c.isprintable() or c.isspace() or ord(c) > 127 for c in command)
    empty, head, data = command.split("::", 2)
    level, _, properties = head.partition(" ")
    (pair,) = properties.split(",")
    name, title = pair.split("=", 1)
    assert (empty, name) == ("", "title")
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title = title.replace(escape, character)
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        data = data.replace(escape, character)
    return level, title, data


def test_each_check_that_did_not_pass_is_annotated() -> None:
    annotations = [read(command) for command in github.annotations(MIXED, FLIPS)]
    assert [(level, title) for level, title, _ in annotations] == [
        ("error", "distract gate: fail: pairwise under prolixity"),
        ("warning", "distract gate: inconclusive: pairwise under sycophancy"),
        ("error", "distract gate: fail: base under prolixity"),
        ("notice", "distract gate: skipped: prepair under prolixity"),
    ]
    assert annotations[0][2].splitlines() == [
        "lower bound 0.183 is above 0.1",
        "12 of 40 flipped (30.0%); 1 invalid, 2 excluded",
        "flip rate: 18.3–44.1% (each bound one-sided, 95.0%)",
        "threshold: 10%",
        "p: <0.001, 0.001 after Holm's adjustment",
        "case c7: weak-model, rewritten, against good-model: 0.12 : 0.88 before -> 0.75 : 0.20 after",
    ]
    assert annotations[3][2] == "another check had failed"


SOUND_RUN, BAD_RUN, OPEN_RUN = (check(decision) for decision in ("pass", "fail", "inconclusive"))


@each(
    "gate_verdict, expected",
    (verdict("pass", SOUND_RUN, SOUND_RUN), [("notice", "distract gate: pass")]),
        (verdict("inconclusive", OPEN_RUN), [("warning", "distract gate: inconclusive: pairwise under prolixity")]),
        (
            verdict("inconclusive", OPEN_RUN, certify=True),
            [("error", "distract gate: inconclusive: pairwise under prolixity")],
        ),
        (verdict("inconclusive"), [("warning", "distract gate: inconclusive: gate")]),
        (verdict("inconclusive", certify=True), [("error", "distract gate: inconclusive: gate")]),
        (verdict("pass"), [("warning", "distract gate: inconclusive: gate")]),
        (verdict("inconclusive", SOUND_RUN), [("warning", "distract gate: inconclusive: gate")]),
        (verdict("fail", SOUND_RUN), [("error", "distract gate: fail: gate")]),
        (verdict("fail", BAD_RUN, SOUND_RUN), [("error", "distract gate: fail: pairwise under prolixity")]),
)  # fmt: skip
def test_annotation_summarises_the_gate(gate_verdict: Verdict, expected: list[tuple[str, str]]) -> None:
    annotations = [read(command) for command in github.annotations(gate_verdict, {})]
    assert [(level, title) for level, title, _ in annotations] == expected
    assert gate_verdict.reason in annotations[0][2] or any(
        one.reason in annotations[0][2] for one in gate_verdict.checks
    )


def test_command_is_escaped_for_the_runner() -> None:
    (command,) = github.annotations(
        verdict("fail", check("fail", attack="a:b,c%0A=d", reason="::error::100%\n%0A")), {}
    )
    assert command.startswith(
        "::error title=distract gate%3A fail%3A pairwise under a%3Ab%2Cc%250A=d::::error::100%25 %250A"
    )
    assert read(command)[1].endswith("a:b,c%0A=d")


@given(hostile())
def test_no_text_escapes_its_annotation(drawn: Drawn) -> None:
    gate_verdict, flips, _ = drawn
    annotations = [read(command)[0] for command in github.annotations(gate_verdict, flips)]
    bad = [one for one in findings(gate_verdict) if one.state != "pass"]
    assert len(annotations) == max(1, len(bad))
    assert gate_verdict.decision == "pass" or {"error", "warning"} & {*annotations}


def test_summary_matches_the_golden_file() -> None:
    text = github.summary(MIXED, FLIPS, judge="planted:longer")
    assert text == golden("gate.summary.md", text)


@each(
    "gate_verdict, heading",
    (verdict("pass", SOUND_RUN), "PASS"),
    (verdict("fail", BAD_RUN), "FAIL"),
    (verdict("inconclusive"), "INCONCLUSIVE"),
)
def test_heading_states_the_result(gate_verdict: Verdict, heading: str) -> None:
    lines = github.summary(gate_verdict, {}, judge="j").splitlines()
    assert lines[0] == f"## distract gate: {heading}"
    assert ("<details>" in lines) == (heading == "FAIL")


def test_hostile_text_is_shown_without_effect() -> None:
    evil = "a|b <b>x</b> **y** [l](m) @team #12 https://x.example www.x.example \x1b[1m\nz `c` \\ _u_ ~~s~~ &amp;"
    flip = replace(FLIP, case=evil, original=evil, rewrite=evil + "!")
    gate_verdict = verdict("fail", check("fail", protocol=evil, reason=evil), reason=evil, notes=(evil,))
    text = github.summary(gate_verdict, {(evil, "prolixity"): (flip,)}, judge=evil)
    cleaned = evil.replace("\x1b", "\\x1b").replace("\n", " ")
    assert html.unescape(text).replace("\u2060", "").count(cleaned) == 9
    assert "@\u2060team #\u206012 https:\u2060//x.example www\u2060.x.example" in html.unescape(text)
    assert_inert(text, rows=1)


def assert_inert(text: str, rows: int) -> None:
    """Check for a Markdown text with a table of this many rows, without foreign markup or links."""
    tokens = MARKDOWN.parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert {kind.removesuffix("_open").removesuffix("_close") for kind in kinds} <= STRUCTURE
    raw = "".join(token.content for token in (*tokens, *inline) if token.type in ("html_block", "html_inline"))
    assert {*re.findall(r"<[^>]*>", raw)} <= OURS
    assert [token.type for token in tokens].count("tr_open") == (rows + 1 if rows else 0)
    assert [token.type for token in tokens].count("td_open") == 8 * rows
    assert not re.search(r"(?i)[@#][^\u2060 ]|://|www\.", html.unescape(text).removeprefix("## "))
    lists = 0  # a nested list would come from a foreign text
    for token in tokens:
        lists += (token.type == "bullet_list_open") - (token.type == "bullet_list_close")
        assert lists <= 1
    assert text.encode()


@given(hostile())
def test_no_text_becomes_markup(drawn: Drawn) -> None:
    gate_verdict, flips, judge = drawn
    text = github.summary(gate_verdict, flips, judge=judge)
    assert_inert(text, rows=len(gate_verdict.checks))
    failed = [one for one in gate_verdict.checks if one.decision == "fail"]
    assert text.count("<details>") == text.count("</details>") == len(failed)
    assert text.count("\n- original:") <= len(failed)


def test_summary_shows_effort_and_skipped_checks() -> None:
    text = html.unescape(github.summary(MIXED, {}, judge="j"))
    assert "40 of 300 cases judged with 320 judge calls, about 2,080 saved" in text
    assert "| <code>prepair</code> | <code>prolixity</code> | 0/0 | – | – | – | 10 | skipped |" in text
    assert (
        "\n- pairwise under sycophancy: the bounds do not settle 0.1; about 120 comparisons would settle it\n" in text
    )
    assert "saved" not in github.summary(verdict("inconclusive", skipped()), {}, judge="j")
