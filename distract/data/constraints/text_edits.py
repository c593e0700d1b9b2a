"""Small edits of a text that keep its meaning: places for sentences, removable words, and synonyms.

Edits follow the letter case of the text, stay inside quotation marks around all of it, and outside code, quotations and
addresses. All functions run in linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from distract.data.constraints.spans import sentence_ends

Span = tuple[int, int]
Edit = tuple[int, int, str]
_T = TypeVar("_T")

NEUTRAL = (
    "That is worth keeping in mind.",
    "It is as simple as that.",
    "There is not much more to add.",
    "The rest follows from there.",
    "Those are the essentials.",
    "This is only the short version.",
    "A little patience helps here.",
    "Everything else is a matter of taste.",
    "The details can wait for another day.",
    "Opinions on such things differ.",
    "It never hurts to look twice.",
    "Beyond that it depends on the situation.",
    "Each of these points stands on its own.",
    "A closer look may well be worthwhile.",
)
"""Empty sentences: no facts, numbers, commas or names, and few letters in common."""

_FILLERS = (
    "really very just quite simply actually basically indeed rather also even already anyway certainly definitely "
    "truly clearly usually generally probably perhaps mainly mostly perfectly completely especially nearly"
)
FILLERS = tuple(_FILLERS.split())
"""Words that can be removed with little harm, the emptiest first."""

MOST = 20_000
"""Limit on the sentences, words or letters to add to a text."""

_PAIRS = (
    "big:large quick:fast quickly:fast buy:purchase help:aid need:require begin:start end:finish often:frequently "
    "show:reveal important:vital easy:simple easily:simply hard:difficult small:little many:numerous good:fine "
    "bad:poor people:folks use:employ keep:retain make:create quality:standard question:issue unique:singular "
    "method:way job:task project:undertaking journey:trip enjoy:like major:main subject:topic object:thing "
    "amazing:superb size:extent exact:precise next:following extra:further relax:rest example:instance"
)
SYNONYMS = {a: b for pair in _PAIRS.split() for x, y in [pair.split(":")] for a, b in ((x, y), (y, x))}

_OPAQUE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{1,500}`|\"[^\"\n]{1,500}\"|“[^“”\n]{1,500}”|(?:https?://|www\.)\S+"
    r"|<<[^\n<>]{1,300}>>|\[[^\[\]\n]{1,300}\]",
    re.S,
)
_CLOSERS = "\"'”’)]*_"
_FUNCTION_WORDS = (
    "a an and are as at both but by can do each even for from he here her his how if in is it its many more most much "
    "my no not of on one only or our she so some such that the their then there these they this those to too use was "
    "we were what when where which while who why with you your"
)
_SENTENCE_STARTERS = frozenset(_FUNCTION_WORDS.split())  # capitalised at the start of a sentence, but no names


def core_span(text: str) -> Span:
    """Find the text inside outer white space and double quotation marks around all of it."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if end - start > 2 and text[start] == text[end - 1] == '"':
        return start + 1, end - 1
    return start, max(start, end)


def find_opaque(text: str) -> list[Span]:
    """Find parts to leave alone: code, quotations, addresses, titles and placeholders."""
    return [match.span() for match in _OPAQUE.finditer(text, *core_span(text))]


def is_free(spans: Sequence[Span], position: int) -> bool:
    index = bisect_right(spans, (position, position)) - 1
    return index < 0 or position >= spans[index][1]


def styler(text: str) -> Callable[[str], str]:
    return str.upper if text.isupper() else str.lower if text.islower() else str


def match_case(model: str, word: str) -> str:
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def lower_start(text: str, known: Container[str] = _SENTENCE_STARTERS) -> str:
    """A piece of text that no longer begins a sentence: its first letter is lowered unless it may begin a name."""
    word = re.split(r"\W", text[:40], maxsplit=1)[0]
    return text[:1].lower() + text[1:] if word.lower() in known and word[1:].islower() | (word == "A") else text


def substitute(text: str, edits: Iterable[Edit]) -> str:
    """Replace spans, given in order; text in the overlap of two spans belongs to the first."""
    parts, position = [], 0
    for start, end, new in edits:
        parts += [text[position:start], new]
        position = max(position, end)
    return "".join([*parts, text[position:]])


