"""Which of the verdicts in a judge's own words is the one that it gives.

The only one; else the last, where it corrects the ones before or says that it is final and no other does.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from distract.reading.sentences import disowned, standing


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict where it stands.

    Attributes:
        label: None for one that was not on offer.
        start: its first character.
        end: the place after its last.
        asserted: whether it says itself who is better.
    """

    label: str | None
    start: int
    end: int
    asserted: bool = False


_HEAD, _TAIL = 200, 400
"""So much of a sentence's beginning, and of what is next to a verdict, is looked at."""

_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DMS]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)(?<!\n\d\.)(?<!\A\d\.)"
    r"[\s\"'”’)*_]+|(?<=[。！？])|\n"
)
_CORRECTED = re.compile(
    r"(?i)(?:\A|[.!?\n—–]|\bbut)[\W_]{0,9}(?:but |oh |hmm,? )?(?:actually|wait|hold on|on reflection|on (?:closer|"
    r"second) \w+|second thoughts?|correct(?:ion|ed)|no(?=,)|looking again|(?:re-?|double.?)(?:check|read)(?:ed|"
    r"ing)?)\b|\b(?:I|my) (?:now |must |have to )?(?:change|revise|correct|switch|amend|reconsider)(?:d|ed)?\b|"
    r"\bbecomes\b|\bchanged my mind\b|\b(?:revised|corrected) (?:\w+ )?(?:verdict|rating|ranking|score|answer)\b|"
    r"\bscratch that\b|\bI (?:\w+ )?(?:withdraw|retract|take (?:that|it|this|my \w+) back)\b|\b(?:cannot|"
    r"can['’]t) stand by\b|\b(?:ignore|disregard) (?:my|the above|that|this) (?:verdict|answer|choice|rating)\b|"
    r"\b(?:this|that|my) (?:verdict|rating|choice|decision) (?:is|was) (?:wrong|mistaken|too)\b|\b(?:just|"
    r"only) (?:kidding|joking)\b|\bI (?:cannot|can['’]t|could not) (?:tell|decide|say|choose)\W*(?:$|[.!\n])|"
    r"\bI(?:['’]m| am) not (?:\w+ )?(?:sure|certain)\W*(?:$|[.!\n])"
)
"""Takes back the verdict before it."""
_NEXT = re.compile(
    r"(?im)^[^\w\n]*(?:(?:please )?(?:compare|evaluate|judge|rate) (?:the|these)\b|(?:now )?(?:(?:the|a) )?"
    r"(?:new|next|another) (?:question|task|instruction|prompt|example|case|pair|item|comparison|round)\b|(?:(?:user|"
    r"new) )?(?:question|instruction|input|prompt|task|example|case|user|item|comparison|conversation|pair|q(?=\d))"
    r" ?(?:#?\d+|\([^)\n]*\))?[*_]*(?:[:.)]|$))"
)
"""Begins what a model invents after its verdict: the next question."""
_LISTED = re.compile(
    r"(?i)[\s,;/|<>=\"'`“*_-]*(?:(?:and/or|and|or|nor|vs\.?|versus)\b[\s\"'`“*_]*)?"
    r"(?:an? |for \w+ |\boutput |(?<=/ )\w+: )?"
)
_BOTH = re.compile(r"(?i)[^\n]{0,40}\b(?:also|and so (?:is|does)|or(?: rather)?)\W*(?:\w+\W+){0,2}")
_TOO = re.compile(r"(?i)[^.!?\n]{0,30}\b(?:too|as well|just as good|equally good)\W*(?:$|[.!\n])")
_ITEM = re.compile(r"[-*+•·] |\(?\w{1,3}[.)] ")
_HEADING = re.compile(
    r"#+ [^\n]+|[*_]{2}[^\n*_]+[*_]{2}:?|[^\n]*:[*_]*|[^\n]*\b(?:is|are|says|reads|with|by|as)|(?i:[^\n]*\b(?:(?:as |"
    r"what )follows|(?:has|holds|shows) the following(?: (?:at|in)\b[^\n]*)?|below|next line)[.!]?|[^\n]*\b(?:clos\w+|"
    r"end(?:s|ing)|conclud\w+|finish\w+|"
    r"open\w*|begins|starts|sign\w*)\b[^\n]*\b(?:verdict|label|judge\w*|tag|vote)\b[^\n]*|(?:what follows|"
    r"this is (?:the|an?) (?:\w+ )?(?:line|sentence|text|label|quote|part|string|ending))\b[^\n]*)"
)


