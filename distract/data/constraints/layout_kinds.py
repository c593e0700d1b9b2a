"""Kinds about layout and length: bullets, highlights, titles, sections, paragraphs, sentences and words."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core.records import Constraint
from distract.data.constraints import break_layout, spans
from distract.data.constraints.kind import (
    COUNT,
    RELATION,
    TEXT,
    WORD,
    ConstraintKind,
    format_bound,
    format_count,
    is_within,
)


def _has_first_word(c: Constraint, text: str) -> bool:
    blocks, n = spans.split_blocks(text), c["nth_paragraph"]
    if sum(bool(block.strip()) for block in blocks) != c["num_paragraphs"] or n > c["num_paragraphs"]:
        return False
    # The position counts empty parts, as in the original.
    return spans.first_word(blocks[n - 1]) == str(c["first_word"]).lower()


def _describe_first_word(c: Constraint) -> str:
    count, word = c["num_paragraphs"], f'the word "{c["first_word"]}"'
    if count == c["nth_paragraph"] == 1:
        return f"Write exactly 1 paragraph and start it with {word}."
    parts = format_count(count, "paragraph")
    return f"Write exactly {parts} with a blank line between them and start paragraph {c['nth_paragraph']} with {word}."


def _describe_sections(c: Constraint) -> str:
    parts, mark = format_count(c["num_sections"], "section"), c["section_spliter"]
    return f'Divide the answer into at least {parts}, marked "{mark} 1" and so on.'


KINDS: Mapping[str, ConstraintKind] = {
    "detectable_content:number_placeholders": ConstraintKind(
        lambda c, text: len(spans.PLACEHOLDER.findall(text)) >= c["num_placeholders"],
        lambda c: f"Include at least {format_count(c['num_placeholders'], 'placeholder')} such as [name].",
        break_layout.placeholders,
        {"num_placeholders": COUNT},
    ),
    "detectable_format:json_format": ConstraintKind(
        lambda c, text: spans.is_json(text),
        lambda c: "Write the whole answer as valid JSON.",
        break_layout.json,
    ),
    "detectable_format:multiple_sections": ConstraintKind(
        lambda c, text: spans.count_sections(text, c["section_spliter"]) >= c["num_sections"],
        _describe_sections,
        break_layout.sections,
        {"section_spliter": TEXT, "num_sections": COUNT},
    ),
    "detectable_format:number_bullet_lists": ConstraintKind(
        lambda c, text: spans.count_bullets(text) == c["num_bullets"],
        lambda c: f"Include exactly {format_count(c['num_bullets'], 'markdown bullet point')}.",
        break_layout.bullets,
        {"num_bullets": COUNT},
    ),
    "detectable_format:number_highlighted_sections": ConstraintKind(
        lambda c, text: spans.count_highlights(text) >= c["num_highlights"],
        lambda c: f"Highlight at least {format_count(c['num_highlights'], 'part')} with markdown, like *this*.",
        break_layout.highlights,
        {"num_highlights": COUNT},
    ),
    "detectable_format:title": ConstraintKind(
        lambda c, text: bool(spans.find_titles(text)),
        lambda c: "Give the answer a title wrapped in double angular brackets, such as <<title>>.",
        break_layout.title,
    ),
    "length_constraints:nth_paragraph_first_word": ConstraintKind(
        _has_first_word,
        _describe_first_word,
        break_layout.nth_paragraph,
        {"first_word": WORD, "num_paragraphs": COUNT, "nth_paragraph": COUNT},
    ),
    "length_constraints:number_paragraphs": ConstraintKind(
        lambda c, text: spans.count_paragraphs(text) == c["num_paragraphs"],
        lambda c: f"Write exactly {format_count(c['num_paragraphs'], 'paragraph')}, using *** only as a divider.",
        break_layout.paragraphs,
        {"num_paragraphs": COUNT},
    ),
    "length_constraints:number_sentences": ConstraintKind(
        lambda c, text: is_within(c["relation"], spans.count_sentences(text), c["num_sentences"]),
        lambda c: f"Write {format_bound(c['relation'])} {format_count(c['num_sentences'], 'sentence')}.",
        break_layout.sentences,
        {"relation": RELATION, "num_sentences": COUNT},
    ),
    "length_constraints:number_words": ConstraintKind(
        lambda c, text: is_within(c["relation"], spans.count_words(text), c["num_words"]),
        lambda c: f"Write {format_bound(c['relation'])} {format_count(c['num_words'], 'word')}.",
        break_layout.words,
        {"relation": RELATION, "num_words": COUNT},
    ),
}
