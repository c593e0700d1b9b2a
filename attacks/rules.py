"""Tools of the rule writers: find the places where a text may be edited, and edit it within its constraints.

A writer proposes candidates in order; a candidate is a tuple of alternative edits ``(start, end, replacement)`` of
the original text, the best first. ``apply`` keeps as many as the format allows: an edit that would break a constraint
or repair a broken one is replaced by its next alternative or left out.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from distract import Constraint, constraints as formats, facts

Edit = tuple[int, int, str]
Candidate = tuple[Edit, ...]
Span = tuple[int, int]

T = TypeVar("T")

MOST_GROWTH = 0.05
"""Maximum change of the length of a text, in characters and in words, by edits that must not show in it."""

TRIALS = 400
"""Maximum texts to check against the constraints for one rewrite, so that the time stays linear."""

_FIXED = re.compile(
    r"<<[^\n<>]{1,300}>>|\[[^\[\]\n]{1,300}\]|\{[^{}\n]{1,300}\}|</?[A-Za-z][^<>\n]{0,200}>"  # titles, names, tags
    r"|\*\*[^*\n]{1,200}\*\*|(?<![*\w])\*[^*\s][^*\n]{0,200}\*|(?<!\w)_[^_\n]{1,200}_(?!\w)"  # emphasis marks terms
    r"|\$\$[^$]{1,500}\$\$|\\\([^\n]{1,300}?\\\)"  # formulas
    r"|‘[^‘’\n]{1,200}’(?!\w)|(?<!\w)'[^'\n]{2,200}'(?!\w)"  # single quotes
    r"|[$€£¥]?\d[\d.,:/]*\w*%?"
)
_LINE = re.compile(
    r"^[ \t]*+(?:#{1,6} .*|.*\|.*|[-*_=]{3,}[ \t]*|>.*|(?:import|from|def|class|return|const|let|var|#include)\b.*"
    r"|(?:for|if|while|else|try|elif)\b[^\n]*:[ \t]*|.*[;{}][ \t]*|[\w.]+\([^\n]*\)[ \t]*"
    r"|[\w.\[\]]+ ?[+*-]?= ?[^\n]*"
    r"|(?:SECTION|Section|PARAGRAPH|Dear|Sincerely)\b[^\n]{0,40})$",
    re.M,
)
_HEAD = re.compile(r"<<|#|\*\*|(?:dear|hi|hello|greetings|subject|to)\b[^.!?\n]{0,80}$", re.I | re.M)
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\(?\w{1,3}[.)])[ \t]+|[ \t]*[A-Z][\w ]{0,24}:[ \t]+|[ \t]+")
_STOP = re.compile(r"[.!?]{1,4}[\"”’)*]{0,4}(?=[ \t]+[\"“(*]?[A-Z\d]|[ \t]*$)", re.M)
_SOFT_STOP = re.compile(r"[.!?]{1,4}[\"”’)*]{0,4}(?=[ \t]+\S|[ \t]*$)", re.M)
_SHORT = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Inc|Jr|Sr|e\.g|i\.e|U\.S|U\.K|a\.m|p\.m)|\b[A-Z])\Z")


class Text:
    """A text and the places where it may be edited.

    Attributes:
        text: the original.
        source: the text for pattern matching: a text in capitals becomes lower case.
        sentences: spans of the sentences, in order.
        plain: spans of the sentences that are not list items.
        starts: beginnings of lines and sentences, where a capital does not mark a name.
    """

    def __init__(self, text: str) -> None:
        self.text = self.source = text
        has_letters = any(map(str.isalpha, text))
        self._is_lower = has_letters and not any(map(str.isupper, text))
        # "11 is a prime." has no capital either, but is not written in lower case.
        self._is_styled = self._is_lower and text.lstrip(" \n\"'*-#([<_")[:1].isalpha()
        self._is_upper = not any(map(str.islower, text)) and any(map(str.isupper, text))
        if self._is_upper and len(text.lower()) == len(text):
            self.source = text.lower()
        spans = facts.code_spans(text) + facts.quote_spans(text)
        spans += [m.span() for pattern in (facts.URL, _FIXED, _LINE) for m in pattern.finditer(text)]
        self._protected: list[Span] = []
        for start, end in sorted(spans):
            if self._protected and start <= self._protected[-1][1]:
                self._protected[-1] = (self._protected[-1][0], max(end, self._protected[-1][1]))
            else:
                self._protected.append((start, end))
        self._starts = [start for start, _ in self._protected]
        self.sentences, self.plain, self.starts = list[Span](), list[Span](), set[int]()
        self._find_sentences()

    def free(self, start: int, end: int) -> bool:
        """Whether a span touches no protected part; an insertion may be at the edge of one."""
        index = bisect_left(self._starts, end) - 1
        return index < 0 or start >= self._protected[index][1]

    def adapt(self, words: str) -> str:
        """Put words into the case of the text: lower, upper or unchanged."""
        return words.lower() if self._is_styled and self.sentences else words.upper() if self._is_upper else words

    def adapt_all(self, options: Iterable[str]) -> list[str]:
        """Return the options in the case of the text, and also in lower case if the text has no capitals."""
        adapted = [self.adapt(option) for option in options]
        return [*adapted, *(option.lower() for option in adapted)] if self._is_lower else adapted

    def sentence_at(self, position: int) -> int | None:
        """Return the index of the sentence at a position, if there is one."""
        index = bisect_right(self.sentences, (position, len(self.text))) - 1
        return index if index >= 0 and position < self.sentences[index][1] else None

    def _find_sentences(self) -> None:
        low, high = facts.core(self.text)
        position = low
        for line in self.text[low:high].split("\n"):
            begin, end = position, position + len(line)
            position = end + 1
            item = _ITEM.match(line)
            begin += item.end() if item else 0
            self.starts.add(begin)
            # In a text without capitals sentences begin in lower case.
            for stop in (_SOFT_STOP if self._is_lower else _STOP).finditer(self.text, begin, end):
                if not _SHORT.search(self.text, max(begin, stop.start() - 8), stop.start()):
                    if len(self.text[begin : stop.end()].split()) > 3 and self.free(begin, begin):
                        self.sentences.append((begin, stop.end()))
                        self.plain += [] if item else [(begin, stop.end())]
                    begin = stop.end() + 1
                    self.starts.add(begin)


def order_options(options: Sequence[str], seed: int, salt: str) -> list[str]:
    """Shuffle the options by the seed."""
    return random.Random(f"{seed}/{salt}").sample(list(options), len(options))


def draw_some(options: Sequence[T], seed: int, salt: str) -> list[T]:
    """Draw from about half of the options to all of them by the seed, at least one, in random order."""
    draw = random.Random(f"{seed}/{salt}")
    shuffled = draw.sample(list(options), len(options))
    return shuffled[: draw.randint(max(1, (len(shuffled) - 1) // 2), max(1, len(shuffled)))]


def keep_length(text: str, groups: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Take groups of candidates, each whole, as long as none overlap and the length stays almost the same."""
    allowed = MOST_GROWTH * len(text), MOST_GROWTH * len(text.split())
    growth, taken, kept = (0, 0), list[Span](), list[Candidate]()
    for group in groups:
        edits = [candidate[0] for candidate in group]
        more = [
            (len(new) - (end - start), len(new.split()) - len(text[start:end].split())) for start, end, new in edits
        ]
        total = growth[0] + sum(one[0] for one in more), growth[1] + sum(one[1] for one in more)
        if all(abs(size) <= most for size, most in zip(total, allowed, strict=True)):
            fitting = [one for one in group if _take_span(taken, *one[0][:2])]
            kept += fitting
            growth = total if fitting else growth
    return kept


