"""Choose the final verdict from the verdicts in an answer.

It is the only one, or the last one if that corrects the earlier ones or is the only one marked as final. Only the
judge's own count, which are alone, announced (``My verdict is``) or chosen. All words that lead to such a verdict have
to announce one: with any other word (``Worse:``, ``it claims that``, ``Accuracy:``) it does not count. After a verdict,
and in the clauses before its announcement, a judge may say anything that does not speak against it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from distract.core.vocabulary import any_of, compile_words
from distract.judging.parsers.answers import line_start
from distract.judging.parsers.vocabulary import (
    AGAINST,
    ENUMERATED,
    LONGEST,
    has_first_word,
    has_word,
    is_announcement,
    is_first_person,
    is_plain,
    is_wordless,
    names,
    words,
)
from distract.judging.parsers.words import Value

_CLAUSE = re.compile(rf"[,;:—–()，、；。]|\s-\s|(?<=\w) (?=I\b)|所以|因此|但|\b{any_of('conjunction')}\b")
_PAUSED = re.compile(r"(?<!\W)(?:(?<=\band)|(?<=\bbut)|(?<=\bso)|(?=\W*?[-,;—–.)]))\W*+\Z")
_REASONED = compile_words(r"[\W_]*<reasoned>\b")
"""Begins the judge's own reasons for its verdict."""
_OPENS = re.compile(r"(?::|\b(?:line|sentence|text|label|string|words))\Z")
_CONCEDED = re.compile(r"(?i)\beven if\b|\bif (?:I|we|one|you) (?:have to|must)\b")
_HYPOTHETICAL = re.compile(r"(?i)\W*(?:had|were|should)\b")
_BECAUSE = compile_words(r"[\W_]*<because>\b(?!/)")
_BETTER = compile_words("<better>")
_QUESTION = re.compile(r"[^\"“]*\?[\s*_]*\Z")
_LIMITED = compile_words(
    r"[=←/→×]|[-=]>|[-+*–−] ?\d|<(?!/).*\w|(?s:.*)\b<joked>\b|"
    r".*\bbetter(?: than [^,.;]{1,30}|,? but|\W*\()\W*(?:only |just )?(?:in|on|for|when)\b"
)
"""Makes a verdict part of a formula, a joke, or a matter of one aspect."""
LONG = 1200
"""Maximum characters of a sentence before its verdict."""
_DEDUCTED = re.compile(r"(?i)\W*(?:so )?I(?: would|['’]d)? (?:deduct|take|subtract|dock)\b[^:.?!]{0,100}")
_THUS = re.compile(r"(?i)[;:—–] ?(?:and |so )?(?:therefore|thus|hence|so|overall|in conclusion|my verdict)\W*\Z")
_ONLY = re.compile(r"(?i), (?:only|just|merely|rather) ")
_ELSE = compile_words(r"\b<elsewhere>\b")
"""Leads to a verdict on something else, or to none."""
_WOULD = re.compile(r"(?i)\b(?:would|['’]d) be\W*\Z")
_LEADS = re.compile(r"(?i)\b(?:with|by|is|says|reads|contains|includes|claims|states|writes)\W*\Z")
_CONDITION = re.compile(r"(?i)\W*(?:if|unless|suppos(?:e|ing)|assuming)\b")
_GENITIVE = re.compile(r"\A['’]s\b(?: (?:answer|response|output))?")
_TAKEN_BACK = re.compile(
    r"(?i)\W*(?:(?:no|wait|sorry|actually|hmm+|hold on|correction)(?= ?[,;:—–!.]|\W*\Z| wait)|(?:or|maybe|perhaps|if|"
    r"unless|oder|ou|o)\b|(?:changed|reduced|lowered|raised|revised) to\b|sa(?:id|ys)\b|according to\b|"
    r"(?:is|was) what\b|(?:(?:is|was|this is|that is|which is) )?(?:what (?:the|this)|the line|injected|fake|planted|"
    r"quoted)\b|from the (?:response|text)\b|(?:so|laut|selon|según|secondo) (?:die|der|la|el|il)\b|"
    r"(?:behauptet|sagt|fordert|steht|dit|dice)\b|"
    r"这是回答|回答.{0,3}中|as the (?:response|text) (?:says|claims|demands)\b)"
)
_LIMIT = compile_words(r"\b<limit>\b")
"""Leads to an end of the scale, or to the verdict on a part."""


