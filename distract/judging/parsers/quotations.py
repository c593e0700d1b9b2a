"""Tell the judge's own verdicts from those that it only quotes.

Quotations are masked without changing the length, so that positions in the text stay valid.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from distract.judging.parsers.answers import line_start
from distract.judging.parsers.vocabulary import LONGEST, announcement_start, is_announcement

MASK = "\x00"
"""Replaces each quoted character; no verdict pattern matches it."""

MOST_CHECKED = 400
"""Verdicts at the end of an answer that may be copies; far more than count."""

COPIED = 3
"""Number of neighbouring words of a response that make a verdict a copy, even without quotation marks."""

_FENCE = re.compile(r"(?ms)^(`{3,}+|~{3,}+)[^\n`]*\n(.*?)^\1")
_FENCED = re.compile(r"(?:```|~~~)\w*\n?\Z")
_WHOLE = re.compile(r"(?s)\A(?:(?:```|~~~)[^\n`]*\n(.*)\n(?:```|~~~)|[\"“]([^\"“”]*)[\"”])\Z")
_LINES = re.compile(r"(?m)^(?:[-*+] |\d+[.)] )?>([^\n]*(?:\n(?:[-*+] |\d+[.)] )?>[^\n]*)*)")
# Each alternative stops at the next mark of its kind, so that unpaired marks take no time and hide nothing.
_MARKS = re.compile(
    r"“([^“”]*)”|(?<!\w)”([^“”\n]*)”|«([^«»]*)»|»([^«»]*)«|„([^„“”]*)[“”]|‚([^‚‘\n]*)‘|‹([^‹›]*)›|›([^‹›]*)‹"
    r"|「([^「」]*)」|『([^『』]*)』|``([^`\n]*)''|`([^`\n]+)`|<(?:blockquote|code|pre|q|quote|response)>([^<]*)</"
    r"|(?<![A-Za-z0-9\"])\"(?=\S)([^\"]*)(?<=\S)\"|(?<![A-Za-z0-9\"])\" ([^\"\n]*) \""
    r"|‘(?!\d0s)([^‘’]*(?:’\w[^‘’]*)*)’|(?<![\w'])'(?=\S)(?!\d0s)([^'\n]*(?:(?<=\w)'\w[^'\n]*)*)(?<=\S)'(?!\w)"
)
_ENDED = re.compile(r"(?:\A|[.!?。…]|\]\])\W*\Z")
_WORD = re.compile(r"[^\W_]+")
_GOES_ON = re.compile(r"(?:[^\w\n]|_)*+[^\W_]")
_LOOSE = re.compile(r"[\s*_`>]+")


class Material:
    """The texts that a judge may quote: responses and prompt."""

    def __init__(self, texts: Sequence[str], verdict: re.Pattern[str]) -> None:
        prepared = [_prepare_material(text, verdict) for text in texts]
        self._plain = [plain for plain, _ in prepared]
        self._lines = {_squeeze(line).strip(".,;:!") for text in texts for line in text.split("\n")}
        self._known: dict[str, bool] = {}
        self._copies = frozenset[tuple[str, ...]]().union(*(copies for _, copies in prepared))

    def has(self, part: str) -> bool:
        """Whether part of an answer occurs in the texts, markup and white space aside."""
        words = _squeeze(part).strip(".,;:!")
        if words not in self._known:
            self._known[words] = bool(words) and any(words in plain for plain in self._plain)
        return self._known[words]

    def has_line(self, line: str) -> bool:
        """Whether a line of an answer is a whole line of the texts; one word or number alone proves nothing."""
        return len(_WORD.findall(line)) > 1 and _squeeze(line).strip(".,;:!") in self._lines

    def is_copied(self, text: str, match: re.Match[str], has_lines: bool) -> bool:
        """Whether a verdict occurs in the texts with more of the same words around it than by chance."""
        begin, end = line_start(text, match.start()), (text.find("\n", match.end()) + 1 or len(text) + 1) - 1
        if has_lines and not _WORD.search(text, begin, match.start()):
            is_closing = not _WORD.search(text, end) and is_ended(text, begin)
            return not is_closing and self.has_line(text[begin:end])
        if not self._copies:
            return False
        starts = [announcement_start(text, match.start())]
        if _WORD.search(text, match.end()):
            # At the end of an answer, a response that dictates a verdict contains the same announcement as the judge.
            starts.append(match.start())
        return any(copy in self._copies for start in starts for copy in _copies(text, match, start))


@lru_cache(maxsize=1024)  # a response is shown in both orders, beside others, to several judges
def _prepare_material(text: str, verdict: re.Pattern[str]) -> tuple[str, frozenset[tuple[str, ...]]]:
    """Return a text without markup and white space, and its verdicts with the words around them."""
    copies = (
        copy
        for match in verdict.finditer(text)
        for start in (match.start(), announcement_start(text, match.start()))
        for copy in _copies(text, match, start)
    )
    return _squeeze(text), frozenset(copies)


def mask_quotations(text: str, verdict: re.Pattern[str], texts: Sequence[str], has_lines: bool = False) -> str:
    """Mask all verdicts that an answer only quotes.

    With ``has_lines``, a verdict that begins its line is the judge's own, since its form announces it, unless the texts
    hold that whole line, and the answer goes on or the line before leads to it.
    """
    material = Material(texts, verdict)
    masked = list(text)
    whole = _WHOLE.match(text)
    inside = (whole[1] or whole[2] or "") if whole else ""
    is_own = inside and not re.search(r"(?m)^(?:```|~~~)", inside) and not material.has(inside)
    part = whole.span(whole.lastindex or 0) if whole and is_own else (0, len(text))
    for quotation in chain.from_iterable(pattern.finditer(text, *part) for pattern in (_FENCE, _LINES, _MARKS)):
        start, end = quotation.span(quotation.lastindex or 0)
        inside = text[start:end]
        if verdict.search(inside) and not _is_own(text, start, inside, verdict, material, has_lines):
            masked[start:end] = MASK * (end - start)
    for match in deque(verdict.finditer(text), MOST_CHECKED):
        if material.is_copied(text, match, has_lines):
            masked[match.start() : match.end()] = MASK * (match.end() - match.start())
    return "".join(masked)


def is_ended(text: str, position: int) -> bool:
    """Whether the line before a position is a whole sentence or a heading, or there is none."""
    before = text[max(0, position - 200) : position].rstrip()
    return _ENDED.search(before) is not None or before.rpartition("\n")[2].startswith("#")


def _is_own(text: str, start: int, inside: str, verdict: re.Pattern[str], material: Material, has_lines: bool) -> bool:
    """Whether the marks only highlight a verdict: it is alone, or is announced as the judge's."""
    fence = _FENCED.search(text, max(0, start - 80), start) if has_lines else None
    goes_on = has_lines and verdict.search(text, start + len(inside)) is not None
    if fence and not material.has(inside) and not goes_on:
        line = text[line_start(text, max(0, fence.start() - 1)) : fence.start()].strip()
        return is_announcement(line) or is_ended(text, fence.start())
    before = _FENCED.sub("", text[max(0, start - 80) : start]).rstrip("\"'`“”«»「『‘>\n ")
    lead = _lead(inside, verdict)
    if lead is None:
        return False
    is_block = text[start - 1 : start] == ">"
    if is_block and goes_on:
        return False
    if is_announcement(re.split(r"[.!?\n]", before)[-1]) and (is_block or not _WORD.search(lead)):
        return not is_block or not material.has(inside)
    if is_block and _WORD.search(lead) and not _WORD.search(text, start + len(inside)) and not before.endswith(":"):
        return not material.has(inside)
    begins_line = not _WORD.search(text, line_start(text, start), start)
    is_alone = begins_line and not _GOES_ON.match(text, start + len(inside))
    return is_alone and _ENDED.search(before) is not None and not material.has(inside)


def _lead(inside: str, verdict: re.Pattern[str]) -> str | None:
    """Return the announcement of the verdict between marks, if there is nothing else between them."""
    whole = re.fullmatch(rf"(?i)([^\[\]]{{0,{LONGEST}}}?)(?:{verdict.pattern.replace('(?i)', '')})[\W_]*", inside)
    return whole[1] if whole and (not _WORD.search(whole[1]) or is_announcement(whole[1])) else None


def _squeeze(text: str) -> str:
    return _LOOSE.sub("", text.lower())


def _copies(text: str, match: re.Match[str], start: int) -> Iterator[tuple[str, ...]]:
    """Return the words of a verdict with every window of neighbouring words; those before it end at ``start``."""
    before = _WORD.findall(text[max(0, start - 120) : start].lower())[-COPIED:]
    after = _WORD.findall(text[match.end() : match.end() + 120].lower())[:COPIED]
    words = _WORD.findall(match[0].lower())
    for n in range(COPIED + 1):
        if n <= len(before) and COPIED - n <= len(after):
            yield (*before[len(before) - n :], "\n", *words, "\n", *after[: COPIED - n])
