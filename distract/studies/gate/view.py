"""A gate on the terminal: its checks, its decision and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, interval, line, p_value, percent
from distract.report.blocks import Block, Heading, Note, Prose, Sentence, Span, Table, TableRow, Tone, Words, notes
from distract.report.glossary import empty_reason
from distract.report.phrases import join_names
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
from distract.studies.gate.measures import EXCESSES, RATES, RISES, Measure, base_rate, find_kind, name_measure
from distract.studies.gate.power_plan import cures, too_few_reason
from distract.studies.gate.verdict import Check, Verdict

TONES: Mapping[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "doubtful"}


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


def _title(measure: Measure) -> str:
    noun = name_measure(base_rate(measure))
    return f"{noun} above noise" if measure in EXCESSES else f"{noun} since baseline" if measure in RISES else noun


def _table(measure: Measure, checks: Sequence[Check]) -> Table:
    own = len({check.threshold for check in checks}) > 1
    reference = ["noise"] if measure in EXCESSES else ["before"] if measure in RISES else []
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
    return Table("", (_title(measure) + by, *columns), rows)


def _worth_table(measure: Measure, checks: Sequence[Check]) -> Table:
    rows: list[TableRow] = []
    for check in checks:
        decision = Span(check.decision, TONES[check.decision])
        value = "" if check.value is None else f"{check.value:z.2f}"
        cells: list[Prose] = [value, format_bounds(check), str(check.n), f"{check.threshold:g}", decision]
        label = f"{protocol_label(check)}, {line(check.attack)}"
        rows.append(("", label, cells if value else f"{check.decision}: {line(check.reason)}"))
    return Table("", (name_measure(measure), "value", "bounds", "n", "limit", "decision"), rows)


def comparison_report(baseline_name: str, run_name: str, verdict: Verdict) -> Iterable[Block]:
    """Show whether the rates of two runs on the same pairs rose, and the rates."""
    yield Heading(f"before: {line(baseline_name)} · now: {line(run_name)}")
    yield Sentence(_describe_decision(verdict))
    tables: dict[str, list[TableRow]] = {}
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
        title = f"{name_measure(base_rate(check.measure)).capitalize()}s on the same pairs, in %"
        row = (protocol_label(check), label, cells if check.n else empty_reason(check))
        tables.setdefault(title, []).append(row)
    for title, rows in tables.items():
        yield Table(title, ("", "before", "now", "rise", "+/−", "n", "p"), rows)
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
    bounded: list[tuple[float, Measure]] = [
        (threshold(limits, protocol, find_kind(p, attack)), measure)
        for protocol, attack, measure in own["checks"]
        if measure not in RISES
    ]
    rises = len(own["checks"]) - len(bounded)
    yield from _undecidable_notes(p, limits, bounded)
    parts, least = [f"{count(rises, 'check')} against the baseline"] if rises else [], ""
    if bounded:
        lowest, _ = min(bounded)
        # With noise, a pair without a hit is slightly weaker evidence.
        has_noise = any(measure in EXCESSES for _, measure in bounded)
        beyond, about = (" above the judge's own noise", "about ") if has_noise else ("", "")
        rates = join_names(dict.fromkeys(f"{name_measure(base_rate(measure))}s" for _, measure in bounded))
        parts.insert(
            0, f"{count(len(bounded), 'check')} of {rates}{beyond}, the strictest at {format_threshold(lowest)}%"
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
    limits: dict[str, set[float | None]] = {}
    for check in verdict.checks:
        if check.measure in RATES or check.measure in EXCESSES:
            limits.setdefault(f"{name_measure(base_rate(check.measure))}s", set()).add(check.threshold)
    if verdict.threshold is not None:
        none = " where a check has none of its own" if any(len(own) > 1 for own in limits.values()) else ""
        parts.append(f"threshold {percent(verdict.threshold)}%{none}")
    elif len(limits) > 1:  # a table shows those that differ within it
        parts += [f"{name} up to {format_threshold(*own)}%" for name, own in limits.items() if len(own) == 1]
    if verdict.margin:
        parts.append(f"leads up to {verdict.margin:g} are ties")
    if rises := {check.threshold for check in verdict.checks if check.measure in RISES} - {None}:
        parts.append(f"largest rise {format_threshold(max(rise for rise in rises if rise is not None))} points")
    return ", ".join([*parts, f"one-sided {percent(verdict.confidence)}% bounds"])


def _undecidable_notes(p: Mapping[str, Any], limits: Limits, bounded: Sequence[tuple[float, Measure]]) -> Iterator[str]:
    own = p["gate"]
    n, unit = sum(own["prompts"].values()), "prompts" if max(map(int, own["prompts"]), default=1) > 1 else "cases"
    remedies, checks = cures(p["limit"], p["data"]["cases"], len(own["checks"])), len(bounded)
    for lowest, measure in sorted(bounded)[:1]:
        rate = base_rate(measure)
        if why := too_few_reason(n, unit, lowest, checks, limits.confidence, remedies, rate, live=True):
            yield f"warning: {why}"
    if own["baseline"] and n < (least := least_n(limits.max_rise, limits.confidence)):
        yield (
            f"warning: {n:,} {unit} cannot show that a rise is below {100 * limits.max_rise:g} points: at "
            f"least {least} are needed; use a baseline on more cases, or a larger --max-rise"
        )
