"""The smallest flips: the words that flip a judge, for people and as a document, and a text with its edits marked.

Built on Rich with plain ``Text`` only; texts are hostile, and control characters in them are shown as escapes. It
computes no figure and searches nothing.
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
from distract.studies.attack.minimal import group_edits
from distract.studies.attack.minimal.document import flatten
from distract.studies.attack.minimal.view import describe_smallest
from distract.studies.explain.run import Explanation

WHOLE = 600
"""Characters of a text that is shown as a whole; of a longer one only what stands around its edits."""

NEAR = 160
"""Characters on either side of an edit within which its sentence is looked for."""

_SENTENCE = re.compile(r"[.!?…]['\")\]]*\s+|[。！？]|\n+")
_SIGNS = str.maketrans({" ": "·", "\t": "→", "\n": "↵"})
"""White space where nothing else was changed."""


def explanation_document(one: Explanation) -> dict[str, Any]:
    """What came of one flip as JSON values; where nothing did, with the reason."""
    if isinstance(one.found, str):
        flip = one.flip
        names = ("case", "protocol", "rule", "attack", "rewritten", "other")
        return {**{name: getattr(flip, name) for name in names}, "reason": line(one.found)}
    found = one.found
    texts = {"original": list(found.original), "turns": list(found.turns)}
    strengths = {"before": found.before, "after": found.after}
    rounded = {name: [round(value, 4) for value in values] for name, values in strengths.items()}
    return {**flatten(found), **rounded, **texts}


def heading(case: str, prompt: Sequence[str], judge: str) -> Iterator[RenderableType]:
    """What is explained: a case, its prompt in one line, the judge."""
    yield Text(f"case {line(case)} · judge {line(judge)}", style="bold")
    yield Text(f"prompt: {_shorten(' / '.join(prompt))}")


def explanation_parts(one: Explanation, colour: bool) -> Iterator[RenderableType]:
    """One flip: who won before and after, the text with its edits marked, how many were enough."""
    flip, found = one.flip, one.found
    by = f" by {line(flip.rule)}" if flip.rule else ""
    yield Text(f"\n{line(flip.protocol)}{by} under {line(flip.attack)}", style="bold")
    if isinstance(found, str):
        yield Text(_describe_winner(flip, flip.after, "after its rewrite"))
        yield Text(f"cannot be explained: {line(found)}", style="yellow")
        return
    yield Text(_describe_winner(flip, found.after, "with these edits"))
    yield Text("")
    yield from mark_edits(found.original, found.edits, colour)
    yield Text("")
    stored = "found by the run itself" if one.stored is None else f"{one.stored:,} of them from the store"
    calls = f"{count(found.comparisons, 'comparison')}, {count(found.requests, 'judge call')}, {stored}"
    yield Text(f"{describe_smallest(found)}; {calls}", style="bold")


def _describe_winner(flip: Flip, after: tuple[float, float], how: str) -> str:
    """Who won before, and who does after, and how that came."""
    (a, b), (c, d) = flip.before, after
    mine, other = line(flip.rewritten), line(flip.other)
    few = count_decimals((flip.before, after))
    won, wins = f"{b:.{few}f} to {a:.{few}f}", f"{c:.{few}f} to {d:.{few}f}"
    return f"{other} won by {won}; {how} {mine} wins by {wins}"


def mark_edits(turns: Sequence[str], edits: Sequence[Edit], colour: bool) -> Iterator[Text]:
    """A text with its edits marked in place; of a long one only what stands around them."""
    whole = sum(map(len, turns)) <= WHOLE
    for index, text in enumerate(turns):
        mine = [_merge_edits(phrase) for phrase in group_edits(edit for edit in edits if edit.turn == index)]
        if not mine and not whole:
            continue
        if len(turns) > 1:
            yield Text(f"turn {index + 1}:", style="dim")
        for start, end in [(0, len(text))] if whole else _windows(text, mine):
            shown = Text("… " if start else "")
            at = start
            for edit in (edit for edit in mine if start <= edit.start and edit.end <= end):
                shown.append(clean_text(text[at : edit.start]))
                shown.append_text(_mark_edit(edit, colour))
                at = edit.end
            shown.append(clean_text(text[at:end]))
            yield shown.append(" …" if end < len(text) else "")


def _merge_edits(phrase: Sequence[Edit]) -> Edit:
    """Edits with nothing between them as one."""
    old, new = ("".join(texts) for texts in zip(*((edit.old, edit.new) for edit in phrase), strict=True))
    return Edit(phrase[0].turn, phrase[0].start, phrase[-1].end, new, old)


def _windows(text: str, edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """What is shown of a long text: from and to where, for the edits that stand close together."""
    found: list[tuple[int, int]] = []
    for edit in edits:
        start, end = _window_start(text, edit.start), _window_end(text, edit.end)
        if found and start <= found[-1][1]:
            start, end = found[-1][0], max(end, found.pop()[1])
        found.append((start, end))
    return found


def _window_start(text: str, at: int) -> int:
    """Where the sentence begins, or a word of it where that is far."""
    lowest = max(0, at - NEAR)
    ends = [match.end() for match in _SENTENCE.finditer(text, lowest, at)]
    if ends or not lowest:
        return ends[-1] if ends else 0
    return text.find(" ", lowest, at) + 1 or lowest


def _window_end(text: str, at: int) -> int:
    """Where the sentence ends, or a word of it where that is far."""
    highest = min(len(text), at + NEAR)
    if match := _SENTENCE.search(text, at, highest):
        return match.start() + len(match[0].rstrip())
    if highest == len(text):
        return highest
    space = text.rfind(" ", at, highest)
    return highest if space < 0 else space


def _mark_edit(edit: Edit, colour: bool) -> Text:
    """What is gone and what came, without the white space around it where that stays out of the matter."""
    old, new = edit.old, edit.new
    parts = [part for part in (old, new) if part]
    heads = {part[: len(part) - len(part.lstrip())] for part in parts}
    tails = {part[len(part.rstrip()) :] for part in parts}
    if any(not part.strip() for part in parts):
        head = tail = ""
    else:
        head, tail = (ends.pop() if len(ends) == 1 else "" for ends in (heads, tails))
    shown = Text(clean_text(head))
    for part, marks, style in ((old, ("[-", "-]"), "red strike"), (new, ("{+", "+}"), "bold green")):
        if part:
            inside = part[len(head) : len(part) - len(tail)]
            inside = clean_text(inside if inside.strip() else inside.translate(_SIGNS))
            shown.append(inside if colour else f"{marks[0]}{inside}{marks[1]}", style=style)
    return shown.append(clean_text(tail))


def _shorten(text: str, most: int = 200) -> str:
    text = line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
