"""Drawn cases with format requirements, and a response that meets them all.

The response is put together from parts that meet the requirements, and limits are then set to what it holds, so that
nothing is drawn in vain. ``distract.studies.make.constraint_sets`` says which requirements go together. None names a
language: whether one was met depends on an optional library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from distract.core.errors import UsageError
from distract.core.records import Case, Constraint, Response
from distract.data.constraints import check, describe, parse, spans
from distract.data.good_responses import compliant_response
from distract.studies.make.constraint_sets import has_conflict
from distract.testing.strategies import word_lists as wording
from distract.testing.strategies.drawn_cases import AUTHORS, Data, list_cases, name_case, narrow_case
from distract.testing.strategies.text import prompts

MOST = 4
"""Requirements of one case."""

Arguments = dict[str, object]
Part = Callable[[str, int, str], tuple[str, Arguments]]
"""A text, a number from 1 to 3 and the question, to a text that meets a requirement and the arguments of that."""


def constrained(*, least: int = 1, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases with 1 to 4 format requirements, which the prompt states, and one response that meets them all.

    Args:
        least: how many requirements at least, from 1 to 4.
        data: cases to draw from, as in ``datasets.load("tweakset").cases``; None writes them.

    Raises:
        UsageError: a number out of range, or no case of the data has so many requirements and a response that meets
            them.
    """
    if type(least) is not int or not 1 <= least <= MOST:
        raise UsageError(f"least={least!r}: expected a whole number from 1 to {MOST}")
    if data is None:
        return _constrained_cases(least)
    given = list_cases(data)
    able = [case for case in given if len(case.constraints) >= least]
    found = [narrow_case(case, [good]) for case in able if (good := compliant_response(case))]
    if not found:
        wanted = f"at least {least} format requirements" if least > 1 else "format requirements"
        raise UsageError(
            f"data: expected cases with {wanted} and a response that meets all; none of {len(given)} is one"
        )
    return st.sampled_from(found)


@st.composite
def _constrained_cases(draw: DrawFn, least: int) -> Case:
    question = draw(prompts())
    text = " ".join(draw(st.lists(st.sampled_from(wording.PLAIN), min_size=1, max_size=MOST, unique=True)))
    size, known = draw(st.integers(least, MOST)), list(PARTS if least == 1 else TOGETHER)
    kinds = draw(st.lists(st.sampled_from(known), min_size=size, max_size=MOST, unique=True))
    numbers = {kind: draw(st.integers(1, 3)) for kind in kinds}
    made: list[Constraint] = []
    fitting = _select_kinds(kinds, least)
    for kind in sorted(fitting, key=list(PARTS).index):
        text, arguments = PARTS[kind](text, numbers.get(kind, 1), question)
        made.append(parse({"kind": kind, **arguments}))
    # What a part or a limit says is true by construction; a judge is asked about nothing that was not checked.
    assume(all(check(one, text) for one in made))
    prompt = "\n\n".join([question, " ".join(map(describe, made))])
    return name_case(Case("", (prompt,), (Response(AUTHORS[0], (text,)),), constraints=tuple(made), source="drawn"))


def _select_kinds(kinds: Iterable[str], least: int) -> list[str]:
    """Of kinds those that go with the ones before them, and as many more as are wanted."""
    found: list[str] = []
    wanted = list(kinds)
    for kind in (*wanted, *TOGETHER):
        if (kind in wanted or len(found) < least) and not any(has_conflict(_LIKE[kind], _LIKE[one]) for one in found):
            found.append(kind)
    return found


def _repeat_part(sentence: str, words: tuple[str, ...], argument: str) -> Part:
    """A sentence with so many of these words, of which there are to be as many at least."""

    def part(text: str, number: int, question: str) -> tuple[str, Arguments]:
        return f"{text} {sentence.format(' and '.join(words[:number]))}", {argument: number}

    return part