def opening(text: Text, sentences: Iterable[str]) -> Candidate:
    """Propose an opening sentence: inside the first paragraph if that is prose, else above it."""
    low = facts.core(text.text)[0]
    words = text.adapt_all(sentences)
    first = text.plain[0][0] if text.plain else -1
    inline = [(first, first, f"{s} ") for s in words if first >= 0]
    above = [(low, low, f"{s}\n\n") for s in words]
    later = [(end, end, f" {s}") for _, end in text.plain[:3] for s in words]
    is_titled = first >= 0 and _HEAD.match(text.text, low)
    return tuple((inline + above if is_titled or first == low else above + inline) + later)


def closing(text: Text, sentences: Iterable[str]) -> Candidate:
    """Propose a closing sentence: inside the last paragraph if that is prose, else below it."""
    high = facts.core(text.text)[1]
    words = text.adapt_all(sentences)
    last = text.plain[-1][1] if text.plain else -1
    below = [(high, high, f"\n\n{s}") for s in words]
    inside = [(last, last, f" {s}") for s in words if last >= 0]
    # If the end is fixed (an end phrase, a postscript), put the sentence before the last one.
    before = [(start, start, f"{s} ") for start, _ in text.plain[:-4:-1] for s in words]
    is_letter = text.text[facts.core(text.text)[0] :][:5].lower() == "dear "
    return tuple((inside + below if last == high or (is_letter and inside) else below + inside) + before)


