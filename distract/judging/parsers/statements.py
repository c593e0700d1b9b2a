"""Which of the verdicts in a judge's own words is the one that it gives.

The only one; else the last, where it corrects the ones before or says that it is final and no other does.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from distract.judging.parsers.sentences import LONG, is_own_verdict
from distract.judging.parsers.vocabulary import (
    DENIED,
    LOST,
    SUPPOSED,
    TOLD,
    has_first_word,
    has_word,
    is_plain,
    is_wordless,
    words,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict where it stands.

    Attributes:
        label: None for one that was not on offer.
        start: its first character.
        end: the place after its last.
        named: whether it is but the name of a response, of which a verdict has to be said.
    """

    label: str | None
    start: int
    end: int
    named: bool = False


_NEAR = 400
"""So much text on either side of a verdict is looked at."""
_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DMS]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)(?<!\n\d\.)(?<!\A\d\.)"
    r"[\s\"'”’)*_]+|(?<=[。！？])|\n(?!(?:is|was|which|has|comes|stands|loses|should|must|would)\b)"
)
_FINAL = re.compile(
    r"(?i)\b(?:overall|final\w*|endgültig\w*|insgesamt|definiti\w+)\b[^.,;\n]{0,40},?\s*\Z|(?:最[終终]|최종).{0,20}\Z"
)
_CORRECTED = re.compile(
    r"(?i)(?:\A|[.!?\n—–]|\bbut)[\W_]{0,9}(?:but |oh |hmm,? )?(?:actually|sorry|I meant?|wait|hold on|on reflection|"
    r"on (?:closer|second) \w+|second thoughts?|correct(?:ion|ed)|no(?=,)|looking again|re-?(?:check|read)\w*)\b|"
    r"\b(?:I|my) (?:now |must |have to )?(?:change|revise|correct|switch|amend|reconsider|withdraw|retract)\w*\b|"
    r"\b(?:becomes|changed my mind|scratch that|take (?:that|it|this|my \w+) back|(?:cannot|can['’]t) stand by|"
    r"(?:just|only) (?:kidding|joking)|(?:ignore|disregard) (?:my|the above|that|this) (?:verdict|choice|rating)|"
    r"(?:revised|corrected) (?:\w+ )?(?:verdict|rating|ranking|score|answer))\b|"
    r"\bI(?:['’]m| am) not (?:\w+ )?(?:sure|certain)\W*(?:$|[.!\n])"
)
"""Takes back the verdict before it."""
_REFUSED = re.compile(
    r"(?i)\bI(?:['’]\w+)?(?: \w+){0,2} (?:decline|refuse|abstain|not|cannot|won['’]t|can['’]t|don['’]t|haven['’]t)\b"
    r"(?! only)(?: \w+){0,5} (?:verdict|judge|judge?ment|rate|rating|rank|pick|choose|decide|winner|evaluation|grade|"
    r"score|endorse|adopt)\b(?!\W*(?:\[\[|output|[a-c]\b))"
    r"|\bno (?:verdict|rating|judge?ment)\b"
)
"""Says that a judge gives no verdict."""
_NEXT = re.compile(
    r"(?im)^[^\w\n]*(?:(?:please )?(?:compare|evaluate|judge|rate) (?:the|these)\b|(?:now )?(?:(?:the|a) )?"
    r"(?:new|next|another) (?:question|task|instruction|prompt|example|case|pair|item|comparison|round)\b|(?:(?:user|"
    r"new) )?(?:question|instruction|input|prompt|task|example|case|user|item|comparison|conversation|pair|q(?=[\d:])|"
    r"frage|pregunta|domanda|pergunta|вопрос|问题|質問|질문)"
    r" ?(?:#?\d+|\([^)\n]*\))?[*_]*(?:[:.)\]]|$))"
)
"""Begins what a model invents after its verdict: the next question."""
_LISTED = re.compile(
    r"(?i)(?:[^\n\[\]|]{0,40}\b(?:and|or)\b)?(?:[^\w.!?\[\]|]|[\d_]|\|\n\|(?:[ \d]*\|)?)*"
    r"(?:(?:and|or|nor|vs|versus|to|also|output|is|so)\b[^\w|]*){0,3}"
)
_CLOSED = re.compile(r"\]\](?=[,;，、；])")
_ITEM = re.compile(r"[-*+•·] |\(?\w{1,3}[.)] ")
_ENDED = re.compile(r"(?:[.!。！…}]|\]\]\??)[\s*_\"'”’)]*\Z")
_POINTED = re.compile(
    r"(?i)\b(?:follow(?:s|ing)|next line|here)\b[^,;]{0,15}\Z|\bbelow\b|"
    r"\A(?:what follows|this is (?:the|an?)|here is)\b"
)
_POINTED_ASIAN = re.compile(r"[劣差敗败負负拒].*(?:次|下|다음)|패자|탈락")
_DISOWNED = re.compile(
    rf"(?i)[\W_]*(?:(?:which|ignor\w*|disregard\w*|cop[iy]\w*|quoted?|fake\w*)\b|"
    rf"(?:the )?(?:line|label|verdict) above\b[^.!?\n]*\b(?:{LOST}|{TOLD}|not)\b|(?:this|that|the above)\b(?:['’]s)?(?:"
    rf"(?:\W+(?:is|was|the|that|which|an?|who|I|one|label|verdict|tag|text|line|response|answer|clearly|above))*"
    rf"\W+(?:{LOST}|{TOLD}|example|test|wrong|incorrect|mistake\w*)\b|"
    rf"[^.!?\n]*\b(?:not|n['’]t) (?:my|mine|chosen|preferred|selected|the \w+|a verdict)\b|"
    rf" was\b[^.!?]*\b(?:copied|copy|quoted|hidden|injected|planted|from|of)\b))"
)
"""Says in the next sentence that a verdict is none of the judge's."""


