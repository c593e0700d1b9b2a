"""Kinds about layout and length: bullets, highlights, titles, sections, paragraphs, sentences and words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import cycle, islice, pairwise

from distract.core.records import Constraint
from distract.data.constraints import spans as counting, text_edits as editing
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
from distract.data.constraints.text_edits import (
    NEUTRAL,
    core_span,
    find_opaque,
    lower_start,
    styler,
    subsets,
    substitute,
)

_ITEM = re.compile(r"^([^\S\n]*)([*-][^\S\n]+|-(?!-)|\*(?!\*))(?=\S)(.*)$", re.M)
_VERB = r"\b(?:is|are|was|were|can|will|has|have|should|may|might|must|would|could|do|does)(?= [a-z])"


def _break_placeholders(c: Constraint, text: str) -> Iterator[str]:
    """Remove the brackets of some placeholders, but not the words."""
    matches = list(counting.PLACEHOLDER.finditer(text))
    for chosen in subsets(matches, len(matches) - c["num_placeholders"] + 1):
        yield substitute(text, [(*match.span(), match[0][1:-1]) for match in chosen])
    yield counting.PLACEHOLDER.sub(lambda match: match[0][1:-1], text)
    yield text.replace("[", "(").replace("]", ")")
    yield text.replace("[", "")


def _break_json(c: Constraint, text: str) -> Iterator[str]:
    """Remove the last bracket, or add a sentence."""
    inner = text.rstrip().removesuffix("```").rstrip()
    if inner.endswith(("}", "]")):
        yield inner[:-1].rstrip() + text[len(inner) :]
        yield f"{inner[:-1].rstrip()},{inner[-1]}{text[len(inner) :]}"
    if inner.endswith('"') and len(inner) > 1:
        yield f"{inner[:-1]}\n{text[len(inner) - 1 :]}"
    for opening in ("Here is the answer:", "As JSON:"):
        yield f"{styler(text)(opening)}\n{text}"
    yield f"{text}\n{NEUTRAL[0]}"


def _break_sections(c: Constraint, text: str) -> Iterator[str]:
    """Rename some sections, but keep their numbers."""
    marker = c["section_spliter"]
    markers = list(re.finditer(rf"{re.escape(marker)}(?=\s?\d)", text))
    need = counting.count_sections(text, marker) - c["num_sections"] + 1
    for name in ("Part", "Chapter", "No.", "§"):
        name = name.upper() if marker.isupper() else name.lower() if marker.islower() else name
        for chosen in [*subsets(markers, need), markers]:
            yield substitute(text, [(*match.span(), name) for match in chosen])
    for new in ("", "–"):
        yield substitute(text, [(*match.span(), new) for match in markers])


def _break_bullets(c: Constraint, text: str) -> Iterator[str]:
    """Join two bullets, split one, or turn one into a plain line."""
    items, put = list(_ITEM.finditer(text)), styler(text)
    pairs = [(a, b) for a, b in pairwise(items) if not text[a.end() : b.start()].strip()]
    for a, b in [pair for chosen in subsets(pairs, 1) for pair in chosen][:3]:
        end = a.end() - len(a[0]) + len(a[0].rstrip(" \t.;,"))
        yield f"{text[:end]}; {lower_start(b[3])}{text[b.end() :]}"
    for (item,) in subsets([item for item in items if item[2][1:]], 1):
        yield f"{text[: item.start()]}{item[1]}{item[3]}{text[item.end() :]}"
    for item in items[:3]:
        for match in islice(re.finditer(r"[.;:] (?=\w)", item[3]), 2):
            cut = item.start(3) + match.start() + 1
            first = put(text[cut + 1].upper())
            yield f"{text[:cut]}\n{item[1]}{item[2]}{first}{text[cut + 2 :]}"
    for chosen in [items, *subsets(items, 1)]:
        yield substitute(text, [(item.start(2), item.start(2) + 1, "•") for item in chosen])
    yield f"{text}\n* {put(NEUTRAL[0])}"
    yield re.sub(r"^[^\S\n]*[*-]", "•", text, flags=re.M)


def _break_highlights(c: Constraint, text: str) -> Iterator[str]:
    """Remove the asterisks of some parts, but not the words."""
    spans = sorted(
        (m for p in counting.HIGHLIGHT for m in p.finditer(text) if m[0].strip("*").strip()), key=re.Match.start
    )
    for chosen in [*subsets(spans, len(spans) - c["num_highlights"] + 1), spans]:
        yield substitute(text, [(*match.span(), match[0].strip("*")) for match in chosen])
    yield re.sub(r"(?<=[^\s*])\*++|(?<!\*)\*++(?=[^\s*])", "", text)
    yield text.replace("*", "")


def _break_title(c: Constraint, text: str) -> Iterator[str]:
    spans = []
    for line in re.finditer(r"[^\n]+", text):
        start, end = line[0].find("<<"), line[0].rfind(">>")
        if 0 <= start <= end - 3:
            spans.append((line.start() + start, line.start() + end))
    for left, right in (("", ""), ("<", ">"), ("# ", "")):
        edits = [edit for start, end in spans for edit in ((start, start + 2, left), (end, end + 2, right))]
        yield substitute(text, edits)
    yield text.replace("<<", "").replace(">>", "")


def _break_nth_paragraph(c: Constraint, text: str) -> Iterator[str]:
    """Start the paragraph with another word, join two paragraphs, or split one."""
    blocks = counting.split_blocks(text)
    start = sum(len(block) + 2 for block in blocks[: c["nth_paragraph"] - 1])
    word = re.compile(r"[\s\"'*_#>(-]{0,99}").match(text, start)
    at = word.end() if word else start
    first = str(c["first_word"])
    rest = text[at : at + 1].lower() + text[at + 1 :] if first.islower() and not text.isupper() else text[at:]
    for opening in ("Here", "Now", "As it is", "Well"):
        yield f"{text[:at]}{styler(text)(opening)} {rest}"
    gaps = list(re.finditer(r"(?<=\S)\n\n(?=\S)", text))
    for joint in (" ", "\n"):
        for (gap,) in subsets(gaps, 1):
            yield f"{text[: gap.start()]}{joint}{text[gap.end() :]}"
    for (end,) in subsets([end for end in counting.sentence_ends(text) if text[end] == " "], 1):
        yield f"{text[:end]}\n\n{text[end + 1 :]}"
    yield from (f"{text[:end]}\n\n{styler(text)(NEUTRAL[0])}{text[end:]}" for end in core_span(text)[1:])


def _break_paragraphs(c: Constraint, text: str) -> Iterator[str]:
    """Replace a divider by a blank line, or add one between two sentences."""
    high = core_span(text)[1]
    parts = [part.strip() for part in counting.DIVIDER.split(text)]
    dividers = [m for m, sides in zip(counting.DIVIDER.finditer(text), pairwise(parts), strict=True) if all(sides)]
    for joint in ("\n\n", " "):
        for (divider,) in subsets(dividers, 1):
            yield f"{text[: divider.start()]}{joint}{text[divider.end() :]}"
    for (gap,) in subsets(list(re.finditer(r"(?<=[^\s*])\n\n(?=[^\s*])", text)), 1):
        yield f"{text[: gap.start()]}\n***\n{text[gap.end() :]}"
    for (end,) in subsets([end for end in counting.sentence_ends(text) if text[end] == " "], 1):
        yield f"{text[:end]}\n***\n{text[end + 1 :]}"
    yield f"{text[:high]}\n***\n{styler(text)(NEUTRAL[0])}{text[high:]}"
    yield text.replace("***", "")


def _break_sentences(c: Constraint, text: str) -> Iterator[str]:
    """Join or split sentences, or add empty ones."""
    limit, total = c["num_sentences"], counting.count_sentences(text)
    if c["relation"] == "at least":
        edits = editing.find_joins(text)
        inline = [edit for edit in edits if "; " in edit[2]]
        for chosen in [*subsets(inline, total - limit + 1), *subsets(edits, total - limit + 1)]:
            yield substitute(text, chosen)
        yield from editing.remove_parts(text, lambda part: len(re.findall(r"[.!?]", part)), total - limit + 1)
        yield re.sub(r"[.!?]", "", text)
        return
    lacking, spans, put = limit - total, find_opaque(text), styler(text)
    if lacking > editing.MOST:
        return

    def split(sites: list[re.Match[str]]) -> str:
        return substitute(text, [(m.start(), m.end() + 1, f". {put(text[m.end()].upper())}") for m in sites])

    joints = re.finditer(r"; (?=\w)|, (?=(?:and|but|so|because|which|while) \w)", text)
    sites = [match for match in joints if editing.is_free(spans, match.start())]
    for marks in subsets(sites, lacking):
        yield split(marks)
    for shift in range(4):
        yield from editing.add_sentences(text, [" ".join(islice(cycle(NEUTRAL), shift, shift + lacking))])
    # Text after the last mark becomes part of the first added sentence, so add one more.
    yield from editing.add_sentences(text, [" ".join(islice(cycle(NEUTRAL), lacking + 1))])
    if 0 < len(sites) < lacking:
        yield from editing.add_sentences(split(sites), [" ".join(islice(cycle(NEUTRAL), lacking - len(sites)))])
    for pattern in (r" (?=(?:and|or|but) \w)", r",? (?=\w{3})"):
        for marks in subsets([m for m in re.finditer(pattern, text) if m.start()], lacking):
            yield split(marks)


def _break_words(c: Constraint, text: str) -> Iterator[str]:
    """Remove words, then sentences, that say little; or add empty ones."""
    limit, total = c["num_words"], counting.count_words(text)
    if c["relation"] == "at least":
        if limit > 1:  # an empty text is not an answer
            yield from editing.remove_parts(text, counting.count_words, total - limit + 1)
        return
    lacking, put = limit - total, styler(text)
    if lacking > editing.MOST:
        return
    for shift in range(3):
        supply = cycle(NEUTRAL[shift:] + NEUTRAL[:shift])
        yield from editing.add_sentences(text, [" ".join(_take_sentences(supply, lacking))])
    verbs = [match.end() for match in re.finditer(_VERB, text, re.I)]
    for filler in ("really", "indeed", "surely"):
        for ends in subsets(verbs, lacking):
            yield substitute(text, [(end, end, put(f" {filler}")) for end in ends])
    yield from editing.add_clause(text, " ".join(["and so on"] * (lacking // 3 + 1)))
    yield f"{text}{put(' again') * lacking}"


def _take_sentences(supply: Iterator[str], lacking: int) -> Iterator[str]:
    while lacking > 0:
        sentence = next(supply)
        lacking -= counting.count_words(sentence)
        yield sentence


def _has_first_word(c: Constraint, text: str) -> bool:
    blocks, n = counting.split_blocks(text), c["nth_paragraph"]
    if sum(bool(block.strip()) for block in blocks) != c["num_paragraphs"] or n > c["num_paragraphs"]:
        return False
    # The position counts empty parts, as in the original.
    return counting.first_word(blocks[n - 1]) == str(c["first_word"]).lower()


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
        lambda c, text: len(counting.PLACEHOLDER.findall(text)) >= c["num_placeholders"],
        lambda c: f"Include at least {format_count(c['num_placeholders'], 'placeholder')} such as [name].",
        _break_placeholders,
        {"num_placeholders": COUNT},
    ),
    "detectable_format:json_format": ConstraintKind(
        lambda c, text: counting.is_json(text),
        lambda c: "Write the whole answer as valid JSON.",
        _break_json,
    ),
    "detectable_format:multiple_sections": ConstraintKind(
        lambda c, text: counting.count_sections(text, c["section_spliter"]) >= c["num_sections"],
        _describe_sections,
        _break_sections,
        {"section_spliter": TEXT, "num_sections": COUNT},
    ),
    "detectable_format:number_bullet_lists": ConstraintKind(
        lambda c, text: counting.count_bullets(text) == c["num_bullets"],
        lambda c: f"Include exactly {format_count(c['num_bullets'], 'markdown bullet point')}.",
        _break_bullets,
        {"num_bullets": COUNT},
    ),
    "detectable_format:number_highlighted_sections": ConstraintKind(
        lambda c, text: counting.count_highlights(text) >= c["num_highlights"],
        lambda c: f"Highlight at least {format_count(c['num_highlights'], 'part')} with markdown, like *this*.",
        _break_highlights,
        {"num_highlights": COUNT},
    ),
    "detectable_format:title": ConstraintKind(
        lambda c, text: bool(counting.find_titles(text)),
        lambda c: "Give the answer a title wrapped in double angular brackets, such as <<title>>.",
        _break_title,
    ),
    "length_constraints:nth_paragraph_first_word": ConstraintKind(
        _has_first_word,
        _describe_first_word,
        _break_nth_paragraph,
        {"first_word": WORD, "num_paragraphs": COUNT, "nth_paragraph": COUNT},
    ),
    "length_constraints:number_paragraphs": ConstraintKind(
        lambda c, text: counting.count_paragraphs(text) == c["num_paragraphs"],
        lambda c: f"Write exactly {format_count(c['num_paragraphs'], 'paragraph')}, using *** only as a divider.",
        _break_paragraphs,
        {"num_paragraphs": COUNT},
    ),
    "length_constraints:number_sentences": ConstraintKind(
        lambda c, text: is_within(c["relation"], counting.count_sentences(text), c["num_sentences"]),
        lambda c: f"Write {format_bound(c['relation'])} {format_count(c['num_sentences'], 'sentence')}.",
        _break_sentences,
        {"relation": RELATION, "num_sentences": COUNT},
    ),
    "length_constraints:number_words": ConstraintKind(
        lambda c, text: is_within(c["relation"], counting.count_words(text), c["num_words"]),
        lambda c: f"Write {format_bound(c['relation'])} {format_count(c['num_words'], 'word')}.",
        _break_words,
        {"relation": RELATION, "num_words": COUNT},
    ),
}
