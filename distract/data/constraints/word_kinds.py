"""Kinds about words and characters: letter case, commas, keywords and letters."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core.records import Constraint
from distract.data.constraints import break_keywords, break_words, spans
from distract.data.constraints.kind import (
    CHARACTER,
    COUNT,
    RELATION,
    TEXT,
    TEXTS,
    ConstraintKind,
    describe_use,
    format_bound,
    format_count,
    format_words,
    is_within,
)


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
        lambda c, text: is_within(c["capital_relation"], spans.count_capitals(text), c["capital_frequency"]),
        _describe_capitals,
        break_words.capital_words,
        {"capital_relation": RELATION, "capital_frequency": COUNT},
    ),
    "change_case:english_capital": ConstraintKind(
        lambda c, text: text.isupper(), lambda c: "Write the whole answer in capital letters.", break_words.capitals
    ),
    "change_case:english_lowercase": ConstraintKind(
        lambda c, text: text.islower(), lambda c: "Write the whole answer in lowercase letters.", break_words.lowercase
    ),
    "keywords:existence": ConstraintKind(
        lambda c, text: all(spans.count_occurrences(text, word) for word in c["keywords"]),
        lambda c: f"Include the {format_words('keyword', c['keywords'], 'and')}.",
        break_keywords.existence,
        {"keywords": TEXTS},
    ),
    "keywords:forbidden_words": ConstraintKind(
        lambda c, text: not any(spans.has_word(text, word) for word in c["forbidden_words"]),
        lambda c: f"Do not use the {format_words('word', c['forbidden_words'], 'or')}.",
        break_keywords.forbidden,
        {"forbidden_words": TEXTS},
    ),
    "keywords:frequency": ConstraintKind(
        lambda c, text: is_within(c["relation"], spans.count_occurrences(text, c["keyword"]), c["frequency"]),
        lambda c: describe_use(c["relation"], f'"{c["keyword"]}"', c["frequency"]),
        break_keywords.frequency,
        {"relation": RELATION, "keyword": TEXT, "frequency": COUNT},
    ),
    "keywords:letter_frequency": ConstraintKind(
        lambda c, text: is_within(c["let_relation"], text.lower().count(c["letter"].lower()), c["let_frequency"]),
        _describe_letters,
        break_words.letters,
        {"let_relation": RELATION, "letter": CHARACTER, "let_frequency": COUNT},
    ),
    "punctuation:no_comma": ConstraintKind(
        lambda c, text: "," not in text, lambda c: "Do not use any commas.", break_words.no_comma
    ),
}