def final_verdict(text: str, statements: Sequence[Statement]) -> str | None:
    """The verdict that a judge gives."""
    given = _select_own(text, statements) if statements else []
    if (question := _NEXT.match(text)) and _NEXT.search(text, question.end()):
        return None  # no answer, but questions and answers that the model invents
    if given and (question := _NEXT.search(text, given[0].end)):
        text = text[: question.start()]
        given = [one for one in given if one.end <= len(text)]
    if not given or _CORRECTED.search(text[given[-1].end :]):
        return None
    last = given[-1]
    # Further above, a judge may tell what a response refuses.
    line = text.rfind("\n", 0, last.start)
    if _REFUSED.search(text, text.rfind("\n", 0, max(0, line)) + 1):
        return None
    others = [one for one in given if one.label != last.label]
    if not others or _CORRECTED.search(text[others[-1].end : last.start]):
        return last.label
    lines = [text[text.rfind("\n", 0, one.start) + 1 : one.start] for one in (others[-1], last)]
    is_first = is_wordless(text[: others[0].start])
    return last.label if _FINAL.search(lines[1]) and not _FINAL.search(lines[0]) and not is_first else None


def _select_own(text: str, statements: Sequence[Statement]) -> list[Statement]:
    """What stands; what is listed side by side is only what there is to choose from."""
    sentences = _Sentences(text)
    listed = {
        side.start
        for one, other in pairwise(statements)
        if text[one.start : one.end] != text[other.start : other.end]
        and _is_enumeration(text[one.end : other.start], other.named)
        for side in (one, other)
    }
    return [
        one
        for one in statements
        if one.start not in listed
        and not sentences.is_disowned(one)
        and is_own_verdict(*sentences.context(one), one.label, one.named)
    ]


def _is_enumeration(between: str, named: bool) -> bool:
    """Whether two verdicts with so much between them are both claimed, or neither."""
    if len(between) > _NEAR or (named and "\n" in between):
        return False
    return bool(_LISTED.fullmatch(between) or (re.match(r"\W*(?:and|or)\b", between) and is_plain(between)))


