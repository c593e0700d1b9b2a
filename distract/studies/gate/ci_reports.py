"""A gate's verdict for CI: JUnit XML, annotations of GitHub Actions, and its job summary in Markdown.

The JUnit document has a test case for each check, and fits both schemas in use, Ant's and the stricter parts of that of
Jenkins' xUnit plugin. Each annotation is a line of standard output; the runner shows ten of a kind per step and logs
all. Names, reasons and texts are hostile: none may end its command, open a link, mention anyone or break a table.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from distract.core.printable import interval, line, p_value, percent
from distract.report.markdown import escape_markup, format_code, lay_out_table
from distract.studies.gate import view
from distract.studies.gate.verdict import Check, Verdict
from distract.studies.gate.view import CheckFinding, ClearestFlips, State

_FORBIDDEN = re.compile("[\ufffe\uffff]")
"""Characters that are printable but not allowed in XML 1.0."""


def format_junit(verdict: Verdict, flips: ClearestFlips, *, judge: str, began: datetime, seconds: float) -> str:
    """Format the verdict as a JUnit document.

    A failed check is a failure, an inconclusive one an error (or a failure with ``certify``). A decision that no check
    shows, such as that of a gate without data, becomes an error of its own.
    """
    cases = [_case_element(result, verdict, flips) for result in view.findings(verdict)]
    faults = Counter(child.tag for case in cases for child in case)
    attributes = {
        "package": "distract",
        "id": "0",
        "name": "distract gate",
        "timestamp": began.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": "localhost",  # the value for a machine that keeps its name private
        "tests": str(len(cases)),
        "failures": str(faults["failure"]),
        "errors": str(faults["error"]),
        "skipped": str(faults["skipped"]),
        "time": f"{seconds:.3f}",
    }
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    values = {"judge": judge, "decision": verdict.decision}
    threshold = verdict.deciding.threshold if verdict.deciding else verdict.threshold
    values |= {} if threshold is None else {"threshold": f"{threshold:g}"}
    values |= {"margin": f"{verdict.margin:g}"} if verdict.margin else {}
    values |= {"confidence": f"{verdict.confidence:g}", "certify": str(verdict.certify).lower()}
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": _escape(value)})
    suite.extend(cases)
    lines = [verdict.reason, *view.effort_lines(verdict), *verdict.notes]
    ET.SubElement(suite, "system-out").text = "\n".join(map(_escape, lines))
    ET.SubElement(suite, "system-err").text = ""
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"


def _case_element(finding: CheckFinding, verdict: Verdict, flips: ClearestFlips) -> ET.Element:
    check, state, reason = finding.check, finding.state, _escape(finding.reason)
    name = (_escape(view.attack_label(check)) or "-") if check else view.WHOLE
    group = f"distract.{_escape(view.protocol_label(check))}" if check else "distract"
    # Checks share their calls, so only the suite has a time.
    case = ET.Element("testcase", {"name": name, "classname": group, "time": "0.000"})
    if state == "skipped":
        ET.SubElement(case, "skipped", {"message": reason})
    elif state != "pass":
        is_failure = check is not None and (state == "fail" or verdict.certify)
        kind = check.measure if check and state == "fail" else "inconclusive"
        fault = ET.SubElement(case, "failure" if is_failure else "error", {"type": kind, "message": reason})
        fault.text = "\n".join(map(_escape, view.detail_lines(finding, verdict.confidence, flips, texts=True)))
    return case


def _escape(text: str) -> str:
    """Put a text on one line and escape what XML forbids."""
    return _FORBIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), line(text))


_LEVELS: dict[State, str] = {"pass": "notice", "skipped": "notice", "inconclusive": "warning", "fail": "error"}


def annotations(verdict: Verdict, flips: ClearestFlips) -> list[str]:
    """Return workflow commands, one line each: one for every check that did not pass, or one for a pass."""
    levels = _LEVELS | ({"inconclusive": "error"} if verdict.certify else {})
    commands = [
        _format_command(
            levels[result.state],
            f"distract gate: {result.state}: {result.place}",
            view.detail_lines(result, verdict.confidence, flips),
        )
        for result in view.findings(verdict)
        if result.state != "pass"
    ]
    lines = [line(verdict.reason), *view.effort_lines(verdict)]
    title = verdict.outcome.replace("PASS", "pass", 1)
    return commands or [_format_command("notice", line(f"distract gate: {title}"), lines)]


def _format_command(level: str, title: str, lines: list[str]) -> str:
    # A colon or comma would end a property; elsewhere they are plain text.
    title = _escape_command(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escape_command(chr(10).join(lines))}"


def _escape_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(verdict: Verdict, flips: ClearestFlips, *, judge: str) -> str:
    """Return a job summary in Markdown."""
    blocks = [
        f"## distract gate: {escape_markup(verdict.outcome)}",
        f"Judge {format_code(judge)}: {escape_markup(verdict.reason)}",
        *map(escape_markup, view.effort_lines(verdict)),
    ]
    results = [(result, result.check) for result in view.findings(verdict) if result.check]
    tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for result, check in sorted(results, key=lambda pair: view.is_worth(pair[1])):
        columns, cells = zip(*_cells(check), strict=True)
        state = f"**{result.state.upper()}**" if result.state == "fail" else result.state
        place = format_code(view.protocol_label(check)), format_code(view.attack_label(check))
        tables.setdefault(("protocol", "attack", *columns, "decision"), []).append((*place, *cells, state))
    for head, rows in tables.items():
        blocks.append(lay_out_table(head, rows, (":--", ":--", *["--:"] * (len(head) - 3), ":--")))
    if verdict.checks:
        blocks.append(f"Bounds are one-sided, {percent(verdict.confidence)}% each.")
    if undecided := [result for result, _ in results if result.state == "inconclusive"]:
        blocks.append(
            _list_points(
                f"{escape_markup(result.place)}: {escape_markup(view.explain_open(result))}" for result in undecided
            )
        )
    for result, check in results:
        if result.state == "fail":
            blocks += _details(result, check, verdict.confidence, flips)
    if verdict.notes:
        blocks.append(_list_points(map(escape_markup, verdict.notes)))
    return "\n\n".join(blocks) + "\n"


def _cells(check: Check) -> Iterator[tuple[str, str]]:
    """Yield the columns of a check and their cells."""
    if view.is_worth(check):
        yield "value", view.format_amount(check)
        yield "bounds", view.format_bounds(check) or "–"
        yield "n", str(check.n)
        yield "limit", f"{check.threshold:g}"
    else:
        yield f"{check.row.hit}s", f"{check.k}/{check.n}"
        yield "rate, %", percent(check.value)
        yield "bounds, %", interval(check.lower, check.upper) or "–"
        yield "p (Holm)", p_value(check.p_adjusted) or "–"
        yield "threshold, %", view.format_threshold(check.threshold)


def _list_points(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _details(finding: CheckFinding, check: Check, confidence: float, flips: ClearestFlips) -> Iterator[str]:
    yield f"<details>\n<summary>{escape_markup(finding.place)}: {escape_markup(finding.reason)}</summary>"
    yield _list_points(map(escape_markup, view.figure_lines(check, confidence)))
    for flip in view.select_flips(check, flips):
        yield format_code(view.describe_flip(flip))
        if texts := view.excerpts(flip):
            yield _list_points(f"{name}: {format_code(text)}" for name, text in texts)
    yield "</details>"
