"""Kinds about words and characters: letter case, commas and letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, pairwise

from distract.core.records import Constraint
from distract.data.constraints import spans as counting, text_edits
from distract.data.constraints.kind import (
    CHARACTER,
    COUNT,
    RELATION,
    ConstraintKind,
    describe_use,
    format_bound,
    format_count,
    is_within,
)
from distract.data.constraints.text_edits import (
    NEUTRAL,
    SYNONYMS,
    core_span,
    find_opaque,
    is_free,
    match_case,
    subsets,
    substitute,
)

_LETTERED = (
    "It is quite a question.",
    "Just enjoy the journey.",
    "The next example explains it exactly.",
    "It takes all sizes.",
    "Many people keep looking back.",
    "Very few have ever given up.",
)
"""Sentences with rare letters."""
_PHRASE_LIST = (
    "as always|by and by|of course|indeed|here and there|for half of it|as things go|each time|in a way|just so|"
    "for the sake of it|all in all|more or less|now and then|so to speak|step by step|as quick as quick can be|"
    "in every respect|most of the time|up to now|even so|to the max|by any size"
)
_PHRASES = _PHRASE_LIST.split("|")
"""Phrases to end a sentence with, for any letter."""
_JOINTS = (
    r" (?:but|because|so|which|although|while|whereas)(?= \w)",
    r" (?:and|or) (?:it|he|she|they|we|you|i|the|this|that|there|a|an|then)(?= )",
    r" (?:and|or|if|when|then|where|unless|until|since|as|with|without|for)(?= \w)",
)
_OPENERS = (
    r"\b(?:However|Then|Today|Now|First|Second|Third|Finally|Later|Usually|Often|Sometimes|Perhaps|Of course|Also|"
    r"Outside|Inside|Meanwhile|Therefore|Instead|Still|Tomorrow|Yesterday|Here|There|Please|Yes|No|So|And|But)\b(?= \w)"
)


def _break_no_comma(c: Constraint, text: str) -> Iterator[str]:
    """Add a comma where a writer might: before a conjunction, after an opening word, else before any word."""
    spans, (low, high) = find_opaque(text), core_span(text)
    for pattern in (_OPENERS, *_JOINTS, r"(?<=\w{3}) (?=[^\W\d])"):
        opener = pattern is _OPENERS
        matches = re.finditer(pattern, text[:high], 0 if opener else re.I)
        sites = (match.end() if opener else match.start() for match in matches)
        for site in islice((s for s in sites if s > low and is_free(spans, s)), 6):
            yield f"{text[:site]},{text[site:]}"
    yield from text_edits.add_clause(text, "of course, or so it seems")
    yield f"{text[:high]},{text[high:]}"


def _find_starts(text: str) -> list[int]:
    """Places where prose has capitals: at the start of a sentence, line or title, and in a lone ``i``."""
    low, _ = core_span(text)
    begins = [low, *counting.sentence_ends(text), *(m.end() for m in re.finditer(r"\n[^\S\n]*(?:[*-] )?|<<", text))]
    letter = re.compile(r"[\s\"'“‘(\[*_#]{0,9}(?=([^\W\d_]))")
    starts = {m.start(1) for begin in begins if (m := letter.match(text, begin))}
    return sorted(starts | {m.start() for m in re.finditer(r"(?<![\w.])i(?![\w.])", text)})


def _uppercase_at(text: str, sites: list[int]) -> str:
    return substitute(text, [(site, site + 1, text[site].upper()) for site in sites])


def _break_lowercase(c: Constraint, text: str) -> Iterator[str]:
    """Capitalise it as normal prose, or only one sentence or word, or append a normal sentence."""
    starts = _find_starts(text)
    yield _uppercase_at(text, starts)
    for site in [*starts[:3], *starts[:-4:-1]]:
        yield _uppercase_at(text, [site])
    for word in islice(re.finditer(r"[^\W\d_]{4,}", text), 3):
        yield substitute(text, [(*word.span(), word[0].upper())])
    low, high = core_span(text)
    yield f"{text[:high]}{' ' if high > low else ''}{NEUTRAL[0]}{text[high:]}"


def _break_capitals(c: Constraint, text: str) -> Iterator[str]:
    """Lowercase it as normal prose, or only one sentence or word, or append a normal sentence."""
    lower = text.lower()
    yield _uppercase_at(lower, _find_starts(lower))
    for ((start, end),) in subsets(text_edits.sentence_spans(text), 1):
        piece = text[start:end].lower()
        yield text[:start] + _uppercase_at(piece, _find_starts(piece)) + text[end:]
    for word in islice(re.finditer(r"[^\W\d_]{4,}", text), 3):
        yield substitute(text, [(*word.span(), word[0].lower())])
    yield lower
    _, high = core_span(text)
    yield f"{text[:high]} {NEUTRAL[0]}{text[high:]}"


def _break_capital_words(c: Constraint, text: str) -> Iterator[str]:
    limit, count = c["capital_frequency"], counting.count_capitals(text)
    spans = find_opaque(text)
    if c["capital_relation"] == "at least":
        upper = [m for m in re.finditer(r"(?<!\w)[^\W_](?:[\w'.-]*\w)?", text) if m[0].isupper()]
        starts = set(_find_starts(text.lower())) if len(text.lower()) == len(text) else set[int]()
        for a, b in pairwise(upper):  # several in a row may be a name
            starts |= {a.start(), b.start()} if text[a.end() : b.start()] == " " else set()
        # Short words in capitals are mostly abbreviations; single letters are pronouns or articles.
        long = [match for match in upper if is_free(spans, match.start()) and len(match[0]) > 3]
        for pool in (long, [match for match in upper if len(match[0]) > 1], upper):
            for words in subsets(pool, count - limit + 1):
                renamed = [m[0].title() if m.start() in starts and m[0][1:] else m[0].lower() for m in words]
                yield substitute(text, [(*m.span(), new) for m, new in zip(words, renamed, strict=True)])
        lower = text.lower()
        yield _uppercase_at(lower, [site for site in _find_starts(lower) if re.match(r"\w{2}", lower[site : site + 2])])
        yield lower
        return
    if limit - count > text_edits.MOST:
        return
    for size in (6, 4, 1):
        words = [m for m in re.finditer(rf"(?<!\w)[^\W\d_]{{{size},}}(?!\w)", text) if not m[0].isupper()]
        for chosen in subsets([m for m in words if is_free(spans, m.start())], limit - count):
            yield substitute(text, [(*m.span(), m[0].upper()) for m in chosen])
    shout = " ".join(islice(cycle(f"{NEUTRAL[0]} {NEUTRAL[2]}".upper().split()), limit - count + 5))
    yield from text_edits.add_sentences(text, [shout])
    high = core_span(text)[1]
    yield f"{text[:high]} {shout}{text[high:]}"


def _reduce_letter(text: str, letter: str, need: int) -> Iterator[str]:
    if not letter.isalnum():
        marks = list(re.finditer(re.escape(letter), text))
        for new in ({"!": ".", "?": ".", ";": " –", ":": " –"}.get(letter, ""), "", " "):
            for chosen in subsets(marks, need):
                yield substitute(text, [(*mark.span(), new) for mark in chosen])
    plainer = [m for m in re.finditer(r"[^\W\d_]+", text) if m[0].lower() in SYNONYMS]
    plainer = [m for m in plainer if letter in m[0].lower() and letter not in SYNONYMS[m[0].lower()]]
    for size in dict.fromkeys((1, min(2, need), need)):
        for words in subsets(plainer, size):
            yield substitute(text, [(*m.span(), match_case(m[0], SYNONYMS[m[0].lower()])) for m in words])
    yield from text_edits.remove_parts(text, lambda part: part.lower().count(letter), need)


def _take_phrases(phrases: Sequence[str], letter: str, need: int) -> list[str]:
    chosen, supply = list[str](), cycle(phrases)
    while need > 0 and phrases:
        chosen.append(next(supply))
        need -= chosen[-1].lower().count(letter)
    return chosen


def _break_letters(c: Constraint, text: str) -> Iterator[str]:
    """Use synonyms with fewer of the letter or remove words; or add words with it."""
    letter, limit = c["letter"].lower(), c["let_frequency"]
    need = limit - text.lower().count(letter)
    if c["let_relation"] == "at least":
        yield from _reduce_letter(text, letter, 1 - need)
        return
    if need > text_edits.MOST:
        return
    if letter in ("!", "?"):
        ends = [
            end for end in [*counting.sentence_ends(text), core_span(text)[1]] if text[end - 1 : end] in (".", "!", "?")
        ]
        for marks in subsets([end for end in ends if text[end - 1] != letter], need):
            yield substitute(text, [(end - 1, end, letter) for end in marks])
    rich = sorted((*NEUTRAL, *_LETTERED), key=lambda sentence: -sentence.lower().count(letter))[:4]
    rich = [sentence for sentence in rich if letter in sentence.lower()]
    for shift in range(len(rich)):
        yield from text_edits.add_sentences(text, [" ".join(_take_phrases(rich[shift:] + rich[:shift], letter, need))])
    phrases = [phrase for phrase in _PHRASES if letter in phrase]
    for shift in range(len(phrases)):
        chosen = _take_phrases(phrases[shift:] + phrases[:shift], letter, need)
        yield from text_edits.add_clause(text, " and ".join(chosen))
    yield from text_edits.add_sentences(text, [" ".join([letter] * need)])
    yield from text_edits.add_clause(text, letter * need)
    yield f"{text}{letter * need}"


def _describe_capitals(c: Constraint) -> str:
    relation, n = c["capital_relation"], c["capital_frequency"]
    if n == 1 and relation != "at least":
        return "Do not write any word in all capital letters."
    return f"Write {format_bound(relation)} {format_count(n, 'word')} in all capital letters."


def _describe_letters(c: Constraint) -> str:
    name = "letter" if c["letter"].isalpha() else "character"
    return describe_use(c["let_relation"], f'the {name} "{c["letter"]}"', c["let_frequency"])


KINDS: Mapping[str, ConstraintKind] = {
    "change_case:capital_word_frequency": ConstraintKind(
        lambda c, text: is_within(c["capital_relation"], counting.count_capitals(text), c["capital_frequency"]),
        _describe_capitals,
        _break_capital_words,
        {"capital_relation": RELATION, "capital_frequency": COUNT},
    ),
    "change_case:english_capital": ConstraintKind(
        lambda c, text: text.isupper(), lambda c: "Write the whole answer in capital letters.", _break_capitals
    ),
    "change_case:english_lowercase": ConstraintKind(
        lambda c, text: text.islower(), lambda c: "Write the whole answer in lowercase letters.", _break_lowercase
    ),
    "keywords:letter_frequency": ConstraintKind(
        lambda c, text: is_within(c["let_relation"], text.lower().count(c["letter"].lower()), c["let_frequency"]),
        _describe_letters,
        _break_letters,
        {"let_relation": RELATION, "letter": CHARACTER, "let_frequency": COUNT},
    ),
    "punctuation:no_comma": ConstraintKind(
        lambda c, text: "," not in text, lambda c: "Do not use any commas.", _break_no_comma
    ),
}
