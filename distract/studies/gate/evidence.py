"""What a gate's verdict rests on, in words: what became of each check, its figures, its clearest flips.

Every text is on one line and safe to print; escaping for a format is that format's business. It computes no figure and
knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from distract.core.printable import count, interval, line, p_value, percent
from distract.studies.attack.flips import Flip, excerpt_difference
from distract.studies.gate.verdict import Check, Decision, Effort, Measure, Verdict

State = Literal["pass", "fail", "inconclusive", "skipped"]
ClearestFlips = Mapping[tuple[str, str], Sequence[Flip]]
"""The clearest flips by (protocol, attack)."""

WHOLE = "gate"
"""What is said to have ended so where no check did."""

_COMPARED: Mapping[Measure, str] = {
    "flip_rate": "",
    "excess_flip_rate": "flip rate under the control",
    "flip_rate_rise": "flip rate of the baseline",
}
_BOUNDED: Mapping[Measure, str] = {
    "flip_rate": "flip rate",
    "excess_flip_rate": "excess over the control",
    "flip_rate_rise": "rise since the baseline",
}


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What became of one check, or of the gate as a whole.

    Attributes:
        state: ``skipped`` where another check had decided already.
        reason: on one line.
        check: None for the gate as a whole.
    """

    state: State
    reason: str
    check: Check | None = None

    @property
    def place(self) -> str:
        """Where it was found: protocol and attack."""
        return f"{protocol_label(self.check)} under {attack_label(self.check)}" if self.check else WHOLE


def findings(verdict: Verdict) -> list[CheckFinding]:
    """One for each check, in their order; one more for the whole where no check ended as the whole did.

    So there is always one, and none but passes only where the gate passed: documents without a fault read as green.
    """
    found = [CheckFinding("skipped" if c.skipped else c.decision, line(c.reason), c) for c in verdict.checks]
    if verdict.decision not in {one.state for one in found}:
        state: Decision = "inconclusive" if verdict.decision == "pass" else verdict.decision
        found.append(CheckFinding(state, line(verdict.reason) or "no check was made"))
    return found


def protocol_label(check: Check) -> str:
    """A check's protocol, with the rule that decides it."""
    return line(check.protocol) + (f" by {line(check.rule)}" if check.rule else "")


def attack_label(check: Check) -> str:
    """A check's attack, and since when where it is about a rise."""
    return line(check.attack) + (" since the baseline" if check.measure == "flip_rate_rise" else "")


def format_threshold(threshold: float | None) -> str:
    """A threshold in percent with all of its digits, or a dash."""
    return "–" if threshold is None else f"{100 * threshold:g}"


def figure_lines(check: Check, confidence: float) -> Iterator[str]:
    """The figures of a check, a line for each kind."""
    by = "" if check.prompts is None else f", mean over {count(check.prompts, 'prompt')}"
    rate = f" ({percent(check.value)}%{by})" if check.value is not None else ""
    share = "" if check.eligible_share is None else f"; {percent(check.eligible_share)}% of the comparisons eligible"
    yield f"{check.k} of {check.n} flipped{rate}; {check.invalid} invalid, {check.excluded} excluded{share}"
    if check.reference is not None:
        only = f"; flips only here {check.only_here}, only there {check.only_there}"
        yield f"{_COMPARED[check.measure] or 'reference'}: {percent(check.reference)}%" + (
            only if check.only_here is not None and check.only_there is not None else ""
        )
    if bounds := interval(check.lower, check.upper):
        yield f"{_BOUNDED[check.measure]}: {bounds}% (each bound one-sided, {percent(confidence)}%)"
    if check.threshold is not None:
        rise = check.measure == "flip_rate_rise"
        yield (
            f"largest rise: {format_threshold(check.threshold)} points"
            if rise
            else f"threshold: {format_threshold(check.threshold)}%"
        )
    if check.p_value is not None:
        adjusted = f", {p_value(check.p_adjusted)} after Holm's adjustment" if check.p_adjusted is not None else ""
        yield f"p: {p_value(check.p_value)}{adjusted}"
    if check.needed is not None:
        yield _describe_needed(check.needed)


def explain_open(found: CheckFinding) -> str:
    """Why a check is open, and what would settle it where that can be said."""
    more = found.check.needed if found.check else None
    return found.reason if more is None else f"{found.reason}; {_describe_needed(more)}"


def _describe_needed(comparisons: int) -> str:
    return f"about {count(comparisons, 'comparison')} would settle it"


def select_flips(check: Check | None, flips: ClearestFlips) -> Sequence[Flip]:
    """The clearest flips of a check, where they are known."""
    return flips.get((check.protocol, check.attack), ()) if check else ()


def describe_flip(flip: Flip) -> str:
    """Who gained on whom, and from what to what."""
    (a, b), (c, d) = flip.before, flip.after
    return f"case {line(flip.case)}: {line(flip.rewritten)}, rewritten, against {line(flip.other)}: " + (
        f"{a:.2f} : {b:.2f} before -> {c:.2f} : {d:.2f} after"
    )


def excerpts(flip: Flip) -> tuple[tuple[str, str], ...]:
    """Where the rewrite departs from the original: two named excerpts, or nothing where neither is on record."""
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
    """What a live gate took and saved."""
    return (
        f"{effort.cases:,} of {count(effort.of, 'case')} judged with {count(effort.calls, 'judge call')}, "
        f"about {effort.saved:,} {'not made' if effort.cut else 'saved'} ({line(effort.stopped)})"
    )
