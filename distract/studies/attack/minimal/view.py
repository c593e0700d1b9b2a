"""The smallest flips of a run on the terminal: the words that flip its judge, then each flip in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distract.core.printable import count, line
from distract.core.records import MinimalFlip
from distract.report.blocks import Block, Heading, Sentence, Span, Table, TableRow, Words, sentences
from distract.studies.attack.minimal.changed_words import count_words, describe_edits

TOP = 10
"""Words to show."""


def minimal_parts(smallest: Sequence[MinimalFlip]) -> Iterator[Block]:
    """Show the words that flip a judge, and each smallest flip."""
    if not smallest:
        yield from sentences(["smallest flips: found no flip to explain"])
        return
    words = count_words(smallest)[:TOP]
    rows: list[TableRow] = [("", line(word.text), [word.change, f"{word.flips}/{len(smallest)}"]) for word in words]
    yield Table("Words that flip this judge", ("word", "change", "flips"), rows)
    yield Heading("Smallest flips: the edits between original and rewrite that are enough", level=3)
    for flip in smallest:
        rule = f" by {line(flip.rule)}" if flip.rule else ""
        name = Span(f"case {line(flip.case.id)}, {line(flip.protocol)}{rule}, {line(flip.attack)}:", "strong")
        edits = Span(f"\n {describe_smallest(flip)}; {count(flip.requests, 'judge call')}")
        yield Sentence(Words((name, edits)), apart=False)


def describe_smallest(flip: MinimalFlip) -> str:
    """Describe the edits that are enough."""
    unsure = "; ".join(
        why
        for why, holds in (
            ("fewer might do", not flip.minimal),
            (f"no valid verdict in {flip.invalid} of {count(flip.comparisons, 'comparison')}", flip.invalid),
        )
        if holds
    )
    edits = f"{len(flip.edits)} of {count(flip.of, 'edit')} {'is' if len(flip.edits) == 1 else 'are'} enough"
    return f"{edits}{f' ({unsure})' if unsure else ''}: {', '.join(describe_edits(flip.edits))}"
