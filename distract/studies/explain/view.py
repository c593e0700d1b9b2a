"""Explained flips, on the terminal and as a document: the text with its edits marked, and how many were enough.

Texts are hostile: control characters show as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from distract.core.printable import clean_text, count, count_decimals, line
from distract.core.records import Case
from distract.report.blocks import Block, Diff, Heading, Note, Sentence, Span, Table, TableRow, Tone
from distract.studies.attack.flips import Flip
from distract.studies.explain.edits import Edit, MinimalFlip, count_words, group_edits
from distract.studies.explain.run import Explanation
from distract.studies.explain.smallest import describe_smallest

WHOLE = 600
"""Texts up to this many characters are shown in full, longer ones only around their edits."""

NEAR = 160
"""Number of characters on either side of an edit to search for the ends of its sentence."""

_SENTENCE = re.compile(r"[.!?…]['\")\]]*\s+|[。！？]|\n+")
_SIGNS = str.maketrans({" ": "·", "\t": "→", "\n": "↵"})
"""Signs for white space where nothing else changed."""

TOP = 10
"""Words to show."""


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return one explained flip as JSON values, with the reason if there is no explanation."""
    smallest = explanation.smallest
    if isinstance(smallest, str):
        names = ("case", "protocol", "rule", "attack", "rewritten", "other")
        return {**{name: getattr(explanation.flip, name) for name in names}, "reason": line(smallest)}
    shared = ("protocol", "rule", "attack", "rewritten", "other")
    counts = ("of", "comparisons", "requests", "invalid", "minimal")
    return {
        "case": smallest.case.id,
        "edits": [{"removed": edit.old, "added": edit.new} for edit in smallest.edits],
        **{name: getattr(smallest, name) for name in (*shared, *counts)},
        **{name: [round(value, 4) for value in getattr(smallest, name)] for name in ("before", "after")},
        "original": list(smallest.original),
        "turns": list(smallest.turns),
    }


def words_document(smallest: Sequence[MinimalFlip]) -> list[dict[str, Any]]:
    """Return the words that flip a judge as JSON values."""
    return [{"word": one.text, "change": one.change, "flips": one.flips} for one in count_words(smallest)]


def words_table(smallest: Sequence[MinimalFlip]) -> Table:
    """Show the words that flip a judge."""
    rows: list[TableRow] = [
        ("", line(one.text), [one.change, f"{one.flips}/{len(smallest)}"]) for one in count_words(smallest)[:TOP]
    ]
    return Table("Words that flip this judge", ("word", "change", "flips"), rows)


def heading(case: Case, judge: str) -> Iterator[Block]:
    """Show the case, its prompt in one line and the judge."""
    yield Heading(f"case {line(case.id)} · judge {line(judge)}")
    yield Sentence(f"prompt: {_shorten(' / '.join(case.prompt))}", apart=False)


def explanation_parts(explanation: Explanation) -> Iterator[Block]:
    """Show one flip: who won before and after, the text with its edits marked, how many were enough."""
    flip, smallest = explanation.flip, explanation.smallest
    rule = f" by {line(flip.rule)}" if flip.rule else ""
    yield Heading(f"{line(flip.protocol)}{rule} under {line(flip.attack)}", level=2)
    if isinstance(smallest, str):
        yield Sentence(_describe_winner(flip, flip.after, "after its rewrite"), apart=False)
        yield Note(f"cannot be explained: {line(smallest)}", "doubtful", apart=False)
        return
    yield Sentence(Span(describe_smallest(smallest), "strong"), apart=False)
    yield Sentence(_describe_winner(flip, smallest.after, "with these edits"), apart=False)
    yield from mark_edits(smallest.original, smallest.edits)
    stored = f"{explanation.stored:,} of them from the store"
    calls = f"{count(smallest.comparisons, 'comparison')}, {count(smallest.requests, 'judge call')}, {stored}"
    yield Note(calls)