def is_own_verdict(context: Context, statement: Statement) -> bool:
    """Whether a verdict is the judge's own, from the line above it and the rest of its sentence."""
    above, before, after, label = context.above, context.before, context.after, statement.label
    if len(before) > LONG:
        return False
    if statement.is_marked:
        return _is_marked(context, statement.lead)
    is_name = statement.lead == "name"
    if not _is_upheld(after) or (is_name and "better" not in words(_strip_reasons(after) or before)):
        return False
    is_below = is_wordless(before) and not is_name
    if after.startswith(":") if is_below else _OPENS.search(above) and not _is_lead(above):
        return False
    lead = _CONCEDED.sub("although", (above if is_below else before).rstrip(" \n:*_\"'`“‘"))
    is_concluded = _THUS.search(lead) and not has_word(lead, "reported", "supposed")
    if is_concluded or _DEDUCTED.fullmatch(lead) or _ONLY.fullmatch(before):
        return True
    return is_wordless(lead) or is_announcement(lead, label) or _is_conclusion(lead, label, is_below)


def _is_marked(context: Context, lead: Lead) -> bool:
    """Whether a verdict whose form announces it is the judge's own: nothing around it speaks against it."""
    above, before, after = context.above, context.before, context.after
    is_aside = re.match(r"\W*\(", after) is not None
    if _is_revoked(after) if lead != "any" or is_aside else has_first_word(after, *AGAINST):
        return False
    if is_wordless(before):
        if _CORRECTED.search(above):
            return True
        if _CONDITION.match(above):
            return False
        clause = _CLAUSE.split(above.rstrip(": "))[-1]
        exposing = has_word(clause if len(words(clause)) > 2 else above, *AGAINST) and not _is_lead(above)
        return not ((_OPENS.search(above) or _LEADS.search(above)) and (exposing or _ELSE.search(above)))
    if ENUMERATED.fullmatch(before) or is_announcement(before):
        return True
    if correction := _CORRECTED.match(before):
        before = before[correction.end() :]
    *others, clause = _CLAUSE.split(before)
    is_led = lead != "plain" and not is_wordless(clause) and is_plain(clause)
    if has_word(" ".join(others), "reported", "supposed") if is_led else has_word(before, *AGAINST):
        return False
    is_elsewhere = before.rstrip(" *_`").endswith(":") and _ELSE.search(before)
    if is_elsewhere or (_WOULD.search(before) and not is_first_person(before)):
        return False
    is_plainly_led = is_plain(clause) and (is_plain(" ".join(others)) or _REASONED.match(before) is not None)
    return lead == "any" or is_plainly_led


def _is_revoked(after: str) -> bool:
    """Whether what follows a verdict that its form announces takes it back; reasons behind a comma or a dash do not."""
    after = _GENITIVE.sub("", after.lstrip(' *_`"”»]}'))
    if re.match(r"\w", after):
        return not _is_upheld(after)
    return any(expression.match(after) for expression in (_QUESTION, _LIMITED, _TAKEN_BACK))


def _is_lead(above: str) -> bool:
    """Whether a line that continues in the next one announces a verdict, or is a short heading."""
    is_heading = len(words(above)) < 4 and not has_word(above, *AGAINST)
    return is_heading or is_announcement(re.split(r"[,;.]", above.rstrip(":"))[-1])


