"""Test breaking edits: each breaks its constraint, keeps what it can, and survives any text."""

import json
import re
from collections import Counter
from collections.abc import Callable
from importlib import resources
from itertools import combinations, islice
from typing import Any

import pytest
from hypothesis import given, strategies as st
from loops import each

from distract.core.records import Constraint
from distract.data.constraints import ConstraintError, break_, breaks, check, list_kinds, parse, spans

Draw = Callable[[st.SearchStrategy[Any]], Any]
Raw = dict[str, object]
Satisfied = Callable[[Draw, str], tuple[Raw, str]]

LINES = (resources.files("distract.data") / "tweakset.jsonl").read_text(encoding="utf-8").splitlines()
GOOD = [
    (case["id"], response["text"], [parse(raw) for raw in case["constraints"]])
    for case in map(json.loads, LINES)
    for response in case["responses"][:1]
]
EACH = [(name, text, all_, index) for name, text, all_ in GOOD for index in range(3)]
"""Each good response of the embedded set with its constraints, and those to break."""

SENTENCES = (
    "The river rose 3 metres in 1997, and nobody was hurt.",
    "It is I who paid $4.50 for a ticket!",
    "Why would Dr. Smith wait until 5 p.m.?",
    'She said "go now" and left; the door stayed open.',
    "A *small habit* is really worth more than a [plan].",
    "Run `make all` first, e.g. in https://example.org/a.",
    "NASA sent 2 probes to MARS.",
    "les élèves aiment la forêt.",
    "水は低い所へ流れる。",
    "quite simply, no one knows",
    "Ответ прост: ждать 10 минут!",
    "I'd say it's fine... or not?",
    "My answer is maybe.",
    "😀 – naïve & <b>bold</b>",
)
WORDS = "rain Sun tram harvest under a the I 42 c++ ÉTÉ straße ЖУК ǆ"
words = st.sampled_from(WORDS.split())
sentences = st.one_of(st.sampled_from(SENTENCES), st.lists(words, min_size=1, max_size=7).map(" ".join))
paragraphs = st.lists(sentences, min_size=1, max_size=4).map(" ".join)
lists = st.lists(sentences, min_size=1, max_size=4).flatmap(
    lambda items: st.sampled_from(["* ", "- ", "1. ", "  - "]).map(lambda mark: "\n".join(mark + i for i in items))
)
noise = st.text(alphabet="ab Z.!?,;*-#[]<>\"'`{}\n\t…é1", max_size=25)
blocks = st.one_of(paragraphs, paragraphs, lists, noise, st.just("***"), st.just("<<A Title>>"))
texts = st.lists(blocks, min_size=1, max_size=5).map("\n\n".join).filter(str.strip)


def at_least(draw: Draw, count: int, least: int = 1) -> tuple[str, int]:
    """A relation and a limit that a text with such a count satisfies."""
    if count >= least and draw(st.booleans()):
        return "at least", draw(st.integers(least, count))
    return "less than", count + draw(st.integers(1, 4))


def limit(relation: str, number: str, count: Callable[[str], int], least: int = 1) -> Satisfied:
    """Make limits of what is counted in a text, which it satisfies."""

    def draw_limit(draw: Draw, text: str) -> tuple[Raw, str]:
        chosen, n = at_least(draw, count(text), least)
        return {relation: chosen, number: n}, text

    return draw_limit


def existence(draw: Draw, text: str) -> tuple[Raw, str]:
    return {"keywords": draw(st.lists(st.sampled_from(text.split()), min_size=1, max_size=3))}, text


def forbidden(draw: Draw, text: str) -> tuple[Raw, str]:
    chosen = draw(st.lists(st.sampled_from(["soccer", "Ärger", "no way", "x2"]), min_size=1, max_size=3))
    return {"forbidden_words": chosen}, text


def frequency(draw: Draw, text: str) -> tuple[Raw, str]:
    word = draw(st.sampled_from([*text.split(), "absent", "the"]))
    relation, n = at_least(draw, spans.count_occurrences(text, word))
    return {"keyword": word, "relation": relation, "frequency": n}, text