def _describe_winner(flip: Flip, after: tuple[float, float], condition: str) -> str:
    (a, b), (c, d) = flip.before, after
    author, other = line(flip.rewritten), line(flip.other)
    few = count_decimals((flip.before, after))
    won, wins = f"{b:.{few}f} to {a:.{few}f}", f"{c:.{few}f} to {d:.{few}f}"
    return f"{other} won by {won}; {condition} {author} wins by {wins}"


def mark_edits(turns: Sequence[str], edits: Sequence[Edit]) -> Iterator[Diff]:
    """Mark edits in a text; show a long one only around them."""
    whole, is_first = sum(map(len, turns)) <= WHOLE, True
    for index, text in enumerate(turns):
        merged = [_merge_edits(phrase) for phrase in group_edits(edit for edit in edits if edit.turn == index)]
        if not merged and not whole:
            continue
        label = f"turn {index + 1}:" if len(turns) > 1 else ""
        for start, end in [(0, len(text))] if whole else _windows(text, merged):
            spans, at = [Span("… " if start else "")], start
            for edit in (edit for edit in merged if start <= edit.start and edit.end <= end):
                spans += [Span(clean_text(text[at : edit.start])), *_mark_edit(edit)]
                at = edit.end
            spans += [Span(clean_text(text[at:end])), Span(" …" if end < len(text) else "")]
            yield Diff(tuple(spans), label, apart=is_first)
            label, is_first = "", False


def _merge_edits(phrase: Sequence[Edit]) -> Edit:
    old, new = ("".join(texts) for texts in zip(*((edit.old, edit.new) for edit in phrase), strict=True))
    return Edit(phrase[0].turn, phrase[0].start, phrase[-1].end, new, old)


def _windows(text: str, edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """Return the ranges of a long text to show; those of neighbouring edits merge."""
    windows: list[tuple[int, int]] = []
    for edit in edits:
        start, end = _window_start(text, edit.start), _window_end(text, edit.end)
        if windows and start <= windows[-1][1]:
            start, end = windows[-1][0], max(end, windows.pop()[1])
        windows.append((start, end))
    return windows


def _window_start(text: str, at: int) -> int:
    """Return where the sentence begins, or a word of it if that is far."""
    lowest = max(0, at - NEAR)
    ends = [match.end() for match in _SENTENCE.finditer(text, lowest, at)]
    if ends or not lowest:
        return ends[-1] if ends else 0
    return text.find(" ", lowest, at) + 1 or lowest


def _window_end(text: str, at: int) -> int:
    """Return where the sentence ends, or a word of it if that is far."""
    highest = min(len(text), at + NEAR)
    if match := _SENTENCE.search(text, at, highest):
        return match.start() + len(match[0].rstrip())
    if highest == len(text):
        return highest
    space = text.rfind(" ", at, highest)
    return highest if space < 0 else space


def _mark_edit(edit: Edit) -> list[Span]:
    """Mark what was removed and added; white space that both share stays outside."""
    old, new = edit.old, edit.new
    parts = [part for part in (old, new) if part]
    heads = {part[: len(part) - len(part.lstrip())] for part in parts}
    tails = {part[len(part.rstrip()) :] for part in parts}
    if any(not part.strip() for part in parts):
        head = tail = ""
    else:
        head, tail = (ends.pop() if len(ends) == 1 else "" for ends in (heads, tails))
    spans = [Span(clean_text(head))]
    tones: tuple[tuple[str, Tone], ...] = ((old, "removed"), (new, "added"))
    for part, tone in tones:
        if part:
            inside = part[len(head) : len(part) - len(tail)]
            inside = clean_text(inside if inside.strip() else inside.translate(_SIGNS))
            spans.append(Span(inside, tone))
    return [*spans, Span(clean_text(tail))]


def _shorten(text: str, most: int = 200) -> str:
    text = line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