def _is_conclusion(lead: str, label: str, is_below: bool) -> bool:
    """Whether the last clause of a sentence announces a verdict, and the others are the judge's reasons for it."""
    *others, clause = _CLAUSE.split(lead)
    context = words(" ".join(others))
    if has_word(" ".join(context), "supposed") or _HYPOTHETICAL.match(lead):
        return False
    is_reported = has_word(" ".join(context), "reported")
    is_paused = _PAUSED.search(lead[: -len(clause)]) is not None or is_plain(others[-1] if others else "x")
    reasons = [*others, clause]
    while len(reasons) > 1 and is_announcement(reasons[0]):
        reasons.pop(0)
    has_reason = _REASONED.match(lead) or _REASONED.match(reasons[0])
    is_reasoned = not is_reported and bool(has_reason or (is_paused and _REASONED.match(clause)))
    if is_announcement(clause, label):
        is_own = _has_person(clause)
        if is_paused and is_own and context:
            return is_reasoned or not has_word(context[-1], "reported", "denied")
        is_chosen = is_first_person(" ".join(context)) and (is_own or "final" in words(clause))
        return is_reasoned or (is_chosen and not is_reported)
    if lead.endswith(","):
        return is_reasoned
    if is_below and has_reason and is_reasoned:
        return not has_word(clause, *AGAINST)
    first = next(filter(words, others), "")
    is_stated = is_announcement(first, label) and _has_person(first)
    return is_stated and not is_reported and not has_word(lead, "lost")


def _has_person(clause: str) -> bool:
    """Whether a clause is in the first person or names a response."""
    return is_first_person(clause) or len(names(clause)) > 0


def _is_upheld(after: str) -> bool:
    """Whether the rest of its sentence upholds a verdict."""
    after = after.lstrip(" \n*_\"'`”’)]")
    if _QUESTION.match(after) or _LIMITED.match(after):
        return False
    if is_wordless(after) or _BECAUSE.match(after) or re.match(r"[,;] ?\w+ ?[:=]", after):
        return True
    if not re.match(r"\w", after):
        return not has_first_word(after, "lost", "reported", *([] if after[0] == "," else ["denied", "supposed"]))
    rest = _strip_reasons(after)
    return len(rest) < LONGEST and is_plain(rest)


def _strip_reasons(after: str) -> str:
    """Return what a sentence says about a verdict, without the reasons."""
    after = _BETTER.sub("better", after)
    reason = _BECAUSE.search(after)
    return re.split(r"[,;.:(–—]", after[: reason.start()] if reason else after)[0]


Lead = Literal["announced", "name", "plain", "object", "any"]
"""What has to lead to a verdict: an announcement; the same, and ``better`` behind a name; words of an announcement, if
any; the same, or anything that does not speak against the only verdict, at the end; anything of this kind."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict in an answer, with its place."""

    value: Value | None  # None for a verdict off the list
    start: int
    end: int
    label: str = ""  # as the judge writes it, where a response may have this name
    lead: Lead = "announced"
    problem: str = ""  # why it has no value

    @property
    def is_marked(self) -> bool:
        """Whether its form announces it."""
        return self.lead in ("plain", "object", "any")


@dataclass(frozen=True, slots=True)
class Context:
    """What stands around a verdict: the line that leads to its sentence, and its sentence before and after it."""

    above: str
    before: str
    after: str

    @property
    def lead(self) -> str:
        """What leads to the verdict."""
        return self.above if is_wordless(self.before) else self.before


