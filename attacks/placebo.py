"""The placebo: other words and another order of clauses, in the same tone and length.

A judge has no reason to change a score for it. So the changes that it does make show which differences mean nothing.
"""

from __future__ import annotations

import re

from distract import Attack, Constraint

from .rules import Candidate, Text, apply, substitute

# Patterns name the words around a word that exclude its other meanings.
_OBJECT = r"(?=(?:the|a|an|one|your|my|our|its|his|her|their)\b)"
_NUMBER = r"(?:\d+(?:[.,]\d+)*|two|three|four|five|six|seven|eight|nine|ten) [a-z]"
_BEFORE_NUMBER = r"\b(is|are|was|takes?|costs?|lasts?|of|for|in|at|by|with|within|after|use|every)"
_NOT_DENIED = r"(?<!no )(?<!not )(?<!any )(?<!much )(?<!little )\b"
_BEFORE_VERB = r"\b(to|you|we|they|I|can|could|may|might|will|would|should|and|then)"
_STEPS = (
    r"(?:add|ask|check|cut|give|go|leave|let|look|move|open|pour|put|read|rinse|send|set|take|tell|try|turn|wait)\b"
)
_JOINED = r"(?:(?<=, )|(?<=and )|(?<=or )|(?<=then ))"
_ADVERBIAL = rf"(?=(?:a|an|the|with|as|even|by|in|for|from|at|on|{_NUMBER})\b)"
_WORDS = (
    (r"\bfor example\b", "for instance"),
    (r"\bfor instance\b", "for example"),
    (r"(?<!, )(?<!no )(?<!not )(?<!never )\bsuch as (?!to\b)", "like "),
    (r"\bPerhaps (?!not\b)", "Maybe "),
    (r"\bMaybe (?!not\b)", "Perhaps "),
    (rf"{_JOINED}perhaps {_ADVERBIAL}", "maybe "),
    (rf"{_JOINED}maybe {_ADVERBIAL}", "perhaps "),
    (r"\bgenerally\b(?! speaking)", "usually"),
    (r"(?<!more )(?<!than )(?<!as )\busually\b", "generally"),
    (r"\bmostly\b", "mainly"),
    (r"\bmainly\b", "mostly"),
    (r"(?<!not )(?<!so )(?<!as )\bnearly (?!as\b)", "almost "),
    (r"\balmost (?=(?:all|always|every|everyone|everybody|everything|half|ready|done|full|empty|dry)\b)", "nearly "),
    (r"\bstraight away\b", "right away"),
    (r"\bright away\b", "straight away"),
    (r"(?<=[a-z])(?<!\bnot),? too(?=\.)", " as well"),
    (r"\b(?<!that )(?<!for )(some|any|every)one\b(?! of\b)", r"\1body"),
    (r"\b(?<!that )(?<!for )(some|any|every)body\b", r"\1one"),
    (r"\bnobody\b", "no one"),
    (r"\b(?<!not )a lot of\b", "lots of"),
    (r"\blots of\b", "a lot of"),
    (r"\balthough\b", "though"),
    (r", because (?!(?:of|he|she)\b)", ", since "),
    (r"(?<!so )\bas soon as (?=(?:the|it|they|he|she|we|your)\b)", "once "),
    (r"\bin order to\b", "to"),
    (r"\bbegan\b", "started"),
    (r"\bbegins\b", "starts"),
    (r"\bbegin\b", "start"),
    (r"\bstarts to\b", "begins to"),
    (r"\bStart (?=(?:with|by)\b)", "Begin "),
    (rf"{_BEFORE_VERB} start (?=(?:with|by|to)\b)", r"\1 begin "),
    (rf"\bchoose {_OBJECT}", "pick "),
    (rf"\bThen (?={_STEPS})", "After that, "),
    (rf"{_BEFORE_NUMBER} about (?={_NUMBER})", r"\1 around "),
    (rf"{_BEFORE_NUMBER} around (?={_NUMBER})", r"\1 about "),
    (rf"{_NOT_DENIED}more than (?={_NUMBER})", "over "),
    (rf"{_NOT_DENIED}less than (?={_NUMBER})", "under "),
    (rf"\bnext to {_OBJECT}", "beside "),
    (rf"\bbeside (?!the point){_OBJECT}", "next to "),
    (rf"\bclose to {_OBJECT}", "near "),
    (rf"\bnear {_OBJECT}", "close to "),
)
_RULES = [(re.compile(pattern), new) for pattern, new in _WORDS]

# A clause stays where it is if it refers to another one, has an inner clause, or attaches to a single word.
_BOUND = (
    "it|its|they|them|their|he|she|him|his|her|this|that|these|those|one|ones|so|then|such|too|also|both|neither|yours|"
    "same|first|second|other|rest|think|know|say|hope|and|or|but|if|when|while|because|since|once|before|after|until|"
    "than|as|what|who|which|why|how|where|whether"
)
_LOOSE = rf"(?:(?!\b(?:{_BOUND})\b)[^,;:()\n.!?\"“”]){{6,90}}"
_ENDS = r"(?<!\bonly)(?<!\beven)(?<!\bjust)(?<!\bexcept)(?<!\bespecially)(?<!\btime)(?<!\bday)(?<!\bdays)(?<!\bmoment)"
_LEADING = re.compile(rf"(if|when|while|once|although|though|as soon as) (?!in )({_LOOSE}), ({_LOOSE})([.!])\Z", re.I)
_TRAILING = re.compile(rf"({_LOOSE}){_ENDS},? (if|when|once|although|though|as soon as) ({_LOOSE})([.!])\Z")
_CLAUSE = re.compile(r"(?:i|you|we|there|the|a|an|your|our|my|no|some|most|all|every|each)\b", re.I)
_ELLIPSIS = re.compile(
    r"\b(?:not|is|are|am|do|does|did|can|could|will|would|has|have|had|was|were|possible|necessary|needed)\Z"
)
_VERSE = re.compile(r"(?:^(?![ \t]*[-*+•\d#>|<])\S.{9,60}\n){3}", re.M)
_NAME = re.compile(r"I\b|I'|[A-Z]\w*[A-Z]")


def _reorder(text: Text) -> list[Candidate]:
    """Move the first clause of a sentence to its end, or the last one to its front."""
    candidates: list[Candidate] = []
    for start, end in text.sentences:
        sentence = text.text[start:end]
        new = None
        if (match := _LEADING.match(sentence)) and not _ELLIPSIS.search(match[2]):
            join, condition, main, stop = match.groups()
            new = f"{_raise(main)} {_lower(join)} {condition}{stop}"
        elif (match := _TRAILING.match(sentence)) and _CLAUSE.match(match[1]) and _CLAUSE.match(match[3]):
            main, join, condition, stop = match.groups()
            new = f"{_raise(join)} {condition}, {_lower(main)}{stop}"
        if new and text.free(start, end):
            candidates.append(((start, end, new if sentence[:1].isupper() else new[:1].lower() + new[1:]),))
    return candidates


def _raise(words: str) -> str:
    return words[:1].upper() + words[1:]


def _lower(words: str) -> str:
    return words if _NAME.match(words) else words[:1].lower() + words[1:]


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Reorder clauses, then replace words in the other sentences, as far as the format allows."""
    if _VERSE.search(turn):
        return turn  # other words would break metre and rhyme
    text = Text(turn)
    candidates = _reorder(text)
    for pattern, new in _RULES:
        candidates += substitute(text, pattern, new)
    return apply(turn, candidates, constraints)


placebo = Attack("placebo", "control: other words and clause order, same tone", rewrite, placebo=True, effect="control")