def letters(draw: Draw, text: str) -> tuple[Raw, str]:
    letter = draw(st.sampled_from([*"aeqzxj!#?.,é7ж", *"".join(text.split())]))
    relation, n = at_least(draw, text.lower().count(letter.lower()))
    return {"letter": letter, "let_relation": relation, "let_frequency": n}, text


def placeholders(draw: Draw, text: str) -> tuple[Raw, str]:
    text += " [name] [[street]]"
    return {"num_placeholders": draw(st.integers(1, len(spans.PLACEHOLDER.findall(text))))}, text


def highlights(draw: Draw, text: str) -> tuple[Raw, str]:
    text = f"*one* **two** *three*\n{text}"
    return {"num_highlights": draw(st.integers(1, spans.count_highlights(text)))}, text


def bullets(draw: Draw, text: str) -> tuple[Raw, str]:
    text = f"{text}\n* first\n* second. More of it."
    return {"num_bullets": spans.count_bullets(text)}, text


def json_format(draw: Draw, text: str) -> tuple[Raw, str]:
    value = draw(st.sampled_from([{"answer": text}, [text, 1], text, 5, {"a": [{"b": None}]}]))
    body = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2])))
    return {}, draw(st.sampled_from([body, f"```json\n{body}\n```", f" ```\n{body}```\n"]))


def sections(draw: Draw, text: str) -> tuple[Raw, str]:
    marker = draw(st.sampled_from(["SECTION", "Section", "day", "Part", "§"]))
    text = "\n".join(f"{marker} {n}\n{text}" for n in range(1, draw(st.integers(2, 4))))
    return {"section_spliter": marker, "num_sections": draw(st.integers(1, spans.count_sections(text, marker)))}, text


def nth_paragraph(draw: Draw, text: str) -> tuple[Raw, str]:
    parts = [part for part in map(str.strip, text.split("\n\n")) if part]
    n = draw(st.integers(1, len(parts)))
    word = draw(st.sampled_from(["Weekend", "it", "here", "now"]))
    before, after = draw(st.sampled_from([("", ""), ("", ","), ('"', "."), ("'", "")]))
    parts[n - 1] = f"{before}{word}{after} {parts[n - 1]}"
    return {"first_word": word, "num_paragraphs": len(parts), "nth_paragraph": n}, "\n\n".join(parts)


def number_paragraphs(draw: Draw, text: str) -> tuple[Raw, str]:
    parts = draw(st.lists(paragraphs, min_size=1, max_size=4))
    text = "\n***\n".join(part.replace("***", "") for part in parts)
    return {"num_paragraphs": spans.count_paragraphs(text)}, text


def repeat_prompt(draw: Draw, text: str) -> tuple[Raw, str]:
    prompt = draw(sentences)
    repeated = [f"{prompt}\n\n{text}", f" {prompt.lower()} {text}", prompt]
    return {"prompt_to_repeat": prompt}, draw(st.sampled_from(repeated))


def two_responses(draw: Draw, text: str) -> tuple[Raw, str]:
    parts = text.replace("*", ""), "Another one."
    return {}, draw(st.sampled_from(["\n******\n", "******"])).join(part if part.strip() else "One." for part in parts)


def postscript(draw: Draw, text: str) -> tuple[Raw, str]:
    marker = draw(st.sampled_from(["P.S.", "P.P.S", "Note:"]))
    message = draw(st.sampled_from([marker, marker.lower(), marker.replace(".P", ". P")]))
    return {"postscript_marker": marker}, f"{text}\n\n{message} bring 2 cakes."


def end(draw: Draw, text: str) -> tuple[Raw, str]:
    phrase = draw(st.sampled_from(["That is all.", "Peace!", "in India", "What next?"]))
    joint, tail = draw(st.sampled_from([" ", "\n\n", ""])), draw(st.sampled_from(["", '"', "\n"]))
    return {"end_phrase": phrase}, f"{text}{joint}{draw(st.sampled_from([phrase, phrase.upper()]))}{tail}"


