"""Drawn cases with format requirements and a response that meets them all.

The response is built from parts that meet the requirements, then limits are set that it meets, so few draws are wasted.
No requirement names a language: checking one depends on an optional library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from hypothesis import assume, strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from distract.core.errors import UsageError
from distract.core.records import Case, Constraint, Response
from distract.data.constraints import check, describe, parse, spans
from distract.data.good_responses import compliant_response
from distract.studies.make.constraint_sets import has_conflict
from distract.testing.strategies import word_lists
from distract.testing.strategies.drawn_cases import AUTHORS, Data, list_cases, name_case, narrow_case, prompts

MAX_REQUIREMENTS = 4

Arguments = dict[str, object]
Part = Callable[[str, int, str], tuple[str, Arguments]]
"""Takes a text, a number from 1 to 3 and the question; returns a text that meets a requirement, and its arguments."""


def constrained(*, least: int = 1, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases whose prompt states ``least`` to 4 format requirements, with one response that meets them all.

    ``data`` draws from these cases instead of generating some.
    """
    if type(least) is not int or not 1 <= least <= MAX_REQUIREMENTS:
        raise UsageError(f"least={least!r}: expected a whole number from 1 to {MAX_REQUIREMENTS}")
    if data is None:
        return _constrained_cases(least)
    listed = list_cases(data)
    candidates = [case for case in listed if len(case.constraints) >= least]
    usable = [narrow_case(case, [good]) for case in candidates if (good := compliant_response(case))]
    if not usable:
        expected = f"at least {least} format requirements" if least > 1 else "format requirements"
        raise UsageError(
            f"data: expected cases with {expected} and a response that meets all; found none among {len(listed)}"
        )
    return st.sampled_from(usable)


@st.composite
def _constrained_cases(draw: DrawFn, least: int) -> Case:
    question = draw(prompts())
    sentences = st.lists(st.sampled_from(word_lists.PLAIN), min_size=1, max_size=MAX_REQUIREMENTS, unique=True)
    text = " ".join(draw(sentences))
    size, usable = draw(st.integers(least, MAX_REQUIREMENTS)), list(PARTS if least == 1 else TOGETHER)
    kinds = draw(st.lists(st.sampled_from(usable), min_size=size, max_size=MAX_REQUIREMENTS, unique=True))
    numbers = {kind: draw(st.integers(1, 3)) for kind in kinds}
    constraints: list[Constraint] = []
    for kind in sorted(_select_kinds(kinds, least), key=list(PARTS).index):
        text, arguments = PARTS[kind](text, numbers.get(kind, 1), question)
        constraints.append(parse({"kind": kind, **arguments}))
    # This holds by construction; check it anyway, so that no judge meets a wrong case.
    assume(all(check(constraint, text) for constraint in constraints))
    prompt = "\n\n".join([question, " ".join(map(describe, constraints))])
    response = Response(AUTHORS[0], (text,))
    return name_case(Case("", (prompt,), (response,), constraints=tuple(constraints), source="drawn"))


def _select_kinds(kinds: Iterable[str], least: int) -> list[str]:
    """The kinds without conflicts with earlier ones, filled up to ``least``."""
    selected: list[str] = []
    preferred = list(kinds)
    for kind in (*preferred, *TOGETHER):
        is_needed = kind in preferred or len(selected) < least
        if is_needed and not any(has_conflict(_SAMPLES[kind], _SAMPLES[other]) for other in selected):
            selected.append(kind)
    return selected


def _append_part(sentence: str, words: tuple[str, ...], argument: str, **more: object) -> Part:
    """Append a sentence with that many of the words, and require as many."""

    def part(text: str, number: int, question: str) -> tuple[str, Arguments]:
        return f"{text} {sentence.format(' and '.join(words[:number]))}", {argument: number, **more}

    return part


def _existence(text: str, number: int, question: str) -> tuple[str, Arguments]:
    keywords = ("kettle", "garden", "ladder")[:number]
    return f"{text} Do not forget the {' and the '.join(keywords)}.", {"keywords": keywords}


def _frequency(text: str, number: int, question: str) -> tuple[str, Arguments]:
    if number == 3:
        below = _below_limit("relation", "frequency", spans.count_occurrences(text, "river"))
        return text, below | {"keyword": "river"}
    crossed = " and ".join(["cross the river"] * number)
    return f"{text} You will {crossed}.", {"keyword": "river", "relation": "at least", "frequency": number}


def _bullets(text: str, number: int, question: str) -> tuple[str, Arguments]:
    items = "\n".join(f"- {item}" for item in word_lists.ITEMS[:number])
    return f"{text}\n\n{items}", {"num_bullets": number}


