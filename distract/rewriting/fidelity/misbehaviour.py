"""Notice a writer model that refuses, comments, corrects, loops, stops or translates instead of rewriting.

Each rule looks for something that the rewrite has and its original lacks, strictly in the rewrite and leniently in the
original, so that a letter that declines an invitation stays one. The phrases are English. Arbitrary text takes linear
time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from distract.rewriting.fidelity.facts import URL, normalise_text
from distract.rewriting.fidelity.language import find_translation

REPEATED = 3
"""A sentence is repeated if it occurs this many times as often as in the original, where it counts at least once."""

PHRASE = 8
"""Minimum words of a repeated phrase; a shorter one may begin every item of a list."""

LOOP = 12
"""Minimum words of a loop at the end of a text."""

MANY_TIMES, MORE_CHARACTERS = 5, 400
"""Maximum length of a rewrite: a multiple of its original plus some characters, because a courtesy may be longer than a
short text."""


def _join_patterns(*patterns: str) -> str:
    """Join patterns without alternatives outside brackets into one.

    An edge that several patterns in a row begin with is matched once, which makes the search several times faster.
    """
    groups = groupby(patterns, lambda pattern: pattern[:2] if pattern[:2] in (r"\A", r"\b") else "")
    joined = [f"{edge}(?:{'|'.join(pattern.removeprefix(edge) for pattern in group)})" for edge, group in groups]
    return f"(?:{'|'.join(joined)})"


_CANNOT = (
    r"(?:can't|can not|cannot|could not|couldn't|won't be able to|won't|will not|would not|must decline|"
    r"have to decline|must refuse|(?:am |'m )(?:unable to|not able to|not comfortable|not permitted|not allowed))"
)
_TASK = (
    r"(?:help|assist|comply|fulfil|provide|rewrite|rephrase|reword|revise|paraphrase|do (?:that|this|so|it)|answer|"
    r"write|process|generate|create|produce|complete|engage|discuss|support|share|offer|accommodate|change|modify|"
    r"continue|respond|proceed|participate|make (?:that|this|these|those|the)|to (?:rewrite|provide|help|assist|do))"
)
_SORRY = r"(?:(?:i(?:'m| am) )?(?:so |very |truly |really )?(?:sorry|afraid)|i apologi[sz]e|my (?:sincere )?apologies)"
_AI = r"(?:large )?(?:ai|language model)\b"
_REFUSAL = re.compile(
    _join_patterns(
        rf"\A\W*(?:{_SORRY}|unfortunately|regrettably)\b.{{0,60}}?\bi ?{_CANNOT}",
        rf"\A\W*(?:\w+[,.!] )?i ?{_CANNOT}(?: \w+)?? {_TASK}",
        r"\A\W*(?:i must|i have to) (?:respectfully )?(?:decline|refuse)",
        r"\A\W*i (?:don't|do not) feel comfortable\b",
        r"\bi (?:can't|cannot|can not) (?:fulfill?|comply with|(?:assist|help)(?: you)? with) (?:this|that|your)\b",
        rf"\bas an? {_AI}",
        rf"\bi(?:'m| am) (?:just |only )?an? {_AI}",
        r"\bgoes against my (?:guidelines|programming)",
    )
)
_UNABLE = re.compile(
    rf"\bi ?{_CANNOT}\b|\bi (?:don't|do not) (?:know|have)\b|\bi (?:\w+ ){{0,3}}decline\b|\b(?:ai|language model)\b"
)

_MADE = r"(?:re(?:writ\w+|wrote|vis(?:ed|ion)|phras\w+|word(?:ed|ing))|paraphras\w+)"
_TEXT = r"(?:text|response|answer|version|message|reply|draft|wording|content|meaning|sentence|passage|rewrite)s?"
_PARTS = (
    r"(?:tone|style|facts?|figures?|numbers?|names|wording|phrasing|hedg\w+|formatting|format|meaning|text|original|"
    r"sentences?|structure|requirements?|constraints?|information|details|content|claims?|language)"
)
_STYLES = (
    r"(?:assertive|confident|authoritative|decisive|polite|courteous|friendly|formal|verbose|prolix|wordy|elaborate|"
    r"sycophantic|flattering|accommodating|enthusiastic|encouraging|inflated|convoluted|ornate)"
)
_KEPT = r"(?:kept|preserved|unchanged|retained|maintained|intact|met|followed|satisfied|respected|unaltered|the same)"
_TONE = r"(?:tone|style|manner|voice|register)"
_COMMENT = re.compile(
    _join_patterns(
        # before the text
        r"\A\W*(?:sure|okay|ok|certainly|of course|absolutely|gladly|got it|understood)\b[!,.:]* "
        r"(?:thing[!,.:]* )?(?:here(?:'s| is| are| you go)\b|below (?:is|are|you)\b)",
        r"\A\W*(?:rewrite|rephrase|reword|paraphrase) (?:the|this)\b",
        rf"\A\W*(?:the |my |a )?(?:more )?(?:{_STYLES} )?{_MADE}\b[ \w]{{0,30}}:",
        rf"\A\W*(?:a |the )?(?:more )?{_STYLES} (?:{_TEXT}|tone|style)\W{{0,4}}:",
        r"\A\W*(?:response|output|text)\W{0,4}:",
        rf"\A[^.!?\n]{{0,100}}\b(?:in|with|using) an? [^.!?:\n]{{0,40}}\b{_TONE}\b[^.!?:\n]{{0,20}}:",
        r"\b(?:here(?:'s| is| are)|below (?:is|are|you)|this is|the following is)"
        rf"[^.!?\n]{{0,80}}\b(?:{_MADE}|version)\b",
        rf"\bhere(?:'s| is)[^.!?\n]{{0,60}}\bmore {_STYLES}\b",
        r"\b(?:need to|let's|let me|i'll|i will|going to|asked (?:me )?to|task is to|(?:happy|glad|delighted) to"
        r"(?: help you)?) (?:rewrite|rephrase|reword|paraphrase)\b",
        # about the text
        rf"\bi(?:'ve| have)? {_MADE}",
        r"\bi(?:'ve| have)? (?:also )?(?:made|kept|changed|adjusted|preserved|retained|maintained|removed|replaced|"
        rf"ensured|avoided|used|tried to keep)\b[^.!?\n]{{0,40}}\b{_PARTS}\b",
        rf"\b{_PARTS} (?:has|have|is|are|was|were)(?: been| all| left)? {_KEPT}\b",
        rf"\b(?:all|every)\b[^.!?\n]{{0,40}}\b{_PARTS}\b[^.!?\n]{{0,40}}\b{_KEPT}\b",
        rf"\bnote:? [^.!?\n]{{0,60}}\b{_KEPT}\b",
        rf"\b(?:this|the) {_MADE}(?: {_TEXT})? (?:keeps|maintains|preserves|retains|is|has|uses|sounds|conveys)\b",
        rf"\bthe original {_TEXT}\b",
        r"\bchanges made\b",
        r"\bthis (?:text|version|response|answer) (?:is|sounds|reads)(?: now)? (?:much )?more \w",
        rf"\b(?:a|the) more {_STYLES} (?:tone|{_TEXT})\b",
        # behind the text
        r"\b(?:let me know|tell me|feel free to (?:ask|tell|let)|would you like|do you want)\b[^.!?\n]{0,60}"
        r"\b(?:changes|adjust\w*|revis\w+|edit(?:s|ed)?\b|modif\w+|tweak\w*|alterations|re(?:writ|phras|fin)\w+|"
        r"(?:another|different) (?:version|tone|style))",
        r"\b(?:please|could you|can you)\b[^.!?\n]{0,20}\b(?:provide|share|paste|send)(?: me)?(?: with)? "
        rf"(?:the|your)(?: \w+)? {_TEXT}\b",
        r"\byou(?:'d| would) like me to (?:change|adjust|alter|revise)\b",
        rf"\bhope (?:this|the) (?:{_MADE}|version)",
        rf"\bend of (?:the )?(?:{_MADE}|response|text)\b",
    )
)
_LABEL = re.compile(
    rf"^[^\w\n]{{0,8}}(?:(?:response|text|answer) to (?:be )?{_MADE}|(?:the )?(?:{_MADE}|original|final)(?: {_TEXT})?|"
    rf"{_STYLES} {_TEXT}|(?:key |main )?changes|modifications|explanation of (?:the )?changes|user prompt)"
    r"[^\w\n]{0,4}(?:$|:[^\w\n]{0,4}(?:$|\b))|</?(?:rewrite|rewritten\w*|response|output|answer|original)>",
    re.M,
)
_TRANSCRIPT = re.compile(
    r"(?:^|(?<=[.!?] ))\W{0,6}(user|assistant|human|ai|bot|chatbot|system|q|a|question)\W{0,3}:(?!\w)"
    r"|^#{1,4} ?(instruction|response|input|human|user|assistant|system|question)[^\w\n]{0,4}$"
    r"|(<\|[^\n|]{1,40}\|>|\[/?inst\]|<</?sys>>|</?s>|</?think(?:ing)?>|<(?:start|end)_of_turn>)",
    re.M,
)
_WRONG = (
    r"(?:incorrect|inaccurate|wrong|false|mistaken|erroneous|untrue|not (?:quite |entirely )?(?:correct|accurate|true))"
)
_CLAIM = r"(?:statement|claim|figure|answer|response|original|number|date|text|information|premise)"
_CORRECTION = re.compile(
    _join_patterns(
        r"(?:\A|[.!?:(] ?)\W{0,3}(?:but |well, |and )?actually\b",
        r"\bcorrection\b",
        r"\b(?:must|should|need to|have to|let me|to) correct (?:the|this|that|an?|one|myself)\b",
        rf"\b(?:this|that|which|(?:this|that|the|the original|the above|your) {_CLAIM}(?: above)?) "
        rf"(?:is|was|seems|appears) (?:\w+ )?{_WRONG}\b",
        r"\bcontrary to (?:the|what)\b",
        r"\bmisconception\b",
        r"\b(?:contains|there is|has) (?:an? )?(?:\w+ )?(?:error|mistake|inaccuracy)\b",
        r"\bshould actually be\b",
    )
)
_CORRECTED = re.compile(rf"{_CORRECTION.pattern}|\b(?:actually|correct|error|mistakes?|myth|{_WRONG})\b")

_SENTENCE = re.compile(r"[.!?\n]+\s*")
_WORD = re.compile(r"[^\W_]+")
_MARKS, _CLOSERS, _OPEN = ".!?…。！？؟।", "\"'”’»)]}>*_~`」』）", ",;:-–—([{/&“‘«=+"
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)


def find_remarks(original: str, rewrite: str) -> Iterator[str]:
    """List remarks about the rewrite, or in place of it, that the original lacks: slugs with details."""
    before, after = normalise_text(original), normalise_text(rewrite)
    if _REFUSAL.search(after) and not _REFUSAL.search(before) and not _UNABLE.search(before):
        yield "refusal"
    lines, lines_before = rewrite.casefold(), original.casefold()
    has_comment = _COMMENT.search(after) and not _COMMENT.search(before)
    if has_comment or (_LABEL.search(lines) and not _LABEL.search(lines_before)):
        yield "comment about the task"
    if (markers := _speaker_marks(lines)) and (markers := markers - _speaker_marks(lines_before)):
        yield f"transcript: {', '.join(sorted(markers)[:5])}"
    if (match := _CORRECTION.search(after)) and not _CORRECTED.search(before):
        yield f"correction: {match[0].strip(' .!?:(')}"


def find_form_flaws(original: str, rewrite: str) -> Iterator[str]:
    """List flaws of a rewrite as a text: cut off, repetitive, too long, or in another language."""
    if _is_cut(original, rewrite):
        yield f"truncated: {' '.join(rewrite[-60:].split())}"
    if phrase := _find_repetition(original, rewrite):
        yield f"repetition: {phrase[:60]}"
    if len(rewrite) > MANY_TIMES * len(original) + MORE_CHARACTERS:
        yield f"length: {len(original)} characters became {len(rewrite)}"
    if languages := find_translation(original, rewrite):
        yield f"language changed: {languages[0]} to {languages[1]}"


def _speaker_marks(text: str) -> set[str]:
    return {next(filter(None, groups)) for groups in _TRANSCRIPT.findall(text)}


def _is_cut(original: str, rewrite: str) -> bool:
    """Whether a rewrite stops in the middle although its original is complete."""
    if len(_FENCE.findall(rewrite)) % 2 > len(_FENCE.findall(original)) % 2:
        return True
    before, after = original.split("\n"), rewrite.rstrip().split("\n")
    if not _is_complete(original) or not _is_open(after[-1]):
        return False
    *above, last = [line for line in after if line.strip()]
    farewell = above[-1] if len(above) > 1 else ""
    if farewell.rstrip().endswith(",") and max(len(farewell.split()), len(last.split())) < 5:
        return False  # a signature
    if URL.search(last.split()[-1]):
        return False
    # If most lines end bare in the rewrite and not in the original, the rewrite turned sentences into a list.
    return not (_has_bare_ends(above) and not _has_bare_ends([line for line in before if line.strip()][:-1]))


def _is_complete(text: str) -> bool:
    """Whether a text ends with a sentence mark or a closing mark, unless that closes a list item."""
    text = text.rstrip()
    bare = text.rstrip(_CLOSERS)
    return bare[-1:] in (*_MARKS,) or (bare != text and not _ITEM.match(text[text.rfind("\n") + 1 :]))


def _is_open(line: str) -> bool:
    return line[-1:].isalnum() or line[-1:] in (*_OPEN,)


def _has_bare_ends(lines: Sequence[str]) -> bool:
    return 2 * sum(line.rstrip()[-1:].isalnum() for line in lines) > len(lines)


def _find_repetition(original: str, rewrite: str) -> str | None:
    """Find a sentence or phrase that a rewrite repeats and its original does not."""
    new = _WORD.findall(rewrite.casefold())
    if (period := _loop_length(new)) and not _loop_length(_WORD.findall(original.casefold())):
        return " ".join(new[-period:])
    for count in (_sentences, _phrases):
        phrase, times = _most_common(count(rewrite))
        more = int(count is _phrases)
        # A refrain may be reworded, so compare with the most frequent phrase of the original.
        if times >= REPEATED + more and times >= REPEATED * max(_most_common(count(original))[1], 1) + more:
            return phrase
    return None


def _most_common(counts: Counter[str]) -> tuple[str, int]:
    return max(counts.items(), key=lambda item: item[1], default=("", 0))


def _sentences(text: str) -> Counter[str]:
    parts = (_WORD.findall(part) for part in _SENTENCE.split(text.casefold()))
    return Counter(" ".join(words) for words in parts if len(words) > 3)


def _phrases(text: str) -> Counter[str]:
    words = _WORD.findall(text.casefold())
    return Counter(map(" ".join, zip(*(words[i:] for i in range(PHRASE)), strict=False)))


def _loop_length(words: Sequence[str]) -> int:
    """Return the length of the loop that fills the last third of a text at least three times; 0 for no loop."""
    tail = words[-max(LOOP, len(words) // 3) :][::-1]
    if len(tail) < LOOP:
        return 0
    borders, k = [0], 0  # the longest proper border of every prefix (Knuth, Morris and Pratt)
    for word in tail[1:]:
        while k and word != tail[k]:
            k = borders[k - 1]
        k += word == tail[k]
        borders.append(k)
    period = len(tail) - borders[-1]
    return period if 3 * period <= len(tail) else 0