COMPLIANT: dict[str, Satisfied] = {
    "change_case:capital_word_frequency": limit("capital_relation", "capital_frequency", spans.count_capitals),
    "change_case:english_capital": lambda draw, text: ({}, f"A {text}".upper().replace("ǆ".upper(), "B")),
    "change_case:english_lowercase": lambda draw, text: ({}, f"a {text}".lower()),
    "combination:repeat_prompt": repeat_prompt,
    "combination:two_responses": two_responses,
    "detectable_content:number_placeholders": placeholders,
    "detectable_content:postscript": postscript,
    "detectable_format:constrained_response": lambda draw, text: ({}, f"My answer is no. {text}"),
    "detectable_format:json_format": json_format,
    "detectable_format:multiple_sections": sections,
    "detectable_format:number_bullet_lists": bullets,
    "detectable_format:number_highlighted_sections": highlights,
    "detectable_format:title": lambda draw, text: ({}, f"<<On Rain>>\n\n{text}"),
    "keywords:existence": existence,
    "keywords:forbidden_words": forbidden,
    "keywords:frequency": frequency,
    "keywords:letter_frequency": letters,
    "length_constraints:nth_paragraph_first_word": nth_paragraph,
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:number_sentences": limit("relation", "num_sentences", spans.count_sentences, 2),
    "length_constraints:number_words": limit("relation", "num_words", spans.count_words, 2),
    "punctuation:no_comma": lambda draw, text: ({}, text.replace(",", "")),
    "startend:end_checker": end,
    "startend:quotation": lambda draw, text: ({}, f'"{text}"'),
}
"""For each kind, arguments and a text that satisfies them."""


def test_every_kind_except_language_can_be_broken() -> None:
    assert set(COMPLIANT) == set(list_kinds()) - {"language:response_language"}


@pytest.mark.parametrize("kind", COMPLIANT)
@given(data=st.data())
def test_every_edit_breaks_its_constraint(kind: str, data: st.DataObject) -> None:
    raw, text = COMPLIANT[kind](data.draw, data.draw(texts))
    constraint = parse({"kind": kind, **raw})
    assert check(constraint, text)
    edits = list(islice(breaks(constraint, text), 200))
    assert edits
    assert len(set(edits)) == len(edits)
    assert not any(check(constraint, candidate) for candidate in edits)
    assert break_(constraint, text) == edits[0] == break_(constraint, text, [constraint])


@given(st.data())
def test_breaking_keeps_other_constraints_where_possible(data: st.DataObject) -> None:
    text, constraints = data.draw(texts), list[Constraint]()
    for kind in data.draw(st.lists(st.sampled_from(sorted(COMPLIANT)), min_size=3, max_size=3, unique=True)):
        raw, text = COMPLIANT[kind](data.draw, text)
        constraints.append(parse({"kind": kind, **raw}))
    broken, *others = constraints
    if not check(broken, text):
        assert break_(broken, text, others) == text
        return
    before = [check(other, text) for other in others]
    edits = list(breaks(broken, text))
    candidates = [candidate for candidate in edits if [check(other, candidate) for other in others] == before]
    assert break_(broken, text, others) == (candidates or edits)[0]


@each("name, text, constraints, index", *EACH)
def test_good_response_loses_exactly_one_constraint(
    name: str, text: str, constraints: list[Constraint], index: int
) -> None:
    broken = break_(constraints[index], text, constraints)
    assert [check(constraint, broken) for constraint in constraints] == [i != index for i in range(3)]
    assert break_(constraints[index], broken) == broken


def test_numbers_are_kept() -> None:
    def numbers(text: str) -> Counter[str]:
        return Counter(re.findall(r"\d+", text))

    are_equal = [numbers(break_(all_[i], text, all_)) == numbers(text) for _, text, all_, i in EACH]
    assert sum(are_equal) >= 0.9 * len(are_equal)


def test_nearly_any_two_or_three_can_be_broken() -> None:
    exact = list[bool]()
    for _, text, constraints in GOOD:
        for chosen in [*combinations(range(3), 2), (0, 1, 2)]:
            broken = text
            for i in chosen:
                broken = break_(constraints[i], broken, constraints)
            met = [check(constraint, broken) for constraint in constraints]
            exact.append(met == [i not in chosen for i in range(3)])
    assert sum(exact) >= 0.99 * len(exact)


