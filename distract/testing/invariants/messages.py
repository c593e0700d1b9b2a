"""The messages of failed tests: what a judge did, so that a person understands it in ten seconds.

The first line says what is wrong, the next ones on what, with which numbers, and what differs between the texts. All of
it is a few lines of about a hundred characters, and texts of others cannot move a cursor in it. It decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from distract.core.printable import count, line
from distract.core.records import Smallest
from distract.judging.findings import Finding
from distract.studies.attack import flips
from distract.studies.attack.minimal import edits, said
from distract.testing.invariants.decision import Course
from distract.testing.invariants.observations import Flipped, Seen

WIDTH = 92
"""Characters of a text in a line, beside its label."""

LABEL = 8
"""Characters of a label; one that is longer takes what it needs."""


def violation(finding: Finding, judge: str, course: Course, clearest: Seen, smallest: Smallest | None) -> str:
    """What the judge did wrong.

    Args:
        finding: what it comes to.
        judge: its name.
        course: what was seen.
        clearest: the counterexample to show.
        smallest: the smallest change that does it, where it was looked for and found.
    """
    lines = [*_about(judge, clearest), *_rewritten(finding, clearest.flip, smallest)]
    if finding.threshold is None:
        return _message(clearest.wrong, lines)
    rate = f"{finding.k} of {count(finding.n, 'comparison')} ({finding.k / finding.n:.1%})"
    heading = f"{_named(finding)} is violated in {rate}: {course.reason}"
    return _message(heading, [("clearest", clearest.wrong), *lines])


def no_verdict(judge: str, seen: Seen) -> str:
    """That a judge said nothing that can be read."""
    return _message(seen.wrong, _about(judge, seen))


def inconclusive(finding: Finding, judge: str, course: Course) -> str:
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
    return _message(f"{_named(finding)} is not decided: {course.reason or 'nothing says anything about it'}", lines)


def shown(text: str) -> str:
    """A text in which white space is seen: a sign for the end of each line, and for each of several spaces."""
    return re.sub(" {2,}", lambda spaces: "␣" * len(spaces[0]), text.replace("\n", "⏎"))


def between(flip: Flipped) -> tuple[str, ...]:
    """The words in which a rewrite differs from its original; none where it has other turns."""
    if len(flip.original.turns) != len(flip.rewrite.turns):
        return ()
    return said(edits(flip.original.turns, flip.rewrite.turns))


def difference(original: str, rewrite: str) -> tuple[tuple[str, str], ...]:
    """What a text was and what it became, from shortly before the first place where they differ."""
    was, became = flips.difference(original, rewrite, WIDTH)
    return ("was", was), ("became", became)


def _rewritten(finding: Finding, flip: Flipped | None, smallest: Smallest | None) -> Iterator[tuple[str, str]]:
    """The words that made a difference, and the texts: with those only, where they are known to be enough."""
    if smallest is not None:
        calls, words = count(smallest.requests, "judge call"), ", ".join(finding.words)
        yield "enough", f"{len(smallest.edits)} of {count(smallest.of, 'edit')} ({calls}): {words}"
        yield from difference("\n\n".join(smallest.original), "\n\n".join(smallest.turns))
    elif flip is not None:
        yield "changed", ", ".join(between(flip))
        yield from difference(flip.original.text, flip.rewrite.text)


def _named(finding: Finding) -> str:
    return f"{finding.invariant} ({', '.join(filter(None, (finding.protocol, finding.attack)))})"


def _about(judge: str, seen: Seen) -> list[tuple[str, str]]:
    return [("judge", judge), ("prompt", " ".join(seen.case.prompt)), *seen.told]


def _message(heading: str, lines: Sequence[tuple[str, str]]) -> str:
    return "\n".join([line(heading), *_lines(lines)])


def _lines(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    for label, text in lines:
        if text := line(text):
            yield f"  {label:<{LABEL}} {text if len(text) <= WIDTH else f'{text[: WIDTH - 1]}…'}"
