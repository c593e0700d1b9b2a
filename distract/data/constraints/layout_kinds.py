"""Kinds about how an answer is laid out: bullets, highlights, titles, sections, paragraphs and lengths."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core.records import Constraint
from distract.data.constraints import break_layout, spans
from distract.data.constraints.kind import COUNT, RELATION, TEXT, WORD, Kind, bound, number, within


def _nth(c: Constraint, text: str) -> bool:
    blocks, n = spans.blocks(text), c["nth_paragraph"]
    if sum(bool(block.strip()) for block in blocks) != c["num_paragraphs"] or n > c["num_paragraphs"]:
        return False
    # The position counts empty parts, as in the original.
    return spans.first_word(blocks[n - 1]) == str(c["first_word"]).lower()


def _nth_words(c: Constraint) -> str:
    count, word = c["num_paragraphs"], f'the word "{c["first_word"]}"'
    if count == c["nth_paragraph"] == 1:
        return f"Write exactly 1 paragraph and start it with {word}."
    parts = number(count, "paragraph")
    return f"Write exactly {parts} with a blank line between them and start paragraph {c['nth_paragraph']} with {word}."


def _sections(c: Constraint) -> str:
    parts, mark = number(c["num_sections"], "section"), c["section_spliter"]
    return f'Divide the answer into at least {parts}, marked "{mark} 1" and so on.'


KINDS: Mapping[str, Kind] = {
    "detectable_content:number_placeholders": Kind(
        lambda c, text: len(spans.PLACEHOLDER.findall(text)) >= c["num_placeholders"],
        lambda c: f"Include at least {number(c['num_placeholders'], 'placeholder')} such as [name].",
        break_layout.placeholders,
        {"num_placeholders": COUNT},
    ),
    "detectable_format:json_format": Kind(
        lambda c, text: spans.is_json(text),
        lambda c: "Write the whole answer as valid JSON.",
        break_layout.json,
    ),
    "detectable_format:multiple_sections": Kind(
        lambda c, text: spans.sections(text, c["section_spliter"]) >= c["num_sections"],
        _sections,
        break_layout.sections,
        {"section_spliter": TEXT, "num_sections": COUNT},
    ),
    "detectable_format:number_bullet_lists": Kind(
        lambda c, text: spans.bullets(text) == c["num_bullets"],
        lambda c: f"Include exactly {number(c['num_bullets'], 'markdown bullet point')}.",
        break_layout.bullets,
        {"num_bullets": COUNT},
    ),
    "detectable_format:number_highlighted_sections": Kind(
        lambda c, text: spans.highlights(text) >= c["num_highlights"],
        lambda c: f"Highlight at least {number(c['num_highlights'], 'part')} with markdown, like *this*.",
        break_layout.highlights,
        {"num_highlights": COUNT},
    ),
    "detectable_format:title": Kind(
        lambda c, text: bool(spans.titles(text)),
        lambda c: "Give the answer a title wrapped in double angular brackets, such as <<title>>.",
        break_layout.title,
    ),
    "length_constraints:nth_paragraph_first_word": Kind(
        _nth,
        _nth_words,
        break_layout.nth_paragraph,
        {"first_word": WORD, "num_paragraphs": COUNT, "nth_paragraph": COUNT},
    ),
    "length_constraints:number_paragraphs": Kind(
        lambda c, text: spans.paragraphs(text) == c["num_paragraphs"],
        lambda c: f"Write exactly {number(c['num_paragraphs'], 'paragraph')}, using *** only as a divider.",
        break_layout.paragraphs,
        {"num_paragraphs": COUNT},
    ),
    "length_constraints:number_sentences": Kind(
        lambda c, text: within(c["relation"], spans.sentences(text), c["num_sentences"]),
        lambda c: f"Write {bound(c['relation'])} {number(c['num_sentences'], 'sentence')}.",
        break_layout.sentences,
        {"relation": RELATION, "num_sentences": COUNT},
    ),
    "length_constraints:number_words": Kind(
        lambda c, text: within(c["relation"], spans.words(text), c["num_words"]),
        lambda c: f"Write {bound(c['relation'])} {number(c['num_words'], 'word')}.",
        break_layout.words,
        {"relation": RELATION, "num_words": COUNT},
    ),
}
