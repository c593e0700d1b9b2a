"""Test constraints: parsing, checking, descriptions, and agreement with IFEval's own labels."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.core.records import Constraint
from distract.data.constraints import ConstraintError, check, describe, list_kinds, parse

ANSWER = {"kind": "detectable_format:constrained_response"}
CAPITAL = {"kind": "change_case:english_capital"}
LOWERCASE = {"kind": "change_case:english_lowercase"}
JSON = {"kind": "detectable_format:json_format"}
TITLE = {"kind": "detectable_format:title"}
TWO = {"kind": "combination:two_responses"}
NO_COMMA = {"kind": "punctuation:no_comma"}
QUOTATION = {"kind": "startend:quotation"}


def bullets(n: int) -> dict[str, object]:
    return {"kind": "detectable_format:number_bullet_lists", "num_bullets": n}


def capital_words(relation: str, n: int) -> dict[str, object]:
    return {"kind": "change_case:capital_word_frequency", "capital_relation": relation, "capital_frequency": n}


def end(phrase: str) -> dict[str, object]:
    return {"kind": "startend:end_checker", "end_phrase": phrase}


def exist(*words: str) -> dict[str, object]:
    return {"kind": "keywords:existence", "keywords": list(words)}


def forbid(*words: str) -> dict[str, object]:
    return {"kind": "keywords:forbidden_words", "forbidden_words": list(words)}


def frequency(relation: str, keyword: str, n: int) -> dict[str, object]:
    return {"kind": "keywords:frequency", "relation": relation, "keyword": keyword, "frequency": n}


def highlights(n: int) -> dict[str, object]:
    return {"kind": "detectable_format:number_highlighted_sections", "num_highlights": n}


def language(code: str) -> dict[str, object]:
    return {"kind": "language:response_language", "language": code}


def letters(relation: str, letter: str, n: int) -> dict[str, object]:
    return {"kind": "keywords:letter_frequency", "let_relation": relation, "letter": letter, "let_frequency": n}


def nth(word: str, n: int, of: int) -> dict[str, object]:
    kind = "length_constraints:nth_paragraph_first_word"
    return {"kind": kind, "first_word": word, "nth_paragraph": n, "num_paragraphs": of}


def paragraphs(n: int) -> dict[str, object]:
    return {"kind": "length_constraints:number_paragraphs", "num_paragraphs": n}


def placeholders(n: int) -> dict[str, object]:
    return {"kind": "detectable_content:number_placeholders", "num_placeholders": n}


def postscript(marker: str) -> dict[str, object]:
    return {"kind": "detectable_content:postscript", "postscript_marker": marker}


def repeat(prompt: str) -> dict[str, object]:
    return {"kind": "combination:repeat_prompt", "prompt_to_repeat": prompt}


def sections(marker: str, n: int) -> dict[str, object]:
    return {"kind": "detectable_format:multiple_sections", "section_spliter": marker, "num_sections": n}


def sentences(relation: str, n: int) -> dict[str, object]:
    return {"kind": "length_constraints:number_sentences", "relation": relation, "num_sentences": n}


def words(relation: str, n: int) -> dict[str, object]:
    return {"kind": "length_constraints:number_words", "relation": relation, "num_words": n}


CHECKS: list[tuple[dict[str, Any], str, bool]] = [
    (CAPITAL, "ALL 3 OF THEM!", True),
    (CAPITAL, "All 3", False),
    (CAPITAL, "123", False),
    (LOWERCASE, "all 3 of them, état", True),
    (LOWERCASE, "All", False),
    (LOWERCASE, "", False),
    (placeholders(2), "Dear [name], of [street]", True),
    (placeholders(2), "Dear [name], of [street", False),
    (placeholders(1), "[broken\nover lines]", False),
    (placeholders(1), "[[nested]]", True),
    (placeholders(2), "[[nested]]", False),
    (postscript("P.S."), "Yours.\np. s. bring cake", True),
    (postscript("P.S."), "Yours. PS bring cake", False),
    (postscript("P.P.S"), "P.P.S more", True),
    (postscript("P.P.S"), "P.S. more", False),
    (postscript("Note:"), "The end. note: more", True),
    (bullets(2), "* one\n* two", True),
    (bullets(2), "- one\n\n  * two", True),
    (bullets(2), "* one\n** not one **\ntwo - three", False),
    (bullets(1), "* one\n***\n- two", False),
    (highlights(1), "some *thing* here", True),
    (highlights(1), "some **thing** here", True),
    (highlights(1), "* a bullet\n* another", False),
    (highlights(1), "empty ** ** and * *", False),
    (highlights(2), "*one* and *two*", True),
    (TITLE, "<<On Rain>>\nIt rains.", True),
    (TITLE, "<< >> It rains.", False),
    (TITLE, "<On Rain> It rains.", False),
    (TITLE, "<<On\nRain>>", False),
    (exist("rain", "sun"), "Sunny after RAIN", True),
    (exist("rain", "sun"), "Sunny", False),
    (exist("c++ (new)"), "I use C++ (New).", True),
    (forbid("rain"), "The train ran", True),
    (forbid("rain"), "The Rain, again", False),
    (forbid("c++"), "Written in C++.", False),
    (frequency("at least", "rain", 2), "rain on the train", True),
    (frequency("at least", "rain", 3), "rain on the train", False),
    (frequency("less than", "rain", 2), "Rain", True),
    (frequency("less than", "rain", 2), "Rain, rain", False),
    (paragraphs(2), "one\n***\ntwo", True),
    (paragraphs(2), "***\none\n***\ntwo\n***", True),
    (paragraphs(2), "one\n\ntwo", False),
    (paragraphs(2), "one\n***\n***\ntwo", False),
    (paragraphs(1), "one", True),
    (paragraphs(1), "", False),
    (sentences("at least", 3), "Dr. Smith left. Why? Nobody knows!", True),
    (sentences("less than", 3), "Dr. Smith left at 3.15 p.m. by the U.S. coast. Why?", True),
    (sentences("less than", 3), "One. Two. Three.", False),
    (sentences("at least", 2), "One line\nand another", False),
    (sentences("at least", 2), 'He said "Go." Then he left', True),
    (sentences("at least", 1), "", False),
    (words("at least", 4), "it's three words", True),
    (words("at least", 5), "it's three words", False),
    (words("less than", 3), "two words", True),
    (words("less than", 3), "three words now", False),
    (NO_COMMA, "none here; none", True),
    (NO_COMMA, "one, here", False),
    (end("That is all."), 'Well. "that is ALL." ', True),
    (end("That is all."), "That is all. Bye.", False),
    (QUOTATION, ' "All of it." ', True),
    (QUOTATION, '"Some of" it.', False),
    (QUOTATION, '"', False),
    (QUOTATION, "“All of it.”", False),
    (sentences("at least", 3), "no capitals here. none at all. 1. that is an item", True),
    (sentences("at least", 4), "no capitals here. none at all. 1. that is an item", False),
    (TITLE, "<<<>>> x", False),
    (TITLE, "a << 2 and b >> 1", True),
    (capital_words("at least", 3), "I paid NASA in U.S. dollars", True),
    (capital_words("at least", 2), "I'M in, she isn't", True),
    (capital_words("at least", 1), "No Capitals at all, McX", False),
    (capital_words("less than", 2), "ONE two", True),
    (capital_words("less than", 2), "2ND ONE", False),
    (repeat("Write a poem."), "\nwrite a POEM. Roses are red.", True),
    (repeat(" Write a poem. "), "Write a poem.", True),
    (repeat("Write a poem."), "Sure! Write a poem.", False),
    (TWO, "one\n******\ntwo", True),
    (TWO, "******one******two******", True),
    (TWO, "one\n******\none", False),
    (TWO, "one ****** two ****** three", False),
    (TWO, "one ****** ****** two", False),
    (TWO, "one\n***\ntwo", False),
    (ANSWER, "Well. My answer is no. Sorry.", True),
    (ANSWER, "My answer is no", False),
    (ANSWER, "my answer is yes.", False),
    (JSON, '{"a": [1, null]}', True),
    (JSON, '```json\n{"a": 1}\n```', True),
    (JSON, '```\n"text"```', True),
    (JSON, f"{'9' * 9999}", True),
    (JSON, "{'a': 1}", False),
    (JSON, "[" * 99_999, False),
    (JSON, 'Here it is: {"a": 1}', False),
    (sections("SECTION", 2), "SECTION 1 a SECTION 2 b", True),
    (sections("Day", 1), "Day1: rest", True),
    (sections("SECTION", 2), "Section 1 a SECTION 2 b", False),
    (sections("SECTION", 1), "SECTION one", False),
    (sections("Part (a)", 1), "Part (a) 1", True),
    (letters("at least", "q", 2), "Quite quick", True),
    (letters("at least", "Q", 3), "Quite quick", False),
    (letters("less than", "!", 2), "Stop!", True),
    (letters("less than", "!", 2), "Stop! Now!", False),
    (nth("Weekend", 2, of=2), "One.\n\n'weekend, or not", True),
    (nth("one", 1, of=2), "ONE!\n\ntwo\n\n", True),
    (nth("one", 1, of=1), "one\n\ntwo", False),
    (nth("one", 1, of=1), "ones", False),
    (nth("two", 3, of=2), "one\n\ntwo", False),
    (nth("two", 2, of=2), "one\n\n\n\ntwo", False),
    (language("de"), "Das Wetter ist heute schön und wir gehen in den Wald.", True),
    (language("ko"), "오늘은 날씨가 좋아서 숲으로 갑니다.", True),
    (language("de"), "The weather is lovely today and we walk in the woods.", False),
    (language("de"), "12 + 30 = 42", True),
    (language("de"), "\ud800", True),
]

DESCRIPTIONS: list[tuple[dict[str, Any], str]] = [
    (placeholders(1), "Include at least 1 placeholder such as [name]."),
    (placeholders(2), "Include at least 2 placeholders such as [name]."),
    (bullets(1), "Include exactly 1 markdown bullet point."),
    (bullets(4), "Include exactly 4 markdown bullet points."),
    (exist("rain"), 'Include the keyword "rain".'),
    (exist("rain", "sun"), 'Include the keywords "rain" and "sun".'),
    (forbid("a", "b", "c"), 'Do not use the words "a", "b" or "c".'),
    (frequency("at least", "rain", 1), 'Use "rain" at least once.'),
    (frequency("less than", "rain", 1), 'Do not use "rain".'),
    (frequency("less than", "rain", 3), 'Use "rain" fewer than 3 times.'),
    (sentences("less than", 2), "Write fewer than 2 sentences."),
    (words("at least", 1), "Write at least 1 word."),
    (NO_COMMA, "Do not use any commas."),
    (capital_words("at least", 1), "Write at least 1 word in all capital letters."),
    (capital_words("at least", 3), "Write at least 3 words in all capital letters."),
    (capital_words("less than", 1), "Do not write any word in all capital letters."),
    (capital_words("less than", 3), "Write fewer than 3 words in all capital letters."),
    (repeat("Write a poem.\n\nMake it short."), 'Begin by repeating this request: "Write a poem. Make it short."'),
    (TWO, "Give exactly two different responses, separated by six asterisks: ******."),
    (ANSWER, 'Include one of the sentences "My answer is yes.", "My answer is no." or "My answer is maybe."'),
    (JSON, "Write the whole answer as valid JSON."),
    (sections("Day", 1), 'Divide the answer into at least 1 section, marked "Day 1" and so on.'),
    (sections("SECTION", 3), 'Divide the answer into at least 3 sections, marked "SECTION 1" and so on.'),
    (letters("at least", "q", 1), 'Use the letter "q" at least once.'),
    (letters("less than", "q", 1), 'Do not use the letter "q".'),
    (letters("at least", "!", 6), 'Use the character "!" at least 6 times.'),
    (nth("it", 1, of=1), 'Write exactly 1 paragraph and start it with the word "it".'),
    (
        nth("it", 2, of=3),
        'Write exactly 3 paragraphs with a blank line between them and start paragraph 2 with the word "it".',
    ),
    (language("sw"), "Write the whole answer in Swahili."),
]

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "kind", "unknown kind None"),
    ({"kind": 3}, "kind", "unknown kind 3"),
    ({"kind": ["x"]}, "kind", "known: change_case:capital_word_frequency,"),
    ({"kind": "punctuation:no_commas"}, "kind", "did you mean 'punctuation:no_comma'?"),
    ({**NO_COMMA, "strict": True}, "strict", "takes no arguments"),
    ({**bullets(1), "bullets": 1}, "bullets", "takes num_bullets"),
    ({"kind": "startend:end_checker"}, "end_phrase", "lacks it"),
    (bullets(0), "num_bullets", "whole number of at least 1; found 0"),
    ({**bullets(1), "num_bullets": True}, "num_bullets", "found True"),
    ({**bullets(1), "num_bullets": "2"}, "num_bullets", "found '2'"),
    ({**bullets(1), "num_bullets": 2.0}, "num_bullets", "found 2.0"),
    (words("at most", 3), "relation", "'at least' or 'less than'; found 'at most'"),
    (end(" "), "end_phrase", "not empty"),
    (exist(), "keywords", "list of texts"),
    ({**exist("a"), "keywords": "a"}, "keywords", "found 'a'"),
    ({**exist("a"), "keywords": ["a", 1]}, "keywords", "list of texts"),
    (capital_words("at most", 1), "capital_relation", "'at least' or 'less than'"),
    (letters("at least", "ab", 1), "letter", "a single character"),
    (letters("at least", " ", 1), "letter", "a single character"),
    (nth("two words", 1, of=1), "first_word", "without white space"),
    (nth("one", 0, of=1), "nth_paragraph", "at least 1; found 0"),
    (language("xx"), "language", "the code of a language (af am ar"),
    ({**language("de"), "language": ["de"]}, "language", "found ['de']"),
]


@each("raw, text, expected", *CHECKS)
def test_constraints_check_texts(raw: dict[str, Any], text: str, expected: bool) -> None:
    assert check(parse(raw), text) is expected


def test_every_kind_is_checked_both_ways() -> None:
    assert {(raw["kind"], expected) for raw, _, expected in CHECKS} == {
        (kind, expected) for kind in list_kinds() for expected in (True, False)
    }


@each("raw, expected", *DESCRIPTIONS)
def test_constraints_have_descriptions(raw: dict[str, Any], expected: str) -> None:
    assert describe(parse(raw)) == expected


@each("raw", *(raw for raw, _, _ in CHECKS))
def test_description_is_one_line_with_every_argument(raw: dict[str, Any]) -> None:
    description = describe(parse(raw))
    assert description[0].isupper()
    assert description.endswith((".", '."'))
    assert "\n" not in description
    # Descriptions give a relation in words and a language by its name.
    skipped = {"kind", "relation", "capital_relation", "let_relation", "language"}
    for value in (v for name, v in raw.items() if name not in skipped and v != 1):
        assert all(str(part).strip() in description for part in (value if isinstance(value, list) else [value]))


@each("raw, field, problem", *FAULTS)
def test_faulty_constraints_are_refused(raw: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        parse(raw)
    assert isinstance(caught.value, UsageError)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert str(caught.value) == f"constraint field {field!r}: {caught.value.problem}"


def test_arguments_are_sorted_and_frozen() -> None:
    parsed = parse(dict(reversed(list(frequency("at least", "rain", 2).items()))))
    assert parsed.arguments == (("frequency", 2), ("keyword", "rain"), ("relation", "at least"))
    assert parse(exist("a", "b")).arguments == (("keywords", ("a", "b")),)
    assert hash(parse(exist("a", "b"))) == hash(parse(exist("a", "b")))


@given(st.text(), st.integers(1, 30), st.sampled_from([words, sentences]))
def test_less_than_negates_at_least(text: str, n: int, make: Any) -> None:
    assert check(parse(make("at least", n)), text) is not check(parse(make("less than", n)), text)


@given(st.text(), st.sampled_from([raw for raw, _, _ in CHECKS]))
def test_any_text_has_an_answer(text: str, raw: dict[str, Any]) -> None:
    assert check(parse(raw), text) in (True, False)


@given(st.text(), st.text().filter(str.strip))
def test_existence_agrees_with_frequency(text: str, keyword: str) -> None:
    assert check(parse(exist(keyword)), text) is check(parse(frequency("at least", keyword, 1)), text)


@given(st.text(alphabet=st.characters(exclude_characters='"')), st.text(alphabet="ab. ").filter(str.strip))
def test_appended_phrase_ends_the_text(text: str, phrase: str) -> None:
    assert check(parse(end(phrase)), f"{text} {phrase}")
    assert check(parse(QUOTATION), f'"{text} {phrase}"')


@given(st.lists(st.text(alphabet="ab \n").filter(str.strip), min_size=1, max_size=6))
def test_joined_parts_are_paragraphs_and_bullets(parts: list[str]) -> None:
    assert check(parse(paragraphs(len(parts))), "\n***\n".join(parts))
    assert check(parse(bullets(len(parts))), "\n".join(f"* {part}" for part in parts))


def test_missing_library_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConstraintError, match=re.escape('pip install ".[language]"')) as caught:
        parse(language("de"))
    assert caught.value.field == "language"
    assert describe(Constraint("language:response_language", (("language", "de"),))).endswith("in German.")