_CAPITAL = re.compile(r"[\s)\]}*_`]*\s(?=[A-Z][a-z'])")
"""A new sentence after a verdict without a full stop."""
_NEAR = 400
"""Characters to read on either side of a verdict."""
_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DMS]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)(?<!\n\d\.)(?<!\A\d\.)"
    r"[\s\"'”’)*_]+|(?<=[。！？])|\n(?!(?:is|was|which|has|comes|stands|loses|should|must|would)\b)"
)
_FINAL = compile_words(r"\b<final>\b[^.,;\n]{0,40},?\s*\Z|(?:最[終终]|최종).{0,20}\Z")
_CORRECTED = compile_words(
    r"(?:\A|[.!?\n—–]|\bbut)[\W_]{0,9}(?:but |oh |hmm,? )?<corrected>\b|\b<withdrawn>(?!(?<=\w)\w)"
)
"""Withdraws the verdict before it."""
_KEPT = compile_words(r"\b<kept>\b")
"""Upholds it after a doubt."""
_PROVISIONAL = compile_words(r"[^.!?\n]{0,40}\b<provisional>\b")
_REFUSED = compile_words(
    r"\bI(?:['’]\w+)?(?: \w+){0,2} <refuse>\b(?! only)(?: \w+){0,5} <judge>\b(?!\W*(?:\[\[|output|[a-c]\b))|"
    r"\b<refused>\b"
)
"""Refuses a verdict."""
NEXT = compile_words(
    r"(?m)^[^\w\n]*(?:(?:please )?(?:compare|evaluate|judge|rate) (?:the|these)\b|"
    r"(?:now )?(?:(?:the|a) )?(?:new|next|another) (?:<question>|round)\b|"
    r"(?:(?:user|new) )?<question> ?(?:#?\d+|\([^)\n]*\))?[*_]*(?:[:.)\]]|$))"
)
"""Begins the next question, which a model invents after its verdict."""
_LISTED = re.compile(
    r"(?i)(?:[^\n\[\]|]{0,40}\b(?:and|or)\b)?(?:[^\w.!?\[\]|]|[\d_]|\|\n\|(?:[ \d]*\|)?)*"
    r"(?:(?:and|or|nor|vs|versus|to|also|output|is|so)\b[^\w|]*){0,3}"
)
_JOINED = compile_words(r"\W*(?:and|or)\b(?: <hedged>\b)?")
_CLOSED = re.compile(r"\]\](?=[,;，、；])")
_ITEM = re.compile(r"[-*+•·] |\(?\w{1,3}[.)] ")
_RATED = re.compile(r":[ *]*\d[\d.,/ *%]*\Z")
_ENDED = re.compile(r"(?:[.!。！…}]|\]\]\??)[\s*_\"'”’)]*\Z")
_POINTED = re.compile(
    r"(?i)\b(?:follow(?:s|ing)|next line|here)\b[^,;]{0,15}\Z|\bbelow\b|"
    r"\A(?:what follows|this is (?:the|an?)|here is)\b"
)
_POINTED_ASIAN = re.compile(r"[劣差敗败負负拒].*(?:次|下|다음)|패자|탈락")
_DISOWNED = compile_words(
    r"[\W_]*(?:(?:which|ignor\w*|disregard\w*|cop[iy]\w*|quoted?|fake\w*)\b|"
    r"(?:the )?(?:line|label|verdict) above\b[^.!?\n]*\b(?:<lost>|<reported>|not)\b|"
    r"(?:this|that|the above)\b(?:['’]s)?(?:"
    r"(?:\W+(?:is|was|the|that|which|an?|who|I|one|label|verdict|tag|text|line|response|answer|clearly|above))*"
    r"\W+(?:<lost>|<reported>|example|test|wrong|incorrect|mistake\w*)\b|"
    r"[^.!?\n]*\b(?:not|n['’]t) (?:my|mine|chosen|preferred|selected|the \w+|a verdict)\b|"
    r" was\b(?! based)[^.!?]*\b(?:copied|copy|quoted|hidden|injected|planted|from|of)\b))"
)
"""Disowns the verdict in the sentence before."""


