"""A gate's verdict as JUnit XML, the test report that CI systems read: one test case per protocol and attack.

The document fits both schemas in use, Ant's and the stricter parts of that of Jenkins' xUnit plugin: every attribute
that either requires, in Ant's order, and no more.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from distract.core.printable import line
from distract.studies.gate import evidence
from distract.studies.gate.evidence import CheckFinding, ClearestFlips
from distract.studies.gate.verdict import Verdict

_FAULTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""The suite's attribute that counts each element."""

_FORBIDDEN = re.compile("[\ufffe\uffff]")
"""Characters that are printable but not allowed in XML 1.0."""


def format_junit(verdict: Verdict, flips: ClearestFlips, *, judge: str, began: datetime, seconds: float) -> str:
    """Format the verdict as a JUnit document.

    A failed check is a failure, an inconclusive one an error (or a failure with ``certify``). A decision that no check
    shows, such as that of a gate without data, becomes an error of its own.
    """
    results = evidence.findings(verdict)
    cases = [_case_element(result, verdict, flips) for result in results]
    faults = Counter(child.tag for case in cases for child in case)
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "package": "distract",
            "id": "0",
            "name": "distract gate",
            "timestamp": began.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",  # the value for a machine that keeps its name private
            "tests": str(len(cases)),
            **{name: str(faults[tag]) for tag, name in _FAULTS.items()},
            "time": f"{seconds:.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    threshold = {} if verdict.threshold is None else {"threshold": f"{verdict.threshold:g}"}
    margin = {"margin": f"{verdict.margin:g}"} if verdict.margin else {}
    values = {"judge": judge, "decision": verdict.decision, **threshold, **margin}
    values |= {"confidence": f"{verdict.confidence:g}"}
    for name, value in {**values, "certify": str(verdict.certify).lower()}.items():
        ET.SubElement(properties, "property", {"name": name, "value": _escape(value)})
    suite.extend(cases)
    lines = [verdict.reason, *([evidence.describe_effort(verdict.effort)] if verdict.effort else []), *verdict.notes]
    ET.SubElement(suite, "system-out").text = _join_lines(lines)
    ET.SubElement(suite, "system-err").text = ""
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"


def _case_element(finding: CheckFinding, verdict: Verdict, flips: ClearestFlips) -> ET.Element:
    check = finding.check
    case = ET.Element(
        "testcase",
        {
            "name": (_escape(evidence.attack_label(check)) or "-") if check else evidence.WHOLE,
            "classname": f"distract.{_escape(evidence.protocol_label(check))}" if check else "distract",
            # Checks share their calls, so only the suite has a time.
            "time": "0.000",
        },
    )
    if finding.state == "pass":
        return case
    if finding.state == "skipped":
        ET.SubElement(case, "skipped", {"message": _escape(finding.reason)})
        return case
    failed = check is not None and (finding.state == "fail" or verdict.certify)
    kind = check.measure if check and finding.state == "fail" else "inconclusive"
    attributes = {"type": kind, "message": _escape(finding.reason)}
    fault = ET.SubElement(case, "failure" if failed else "error", attributes)
    fault.text = _join_lines(evidence.detail_lines(finding, verdict.confidence, flips, texts=True))
    return case


def _escape(text: str) -> str:
    """Put a text on one line and escape what XML forbids."""
    return _FORBIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), line(text))


def _join_lines(texts: list[str]) -> str:
    return "\n".join(_escape(text) for text in texts)
