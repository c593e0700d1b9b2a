"""An explained flip, on the terminal and as a document: the text with its edits marked, and how many were enough.

Texts are hostile: cells are plain ``Text``, and control characters show as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import clean_text, count, count_decimals, line
from distract.core.records import Edit
from distract.studies.attack.flips import Flip
from distract.studies.attack.minimal.edits import group_edits
from distract.studies.attack.minimal.view import describe_smallest
from distract.studies.attack.study import flatten_flip
from distract.studies.explain.run import Explanation

WHOLE = 600
"""Texts up to this many characters are shown in full, longer ones only around their edits."""

NEAR = 160
"""Number of characters on either side of an edit to search for the ends of its sentence."""

_SENTENCE = re.compile(r"[.!?…]['\")\]]*\s+|[。！？]|\n+")
_SIGNS = str.maketrans({" ": "·", "\t": "→", "\n": "↵"})
"""Signs for white space where nothing else changed."""


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return one explained flip as JSON values, with the reason if there is no explanation."""
    if isinstance(explanation.smallest, str):
        flip = explanation.flip
        names = ("case", "protocol", "rule", "attack", "rewritten", "other")
        return {**{name: getattr(flip, name) for name in names}, "reason": line(explanation.smallest)}
    smallest = explanation.smallest
    texts = {"original": list(smallest.original), "turns": list(smallest.turns)}
    strengths = {"before": smallest.before, "after": smallest.after}
    rounded = {name: [round(value, 4) for value in values] for name, values in strengths.items()}
    return {**flatten_flip(smallest), **rounded, **texts}


def heading(case: str, prompt: Sequence[str], judge: str) -> Iterator[RenderableType]:
    """Show the case, its prompt in one line and the judge."""
    yield Text(f"case {line(case)} · judge {line(judge)}", style="bold")
    yield Text(f"prompt: {_shorten(' / '.join(prompt))}")


def explanation_parts(explanation: Explanation, colour: bool) -> Iterator[RenderableType]:
    """Show one flip: who won before and after, the text with its edits marked, how many were enough."""
    flip, smallest = explanation.flip, explanation.smallest
    rule = f" by {line(flip.rule)}" if flip.rule else ""
    yield Text(f"\n{line(flip.protocol)}{rule} under {line(flip.attack)}", style="bold")
    if isinstance(smallest, str):
        yield Text(_describe_winner(flip, flip.after, "after its rewrite"))
        yield Text(f"cannot be explained: {line(smallest)}", style="yellow")
        return
    yield Text(describe_smallest(smallest), style="bold")
    yield Text(_describe_winner(flip, smallest.after, "with these edits"))
    yield Text("")
    yield from mark_edits(smallest.original, smallest.edits, colour)
    yield Text("")
    stored = "found during the run" if explanation.stored is None else f"{explanation.stored:,} of them from the store"
    calls = f"{count(smallest.comparisons, 'comparison')}, {count(smallest.requests, 'judge call')}, {stored}"
    yield Text(calls, style="dim")


def _describe_winner(flip: Flip, after: tuple[float, float], condition: str) -> str:
    (a, b), (c, d) = flip.before, after
    author, other = line(flip.rewritten), line(flip.other)
    few = count_decimals((flip.before, after))
    won, wins = f"{b:.{few}f} to {a:.{few}f}", f"{c:.{few}f} to {d:.{few}f}"
    return f"{other} won by {won}; {condition} {author} wins by {wins}"


def mark_edits(turns: Sequence[str], edits: Sequence[Edit], colour: bool) -> Iterator[Text]:
    """Mark edits in a text; show a long one only around them."""
    whole = sum(map(len, turns)) <= WHOLE
    for index, text in enumerate(turns):
        merged = [_merge_edits(phrase) for phrase in group_edits(edit for edit in edits if edit.turn == index)]
        if not merged and not whole:
            continue
        if len(turns) > 1:
            yield Text(f"turn {index + 1}:", style="dim")
        for start, end in [(0, len(text))] if whole else _windows(text, merged):
            marked = Text("… " if start else "")
            at = start
            for edit in (edit for edit in merged if start <= edit.start and edit.end <= end):
                marked.append(clean_text(text[at : edit.start]))
                marked.append_text(_mark_edit(edit, colour))
                at = edit.end
            marked.append(clean_text(text[at:end]))
            yield marked.append(" …" if end < len(text) else "")


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


def _mark_edit(edit: Edit, colour: bool) -> Text:
    """Mark what was removed and added; white space that both share stays outside."""
    old, new = edit.old, edit.new
    parts = [part for part in (old, new) if part]
    heads = {part[: len(part) - len(part.lstrip())] for part in parts}
    tails = {part[len(part.rstrip()) :] for part in parts}
    if any(not part.strip() for part in parts):
        head = tail = ""
    else:
        head, tail = (ends.pop() if len(ends) == 1 else "" for ends in (heads, tails))
    marked = Text(clean_text(head))
    for part, marks, style in ((old, ("[-", "-]"), "red strike"), (new, ("{+", "+}"), "bold green")):
        if part:
            inside = part[len(head) : len(part) - len(tail)]
            inside = clean_text(inside if inside.strip() else inside.translate(_SIGNS))
            marked.append(inside if colour else f"{marks[0]}{inside}{marks[1]}", style=style)
    return marked.append(clean_text(tail))


def _shorten(text: str, most: int = 200) -> str:
    text = line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