def final(text: str, found: Sequence[Statement]) -> str | None:
    """The verdict that a judge gives.

    Args:
        text: its own words, what is quoted masked.
        found: all verdicts in them, in order.

    Returns:
        The label; None where there is no verdict, none that was on offer, or several with nothing final.
    """
    given = _given(text, found) if found else []
    if not given:
        return None
    if following := _NEXT.search(text, given[0][0].end):
        text = text[: following.start()]
        given = [(one, weight) for one, weight in given if one.end <= len(text)]
    last = given[-1][0]
    if _CORRECTED.search(text[last.end :]):
        return None
    others = [one for one, _ in given if one.label != last.label]
    if not others:
        return last.label
    if _CORRECTED.search(text[others[-1].end : last.start]):
        return last.label
    if not last.asserted and not re.search(r"\w", text[: given[0][0].start]):
        given[0] = given[0][0], 2  # an answer that begins with its verdict may run on to others
    top = max(weight for _, weight in given)
    return last.label if {one.label for one, weight in given if weight == top} == {last.label} else None


def _given(text: str, found: Sequence[Statement]) -> list[tuple[Statement, int]]:
    """What stands, and how final it is; what is listed side by side is only what there is to choose from."""
    sentences = _Sentences(text)
    listed = set()
    for one, other in pairwise(found):
        between = text[one.end : other.start]
        is_cell = "|" in between and text[text.rfind("\n", 0, one.start) + 1] == "|"
        if one.label == other.label or is_cell or len(between) > _HEAD:
            continue
        if _LISTED.fullmatch(between) or _BOTH.fullmatch(between) or _TOO.match(text[other.end : other.end + _HEAD]):
            listed |= {one.start, other.start}
    ending = None if re.search(r"\w", text[found[-1].end :]) else found[-1]
    stands = (
        (one, standing(*sentences.around(one), one.asserted, one is ending))
        for one in found
        if one.start not in listed
        and not disowned(one.label, text[max(0, one.start - _HEAD) : one.start], text[one.end : one.end + _HEAD])
    )
    return [(one, final) for one, final in stands if final is not None]


class _Sentences:
    """Where the sentences of a text begin; one that ends with a colon goes on in the next line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts, self._ends = [0], []
        for found in _SENTENCE.finditer(text):
            self._starts.append(found.end())
            self._ends.append(found.start())
        self._ends.append(len(text))

    def around(self, one: Statement) -> tuple[str, str, str]:
        """The line above a verdict, where that leads to it; what stands before and after it in its sentence."""
        text = self._text
        start = self._starts[bisect_right(self._starts, one.start) - 1]
        line = text.rfind("\n", 0, one.start) + 1
        if text[line] == "|":
            return self._cell(line, one)
        above = self._above(start if re.search(r"[^\W\d_]", text[line:start]) else line)
        before = text[start : one.start]
        if len(before) > _HEAD + _TAIL:
            before = f"{before[:_HEAD]} … {before[-_TAIL:]}"
        if text[one.end - 1] in ".!":
            return above, before, ""
        end = self._ends[bisect_left(self._ends, one.end)]
        end += text[end : end + 1] in ('"', "'", "”", "’", ")")
        return above, before, text[one.end : min(end, one.end + _HEAD)]

    def _above(self, line: int) -> str:
        above = [one for one in self._text[max(0, line - 3 * _TAIL) : line].split("\n") if re.search(r"\w", one)]
        if _ITEM.match(self._text, line):
            while above and _ITEM.match(above[-1]):
                above.pop()
        heading = re.split(r"(?<=[.!?]) ", above[-1].strip()[-_TAIL:])[-1] if above else ""
        return heading.strip("#*_: ") if _HEADING.fullmatch(heading) else ""

    def _cell(self, line: int, one: Statement) -> tuple[str, str, str]:
        """In a table, the head of the row leads to a verdict, or else that of the column."""
        text = self._text
        *cells, before = text[line : one.start].split("|")
        rows = text[max(0, line - 3 * _TAIL) : line].split("\n")
        heads = next((row.split("|") for row in rows if row.startswith("|")), [])
        head = heads[len(cells)] if len(cells) < len(heads) else ""
        label = next((cell for cell in cells[:2] if re.search(r"[^\W\d_]", cell) and "[[" not in cell), "")
        above = head if re.search(r"\w", before) or not label else label
        return above.strip(), before, text[one.end : one.end + _HEAD].split("\n")[0].split("|")[0]