def _sections(text: str, number: int, question: str) -> tuple[str, Arguments]:
    bodies = (text, *word_lists.PLAIN[:number])
    parts = (f"Section {place}\n{body}" for place, body in enumerate(bodies, 1))
    return "\n\n".join(parts), {"section_spliter": "Section", "num_sections": number + 1}


def _paragraphs(text: str, number: int, question: str) -> tuple[str, Arguments]:
    return "\n\n***\n\n".join([text, *word_lists.PLAIN[:number]]), {"num_paragraphs": number + 1}


def _nth_paragraph(text: str, number: int, question: str) -> tuple[str, Arguments]:
    blocks = spans.split_blocks(text)
    # A block without a leading word is a title or the like.
    place = next(place for place, block in enumerate(blocks) if spans.first_word(block).isalpha())
    blocks[place:place] = word_lists.PLAIN[: number - 1]
    word = spans.first_word(blocks[place])
    return "\n\n".join(blocks), {"num_paragraphs": len(blocks), "nth_paragraph": place + 1, "first_word": word}


def _postscript(text: str, number: int, question: str) -> tuple[str, Arguments]:
    marker = "P.P.S" if number == 2 else "P.S."
    return f"{text}\n\n{marker} Take your time.", {"postscript_marker": marker}


def _end(text: str, number: int, question: str) -> tuple[str, Arguments]:
    phrase = ("That is all.", "Good luck!", "Is there anything else I can help with?")[number - 1]
    return f"{text}\n\n{phrase}", {"end_phrase": phrase}


def _below_limit(relation: str, limit: str, total: int) -> Arguments:
    return {relation: "less than", limit: total + 1}


def _limit_part(count: Callable[[str], int], limit: str, relation: str = "relation", /, **more: str) -> Part:
    """Set a limit that the text meets, exactly or with room to spare."""

    def part(text: str, number: int, question: str) -> tuple[str, Arguments]:
        total = count(text)
        if total and number < 3:
            return text, {relation: "at least", limit: max(1, total // number), **more}
        return text, _below_limit(relation, limit, total) | more

    return part


TOGETHER: Mapping[str, Part] = MappingProxyType(
    {
        "punctuation:no_comma": lambda text, number, _: (text, {}),
        "keywords:forbidden_words": lambda text, number, _: (
            text,
            {"forbidden_words": ("however", "delve", "tapestry")[:number]},
        ),
        "keywords:existence": _existence,
        "keywords:frequency": _frequency,
        "detectable_content:number_placeholders": _append_part(
            "Write to {}.", ("[name]", "[place]", "[day]"), "num_placeholders"
        ),
        "detectable_format:number_highlighted_sections": _append_part(
            "Think of {}.", ("*time*", "*money*", "*rest*"), "num_highlights"
        ),
        "change_case:capital_word_frequency": _append_part(
            "Do it {}.", ("NOW", "TWICE", "WELL"), "capital_frequency", capital_relation="at least"
        ),
        "detectable_format:number_bullet_lists": _bullets,
        "detectable_format:multiple_sections": _sections,
        "length_constraints:number_paragraphs": _paragraphs,
        "detectable_format:title": lambda text, number, _: (f"<<Notes>>\n\n{text}", {}),
        "detectable_content:postscript": _postscript,
        "startend:end_checker": _end,
        "length_constraints:nth_paragraph_first_word": _nth_paragraph,
        "startend:quotation": lambda text, number, _: (f'"{text}"', {}),
        "change_case:english_lowercase": lambda text, number, _: (text.lower(), {}),
        "change_case:english_capital": lambda text, number, _: (text.upper(), {}),
        "length_constraints:number_sentences": _limit_part(spans.count_sentences, "num_sentences"),
        "length_constraints:number_words": _limit_part(spans.count_words, "num_words"),
        "keywords:letter_frequency": _limit_part(
            lambda text: text.lower().count("k"), "let_frequency", "let_relation", letter="k"
        ),
    }
)
"""Kinds that combine, in an order in which later parts keep earlier requirements met."""

ALONE: Mapping[str, Part] = MappingProxyType(
    {
        "detectable_format:constrained_response": lambda text, number, _: (f"{text} My answer is yes.", {}),
        "detectable_format:json_format": lambda text, number, _: (json.dumps({"answer": text}), {}),
        "combination:two_responses": lambda text, number, _: (f"{text}\n******\n{text} Take your time.", {}),
        "combination:repeat_prompt": lambda text, number, question: (
            f"{question}\n\n{text}",
            {"prompt_to_repeat": question},
        ),
    }
)
"""Kinds that define the whole answer."""

PARTS: Mapping[str, Part] = MappingProxyType({**TOGETHER, **ALONE})

_SAMPLES = {kind: parse({"kind": kind, **part("Start early.", 1, "How?")[1]}) for kind, part in PARTS.items()}
"""One requirement of each kind, to test which conflict."""
