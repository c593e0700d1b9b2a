"""Failures of invariants: assertion errors, which every test runner reports as failures, and their messages.

A message is meant to be understood in ten seconds. The first line states the problem; the next ones give the case, the
numbers and the difference between the texts. Each line is at most about a hundred characters, and text from a case
cannot move the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from distract.core.printable import count, line
from distract.judging.findings import InvariantFinding
from distract.studies.attack import flips
from distract.studies.explain.edits import MinimalFlip, describe_edits, find_edits
from distract.testing.invariants.decision import InvariantEvidence
from distract.testing.invariants.observations import DecisiveRewrite, Details, Observation


class InvariantFailure(AssertionError):
    """An invariant was not shown to hold."""

    # Test runners print the module before the name; users import it from there.
    __module__ = "distract.testing.invariants"


class Violation(InvariantFailure):
    """There is a counterexample, or the rate of violations exceeds the accepted one."""

    __module__ = "distract.testing.invariants"


class NoVerdict(InvariantFailure):
    """The judge gave no valid verdict."""

    __module__ = "distract.testing.invariants"


class Inconclusive(InvariantFailure):
    """There was too little evidence to decide, or none."""

    __module__ = "distract.testing.invariants"


WIDTH = 92  # characters of text on a line, after its label
LABEL = 8  # width of the label column


def format_violation(
    finding: InvariantFinding,
    judge: str,
    evidence: InvariantEvidence,
    clearest: Observation,
    smallest: MinimalFlip | None,
) -> str:
    """Report a violation with the clearest counterexample."""
    lines = [*_observation_lines(judge, clearest), *_rewrite_lines(finding, clearest.flip, smallest)]
    if finding.threshold is None:
        return _format_message(clearest.problem, lines)
    rate = f"{finding.k} of {count(finding.n, 'comparison')} ({finding.k / finding.n:.1%})"
    heading = f"{_heading(finding)} is violated in {rate}: {evidence.reason}"
    return _format_message(heading, [("clearest", clearest.problem), *lines])


def format_no_verdict(judge: str, observation: Observation) -> str:
    """Report an invalid verdict."""
    return _format_message(observation.problem, _observation_lines(judge, observation))


def format_inconclusive(finding: InvariantFinding, judge: str, evidence: InvariantEvidence) -> str:
    """Report what was found, and why it does not decide."""
    lines = [("judge", judge)]
    if finding.n:
        lines.append(("found", f"{finding.k} violations in {count(finding.n, 'comparison')}"))
    if evidence.excluded:
        reasons = sorted(evidence.excluded.items())
        lines.append(("excluded", "; ".join(f"{reason} ({number})" for reason, number in reasons)))
    if finding.invalid:
        lines.append(("invalid", f"{finding.invalid} without a verdict: {evidence.invalid[0].problem}"))
    if evidence.violations:
        lines.append(("clearest", evidence.violations[0].problem))
    return _format_message(f"{_heading(finding)} is undecided: {evidence.reason or 'no case tests it'}", lines)


def mark_spaces(text: str) -> str:
    """Make white space visible: a sign for each end of line, and for each of several spaces."""
    return re.sub(" {2,}", lambda spaces: "␣" * len(spaces[0]), text.replace("\n", "⏎"))


def changed_words(flip: DecisiveRewrite) -> tuple[str, ...]:
    """The words that a rewrite changed; none if the numbers of turns differ."""
    if len(flip.original.turns) != len(flip.rewrite.turns):
        return ()
    return describe_edits(find_edits(flip.original.turns, flip.rewrite.turns))


def difference(original: str, rewrite: str) -> Details:
    """Both texts, from shortly before their first difference."""
    was, became = flips.excerpt_difference(original, rewrite, WIDTH)
    return ("was", was), ("became", became)


def _rewrite_lines(
    finding: InvariantFinding, flip: DecisiveRewrite | None, smallest: MinimalFlip | None
) -> Iterator[tuple[str, str]]:
    """The words that flipped the verdict, and the texts; only with the smallest change, if it is known."""
    if smallest is not None:
        calls, words = count(smallest.requests, "judge call"), ", ".join(finding.words)
        yield "enough", f"{len(smallest.edits)} of {count(smallest.of, 'edit')} ({calls}): {words}"
        yield from difference("\n\n".join(smallest.original), "\n\n".join(smallest.turns))
    elif flip is not None:
        yield "changed", ", ".join(changed_words(flip))
        yield from difference(flip.original.text, flip.rewrite.text)


def _heading(finding: InvariantFinding) -> str:
    return f"{finding.invariant} ({', '.join(filter(None, (finding.protocol, finding.attack)))})"


def _observation_lines(judge: str, observation: Observation) -> list[tuple[str, str]]:
    return [("judge", judge), ("prompt", " ".join(observation.case.prompt)), *observation.details]


def _format_message(heading: str, lines: Sequence[tuple[str, str]]) -> str:
    printable = ((label, line(text)) for label, text in lines)
    cut = ((label, text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…") for label, text in printable if text)
    return "\n".join([line(heading), *(f"  {label:<{LABEL}} {text}" for label, text in cut)])
