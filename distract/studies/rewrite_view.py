"""Rewrites in a report: how many were rejected and why, and how many data were made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from distract.core.printable import count, format_exclusions, line, shorten
from distract.core.records import Rewrite, slug
from distract.report.blocks import Block, Detail, Heading, Note, Sentence, Table, TableRow, notes
from distract.report.glossary import empty_reason
from distract.report.phrases import rate_cells
from distract.stats.figure import Figure
from distract.studies.rewrite_counts import (
    CompactRewrites,
    average_restyled,
    condition_name,
    count_read,
    count_reasons,
    sum_reasons,
)

EXAMPLES, NEAR = 6, 120
"""Rejected rewrites to show, and the characters around each of their changes."""

REASONS = 3
"""Reasons for rejection to show, the most frequent ones, without ``--verbose``."""


def rewrites_report(
    parameters: Mapping[str, Any], figures: Iterable[Figure], rewrites: Collection[Rewrite]
) -> Iterable[Block]:
    """Show how many rewrites were rejected."""
    yield from rejection_parts(rewrites)
    yield from unread_notes(parameters)
    rows: list[TableRow] = [
        (
            "",
            line(f.attack if f.severity is None else f"severity {f.severity}"),
            rate_cells(f) if f.n else empty_reason(f),
        )
        for f in figures
        if f.measure == "rejection_rate"
    ]
    yield Table("", ("rejected", "%", "95% CI", "k/n"), rows)
    yield from notes(reader_notes(rewrites))


def yield_report(counts: Mapping[str, Any]) -> Iterable[Block]:
    """Show how many prompts gave usable data."""
    yield Heading(f"made {counts['made']} of {count(counts['asked'], 'case')}")
    if counts["mean_attempts"] is not None:
        yield Sentence(f"attempts per prompt: {counts['mean_attempts']:.2f}", apart=False)
    if counts["severities"]:
        listed = ", ".join(f"{n} of severity {severity}" for severity, n in counts["severities"].items())
        yield Sentence(f"worse versions: {listed}", apart=False)
    if counts["reasons"]:
        yield Sentence(format_exclusions("not usable", counts["reasons"]), apart=False)
    if counts["made"] and not counts["severities"] and counts["verifier"] is None:
        yield Note("checked by rules only: whether an answer is correct takes a --verifier", apart=False)
    if counts["left_out"]:
        yield Note(format_exclusions("left out before the draw", counts["left_out"]), apart=False)


def rejection_parts(rewrites: Collection[Rewrite] | CompactRewrites) -> Iterator[Block]:
    """Say how many rewrites were rejected and why; rare reasons are a detail."""
    # Count a rewrite once under each of its reasons, as in the document.
    reasons = sum_reasons(rewrites)
    if not reasons:
        return
    listed = [f"{line(reason)} ({n})" for reason, n in reasons.most_common()]
    rejected = sum(not rewrite.is_accepted for rewrite in rewrites)
    more = f"; {count(len(listed) - REASONS, 'more reason')}" if len(listed) > REASONS else ""
    total = count(len(rewrites), "rewrite")
    yield from notes([f"rejected: {rejected} of {total}: {'; '.join(listed[:REASONS])}{more}"])
    if more:
        yield from map(Detail, notes([f"rejected also: {'; '.join(listed[REASONS:])}"]))


def example_blocks(rewrites: Collection[Rewrite]) -> Iterator[Block]:
    """Show rejected rewrites by attack and reason, with an example of each of the most frequent reasons."""
    rows: list[TableRow] = [
        (line(attack), f" {line(reason)}", [str(n)])
        for attack, counts in count_reasons(rewrites).items()
        for reason, n in counts.items()
    ]
    if not rows:
        return
    rejected = f"{count(len(rewrites), 'rewrite')} were written; those below were rejected, and no judge saw them."
    yield Heading("Rejected rewrites", level=2)
    yield Sentence(rejected, apart=False)
    yield Table("", ("reason", "rewrites"), rows)
    from distract.studies.differences import mark_difference

    examples = {slug(reason): rewrite for rewrite in rewrites for reason in rewrite.reasons}
    for reason, _ in sum_reasons(rewrites).most_common(EXAMPLES):
        one = examples[reason]
        details = "; ".join(line(each) for each in one.reasons)
        label = f"{line(reason)}: case {line(one.case)}, {line(condition_name(one))} ({shorten(details, 200)})"
        yield mark_difference("\n\n".join(one.original), one.response.text, label, near=NEAR)


def unread_notes(parameters: Mapping[str, Any]) -> Iterator[Block]:
    """Warn that no model read what a model wrote."""
    if parameters.get("asking") is not None and not parameters.get("verifier"):
        warning = "a model wrote the rewrites and no model read them: rules alone compared their sentences"
        yield from notes([warning], "doubtful")


def reader_notes(rewrites: Collection[Rewrite] | CompactRewrites) -> Iterator[str]:
    """Say how much is restyled, and what a model read."""
    if share := average_restyled(rewrites):
        yield f"accepted rewrites restyle {share:.0%} of the words on average"
    number, sentences, denied, unread = count_read(rewrites)
    if number:
        read = f"{count(sentences, 'restyled sentence')} of {count(number, 'rewrite')}"
        silence = f", {unread} of them without a verdict" if unread else ""
        yield f"the verifier read {read} and put back {denied}{silence}"
