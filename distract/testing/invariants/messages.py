"""The messages of failed tests: what a judge did, so that a person understands it in ten seconds.

The first line says what is wrong, the next ones on what, with which numbers, and what differs between the texts. All of
it is a few lines of about a hundred characters, and texts of others cannot move a cursor in it. It decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from distract.core.printable import count, line
from distract.core.records import MinimalFlip
from distract.judging.findings import InvariantFinding
from distract.studies.attack import flips
from distract.studies.attack.minimal import describe_edits, find_edits
from distract.testing.invariants.decision import InvariantEvidence
from distract.testing.invariants.observations import DecisiveRewrite, Observation

WIDTH = 92
"""Characters of a text in a line, beside its label."""

LABEL = 8
"""Characters of a label; one that is longer takes what it needs."""


def format_violation(
    finding: InvariantFinding,
    judge: str,
    course: InvariantEvidence,
    clearest: Observation,
    smallest: MinimalFlip | None,
) -> str:
    """What the judge did wrong."""
    lines = [*_observation_lines(judge, clearest), *_rewrite_lines(finding, clearest.flip, smallest)]
    if finding.threshold is None:
        return _format_message(clearest.wrong, lines)
    rate = f"{finding.k} of {count(finding.n, 'comparison')} ({finding.k / finding.n:.1%})"
    heading = f"{_heading(finding)} is violated in {rate}: {course.reason}"
    return _format_message(heading, [("clearest", clearest.wrong), *lines])


def format_no_verdict(judge: str, seen: Observation) -> str:
    """That a judge said nothing that can be read."""
    return _format_message(seen.wrong, _observation_lines(judge, seen))


def format_inconclusive(finding: InvariantFinding, judge: str, course: InvariantEvidence) -> str:
    """That too little was seen to decide, and why."""
    lines = [("judge", judge)]
    if finding.n:
        lines.append(("found", f"{finding.k} violations in {count(finding.n, 'comparison')}"))
    if course.excluded:
        reasons = sorted(course.excluded.items())
        lines.append(("excluded", "; ".join(f"{reason} ({number})" for reason, number in reasons)))
    if finding.invalid:
        lines.append(("invalid", f"{finding.invalid} without a verdict: {course.invalid[0].wrong}"))
    if course.violations:
        lines.append(("clearest", course.violations[0].wrong))
    return _format_message(
        f"{_heading(finding)} is not decided: {course.reason or 'nothing says anything about it'}", lines
    )


def mark_spaces(text: str) -> str:
    """A text in which white space is seen: a sign for the end of each line, and for each of several spaces."""
    return re.sub(" {2,}", lambda spaces: "␣" * len(spaces[0]), text.replace("\n", "⏎"))


def changed_words(flip: DecisiveRewrite) -> tuple[str, ...]:
    """The words in which a rewrite differs from its original; none where it has other turns."""
    if len(flip.original.turns) != len(flip.rewrite.turns):
        return ()
    return describe_edits(find_edits(flip.original.turns, flip.rewrite.turns))


def difference(original: str, rewrite: str) -> tuple[tuple[str, str], ...]:
    """What a text was and what it became, from shortly before the first place where they differ."""
    was, became = flips.excerpt_difference(original, rewrite, WIDTH)
    return ("was", was), ("became", became)


def _rewrite_lines(
    finding: InvariantFinding, flip: DecisiveRewrite | None, smallest: MinimalFlip | None
) -> Iterator[tuple[str, str]]:
    """The words that made a difference, and the texts: with those only, where they are known to be enough."""
    if smallest is not None:
        calls, words = count(smallest.requests, "judge call"), ", ".join(finding.words)
        yield "enough", f"{len(smallest.edits)} of {count(smallest.of, 'edit')} ({calls}): {words}"
        yield from difference("\n\n".join(smallest.original), "\n\n".join(smallest.turns))
    elif flip is not None:
        yield "changed", ", ".join(changed_words(flip))
        yield from difference(flip.original.text, flip.rewrite.text)


def _heading(finding: InvariantFinding) -> str:
    return f"{finding.invariant} ({', '.join(filter(None, (finding.protocol, finding.attack)))})"


def _observation_lines(judge: str, seen: Observation) -> list[tuple[str, str]]:
    return [("judge", judge), ("prompt", " ".join(seen.case.prompt)), *seen.told]


def _format_message(heading: str, lines: Sequence[tuple[str, str]]) -> str:
    return "\n".join([line(heading), *_format_lines(lines)])


def _format_lines(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    for label, text in lines:
        if text := line(text):
            yield f"  {label:<{LABEL}} {text if len(text) <= WIDTH else f'{text[: WIDTH - 1]}…'}"
