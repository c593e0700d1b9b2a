"""Which of the verdicts in a judge's own words is the one that it gives.

Of several that differ, one is final that says so, or corrects the one before, or stands alone in the last line. It
knows no format of a verdict; the English is that of ``english``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from distract.reading.english import dismissed, led, weight


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict where it stands.

    Attributes:
        label: None for one that was not on offer.
        start: its first character.
        end: the place after its last.
        marked: how final its own words say that it is, as ``english.weight``.
        bare: whether it is a label that could also be a name.
    """

    label: str | None
    start: int
    end: int
    marked: int = 0
    bare: bool = False


@dataclass(frozen=True, slots=True)
class _Given:
    """A verdict that stands, with how final it is and whether its label makes it one aspect's."""

    statement: Statement
    weight: int
    aspect: bool


_HEAD, _TAIL = 200, 400
"""So much of a sentence's beginning, and of what is next to a verdict, is looked at."""

_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DMS]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)[\s\"'”’)*_]+|(?<=[。！？])|\n"
)
_CORRECTED = re.compile(
    r"(?i)(?:\A|[.!?\n—–]|\bbut)[\W_]*(?:but |oh |hmm,? )?(?:actually|wait|hold on|on reflection|"
    r"on (?:closer|second) \w+|second thoughts?|correct(?:ion|ed)|no,|looking again|"
    r"(?:re-?|double.?)(?:check|read)(?:ed|ing)?)\b|"
    r"\b(?:I|my) (?:now |must |have to )?(?:change|revise|correct|switch|amend|reconsider)(?:d|ed)?\b|\bbecomes\b|"
    r"\bchanged my mind\b|\b(?:revised|corrected) (?:\w+ )?(?:verdict|rating|ranking|score|answer)\b"
)
_TAKEN_BACK = re.compile(
    r"(?i)\bI (?:\w+ )?(?:withdraw|retract|take (?:that|it|this|my \w+) back)\b|\bscratch that\b|"
    r"\b(?:cannot|can['’]t) stand by\b|(?:\A|[.!?\n])\W*no, that (?:is|was) wrong|"
    r"\b(?:ignore|disregard) (?:my|the above|that|this) (?:verdict|answer|choice|rating)\b|"
    r"\b(?:this|that|my) (?:verdict|rating|choice|decision) (?:is|was) (?:wrong|mistaken|too)\b|"
    r"\bon reflection,? (?:this|that|it) (?:is|was) (?:wrong|too)\b"
)
_LISTED = re.compile(
    r"(?i)[\s,;/|<>=\"'`“”*_-]*(?:(?:and/or|and|or|nor|vs\.?|versus)\b[\s\"'`“*_]*)?(?:an? |for \w+ |\boutput )?"
)
_LABEL = re.compile(r"[\W_]*([^\n:.!?]{1,50}):[\W_]*")
_HEADING = re.compile(r"#+ [^\n]{1,60}|[*_]{2}[^\n*_]{1,60}[*_]{2}:?|[^\n:]{1,60}:[*_]*")
_WORDS = 5
"""A label of more words is a sentence that introduces something."""


def final(text: str, found: Sequence[Statement], lines: bool = True, cut: bool = False) -> str | None:
    """The verdict that a judge gives.

    Args:
        text: its own words, what is quoted masked.
        found: all verdicts in them, in order.
        lines: whether standing alone in the last line makes a verdict final.
        cut: whether the answer goes on: then what is labelled as one aspect stands for nothing.

    Returns:
        The label; None where there is no verdict, none that was on offer, or several with nothing final.
    """
    given = _given(text, found) if found else []
    if cut:
        given = [one for one in given if not one.aspect]
    if not given:
        return None
    last = given[-1].statement
    if _TAKEN_BACK.search(text[last.end :]):
        return None
    if len({one.statement.label for one in given}) == 1:
        return last.label
    given = [one for one in given if not one.aspect]
    if given and given[-1].statement is last:
        before = given[-2].statement.end if len(given) > 1 else 0
        if _CORRECTED.search(text[before : last.start]) or (lines and _alone_at_end(text, last)):
            return last.label
    top = max((one.weight for one in given), default=0)
    labels = {one.statement.label for one in given if one.weight == top}
    return labels.pop() if len(labels) == 1 else None


def _given(text: str, found: Sequence[Statement]) -> list[_Given]:
    """What is neither dismissed nor named side by side with another, as what there is to choose from."""
    sentences = _Sentences(text)
    listed = set()
    for one, other in pairwise(found):
        between = text[one.end : other.start]
        if one.label != other.label and len(between) < 40 and _LISTED.fullmatch(between):
            listed |= {one.start, other.start}
    given = []
    for one in found:
        before, after = sentences.around(one)
        if one.start in listed or dismissed(before, after, one.bare, one.marked > 0):
            continue
        aspect = not one.marked and _aspect(text, one.start, before)
        given.append(_Given(one, 0 if aspect else max(weight(before), one.marked), aspect))
    return given


def _aspect(text: str, start: int, before: str) -> bool:
    """Whether a label in front of a verdict, or a heading above it, makes it that of one aspect."""
    label = _LABEL.fullmatch(before)
    words = label[1] if label else ""
    if not label and not before.strip(" *_>#-\n"):
        above = text[: max(0, text.rfind("\n", 0, start))][-80:].rpartition("\n")[2]
        words = above if _HEADING.fullmatch(above) else ""
    if not words or len(words.split()) > _WORDS or re.search(r"\b(?:I|my|My)\b", words):
        return False
    return weight(words) < 2 and not led(words + ": ")


class _Sentences:
    """Where the sentences of a text begin; one that ends with a colon goes on in the next line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts, self._ends = [0], []
        for found in _SENTENCE.finditer(text):
            if found[0] != "\n" or not text[max(0, found.start() - 6) : found.start()].rstrip(" *_").endswith(":"):
                self._starts.append(found.end())
                self._ends.append(found.start())
        self._ends.append(len(text))

    def around(self, one: Statement) -> tuple[str, str]:
        """What stands before and after a verdict in its sentence."""
        text = self._text
        start = self._starts[bisect_right(self._starts, one.start) - 1]
        before = text[start : one.start]
        if len(before) > _HEAD + _TAIL:
            before = f"{before[:_HEAD]} … {before[-_TAIL:]}"
        if text[one.end - 1] in ".!":
            return before, ""
        end = self._ends[bisect_left(self._ends, one.end)]
        end += text[end : end + 1] in ('"', "'", "”", "’", ")")
        return before, text[one.end : min(end, one.end + _HEAD)]


def _alone_at_end(text: str, one: Statement) -> bool:
    line = text[text.rfind("\n", 0, one.start) + 1 : one.start] + text[one.end :]
    return not re.search(r"\w", line)
