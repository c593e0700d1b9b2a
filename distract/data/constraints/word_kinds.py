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
    Kind,
    bound,
    listed,
    number,
    times,
    within,
)


def _capitals(c: Constraint) -> str:
    relation, n = c["capital_relation"], c["capital_frequency"]
    if n == 1 and relation != "at least":
        return "Do not write any word in all capital letters."
    return f"Write {bound(relation)} {number(n, 'word')} in all capital letters."


def _letters(c: Constraint) -> str:
    name = "letter" if c["letter"].isalpha() else "character"
    return times(c["let_relation"], f'the {name} "{c["letter"]}"', c["let_frequency"])


KINDS: Mapping[str, Kind] = {
    "change_case:capital_word_frequency": Kind(
        lambda c, text: within(c["capital_relation"], spans.capital_words(text), c["capital_frequency"]),
        _capitals,
        break_words.capital_words,
        {"capital_relation": RELATION, "capital_frequency": COUNT},
    ),
    "change_case:english_capital": Kind(
        lambda c, text: text.isupper(), lambda c: "Write the whole answer in capital letters.", break_words.capitals
    ),
    "change_case:english_lowercase": Kind(
        lambda c, text: text.islower(), lambda c: "Write the whole answer in lowercase letters.", break_words.lowercase
    ),
    "keywords:existence": Kind(
        lambda c, text: all(spans.occurrences(text, word) for word in c["keywords"]),
        lambda c: f"Include the {listed('keyword', c['keywords'], 'and')}.",
        break_keywords.existence,
        {"keywords": TEXTS},
    ),
    "keywords:forbidden_words": Kind(
        lambda c, text: not any(spans.has_word(text, word) for word in c["forbidden_words"]),
        lambda c: f"Do not use the {listed('word', c['forbidden_words'], 'or')}.",
        break_keywords.forbidden,
        {"forbidden_words": TEXTS},
    ),
    "keywords:frequency": Kind(
        lambda c, text: within(c["relation"], spans.occurrences(text, c["keyword"]), c["frequency"]),
        lambda c: times(c["relation"], f'"{c["keyword"]}"', c["frequency"]),
        break_keywords.frequency,
        {"relation": RELATION, "keyword": TEXT, "frequency": COUNT},
    ),
    "keywords:letter_frequency": Kind(
        lambda c, text: within(c["let_relation"], text.lower().count(c["letter"].lower()), c["let_frequency"]),
        _letters,
        break_words.letters,
        {"let_relation": RELATION, "letter": CHARACTER, "let_frequency": COUNT},
    ),
    "punctuation:no_comma": Kind(
        lambda c, text: "," not in text, lambda c: "Do not use any commas.", break_words.no_comma
    ),
}
