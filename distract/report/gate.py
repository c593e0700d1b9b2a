"""What a person sees of a gate: its checks, what it decides and what it took.

It decides nothing and knows no protocol or attack by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from distract.estimating import Estimate
from distract.gate.exact import least_n, threshold
from distract.gate.limits import Limits
from distract.gate.records import Check, Measure, Verdict
from distract.printable import line
from distract.report.evidence import asked, limit, spent
from distract.report.progress import plan_lines
from distract.report.tables import grid
from distract.report.text import count, interval, p_value, percent
from distract.session import Prepared

COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}

_TITLES: Mapping[Measure, str] = {
    "flip_rate": "flip rate",
    "excess_flip_rate": "flip rate above noise",
    "flip_rate_rise": "flip rate since baseline",
}
_REFERENCES: Mapping[Measure, str] = {"excess_flip_rate": "noise", "flip_rate_rise": "before"}


def gate_report(verdict: Verdict) -> Iterable[RenderableType]:
    """The checks of a gate, its decision, and what it took where it was live."""
    if checks := verdict.checks:
        measure = checks[0].measure
        own = len({check.threshold for check in checks}) > 1
        reference = [_REFERENCES[measure]] if measure in _REFERENCES else []
        limits = ["limit"] if own else []
        table = grid(_TITLES[measure], "%", "k/n", *reference, "bounds", *limits, "p (Holm)", "decision")
        for check in checks:
            table.add_row(
                Text(f"{asked(check)}, {line(check.attack)}"),
                percent(check.value),
                f"{check.k}/{check.n}",
                *([percent(check.reference)] if reference else []),
                interval(check.lower, check.upper),
                *([limit(check.threshold)] if own else []),
                p_value(check.p_adjusted),
                _decision(check),
            )
        yield table
    decision = Text(verdict.decision.upper(), style=f"bold {COLOURS[verdict.decision]}")
    bound = f" ({_bound(verdict)})" if verdict.checks else ""
    yield decision + Text(f": {line(verdict.reason)}{bound}", style="default")
    unknown = [check for check in verdict.checks if check.decision == "inconclusive" and not check.skipped]
    if len(unknown) > 1 or (unknown and verdict.decision == "fail"):
        yield Text("still unknown:")
        yield from (Text(f"  {asked(one)}, {line(one.attack)}: {line(one.reason)}") for one in unknown)
    if verdict.effort:
        yield Text(spent(verdict.effort))
    yield from (Text(line(note), style="dim") for note in verdict.notes)


def gate_plan(prepared: Prepared, estimate: Estimate, stored: int) -> Iterator[str]:
    """What is about to be done, what it takes at most, and when it stops."""
    yield from plan_lines(prepared, estimate, stored)
    own = prepared.parameters["gate"]
    limits = Limits(**own["limits"])
    checks = count(len(own["checks"]), "check")
    if own["measure"] == "flip_rate_rise":
        yield f"gate: {checks} against the baseline; stops as soon as all are decided or one has failed"
        return
    lowest = min(threshold(limits, *place) for place in own["checks"])
    beyond = " above the judge's own noise" if own["measure"] == "excess_flip_rate" else ""
    widest = max((int(pairs) for pairs in own["prompts"]), default=1)
    if widest > 1:
        least = f"; prompts count as one each, those with fewer than {widest} pairs for less"
    else:
        # Against noise a pair without a flip tells a little less.
        least = f"; none can pass before {'about ' if beyond else ''}{least_n(lowest, limits.confidence)} verdicts"
    yield (
        f"gate: {checks} of flip rates{beyond}, the strictest at {limit(lowest)}%; stops as soon as all are decided or "
        f"one has failed{least}"
    )
    if own["budget"] is not None:
        yield f"budget: at most {count(own['budget'], 'call')}, those answered from the store included"


def _decision(check: Check) -> Text:
    return Text("open", style="dim") if check.skipped else Text(check.decision, style=COLOURS[check.decision])


def _bound(verdict: Verdict) -> str:
    sure = f"one-sided {percent(verdict.confidence)}% bounds"
    if verdict.checks and verdict.checks[0].measure == "flip_rate_rise":
        return f"exact one-sided McNemar test at {percent(verdict.confidence)}%"
    if verdict.threshold is None:
        return sure
    own = len({check.threshold for check in verdict.checks}) > 1
    return f"threshold {percent(verdict.threshold)}%{' where a check has none of its own' if own else ''}, {sure}"
