"""What of a judge's answer is its own: not its thoughts, not what it quotes.

Text is masked and never moved, so that places in it stay what they were. It knows no format of a verdict beyond a
pattern that finds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MASK = "\x00"
"""Stands for each character that is not the judge's own; no pattern of a verdict matches it."""

COPIED = 3
"""So many more words of a response around a verdict make it a copy, quotation marks or not."""

_QUOTED_TAG = r"""(?<!["'`“‘«])"""
_THOUGHT = re.compile(rf"(?is){_QUOTED_TAG}<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)")
_HEAD = re.compile(r"(?is)\A.*</(?:think|thinking|thought|reasoning)>")
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"[^\S\n]*\n\s*")
_FENCED = re.compile(r"(?ms)^[ ]?(```|~~~)[^\n]*\n(.*?)(?:^[ ]?\1|\Z)")
_QUOTED_LINES = re.compile(r"(?m)^[ ]?>([^\n]*(?:\n[ ]?>[^\n]*)*)")
_MARKED = re.compile(
    r"“([^”]*)”|«([^»]*)»|„([^“”]*)[“”]|(?<![\w\"])\"(?=\S)([^\"]*)(?<=\S)\"|`([^`]+)`|‘([^’]*(?:’\w[^’]*)*)’"
    r"|(?<![\w'])'(?=\S)([^'\n]*(?:'\w[^'\n]*)*)(?<=\S)'(?!\w)"
)


def thoughtless(text: str) -> str:
    """An answer without what was thought before it; what is thought and never ended is all thought."""
    return _THOUGHT.sub(" ", _HEAD.sub("", text) if _HEAD.search(text) and not _opens(text) else text)


def _opens(text: str) -> bool:
    """Whether thinking has a beginning of its own; some servers leave that out."""
    begun = _THOUGHT.search(text)
    return begun is not None and not _HEAD.search(text[: begun.start()])


def even(text: str) -> str:
    """A text with each run of white space as one space or one new line."""
    return _SPACE.sub(" ", _LINES.sub("\n", text.replace("\r\n", "\n").replace("\r", "\n"))).strip()


def masked(text: str, verdict: re.Pattern[str], material: Sequence[str]) -> str:
    """An answer with all verdicts masked that it only quotes.

    Args:
        text: evened.
        verdict: finds a whole statement of a verdict.
        material: the responses and the prompt, evened: what may be quoted.

    Returns:
        A text of the same length. Masked are verdicts between quotation marks, in code fences and in quoted lines,
        unless the verdict is all that stands there and no response says the same; and verdicts copied from a response
        with ``COPIED`` more words of it.
    """
    plain = [_plain(one) for one in material]
    hidden = list(text)
    for start, end in _quotations(text):
        inside = text[start:end]
        if verdict.search(inside) and (not _alone(inside, verdict) or _said(inside, plain)):
            hidden[start:end] = MASK * (end - start)
    whole = _plain(text)
    for found in verdict.finditer(text):
        if any(_copied(whole, found.start(), found.end(), one) for one in plain):
            hidden[found.start() : found.end()] = MASK * (found.end() - found.start())
    return "".join(hidden)


def quoted(part: str, material: Sequence[str]) -> bool:
    """Whether a response has this text."""
    return _said(part, [_plain(one) for one in material])


def _quotations(text: str) -> Iterable[tuple[int, int]]:
    for found in _FENCED.finditer(text):
        yield found.span(2)
    for found in _QUOTED_LINES.finditer(text):
        yield found.span(1)
    for found in _MARKED.finditer(text):
        group = next(index for index, inside in enumerate(found.groups(), 1) if inside is not None)
        # Marks that do not pair up would hide all between them; what a quotation of several lines holds is looked up.
        yield found.span(group)


def _alone(inside: str, verdict: re.Pattern[str]) -> bool:
    return verdict.fullmatch(inside.strip(" \n*_.>#")) is not None


def _said(part: str, plain: Iterable[str]) -> bool:
    words = _plain(even(part)).strip(" >")
    return bool(words) and any(words in one for one in plain)


def _plain(text: str) -> str:
    """A text in lower case and on one line, of the same length."""
    return "".join(character.lower()[:1] for character in text.replace("\n", " "))


def _copied(text: str, start: int, end: int, material: str) -> bool:
    """Whether a part of a text stands in the material with more words of it around than chance would have."""
    part, at = text[start:end], -1
    while (at := material.find(part, at + 1)) >= 0:
        left = _shared(text[:start][::-1], material[:at][::-1])[::-1]
        right = _shared(text[end:], material[at + len(part) :])
        words = len(re.findall(r"\w[\w'’-]*", left)) + len(re.findall(r"\w[\w'’-]*", right))
        if words >= COPIED:
            return True
    return False


def _shared(one: str, other: str) -> str:
    """The common beginning of two texts, in whole words."""
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    cut = any(len(text) > length and text[length].isalnum() for text in (one, other))
    return re.sub(r"\w+\Z", "", one[:length]) if cut else one[:length]
