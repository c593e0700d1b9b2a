"""Sets of format requirements for a question: easy ones that do not conflict.

An easy requirement is one that a program can verify, a generator can follow and a small edit can break. Two conflict
where no answer, or only a contrived one, meets both.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from distract.core.records import Constraint
from distract.data.constraints import check, parse

_ANY: tuple[str, int, int] = ("", 0, 0)
EASY: Mapping[str, tuple[str, int, int]] = {
    "change_case:capital_word_frequency": ("capital_frequency", 3, 10),
    "change_case:english_capital": _ANY,
    "change_case:english_lowercase": _ANY,
    "detectable_content:number_placeholders": ("num_placeholders", 1, 4),
    "detectable_content:postscript": _ANY,
    "detectable_format:multiple_sections": ("num_sections", 2, 5),
    "detectable_format:number_bullet_lists": ("num_bullets", 1, 8),
    "detectable_format:number_highlighted_sections": ("num_highlights", 1, 4),
    "detectable_format:title": _ANY,
    "keywords:existence": ("keywords", 1, 4),
    "keywords:forbidden_words": ("forbidden_words", 1, 6),
    "keywords:frequency": ("frequency", 1, 5),
    "length_constraints:number_paragraphs": ("num_paragraphs", 1, 4),
    "length_constraints:number_sentences": ("num_sentences", 3, 12),
    "length_constraints:number_words": ("num_words", 20, 300),
    "punctuation:no_comma": _ANY,
    "startend:end_checker": _ANY,
    "startend:quotation": _ANY,
}
"""Easy kinds, each with the argument that must lie in a range; for a list, its length must."""

_LOWER, _UPPER = "change_case:english_lowercase", "change_case:english_capital"
_SENTENCES = "length_constraints:number_sentences"
_END, _POSTSCRIPT, _QUOTED = "startend:end_checker", "detectable_content:postscript", "startend:quotation"
_BULLETS, _SECTIONS = "detectable_format:number_bullet_lists", "detectable_format:multiple_sections"
_PARAGRAPHS, _NTH = "length_constraints:number_paragraphs", "length_constraints:nth_paragraph_first_word"

_ALONE = frozenset(
    (
        "combination:repeat_prompt",
        "combination:two_responses",
        "detectable_format:constrained_response",
        "detectable_format:json_format",
        "language:response_language",
    )
)
"""Kinds that fix the whole answer and leave no room for another."""

_GROUPS = (
    {_LOWER, _UPPER, "change_case:capital_word_frequency"},
    {_BULLETS, _PARAGRAPHS, _NTH},
    {_SECTIONS, _PARAGRAPHS, _NTH},
    {_END, _POSTSCRIPT, _QUOTED},  # each claims the end of the answer
    {_QUOTED, "detectable_format:title"},
    {_QUOTED, _BULLETS},  # the opening mark hides the first bullet
)
"""Kinds that exclude each other."""

_WORD_ARGUMENTS: Mapping[str, str] = {
    "keywords:existence": "keywords",
    "keywords:frequency": "keyword",
    _END: "end_phrase",
    _POSTSCRIPT: "postscript_marker",
    _SECTIONS: "section_spliter",
    _NTH: "first_word",
}
"""Kinds that require certain words, and the argument that holds them."""

_EXACT = frozenset((_END, _POSTSCRIPT, _SECTIONS))
"""Kinds whose words must appear verbatim, letter case included."""

_LEAST_WORDS: Mapping[str, int] = {
    "length_constraints:number_sentences": 4,
    "detectable_content:number_placeholders": 3,
    "detectable_format:number_highlighted_sections": 3,
    "length_constraints:number_words": 1,
    _BULLETS: 8,
    _PARAGRAPHS: 12,
    _SECTIONS: 15,
    _NTH: 12,
}
"""Minimum number of words that each counted element takes in a real answer."""

SENTENCE = 30
"""Maximum number of words in a readable sentence."""

_CASE = r"\b(?:lower|upper|capital|all caps|case)"
_SHORT = r"\b(?:haiku|limerick|tweet|riddle|joke|slogan|sentence|title|headline|name|question)s?\b"
MENU: tuple[tuple[Constraint, str], ...] = tuple(
    (parse(raw), unfit)
    for raw, unfit in (
        ({"kind": "punctuation:no_comma"}, r"\bcommas?\b|\bcsv\b"),
        ({"kind": _LOWER}, _CASE),
        ({"kind": _UPPER}, _CASE),
        (
            {"kind": "change_case:capital_word_frequency", "capital_relation": "at least", "capital_frequency": 3},
            _CASE,
        ),
        ({"kind": "detectable_format:title"}, r"\btitles?\b|\bheadlines?\b"),
        (
            {"kind": "detectable_format:number_highlighted_sections", "num_highlights": 2},
            r"\bhighlight|\bitalic|\bbold\b",
        ),
        (
            {"kind": _BULLETS, "num_bullets": 3},
            rf"\bbullet|\blists?\b|\b(?:poem|song|rap|lyrics|story|letter|table|essay)s?\b|{_SHORT}",
        ),
        ({"kind": _PARAGRAPHS, "num_paragraphs": 2}, rf"\bparagraph|\bbullet|\b(?:list|table)s?\b|{_SHORT}"),
        ({"kind": _QUOTED}, r"\bquot"),
        ({"kind": _END, "end_phrase": "Is there anything else I can help with?"}, r"\bend(?:s|ing)?\b"),
        ({"kind": _POSTSCRIPT, "postscript_marker": "P.S."}, r"\bpostscript|\bP\.\s?S"),
    )
)
"""Requirements to add to those of a prompt, each with the words of questions that it does not fit."""


@dataclass(frozen=True, slots=True)
class ConstraintChoice:
    """Requirements for a question: its own that were kept, those added, and all in the order shown."""

    kept: tuple[Constraint, ...]
    added: tuple[Constraint, ...]
    ordered: tuple[Constraint, ...]


def is_easy(c: Constraint) -> bool:
    """Whether a requirement is verifiable, followed without effort and broken by a small edit."""
    if c.kind not in EASY:
        return False
    name, low, high = EASY[c.kind]
    value = c[name] if name else 0
    return low <= (len(value) if isinstance(value, tuple) else value) <= high


def has_conflict(a: Constraint, b: Constraint) -> bool:
    """Whether no answer, or only a contrived one, can meet both; the order does not matter."""
    kinds = {a.kind, b.kind}
    # Two of one kind that agree are one requirement stated twice.
    if a.kind == b.kind or kinds & _ALONE or any(kinds <= group for group in _GROUPS):
        return True
    return _is_excluded(a, b) or _is_excluded(b, a)


def choose_constraints(
    question: str, own: Sequence[Constraint], size: int, draw: random.Random
) -> ConstraintChoice | None:
    """Choose easy requirements for a question that do not conflict (Distracted evaluation, IFEval-TweakSet)."""
    kept: list[Constraint] = []
    for c in own:
        if is_easy(c) and len(kept) < size and not any(has_conflict(c, other) for other in kept):
            kept.append(c)
    added: list[Constraint] = []
    for c, unfit in draw.sample(MENU, len(MENU)):
        taken = [*kept, *added]
        if len(taken) < size and not re.search(unfit, question, re.I) and not any(has_conflict(c, t) for t in taken):
            added.append(c)
    chosen = [*kept, *added]
    ordered = tuple(draw.sample(chosen, len(chosen)))
    return ConstraintChoice(tuple(kept), tuple(added), ordered) if len(chosen) == size else None


def _is_excluded(a: Constraint, b: Constraint) -> bool:
    """Whether a requires more than b allows."""
    words = _required_words(a)
    if words and _is_limit(b) and not check(b, words):
        return True
    if a.kind in _EXACT and (
        (b.kind == _LOWER and words != words.lower()) or (b.kind == _UPPER and words != words.upper())
    ):
        return True
    if a.kind == _POSTSCRIPT and b.kind == _SENTENCES and b["relation"] == "less than" and b["num_sentences"] < 4:
        # In capitals its marker counts as a sentence, so an answer with a word before it has three.
        return True
    most = _max_words(b)
    return most is not None and _min_words(a) > most


def _required_words(c: Constraint) -> str:
    name = _WORD_ARGUMENTS.get(c.kind)
    if name is None or (c.kind == "keywords:frequency" and c["relation"] != "at least"):
        return ""
    words = c[name] if isinstance(c[name], tuple) else (c[name],)
    return " ".join(words * (c["frequency"] if c.kind == "keywords:frequency" else 1))


def _is_limit(c: Constraint) -> bool:
    """Whether no text that violates it can be part of one that follows it."""
    return c.kind in ("keywords:forbidden_words", "punctuation:no_comma") or "less than" in dict(c.arguments).values()


def _min_words(c: Constraint) -> int:
    counts = [value for name, value in c.arguments if name.startswith("num_") and isinstance(value, int)]
    if "less than" in dict(c.arguments).values() or c.kind not in _LEAST_WORDS:
        return 0
    return max(counts) * _LEAST_WORDS[c.kind]


def _max_words(c: Constraint) -> int | None:
    """Maximum number of words of an answer that follows it; None sets no limit."""
    if c.kind == "length_constraints:number_words" and c["relation"] == "less than":
        return int(c["num_words"]) - 1
    if c.kind == _SENTENCES and c["relation"] == "less than":
        return (int(c["num_sentences"]) - 1) * SENTENCE
    return None
