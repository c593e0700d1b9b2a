"""The difference of two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from distract.core.edits import opcodes
from distract.core.printable import clean_text, shorten
from distract.report.blocks import Diff, Span

LONGEST = 5
"""Maximum length of a change to show, as a multiple of what is shown around it."""

_TOKENS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


def mark_difference(before: str, after: str, label: str = "", apart: bool = True, near: int | None = None) -> Diff:
    """Show both texts as one.

    With ``near``, only so many characters of what is the same around each change, and of the ends of a long change.
    """
    old, new = (_TOKENS.findall(text) for text in (before, after))
    spans = list[Span]()
    for what, a, b, c, d in opcodes(old, new):
        removed, added = clean_text("".join(old[a:b])), clean_text("".join(new[c:d]))
        if what == "equal":
            spans.append(Span(removed))
            continue
        spans += [Span(removed, "removed")] if removed else []
        spans += [Span(added, "added")] if added else []
    return Diff(tuple(spans if near is None else _cut(spans, near)), label, apart)


def _cut(spans: Sequence[Span], near: int) -> Iterator[Span]:
    """Cut the middle out of long texts, at words where they are the same."""
    for index, span in enumerate(spans):
        text = span.text
        head = 0 if index == 0 else near
        tail = 0 if index == len(spans) - 1 else near
        if span.tone:
            yield Span(shorten(text, LONGEST * near), span.tone)
            continue
        if len(text) <= head + tail + near:
            yield span
            continue
        start = text.rfind(" ", 0, head) if head else 0
        end = text.find(" ", len(text) - tail) if tail else len(text)
        yield Span(f"{text[: max(start, 0)]} […] {text[end if end > 0 else len(text) :].lstrip()}")