def substitute(text: Text, pattern: re.Pattern[str], replacement: str) -> list[Candidate]:
    """Propose a replacement for every free match of a pattern, in the case of the match.

    A match inside a name (capitalised, not at the start of a sentence) or in a hyphenated compound stays.
    """
    candidates: list[Candidate] = []
    for match in pattern.finditer(text.source):
        start, end = match.span()
        old, new = match[0], text.adapt(match.expand(replacement))
        around = text.text[start - 1 : start] + text.text[end : end + 1]
        if not text.free(start, end) or "-" in around or "_" in around or "/" in around or old == new:
            continue
        if old[0].isupper():
            if old.isupper() and len(old) > 1:
                new = new.upper()
            elif start in text.starts:
                new = new[:1].upper() + new[1:]
            elif not old.startswith("I "):
                continue
        candidates.append((adjust_article(text.text, start, end, new),))
    return candidates


def adjust_article(text: str, start: int, end: int, new: str) -> Edit:
    """Extend an edit to the article before it, which depends on the sound of the next word."""
    match = re.search(r"\b([Aa])n? \Z", text[max(0, start - 4) : start])
    if match and new and new[0].isalpha():
        vowel = new[0].lower() in "aeiou" and not new.lower().startswith(("uni", "use", "uti", "eu", "one"))
        return start - len(match[0]), end, f"{match[1]}{'n' if vowel else ''} {new}"
    return start, end, new


def apply(text: str, candidates: Iterable[Candidate], constraints: Sequence[Constraint]) -> str:
    """Apply candidates in order, as long as no constraint changes from met to broken or back.

    A candidate that overlaps an earlier one is left out.
    """
    before = tuple(formats.check(constraint, text) for constraint in constraints)
    trials = TRIALS if constraints else 10**9
    accepted: list[Edit] = []

    def fits(edits: Sequence[Edit]) -> bool:
        nonlocal trials
        trials -= 1
        if trials < 0:
            return False
        ordered = sorted([*accepted, *edits], key=lambda e: e[:2])
        if any(a[1] > b[0] for a, b in pairwise(ordered)):
            return False
        new = _render(text, ordered)
        return tuple(formats.check(constraint, new) for constraint in constraints) == before

    def take(batch: Sequence[Candidate]) -> None:
        """Try a batch as a whole and halve it if it fails: few edits clash, so this needs few checks."""
        if not batch:
            return
        if not constraints or fits([options[0] for options in batch]):
            accepted.extend(options[0] for options in batch)
        elif len(batch) > 1:
            take(batch[: len(batch) // 2])
            take(batch[len(batch) // 2 :])
        else:
            accepted.extend(next(([option] for option in batch[0][1:] if fits([option])), []))

    take(_drop_overlaps(candidates))
    return _render(text, sorted(accepted, key=lambda e: e[:2]))


def _drop_overlaps(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Leave out candidates whose best edit overlaps that of an earlier candidate."""
    taken: list[Span] = []
    return [candidate for candidate in candidates if candidate and _take_span(taken, *candidate[0][:2])]


def _take_span(taken: list[Span], start: int, end: int) -> bool:
    """Insert a span into sorted ones unless it overlaps one of them; return whether it was inserted."""
    index = bisect_left(taken, (start, end))
    if any(start < e and s < end for s, e in taken[max(index - 1, 0) : index + 1]):
        return False
    taken.insert(index, (start, end))
    return True


def _render(text: str, edits: Iterable[Edit]) -> str:
    parts, position = [], 0
    for start, end, new in edits:
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])
