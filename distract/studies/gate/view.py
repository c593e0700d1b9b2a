"""A gate on the terminal: its checks, its decision and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, interval, line, p_value, percent
from distract.report.blocks import Block, Heading, Note, Prose, Sentence, Span, Table, TableRow, Tone, Words, notes
from distract.report.glossary import empty_reason
from distract.studies.gate.evidence import (
    attack_label,
    describe_effort,
    format_bounds,
    format_threshold,
    is_worth,
    protocol_label,
)
from distract.studies.gate.exact import threshold
from distract.studies.gate.limits import Limits, least_n
from distract.studies.gate.power_plan import cures, too_few_reason
from distract.studies.gate.verdict import Check, Measure, Verdict, name_measure

TONES: Mapping[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "doubtful"}

_TITLES: Mapping[Measure, str] = {
    "excess_flip_rate": "flip rate above noise",
    "flip_rate_rise": "flip rate since baseline",
}
_REFERENCES: Mapping[Measure, str] = {"excess_flip_rate": "noise", "flip_rate_rise": "before"}


def gate_report(verdict: Verdict) -> Iterable[Block]:
    """Show the decision of a gate and its reason, its checks and its cost."""
    yield Sentence(_describe_decision(verdict), apart=False)
    unknown = [check for check in verdict.checks if check.decision == "inconclusive" and not check.skipped]
    if len(unknown) > 1 or (unknown and verdict.decision == "fail"):
        yield Sentence("still unknown:", apart=False)
        reasons: dict[tuple[str, str], list[str]] = {}
        for check in unknown:
            reasons.setdefault((protocol_label(check), line(check.reason)), []).append(attack_label(check))
        yield from (
            Sentence(f"  {protocol}, {', '.join(attacks)}: {why}", apart=False)
            for (protocol, why), attacks in reasons.items()
        )
    for measure in dict.fromkeys(check.measure for check in verdict.checks):
        checks = [check for check in verdict.checks if check.measure == measure]
        yield _worth_table(measure, checks) if is_worth(checks[0]) else _table(measure, checks)
    shares = sorted(check.eligible_share for check in verdict.checks if check.eligible_share is not None)
    if shares and shares[0] < 1:
        to = f" to {percent(shares[-1])}%" if percent(shares[0]) != percent(shares[-1]) else ""
        yield Note(f"eligible: {percent(shares[0])}%{to} of the comparisons judged before any rewrite", apart=False)
    if verdict.effort:
        yield Sentence(describe_effort(verdict.effort), apart=False)
    yield from notes(map(line, verdict.notes), apart=False)


def _describe_decision(verdict: Verdict) -> Words:
    bound = f" ({_describe_bound(verdict)})" if verdict.checks else ""
    decision = Span(verdict.decision.upper(), TONES[verdict.decision])
    return Words((decision, Span(f": {line(verdict.reason)}{bound}")))


def _table(measure: Measure, checks: Sequence[Check]) -> Table:
    own = len({check.threshold for check in checks}) > 1
    reference = [_REFERENCES[measure]] if measure in _REFERENCES else []
    limits = ["limit"] if own else []
    by = ", mean over prompts" if any(check.prompts for check in checks) else ""
    rows: list[TableRow] = []
    for check in checks:
        cells: list[Prose] = [
            percent(check.value),
            f"{check.k}/{check.n}",
            *([percent(check.reference)] if reference else []),
            interval(check.lower, check.upper),
            *([format_threshold(check.threshold)] if own else []),
            p_value(check.p_adjusted),
            Span("open", "dim") if check.skipped else Span(check.decision, TONES[check.decision]),
        ]
        empty = f"{'open' if check.skipped else check.decision}: {empty_reason(check)}"
        rows.append(("", f"{protocol_label(check)}, {line(check.attack)}", cells if check.n else empty))
    columns = ("%", "k/n", *reference, "bounds", *limits, "p (Holm)", "decision")
    return Table("", (_TITLES.get(measure, name_measure(measure)) + by, *columns), rows)


def _worth_table(measure: Measure, checks: Sequence[Check]) -> Table:
    rows: list[TableRow] = []
    for check in checks:
        decision = Span(check.decision, TONES[check.decision])
        value = "" if check.value is None else f"{check.value:z.2f}"
        cells: list[Prose] = [value, format_bounds(check), str(check.n), f"{check.threshold:g}", decision]
        label = f"{protocol_label(check)}, {line(check.attack)}"
        rows.append(("", label, cells if value else f"{check.decision}: {line(check.reason)}"))
    return Table("", (_TITLES.get(measure, name_measure(measure)), "value", "bounds", "n", "limit", "decision"), rows)


def comparison_report(baseline_name: str, run_name: str, verdict: Verdict) -> Iterable[Block]:
    """Show whether the flip rates of two runs on the same pairs rose, and the rates."""
    yield Heading(f"before: {line(baseline_name)} · now: {line(run_name)}")
    yield Sentence(_describe_decision(verdict))
    rows: list[TableRow] = []
    for check in verdict.checks:
        word = Span(f"   {_describe_rise(check)}", TONES[check.decision])
        cells: list[Prose] = [
            percent(check.reference),
            percent(check.value),
            f"{_format_rise(check)}\n{interval(check.lower, check.upper)}",
            f"{check.only_here}/{check.only_there}",
            str(check.n),
            p_value(check.p_adjusted),
        ]
        label = Words((Span(f" {line(check.attack)}\n"), word))
        rows.append((protocol_label(check), label, cells if check.n else empty_reason(check)))
    if rows:
        columns = ("", "before", "now", "rise", "+/−", "n", "p")
        yield Table("Flip rates on the same pairs, in %", columns, rows)
    yield from notes(map(line, verdict.notes))


def _format_rise(check: Check) -> str:
    if check.value is None or check.reference is None:
        return percent(None)
    points = percent(check.value - check.reference)
    return points if check.value <= check.reference else f"+{points}"


def _describe_rise(check: Check) -> str:
    if check.decision == "inconclusive":
        return "too few" if check.needed is not None else "open"
    if check.decision == "fail":
        return "worse"
    return "a little worse" if check.lower is not None and check.lower > 0 else "not worse"


def gate_lines(p: Mapping[str, Any]) -> Iterator[str]:
    """Describe when a live gate with these parameters stops, and what it cannot decide."""
    own = p["gate"]
    limits = Limits(**own["limits"])
    bounded = [(measure, threshold(limits, *place)) for *place, measure in own["checks"] if measure != "flip_rate_rise"]
    rises = len(own["checks"]) - len(bounded)
    yield from _undecidable_notes(p, limits, [rate for _, rate in bounded])
    parts, least = [f"{count(rises, 'check')} against the baseline"] if rises else [], ""
    if bounded:
        lowest = min(rate for _, rate in bounded)
        # With noise, a pair without a flip is slightly weaker evidence.
        beyond, about = (" above the judge's own noise", "about ") if "excess_flip_rate" in dict(bounded) else ("", "")
        parts.insert(
            0, f"{count(len(bounded), 'check')} of flip rates{beyond}, the strictest at {format_threshold(lowest)}%"
        )
        several = any(int(pairs) > 1 for pairs in own["prompts"])
        unit = "prompts, each counted as the mean of its pairs" if several else "verdicts"
        least = f"; none can pass before {about}{least_n(lowest, limits.confidence)} {unit}"
    yield f"gate: {' and '.join(parts)}; stops as soon as all are decided or one has failed{least}"
    if limits.margin:
        yield f"margin: leads up to {limits.margin:g} are ties, in points of the score or averaged probability"
    if own["labelled"]:
        yield "labels: none passes before labelled pairs show that the judge can tell good from bad"
    if own["budget"] is not None:
        yield f"budget: at most {count(own['budget'], 'call')}, including those answered from the store"


def _describe_bound(verdict: Verdict) -> str:
    parts = list[str]()
    if verdict.threshold is not None:
        own = (
            len({check.threshold for check in verdict.checks if check.measure in ("flip_rate", "excess_flip_rate")}) > 1
        )
        none = " where a check has none of its own" if own else ""
        parts.append(f"threshold {percent(verdict.threshold)}%{none}")
    if verdict.margin:
        parts.append(f"leads up to {verdict.margin:g} are ties")
    if rises := {check.threshold for check in verdict.checks if check.measure == "flip_rate_rise"} - {None}:
        parts.append(f"largest rise {format_threshold(max(rise for rise in rises if rise is not None))} points")
    return ", ".join([*parts, f"one-sided {percent(verdict.confidence)}% bounds"])


def _undecidable_notes(p: Mapping[str, Any], limits: Limits, thresholds: Sequence[float]) -> Iterator[str]:
    own = p["gate"]
    n, unit = sum(own["prompts"].values()), "prompts" if max(map(int, own["prompts"]), default=1) > 1 else "cases"
    remedies, checks = cures(p["limit"], p["data"]["cases"], len(own["checks"])), len(thresholds)
    if thresholds and (why := too_few_reason(n, unit, min(thresholds), checks, limits.confidence, remedies, live=True)):
        yield f"warning: {why}"
    if own["baseline"] and n < (least := least_n(limits.max_rise, limits.confidence)):
        yield (
            f"warning: {n:,} {unit} cannot show that a rise is below {100 * limits.max_rise:g} points: at "
            f"least {least} are needed; use a baseline on more cases, or a larger --max-rise"
        )