def subsets(items: Sequence[_T], size: int) -> Iterator[list[_T]]:
    """A few ways to choose this many items, in order: the last ones, the first ones, then others."""
    room = len(items) - size
    if size > 0 and room >= 0:
        for start in dict.fromkeys([room, 0, room // 2, room // 4, 3 * room // 4, room - 1, 1]):
            if 0 <= start <= room:
                yield list(items[start : start + size])


def find_places(text: str) -> list[int]:
    """Places to add a sentence: at the end after prose, then before the last sentences, then elsewhere."""
    low, high = core_span(text)
    spans = find_opaque(text)
    ends = [end for end in sentence_ends(text[:high]) if end > low and is_free(spans, end - 1)]
    # A sentence within a list item or a letter's head is worse than one between two sentences of a line.
    inner = [end for end in ends if text[end] != "\n"]
    places = [high, *islice(reversed(inner), 3), *inner[:3], *islice(reversed(ends), 3), *ends[:3]]
    if text[low:high].startswith(("{", "[", "```")):  # JSON, in which only strings can hold words
        strings = [match.end() for match in re.finditer(r"[\w.!?](?=\"\s*[,}\]])", text)]
        places += strings[:-3:-1]
    return list(dict.fromkeys(places))


def add_sentences(text: str, options: Iterable[str]) -> Iterator[str]:
    low, high = core_span(text)
    options, sites = list(map(styler(text), options)), find_places(text)
    last = text.rfind("\n", low, high) + 1
    prose = text[low:high].rstrip(_CLOSERS).endswith((".", "!", "?")) and not re.match(r"\W*[*#|>-]", text[last:high])
    for site in sites:
        for option in options:
            gap = " " if site != high or prose else "\n\n" if high > low else ""
            yield f"{text[:site]}{gap}{option}{text[site:]}"


def add_clause(text: str, clause: str) -> Iterator[str]:
    """Add words before the final mark of a sentence: of the last one, then of others."""
    spans, (low, high) = find_opaque(text), core_span(text)
    clause = styler(text)(clause)
    for end in find_places(text):
        stop = len(text[low:end].rstrip(_CLOSERS + " ").rstrip(".!?")) + low
        if low < stop < end <= high and is_free(spans, stop - 1):
            yield f"{text[:stop]} {clause}{text[stop:]}"


def sentence_spans(text: str) -> list[Span]:
    """The sentences, each with the blanks after it, or before it at the end of a line."""
    low, high = core_span(text)
    begin, spans = low, []
    for end in [*(low + end for end in sentence_ends(text[low:high])), high]:
        gap = text[end : min(end + 99, high)]
        after = end + len(gap) - len(gap.lstrip())
        if end == high or "\n" in text[end:after]:
            spans.append((begin - (low < begin and text[begin - 1] == " "), end))
        else:
            spans.append((begin, after))
        begin = after
    return spans


def find_joins(text: str) -> list[Edit]:
    """Edits that join two sentences: with a semicolon within a line, else by removing the final mark."""
    edits, upper = list[Edit](), text.isupper()
    known = _SENTENCE_STARTERS.union(re.findall(r"\b[a-z]+\b", text))
    for end in sentence_ends(text):
        word = text[max(0, end - 200) : end].split()[-1]
        bare = word.rstrip(_CLOSERS)
        start, closers = end - len(word) + len(bare.rstrip(".!?")), word[len(bare) :]
        following = text[end + 1 : end + 42]
        if text[end] != " " or not following[:1].strip():
            edits.append((start, end, closers))
        elif upper or not following[0].isalpha():
            edits.append((start, end + 1, f"{closers}; "))
        else:
            edits.append((start, end + 2, f"{closers}; {lower_start(following, known)[0]}"))
    return edits


def remove_parts(text: str, weigh: Callable[[str], int], need: int) -> Iterator[str]:
    """Remove parts of at least this total weight, the emptiest first."""
    spans, (low, high) = find_opaque(text), core_span(text)

    def loose(pattern: str) -> list[Span]:
        matches = (match.span() for match in re.compile(pattern, re.I).finditer(text, low, high))
        return [span for span in matches if is_free(spans, span[0])]

    fillers = loose(rf"(?<!\ba)(?<!\ban) (?:{'|'.join(FILLERS)})(?=[ .])")
    fillers.sort(key=lambda span: FILLERS.index(text[slice(*span)].strip().lower()))
    clauses = loose(r", (?:and|but|so|which|because|although|while|since|though) [^.,:;!?\d\"“`*<\[\n]{1,200}(?=[.!?])")
    clauses.sort(key=lambda span: span[1] - span[0])
    parts = sentence_spans(text)
    # Remove sentences with facts last, and the first sentence too, because it states the topic.
    plain = [(a, b) for a, b in parts[1:] if not re.search(r"[\d\"“`*<\[\n]", text[a:b])]
    single = sorted((span for span in plain if weigh(text[slice(*span)]) >= need), key=lambda span: span[1] - span[0])
    words = [match.span() for match in re.finditer(r"\S+[^\S\n]?", text)]
    characters = [(i, i + 1) for i in range(len(text))]
    pools = [fillers, [*fillers, *clauses], clauses, *([span] for span in single[:3])]
    pools += [plain[::-1], plain, parts[:0:-1], words[::-1], characters[::-1]]
    for pool in pools:
        chosen, total = list[Span](), 0
        for span in pool:
            if total < need and (weight := weigh(text[slice(*span)])):
                chosen.append(span)
                total += weight
        if total >= need:
            shorter = substitute(text, [(a, b, "") for a, b in sorted(chosen)])
            yield _close_gaps(shorter) if len(chosen) > 1 and chosen[0] in parts[-1:] + plain else shorter


def _close_gaps(text: str) -> str:
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)^[^\S\n]+$", "", text))
    _, high = core_span(text)
    return text[:high].rstrip() + text[high:]
