"""A gate's verdict for GitHub Actions: annotations (workflow commands) and a job summary in Markdown.

Each annotation is a line of standard output; the runner shows ten of a kind per step and logs all. Names, reasons and
texts are hostile: none may end its command, open a link, mention anyone or break a table.
"""

# No __future__ import here: it would shadow ``annotations``.

from collections.abc import Iterator

from distract.core.printable import interval, line, p_value, percent
from distract.report.markdown import escape_markup, format_code, lay_out_table
from distract.studies.gate import evidence
from distract.studies.gate.evidence import CheckFinding, ClearestFlips, State
from distract.studies.gate.measures import name_hit
from distract.studies.gate.verdict import Check, Verdict

_LEVELS: dict[State, str] = {"pass": "notice", "skipped": "notice", "inconclusive": "warning", "fail": "error"}
_HEAD = ("rate, %", "bounds, %", "p (Holm)", "threshold, %", "decision")
_WORTH_HEAD = ("protocol", "attack", "value", "bounds", "n", "limit", "decision")


def annotations(verdict: Verdict, flips: ClearestFlips) -> list[str]:
    """Return workflow commands, one line each: one for every check that did not pass, or one for a pass."""
    results = evidence.findings(verdict)
    if all(result.state == "pass" for result in results):
        effort = [evidence.describe_effort(verdict.effort)] if verdict.effort else []
        return [_format_command("notice", "distract gate: pass", [line(verdict.reason), *effort])]
    return [_annotation(result, verdict, flips) for result in results if result.state != "pass"]


def summary(verdict: Verdict, flips: ClearestFlips, *, judge: str) -> str:
    """Return a job summary in Markdown."""
    blocks = [
        f"## distract gate: {verdict.decision.upper()}",
        f"Judge {format_code(judge)}: {escape_markup(verdict.reason)}",
    ]
    if verdict.effort:
        blocks.append(escape_markup(evidence.describe_effort(verdict.effort)))
    results = evidence.findings(verdict)
    if verdict.checks:
        checks = [(result.check, result.state) for result in results if result.check]
        tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        head: tuple[str, ...]
        for check, state in sorted(checks, key=lambda each: evidence.is_worth(each[0])):
            is_worth = evidence.is_worth(check)
            head = _WORTH_HEAD if is_worth else ("protocol", "attack", f"{name_hit(check.measure)}s", *_HEAD)
            tables.setdefault(head, []).append((_worth_row if is_worth else _row)(check, state))
        for head, rows in tables.items():
            blocks.append(lay_out_table(head, rows, (":--", ":--", *["--:"] * (len(head) - 3), ":--")))
        blocks.append(f"Bounds are one-sided, {percent(verdict.confidence)}% each.")
    if undecided := [result for result in results if result.state == "inconclusive" and result.check]:
        blocks.append(
            "\n".join(
                f"- {escape_markup(result.place)}: {escape_markup(evidence.explain_open(result))}"
                for result in undecided
            )
        )
    for result in results:
        if result.state == "fail" and result.check:
            blocks += _details(result, result.check, verdict.confidence, flips)
    if verdict.notes:
        blocks.append("\n".join(f"- {escape_markup(note)}" for note in verdict.notes))
    return "\n\n".join(blocks) + "\n"


def _annotation(finding: CheckFinding, verdict: Verdict, flips: ClearestFlips) -> str:
    level = "error" if finding.state == "inconclusive" and verdict.certify else _LEVELS[finding.state]
    return _format_command(
        level,
        f"distract gate: {finding.state}: {finding.place}",
        evidence.detail_lines(finding, verdict.confidence, flips),
    )


def _format_command(level: str, title: str, lines: list[str]) -> str:
    # A colon or comma would end a property; elsewhere they are plain text.
    title = _escape(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escape(chr(10).join(lines))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _row(check: Check, state: State) -> tuple[str, ...]:
    return (
        format_code(evidence.protocol_label(check)),
        format_code(evidence.attack_label(check)),
        f"{check.k}/{check.n}",
        percent(check.value),
        interval(check.lower, check.upper) or "–",
        p_value(check.p_adjusted) or "–",
        evidence.format_threshold(check.threshold),
        f"**{state.upper()}**" if state == "fail" else state,
    )


def _worth_row(check: Check, state: State) -> tuple[str, ...]:
    return (
        format_code(evidence.protocol_label(check)),
        format_code(evidence.attack_label(check)),
        evidence.format_amount(check),
        evidence.format_bounds(check) or "–",
        str(check.n),
        f"{check.threshold:g}",
        f"**{state.upper()}**" if state == "fail" else state,
    )


def _details(finding: CheckFinding, check: Check, confidence: float, flips: ClearestFlips) -> Iterator[str]:
    yield f"<details>\n<summary>{escape_markup(finding.place)}: {escape_markup(finding.reason)}</summary>"
    yield "\n".join(f"- {escape_markup(text)}" for text in evidence.figure_lines(check, confidence))
    for flip in evidence.select_flips(check, flips):
        yield format_code(evidence.describe_flip(flip))
        if texts := evidence.excerpts(flip):
            yield "\n".join(f"- {name}: {format_code(text)}" for name, text in texts)
    yield "</details>"