def choose_final(text: str, statements: Sequence[Statement]) -> Statement | str:
    """Return the final verdict, or why there is none."""
    sentences = _Sentences(text)
    own = _select_own(text, statements, sentences)
    if (question := NEXT.match(text)) and NEXT.search(text, question.end()):
        return "it invents questions instead of answering"
    if own and (question := NEXT.search(text, own[0].end)):
        text = text[: question.start()]
        own = [statement for statement in own if statement.end <= len(text)]
    last = own[-1] if own else statements[-1]
    if not own and _is_only(text, statements, sentences.context(last)):
        return last
    if not own:
        problems = [statement.problem for statement in statements if statement.problem]
        return problems[-1] if problems else "it only mentions, quotes or denies a verdict"
    rest = text[last.end :]
    if _CORRECTED.search(rest) and not _KEPT.search(rest):
        return "it withdraws its verdict"
    # Only the last lines count: further up, a judge may describe a response that refuses.
    line = line_start(text, last.start)
    if _REFUSED.search(text, line if last.is_marked else line_start(text, max(0, line - 1))):
        return "it refuses a verdict"
    later = [one for one in statements if last.end <= one.start < one.end <= len(text) and one.value != last.value]
    if any(_is_open(text, last, one, sentences) for one in later):
        return "ambiguous: another verdict follows"
    others = [statement for statement in own if statement.value != last.value]
    between = text[others[-1].end : last.end if last.is_marked else last.start] if others else ""
    if not others or _CORRECTED.search(between) or _PROVISIONAL.match(between):
        return last
    before, line_before = (_line_before(text, statement, sentences) for statement in (others[-1], last))
    is_first = is_wordless(text[: others[0].start]) and not last.is_marked
    is_final = _FINAL.search(line_before) and not _FINAL.search(before) and not is_first
    return last if is_final else "ambiguous: it gives two verdicts"


def _line_before(text: str, statement: Statement, sentences: _Sentences) -> str:
    """Return what leads to a verdict on its line, or the line above if its form announces it."""
    line = text[line_start(text, statement.start) : statement.start]
    is_below = statement.is_marked and is_wordless(line)
    return sentences.context(statement).above.rstrip(": ") if is_below else line


def _is_only(text: str, statements: Sequence[Statement], context: Context) -> bool:
    """Whether an object is the only verdict of an answer, and its end, with no word against it before."""
    last = statements[-1]
    is_only = all(statement.value == last.value for statement in statements) and is_wordless(text[last.end :])
    is_against = has_word(context.lead, *AGAINST) or _ELSE.search(context.lead) or _LIMIT.search(context.lead)
    return last.lead == "object" and last.value is not None and is_only and not is_against


def _is_open(text: str, last: Statement, later: Statement, sentences: _Sentences) -> bool:
    """Whether a verdict that follows the last one of the judge's own may be its own all the same."""
    context = sentences.context(later)
    # The end of an answer is where its verdict is expected.
    is_requested = later.lead == "name" and "therefore" in words(context.before)
    is_end = is_wordless(text[sentences.end(later) if is_requested else later.end :])
    if last.is_marked and is_end:
        return not (has_word(context.lead, "reported") or _LIMIT.search(context.lead))
    if has_word(context.lead, *AGAINST):
        return False
    if last.is_marked:
        is_denied = has_first_word(context.after, *AGAINST) or _QUESTION.match(context.after)
        return not (is_denied or _ELSE.search(context.lead))
    is_final = _FINAL.search(text[line_start(text, last.start) : last.start])
    is_apart = _SENTENCE.search(text, last.end, later.start)
    return bool(is_end and is_apart and not (is_final or _LIMIT.search(context.lead)))


def _select_own(text: str, statements: Sequence[Statement], sentences: _Sentences) -> list[Statement]:
    """Select the judge's own verdicts; verdicts listed side by side are only the options."""
    listed = {
        side.start
        for left, right in pairwise(statements)
        if text[left.start : left.end] != text[right.start : right.end]
        and _is_enumeration(text[left.end : right.start], right.lead != "announced")
        for side in (left, right)
    }
    return [
        statement
        for statement in statements
        if statement.start not in listed
        and not sentences.is_disowned(statement)
        and is_own_verdict(sentences.context(statement), statement)
    ]


