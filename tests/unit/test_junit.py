"""JUnit XML of a gate: it states the decision, whatever the names contain.

``data/junit.xsd`` combines the requirements of the schemas of Ant and Jenkins.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from gate_builders import FLIPS, MIXED, check, golden, hostile, skipped, verdict
from hypothesis import given
from loops import each

from distract.studies.attack.flips import Flip
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