@each(
    "raw, text",
    ({"kind": "keywords:existence", "keywords": ["slowly"]}, "It rained slowly."),
    ({"kind": "keywords:existence", "keywords": ["calm"]}, "The sea is calm."),
    # Fewer places where a sentence can be split than are needed.
    (
        {"kind": "length_constraints:number_sentences", "relation": "less than", "num_sentences": 4},
        "It is so; it was so.",
    ),
)
def test_words_and_sentences_are_replaced_by_their_context(raw: dict[str, Any], text: str) -> None:
    assert check(parse(raw), text)
    assert not any(check(parse(raw), edit) for edit in breaks(parse(raw), text))


LIMITS: list[dict[str, Any]] = [
    {"kind": "change_case:capital_word_frequency", "capital_relation": "less than", "capital_frequency": 30_000},
    {"kind": "keywords:frequency", "relation": "less than", "keyword": "absent", "frequency": 30_000},
    {"kind": "keywords:letter_frequency", "let_relation": "less than", "letter": "q", "let_frequency": 30_000},
    {"kind": "length_constraints:number_sentences", "relation": "less than", "num_sentences": 30_000},
    {"kind": "length_constraints:number_sentences", "relation": "at least", "num_sentences": 1},
    {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 10**12},
    {"kind": "length_constraints:number_words", "relation": "at least", "num_words": 1},
    {"kind": "language:response_language", "language": "en"},
]


@each("raw", *LIMITS)
def test_unbreakable_constraint_is_reported(raw: dict[str, Any]) -> None:
    text = "The weather is lovely today and we walk in the woods."
    assert list(breaks(parse(raw), text)) == []
    with pytest.raises(ConstraintError, match=f"break {raw['kind']}"):
        break_(parse(raw), text)


HOSTILE: list[dict[str, Any]] = [
    {"kind": "change_case:capital_word_frequency", "capital_relation": "at least", "capital_frequency": 1},
    {"kind": "change_case:capital_word_frequency", "capital_relation": "less than", "capital_frequency": 99},
    {"kind": "combination:repeat_prompt", "prompt_to_repeat": "a"},
    {"kind": "detectable_content:number_placeholders", "num_placeholders": 1},
    {"kind": "detectable_content:postscript", "postscript_marker": "P.P.S"},
    {"kind": "detectable_format:multiple_sections", "section_spliter": "SECTION", "num_sections": 1},
    {"kind": "detectable_format:number_bullet_lists", "num_bullets": 1},
    {"kind": "detectable_format:number_highlighted_sections", "num_highlights": 1},
    {"kind": "keywords:existence", "keywords": ["no", "1"]},
    {"kind": "keywords:forbidden_words", "forbidden_words": ["zebra"]},
    {"kind": "keywords:frequency", "relation": "at least", "keyword": "no", "frequency": 1},
    {"kind": "keywords:letter_frequency", "let_relation": "at least", "letter": "a", "let_frequency": 5},
    {"kind": "keywords:letter_frequency", "let_relation": "less than", "letter": "q", "let_frequency": 500},
    {"kind": "language:response_language", "language": "en"},
    {"kind": "length_constraints:nth_paragraph_first_word", "first_word": "a", "num_paragraphs": 1, "nth_paragraph": 1},
    {"kind": "length_constraints:number_paragraphs", "num_paragraphs": 1},
    {"kind": "length_constraints:number_sentences", "relation": "at least", "num_sentences": 2},
    {"kind": "length_constraints:number_sentences", "relation": "less than", "num_sentences": 99},
    {"kind": "length_constraints:number_words", "relation": "at least", "num_words": 2},
    {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 99},
    {"kind": "startend:end_checker", "end_phrase": "end."},
    *({"kind": f"change_case:english_{name}"} for name in ("capital", "lowercase")),
    *({"kind": f"detectable_format:{name}"} for name in ("constrained_response", "json_format", "title")),
    *({"kind": kind} for kind in ("combination:two_responses", "punctuation:no_comma", "startend:quotation")),
]
