"""Word the evidence of a gate's verdict: its checks, their figures, their clearest flips.

Every text is one line that is safe to print; each output format does its own escaping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from distract.core.printable import count, interval, line, p_value, percent
from distract.studies.attack.flips import Flip, excerpt_difference
from distract.studies.gate.limits import STYLE
from distract.studies.gate.measures import EXCESSES, RISES, base_rate, describe_hits, name_hit, name_measure
from distract.studies.gate.verdict import Check, Decision, Effort, Verdict

State = Literal["pass", "fail", "inconclusive", "skipped"]
ClearestFlips = Mapping[tuple[str, str], Sequence[Flip]]
"""The clearest flips by (protocol, attack)."""

WHOLE = "gate"
"""Place of a finding that no single check explains."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check, or (without a check) of the gate as a whole."""

    state: State
    reason: str
    check: Check | None = None

    @property
    def place(self) -> str:
        """Protocol and attack."""
        return f"{protocol_label(self.check)} under {attack_label(self.check)}" if self.check else WHOLE


def findings(verdict: Verdict) -> list[CheckFinding]:
    """Return a finding for each check, and one for the whole gate if no check ended as the gate did.

    So an empty or undecided gate never looks green: a document without a fault reads as a pass.
    """
    results = [CheckFinding("skipped" if c.skipped else c.decision, line(c.reason), c) for c in verdict.checks]
    if verdict.decision not in {result.state for result in results}:
        state: Decision = "inconclusive" if verdict.decision == "pass" else verdict.decision
        results.append(CheckFinding(state, line(verdict.reason) or "no check was made"))
    return results


def protocol_label(check: Check) -> str:
    """Name a check's protocol, with its rule."""
    return line(check.protocol) + (f" by {line(check.rule)}" if check.rule else "")


def attack_label(check: Check) -> str:
    """Name a check's attack."""
    if check.measure in STYLE:
        return f"{line(check.attack)} ({name_measure(check.measure)})"
    return line(check.attack) + " since the baseline" * (check.measure in RISES)


def format_threshold(threshold: float | None) -> str:
    """Format a threshold in percent with all its digits."""
    return "–" if threshold is None else f"{100 * threshold:g}"


def is_worth(check: Check) -> bool:
    """Whether a check is about what a style is worth, in its own unit, and no rate of hits."""
    return check.unit != "share"


def format_amount(check: Check) -> str:
    """Format the value of a check that has a unit of its own."""
    return "–" if check.value is None else f"{check.value:z.2f} {line(check.unit)}"


def format_bounds(check: Check) -> str:
    """Format the bounds of a check with a unit of its own; empty if there is no figure."""
    if check.value is None:
        return ""
    ends = (
        "–∞" if check.lower is None else f"{check.lower:z.2f}",
        "∞" if check.upper is None else f"{check.upper:z.2f}",
    )
    return " to ".join(ends)


def figure_lines(check: Check, confidence: float) -> Iterator[str]:
    """Describe the figures of a check, one line each."""
    if not is_worth(check):
        yield from _rate_lines(check, confidence)
        return
    noun = name_measure(check.measure)
    yield f"{noun}: {format_amount(check)}; of {check.n}, {check.invalid} invalid"
    if bounds := format_bounds(check):
        yield f"bounds: {bounds} (each bound one-sided, {percent(confidence)}%)"
    yield f"largest {noun}: {check.threshold:g}"


def _rate_lines(check: Check, confidence: float) -> Iterator[str]:
    basis = "" if check.prompts is None else f", mean over {count(check.prompts, 'prompt')}"
    rate = f" ({percent(check.value)}%{basis})" if check.value is not None else ""
    share = "" if check.eligible_share is None else f"; {percent(check.eligible_share)}% of the comparisons eligible"
    is_rise = check.measure in RISES
    noun = name_measure(base_rate(check.measure))
    counts = f"{check.k} of {check.n} {describe_hits(check.measure)}{rate}"
    yield f"{counts}; {check.invalid} invalid, {check.excluded} excluded{share}"
    if check.reference is not None:
        only = (
            f"; {name_hit(check.measure)}s only in this run {check.only_here}, only in the reference {check.only_there}"
        )
        yield f"{noun} {'of the baseline' if is_rise else 'under the control'}: {percent(check.reference)}%" + (
            only if check.only_here is not None and check.only_there is not None else ""
        )
    if bounds := interval(check.lower, check.upper):
        if check.measure in EXCESSES or is_rise:
            noun = "rise since the baseline" if is_rise else "excess over the control"
        yield f"{noun}: {bounds}% (each bound one-sided, {percent(confidence)}%)"
    if check.threshold is not None:
        yield (
            f"largest rise: {format_threshold(check.threshold)} points"
            if is_rise
            else f"threshold: {format_threshold(check.threshold)}%"
        )
    if check.p_value is not None:
        adjusted = f", {p_value(check.p_adjusted)} after Holm's adjustment" if check.p_adjusted is not None else ""
        yield f"p: {p_value(check.p_value)}{adjusted}"
    if check.needed is not None:
        yield _describe_needed(check.needed)


def explain_open(finding: CheckFinding) -> str:
    """Explain why a check is open and, if known, what would settle it."""
    more = finding.check.needed if finding.check else None
    return finding.reason if more is None else f"{finding.reason}; {_describe_needed(more)}"


def _describe_needed(comparisons: int) -> str:
    return f"about {count(comparisons, 'comparison')} would settle it"


def select_flips(check: Check | None, flips: ClearestFlips) -> Sequence[Flip]:
    """Return the clearest flips of a check, if known."""
    return flips.get((check.protocol, check.attack), ()) if check and not is_worth(check) else ()


def describe_flip(flip: Flip) -> str:
    """Describe one flip: the two responses, and both verdicts."""
    (a, b), (c, d) = flip.before, flip.after
    return f"case {line(flip.case)}: {line(flip.rewritten)}, rewritten, against {line(flip.other)}: " + (
        f"{a:.2f} : {b:.2f} before -> {c:.2f} : {d:.2f} after"
    )


def excerpts(flip: Flip) -> tuple[tuple[str, str], ...]:
    """Return named excerpts of original and rewrite where they first differ, if they are on record."""
    if not flip.original and not flip.rewrite:
        return ()
    original, rewrite = excerpt_difference(flip.original, flip.rewrite)
    return (("original", original), ("rewrite", rewrite))


def detail_lines(finding: CheckFinding, confidence: float, flips: ClearestFlips, *, texts: bool = False) -> list[str]:
    """Return the reason for a finding, its figures and, for a failure, its clearest flips."""
    lines = [finding.reason]
    if finding.check and finding.state != "skipped":
        lines += figure_lines(finding.check, confidence)
    for flip in select_flips(finding.check, flips) if finding.state == "fail" else ():
        lines += [describe_flip(flip), *(f"{name}: {text}" for name, text in excerpts(flip) if texts)]
    return lines


def describe_effort(effort: Effort) -> str:
    """Describe what a live gate used and saved."""
    return (
        f"{effort.cases:,} of {count(effort.of, 'case')} judged with {count(effort.calls, 'judge call')}, "
        f"about {effort.saved:,} {'not made' if effort.cut else 'saved'} ({line(effort.stopped)})"
    )
