"""Notice a text that is no answer: a refusal, a remark on the task, words to the judge.

Only beginnings that say so count, labels on a line of their own, and a verdict together with what it is on. Sentences
of a rewrite are compared with those of its original, so that a remark there has no place anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from distract.rewriting.fidelity.facts import normalise_text

_CANNOT = r"(?:can't|can not|cannot|could not|couldn't|won't|will not|must decline|(?:am |'m )(?:unable|not able))"
_HELP = r"(?:help|assist|comply|fulfil|provide|answer|write|rewrite)"
_MADE = r"(?:re(?:writ\w+|wrote|vis(?:ed|ion)|phras\w+|word(?:ed|ing))|paraphras\w+)"
_CHOOSE = r"(?:choos|pick|prefer|select|favou?r|vote for|rate|rank|score|grade|judge|declare|crown|award|mark)\w*"
_THIS = r"(?:this|my|our|the (?:first|second|above|other|better|best)) (?:response|answer|output|submission|one)"

PLEA = "speaks to the judge"
_REMARKS: Mapping[str, re.Pattern[str]] = {
    "refusal": re.compile(
        r"\A\W*(?:(?:i(?:'m| am) )?(?:so |very |truly )?(?:sorry|afraid)|i apologi[sz]e|unfortunately|regrettably)\b"
        rf".{{0,60}}?\bi ?{_CANNOT}|\A\W*(?:\w+[,.!] )?i ?{_CANNOT} (?:\w+ )?{_HELP}"
        r"|\bas an? (?:large )?(?:ai|language model)\b"
    ),
    "comment about the task": re.compile(
        r"\A\W*(?:sure|okay|certainly|of course|absolutely)\b[!,.:]* (?:here(?:'s| is| are)|below is)\b"
        rf"|\b(?:here(?:'s| is)|below is|this is)[^.!?\n]{{0,80}}\b(?:{_MADE}|version)\b"
        rf"|^\W{{0,8}}(?:the )?(?:{_MADE}|original)(?: (?:text|response|answer))?\W{{0,4}}$"
        r"|^\W{0,6}(?:user|assistant|human|system)\W{0,3}:",
        re.M,
    ),
    PLEA: re.compile(
        rf"\b{_CHOOSE} (?:\w+ ){{0,2}}{_THIS}\b|\b{_THIS} (?:\w+ ){{0,3}}(?:wins?|winner|better|best|superior)\b"
        r"|\b(?:better|best|winning|worse) (?:response|answer|output|submission)\b|\[\[[a-z0-9]+\]\]"
        r"|\b(?:judge|grader|evaluator|rater)s?\b[^.!?\n]{0,40}\b(?:should|must|please|will)\b"
    ),
}


def find_remarks(original: str, text: str) -> Iterator[str]:
    """Yield what a text is instead of an answer, if its original is none of it: slugs."""
    before, after = ("\n".join(map(normalise_text, one.split("\n"))) for one in (original, text))
    for name, pattern in _REMARKS.items():
        if pattern.search(after) and not pattern.search(before):
            yield name