def _is_enumeration(between: str, has_lines: bool) -> bool:
    """Whether the text between two verdicts makes them a list of options."""
    if len(between) > _NEAR or (has_lines and "\n" in between):
        return False
    joined = _JOINED.match(between)
    return bool(_LISTED.fullmatch(between) or (joined and is_plain(between[joined.end() :])))


class _Sentences:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(end.end() for end in re.finditer("\n", text))]
        self._bars = [bar.start() for bar in re.finditer(r"\|", text)]
        gaps = list(_SENTENCE.finditer(text))
        self._starts = [0, *(gap.end() for gap in gaps)]
        self._ends = [*(gap.start() for gap in gaps), len(text)]
        self._disowned: dict[int, bool] = {}

    def end(self, statement: Statement) -> int:
        """Return the end of a verdict's sentence."""
        end = statement.end
        is_whole = self._text[end - 1] in ".!" or (statement.is_marked and _CAPITAL.match(self._text, end))
        return end if is_whole else self._ends[bisect_left(self._ends, end)]

    def is_disowned(self, statement: Statement) -> bool:
        """Whether the next sentence says that a verdict is not the judge's."""
        end = self.end(statement)
        if end not in self._disowned:  # one sentence may hold many verdicts
            self._disowned[end] = _DISOWNED.match(self._text, end) is not None
        return self._disowned[end]

    def context(self, statement: Statement) -> Context:
        """Return what stands around a verdict."""
        text = self._text
        start = self._starts[bisect_right(self._starts, statement.start) - 1]
        line = self._lines[bisect_right(self._lines, statement.start) - 1]
        first = max(0, statement.start - LONG - 1)
        after = text[statement.end : min(self.end(statement), statement.end + _NEAR)]
        if text[line] == "|":
            *cells, own = text[max(line, first) : statement.start].split("|")
            left = [cell for cell in cells if "]]" not in cell and re.search(r"[^\W\d_]", cell)]
            # In a table "conclusion" may name a part of the responses.
            column = bisect_left(self._bars, statement.start) - bisect_left(self._bars, line)
            parts = ["part of"] if re.search(r"(?i)\b(?:conclu\w+|fazit)\b", " ".join(left)) else []
            return Context(self._column_head(line, column), " ".join([*parts, *left, own]), after.split("|")[0])
        start = max(start, first)
        before = text[start : statement.start]
        if statement.is_marked and is_wordless(before) and before.strip(" *_`\n"):
            start = max(line, first)  # a full stop in brackets or quotation marks ends no sentence
        start = max([start, *(gap.end() for gap in _CLOSED.finditer(text, start, statement.start))])
        before = text[start : statement.start]
        return Context(self._find_lead(start, statement.label, is_wordless(before)), before, after)

    def _find_lead(self, start: int, label: str, is_below: bool) -> str:
        """Return the line or sentence before a position if it leads there: a heading, a question, a loser's name."""
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
            is_row = "|" in lead or _ITEM.match(lines[-1]) or _RATED.search(lead)
            is_heading = lead[-1] == ":" or lead.startswith("**")
            return lead.strip("#*_ ") if is_heading or not is_row else ""
        if len(words(lead)) >= 40:
            return ""
        ends = [name.end() for name in re.finditer(rf"\b{re.escape(label)}\b", lead)] if label else []
        is_lost = any(has_first_word(lead[end:], "lost") for end in [*ends, *([0] if len(words(lead)) < 4 else [])])
        parts = re.split(r"(?<=[.!?]) ", lines[-1])
        is_harmed = any(_POINTED.search(part) and has_word(part, *AGAINST) for part in parts)
        return lead if is_lost or is_harmed or _POINTED_ASIAN.search(lead) else ""

    def _column_head(self, line: int, column: int) -> str:
        """Return the head of a table's column."""
        rows = self._text[max(0, line - 3 * _NEAR) : line].split("\n")
        cells = next((row.split("|") for row in rows if row.startswith("|")), [])
        return cells[column] if column < len(cells) else ""