def _existence(text: str, number: int, question: str) -> tuple[str, Arguments]:
    keywords = ("kettle", "garden", "ladder")[:number]
    return f"{text} Do not forget the {' and the '.join(keywords)}.", {"keywords": keywords}


def _frequency(text: str, number: int, question: str) -> tuple[str, Arguments]:
    if number == 3:
        return text, _below_limit("relation", "frequency", spans.count_occurrences(text, "river")) | {
            "keyword": "river"
        }
    crossed = " and ".join(["cross the river"] * number)
    return f"{text} You will {crossed}.", {"keyword": "river", "relation": "at least", "frequency": number}


def _capitals(text: str, number: int, question: str) -> tuple[str, Arguments]:
    words = " and ".join(("NOW", "TWICE", "WELL")[:number])
    return f"{text} Do it {words}.", {"capital_relation": "at least", "capital_frequency": number}


def _bullets(text: str, number: int, question: str) -> tuple[str, Arguments]:
    items = "\n".join(f"- {item}" for item in wording.ITEMS[:number])
    return f"{text}\n\n{items}", {"num_bullets": number}


def _sections(text: str, number: int, question: str) -> tuple[str, Arguments]:
    bodies = (text, *wording.PLAIN[:number])
    parts = (f"Section {place}\n{body}" for place, body in enumerate(bodies, 1))
    return "\n\n".join(parts), {"section_spliter": "Section", "num_sections": number + 1}


def _paragraphs(text: str, number: int, question: str) -> tuple[str, Arguments]:
    return "\n\n***\n\n".join([text, *wording.PLAIN[:number]]), {"num_paragraphs": number + 1}


def _nth_paragraph(text: str, number: int, question: str) -> tuple[str, Arguments]:
    blocks = spans.split_blocks(text)
    # A title or the like begins with no word.
    place = next(place for place, block in enumerate(blocks) if spans.first_word(block).isalpha())
    blocks[place:place] = wording.PLAIN[: number - 1]
    word = spans.first_word(blocks[place])
    return "\n\n".join(blocks), {"num_paragraphs": len(blocks), "nth_paragraph": place + 1, "first_word": word}


def _postscript(text: str, number: int, question: str) -> tuple[str, Arguments]:
    marker = "P.P.S" if number == 2 else "P.S."
    return f"{text}\n\n{marker} Take your time.", {"postscript_marker": marker}


def _end(text: str, number: int, question: str) -> tuple[str, Arguments]:
    phrase = ("That is all.", "Good luck!", "Is there anything else I can help with?")[number - 1]
    return f"{text}\n\n{phrase}", {"end_phrase": phrase}


def _below_limit(relation: str, limit: str, found: int) -> Arguments:
    return {relation: "less than", limit: found + 1}


def _limit_part(count: Callable[[str], int], limit: str, relation: str = "relation", /, **more: str) -> Part:
    """A limit that the text just meets, or meets with something to spare."""

    def part(text: str, number: int, question: str) -> tuple[str, Arguments]:
        found = count(text)
        if found and number < 3:
            return text, {relation: "at least", limit: max(1, found // number), **more}
        return text, _below_limit(relation, limit, found) | more

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
        "detectable_content:number_placeholders": _repeat_part(
            "Write to {}.", ("[name]", "[place]", "[day]"), "num_placeholders"
        ),
        "detectable_format:number_highlighted_sections": _repeat_part(
            "Think of {}.", ("*time*", "*money*", "*rest*"), "num_highlights"
        ),
        "change_case:capital_word_frequency": _capitals,
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
"""Kinds that go with others, in the order in which a text is made to meet them: later ones leave earlier ones met."""

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
"""Kinds that say what the whole answer is."""

PARTS: Mapping[str, Part] = MappingProxyType({**TOGETHER, **ALONE})

_LIKE = {kind: parse({"kind": kind, **part("Start early.", 1, "How?")[1]}) for kind, part in PARTS.items()}
"""One requirement of each kind, to find out which go together."""