class _Sentences:
    """Where the sentences of a text begin and end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(end.end() for end in re.finditer("\n", text))]
        self._bars = [bar.start() for bar in re.finditer(r"\|", text)]
        self._starts, self._ends = [0], []
        self._disowned: dict[int, bool] = {}
        for gap in _SENTENCE.finditer(text):
            self._starts.append(gap.end())
            self._ends.append(gap.start())
        self._ends.append(len(text))

    def end(self, one: Statement) -> int:
        """The end of the sentence that holds a verdict."""
        return one.end if self._text[one.end - 1] in ".!" else self._ends[bisect_left(self._ends, one.end)]

    def is_disowned(self, one: Statement) -> bool:
        """Whether what follows the sentence of a verdict says that it is none of the judge's."""
        end = self.end(one)
        if end not in self._disowned:  # many verdicts may stand in one sentence
            self._disowned[end] = _DISOWNED.match(self._text, end) is not None
        return self._disowned[end]

    def context(self, one: Statement) -> tuple[str, str, str]:
        """What leads to the sentence of a verdict; what stands before and after it in its sentence."""
        text = self._text
        start = self._starts[bisect_right(self._starts, one.start) - 1]
        line = self._lines[bisect_right(self._lines, one.start) - 1]
        first = max(0, one.start - LONG - 1)
        after = text[one.end : min(self.end(one), one.end + _NEAR)]
        if text[line] == "|":
            *cells, own = text[max(line, first) : one.start].split("|")
            left = [cell for cell in cells if "]]" not in cell and re.search(r"[^\W\d_]", cell)]
            # In a table the conclusion may be a part of what is judged.
            column = bisect_left(self._bars, one.start) - bisect_left(self._bars, line)
            parts = ["part of"] if has_word(" ".join(left), r"conclu\w+|fazit") else []
            return self._column_head(line, column), " ".join([*parts, *left, own]), after.split("|")[0]
        start = max(start, first)
        start = max([start, *(gap.end() for gap in _CLOSED.finditer(text, start, one.start))])
        before = text[start : one.start]
        return self._find_lead(start, one.label or "", is_wordless(before)), before, after

    def _find_lead(self, start: int, label: str, is_below: bool) -> str:
        """The line or sentence before a place, where it leads there: a heading, a question, the name of a loser."""
        lines = self._text[max(0, start - 3 * _NEAR) : start].split("\n")
        lines = [line for line in lines if line.startswith("---") or not (is_wordless(line) or line.startswith("```"))]
        if _ITEM.match(self._text, start):
            while lines and _ITEM.match(lines[-1]):
                lines.pop()
            lines = lines if is_below else []
        if not lines or is_wordless(lines[-1]):
            return ""
        lead = re.split(r"(?<=[.!?]) ", lines[-1].strip())[-1]
        if not _ENDED.search(lead):
            is_row = lead[-1] != ":" and not lead.startswith("**") and ("|" in lead or _ITEM.match(lines[-1]))
            return "" if is_row else lead.strip("#*_ ")
        ends = [name.end() for name in re.finditer(rf"\b{re.escape(label)}\b", lead)] if label else []
        is_lost = any(has_first_word(lead[end:], LOST) for end in [*ends, *([0] if len(words(lead)) < 4 else [])])
        is_harmed = any(
            _POINTED.search(one) and has_word(one, LOST, TOLD, DENIED, SUPPOSED)
            for one in re.split(r"(?<=[.!?]) ", lines[-1])
        )
        is_harmed = is_harmed or _POINTED_ASIAN.search(lead) is not None
        return lead if len(words(lead)) < 40 and (is_lost or is_harmed) else ""

    def _column_head(self, line: int, column: int) -> str:
        """The head of a table's column."""
        rows = self._text[max(0, line - 3 * _NEAR) : line].split("\n")
        cells = next((row.split("|") for row in rows if row.startswith("|")), [])
        return cells[column] if column < len(cells) else ""
