"""Which of the verdicts in a judge's own words is the one that it gives.

A verdict that is denied, supposed, asked, reported or weighed is none. Of several that differ, one is final that says
so, or stands alone in the last line. It knows the English of judges, and no format of a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict where it stands.

    Attributes:
        label: None for one that was not on offer.
        start: its first character.
        end: the place after its last.
        marked: whether its own words say that it is final.
    """

    label: str | None
    start: int
    end: int
    marked: bool = False


_SENTENCE = re.compile(r"(?<=[.!?…])[\s\"'”’)*_]+|\n")
_CLAUSE = re.compile(r"[,;:—–]|\b(?:but|so|because|since|therefore|although|though|while|whereas)\b", re.IGNORECASE)
_DENIED = re.compile(
    r"(?i)\b(?:not|never|cannot|no|nobody|none|neither|nor|hardly|without|wrong to|mistake to|rather than|instead of|"
    r"unfair to|incorrect to|misleading to|refuse to|refuses to|decline to|false that|untrue that|doubt(?:ful)?"
    r"(?: that| whether)?|far from|less than|fails to)\b|n['’]t\b|\b(?:nicht|kein|keine|pas|non|nunca|no es)\b"
)
_UNSURE = re.compile(
    r"(?i)\b(?:perhaps|maybe|possibly|probably|presumably|conceivably|might|may|could|can be argued|arguably|tempt(?:ed|ing)|lean(?:s|ing)?|"
    r"inclined|almost|nearly|seems?|appears?|suspect|guess|would have|"
    r"at first(?: sight| glance)?|initially|my first|first (?:impression|thought|instinct|reaction)|for a moment|"
    r"whether|one (?:may|might|could|can)|some (?:may|might|would|could|people|readers)|many (?:would|may|might))\b"
)
_SUPPOSED = re.compile(
    r"(?i)(?:^\W*|[,;:—–(]\s*|\b(?:and|but|so|then|even|only)\s+)(?:if|had|were|unless|suppose|supposing|assuming|"
    r"imagine|in case|provided that|as long as|depending on)\b"
)
_REPORTED = re.compile(
    r"(?i)(?<!\bI )(?<!\bwe )\b(?:says?|said|saying|claims?|claimed|claiming|states?|stated|stating|insists?|asserts?|"
    r"declares?|argues?|writes?|wrote|tells?|told|telling|announces?|demands?|asks?|asked|asking|begs?|orders?|urges?|"
    r"instructs?|pleads?|requests?|requested|requesting|wants|reads|contends?|maintains|boasts?|alleges?)\b(?: (?:that|me|us|you|the judge|to \w+|for))*"
    r"\W*(?:\w+\W+){0,4}\Z"
)
_ACCORDING = re.compile(
    r"(?i)\baccording to (?:the |its |their )?(?:\w+ )?(?:response|assistant|output|answer|author|user|text|candidate)\b"
)
_FIRST_PERSON = re.compile(r"(?i)\b(?:I|we)\s+(?:\w+\s+){0,3}\w+(?:\s+that)?\W*\Z")
_FINAL = re.compile(
    r"(?i)\b(?:therefore|thus|hence|consequently|overall|in conclusion|in summary|to conclude|to sum up|conclusion|"
    r"final(?:ly)?|ultimately|on balance|all in all|(?:all|every)thing(?:s)? considered|in the end|after all|"
    r"(?:my|the) (?:verdict|decision|ranking|rating|answer|choice) (?:is|remains|stays))\b"
)
_CORRECTED = re.compile(
    r"(?i)\b(?:actually|wait|on reflection|on (?:closer|second) \w+|second thoughts?|correction|corrected|"
    r"reconsider(?:ed|ing)?|(?:i|my) (?:now |must |have to )?(?:change|revise|correct|switch|amend)(?:d|ed)?|revised|"
    r"instead|becomes|changed my mind|looking again|re-?check(?:ed|ing)?|re-?read(?:ing)?|double.?check(?:ed|ing)?)\b"
)
_LISTED_AFTER = re.compile(r"(?i)\A\s*(?:,\s*)?(?:(?:,|or|and|and/or|/|\|)\s*)+(?:for \w+ )?\Z")
_SHAKEN_AFTER = re.compile(
    r"(?i)\A\W{0,3}\s*(?:\?|(?:would|could|might|may) (?:be|have|seem|also)|(?:is|was|seems|looks) (?:not|n't|wrong|"
    r"incorrect|tempting|too|ruled out|out of the question|also possible|what it|what the)|to (?:be|win|count|stand)\b|"
    r"(?:,\s*)?(?:\w+\s+){1,5}would (?:have|need) to\b|"
    r"(?:,\s*)?(?:perhaps|maybe|possibly|I guess|or maybe|if (?!any|anything))\b)"
)
_TAKEN_BACK = re.compile(
    r"(?i)\b(?:withdraw|retract|take (?:that|it|this) back|scratch that|cannot stand by|can't stand by|"
    r"(?:ignore|disregard) (?:that|this|the above|my) ?(?:verdict|answer|choice|rating)?)\b"
)


def final(text: str, found: Sequence[Statement], lines: bool = True) -> str | None:
    """The verdict that a judge gives.

    Args:
        text: its own words, what is quoted masked.
        found: all verdicts in them, in order.
        lines: whether standing alone in the last line makes a verdict final.

    Returns:
        The label; None where there is no verdict, none that was on offer, or several with nothing final.
    """
    listed = _listed(text, found)
    given = [one for one in found if one not in listed and not _dismissed(text, one)]
    if not given:
        return None
    last = given[-1]
    if _TAKEN_BACK.search(text[last.end :]):
        return None
    if len({one.label for one in given}) == 1:
        return last.label
    if _CORRECTED.search(text[given[-2].end : last.start]) or (lines and _alone_at_end(text, last)):
        return last.label
    marked = {one.label for one in given if one.marked or _FINAL.search(_sentence_before(text, one.start))}
    return marked.pop() if len(marked) == 1 else None


def _sentence_before(text: str, place: int) -> str:
    """What stands before a place in its sentence; a sentence that ends with a colon goes on in the next line."""
    start = 0
    for found in _SENTENCE.finditer(text, 0, place):
        if not text[: found.start()].rstrip(" *_").endswith(":"):
            start = found.end()
    return text[start:place]


def _dismissed(text: str, one: Statement) -> bool:
    sentence = _sentence_before(text, one.start)
    clause = _CLAUSE.split(sentence)[-1]
    if _DENIED.search(clause) or _UNSURE.search(clause) or _SUPPOSED.search(sentence):
        return True
    if _ACCORDING.search(sentence) or (_REPORTED.search(clause) and not _FIRST_PERSON.search(clause)):
        return True
    return bool(_SHAKEN_AFTER.search(text[one.end : one.end + 40]))


def _listed(text: str, found: Sequence[Statement]) -> list[Statement]:
    """Verdicts that are named side by side, as what there is to choose from."""
    together: list[Statement] = []
    for one, other in zip(found, found[1:], strict=False):
        if one.label != other.label and _LISTED_AFTER.search(text[one.end : other.start]):
            together += [one, other]
    return together


def _alone_at_end(text: str, one: Statement) -> bool:
    line = text[text.rfind("\n", 0, one.start) + 1 : one.start] + text[one.end :]
    return not re.search(r"\w", line)
