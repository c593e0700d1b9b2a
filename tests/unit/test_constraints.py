"""Test constraints: parsing, checking, descriptions, and agreement with IFEval's own labels."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import write_rows
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.records import Constraint
from distract.data.constraints import ConstraintError, UnavailableError, check, describe, list_kinds, parse
from distract.data.datasets import load, load_prompts
from distract.data.formats.reader import ConstrainedPrompt
from distract.data.prompt_parts import split_prompt

Raw = dict[str, Any]


ANSWER = {"kind": "detectable_format:constrained_response"}
CAPITAL = {"kind": "change_case:english_capital"}
LOWERCASE = {"kind": "change_case:english_lowercase"}
JSON = {"kind": "detectable_format:json_format"}
TITLE = {"kind": "detectable_format:title"}
TWO = {"kind": "combination:two_responses"}
NO_COMMA = {"kind": "punctuation:no_comma"}
QUOTATION = {"kind": "startend:quotation"}


def constraints_of(kind: str, *names: str) -> Callable[..., Raw]:
    """A function that makes constraints of a kind from the values of its arguments."""
    return lambda *values: {"kind": kind, **dict(zip(names, values, strict=True))}


bullets = constraints_of("detectable_format:number_bullet_lists", "num_bullets")
capital_words = constraints_of("change_case:capital_word_frequency", "capital_relation", "capital_frequency")
end = constraints_of("startend:end_checker", "end_phrase")
frequency = constraints_of("keywords:frequency", "relation", "keyword", "frequency")
highlights = constraints_of("detectable_format:number_highlighted_sections", "num_highlights")
language = constraints_of("language:response_language", "language")
letters = constraints_of("keywords:letter_frequency", "let_relation", "letter", "let_frequency")
paragraphs = constraints_of("length_constraints:number_paragraphs", "num_paragraphs")
placeholders = constraints_of("detectable_content:number_placeholders", "num_placeholders")
postscript = constraints_of("detectable_content:postscript", "postscript_marker")
repeat = constraints_of("combination:repeat_prompt", "prompt_to_repeat")
sections = constraints_of("detectable_format:multiple_sections", "section_spliter", "num_sections")
sentences = constraints_of("length_constraints:number_sentences", "relation", "num_sentences")
words = constraints_of("length_constraints:number_words", "relation", "num_words")


def exist(*words: str) -> Raw:
    return {"kind": "keywords:existence", "keywords": list(words)}


def forbid(*words: str) -> Raw:
    return {"kind": "keywords:forbidden_words", "forbidden_words": list(words)}


def nth(word: str, n: int, of: int) -> Raw:
    kind = "length_constraints:nth_paragraph_first_word"
    return {"kind": kind, "first_word": word, "nth_paragraph": n, "num_paragraphs": of}


CHECKS: list[tuple[Raw, list[str], list[str]]] = [
    (CAPITAL, ["ALL 3 OF THEM!"], ["All 3", "123"]),
    (LOWERCASE, ["all 3 of them, état"], ["All", ""]),
    (placeholders(2), ["Dear [name], of [street]"], ["Dear [name], of [street", "[[nested]]"]),
    (placeholders(1), ["[[nested]]"], ["[broken\nover lines]"]),
    (postscript("P.S."), ["Yours.\np. s. bring cake"], ["Yours. PS bring cake"]),
    (postscript("P.P.S"), ["P.P.S more"], ["P.S. more"]),
    (postscript("Note:"), ["The end. note: more"], []),
    (bullets(2), ["* one\n* two", "- one\n\n  * two"], ["* one\n** not one **\ntwo - three"]),
    (bullets(1), [], ["* one\n***\n- two"]),
    (highlights(1), ["some *thing* here", "some **thing** here"], ["* a bullet\n* another", "empty ** ** and * *"]),
    (highlights(2), ["*one* and *two*"], []),
    (
        TITLE,
        ["<<On Rain>>\nIt rains.", "a << 2 and b >> 1"],
        ["<< >> It rains.", "<On Rain> It rains.", "<<On\nRain>>", "<<<>>> x"],
    ),
    (exist("rain", "sun"), ["Sunny after RAIN"], ["Sunny"]),
    (exist("c++ (new)"), ["I use C++ (New)."], []),
    (forbid("rain"), ["The train ran"], ["The Rain, again"]),
    (forbid("c++"), [], ["Written in C++."]),
    (frequency("at least", "rain", 2), ["rain on the train"], []),
    (frequency("at least", "rain", 3), [], ["rain on the train"]),
    (frequency("less than", "rain", 2), ["Rain"], ["Rain, rain"]),
    (paragraphs(2), ["one\n***\ntwo", "***\none\n***\ntwo\n***"], ["one\n\ntwo", "one\n***\n***\ntwo"]),
    (paragraphs(1), ["one"], [""]),
    (
        sentences("at least", 3),
        ["Dr. Smith left. Why? Nobody knows!", "no capitals here. none at all. 1. that is an item"],
        [],
    ),
    (sentences("less than", 3), ["Dr. Smith left at 3.15 p.m. by the U.S. coast. Why?"], ["One. Two. Three."]),
    (sentences("at least", 2), ['He said "Go." Then he left'], ["One line\nand another"]),
    (sentences("at least", 1), [], [""]),
    (words("at least", 4), ["it's three words"], []),
    (words("at least", 5), [], ["it's three words"]),
    (words("less than", 3), ["two words"], ["three words now"]),
    (NO_COMMA, ["none here; none"], ["one, here"]),
    (end("That is all."), ['Well. "that is ALL." '], ["That is all. Bye."]),
    (QUOTATION, [' "All of it." '], ['"Some of" it.', '"', "“All of it.”"]),
    (sentences("at least", 4), [], ["no capitals here. none at all. 1. that is an item"]),
    (capital_words("at least", 3), ["I paid NASA in U.S. dollars"], []),
    (capital_words("at least", 2), ["I'M in, she isn't"], []),
    (capital_words("at least", 1), [], ["No Capitals at all, McX"]),
    (capital_words("less than", 2), ["ONE two"], ["2ND ONE"]),
    (repeat("Write a poem."), ["\nwrite a POEM. Roses are red."], ["Sure! Write a poem."]),
    (repeat(" Write a poem. "), ["Write a poem."], []),
    (
        TWO,
        ["one\n******\ntwo", "******one******two******"],
        ["one\n******\none", "one ****** two ****** three", "one ****** ****** two", "one\n***\ntwo"],
    ),
    (ANSWER, ["Well. My answer is no. Sorry."], ["My answer is no", "my answer is yes."]),
    (
        JSON,
        ['{"a": [1, null]}', '```json\n{"a": 1}\n```', '```\n"text"```', f"{'9' * 9999}"],
        ["{'a': 1}", "[" * 99_999, 'Here it is: {"a": 1}'],
    ),
    (sections("SECTION", 2), ["SECTION 1 a SECTION 2 b"], ["Section 1 a SECTION 2 b"]),
    (sections("Day", 1), ["Day1: rest"], []),
    (sections("SECTION", 1), [], ["SECTION one"]),
    (sections("Part (a)", 1), ["Part (a) 1"], []),
    (letters("at least", "q", 2), ["Quite quick"], []),
    (letters("at least", "Q", 3), [], ["Quite quick"]),
    (letters("less than", "!", 2), ["Stop!"], ["Stop! Now!"]),
    (nth("Weekend", 2, of=2), ["One.\n\n'weekend, or not"], []),
    (nth("one", 1, of=2), ["ONE!\n\ntwo\n\n"], []),
    (nth("one", 1, of=1), [], ["one\n\ntwo", "ones"]),
    (nth("two", 3, of=2), [], ["one\n\ntwo"]),
    (nth("two", 2, of=2), [], ["one\n\n\n\ntwo"]),
    (
        language("de"),
        ["Das Wetter ist heute schön und wir gehen in den Wald.", "12 + 30 = 42", "\ud800"],
        ["The weather is lovely today and we walk in the woods."],
    ),
    (language("ko"), ["오늘은 날씨가 좋아서 숲으로 갑니다."], []),
]
"""Constraints, texts that meet them, and texts that break them."""

DESCRIPTIONS: list[tuple[Raw, str]] = [
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

FAULTS: list[tuple[Raw, str, str]] = [
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


@each("raw, meeting, breaking", *CHECKS)
def test_constraints_check_texts(raw: Raw, meeting: list[str], breaking: list[str]) -> None:
    assert [text for text in meeting if check(parse(raw), text) is not True] == []
    assert [text for text in breaking if check(parse(raw), text) is not False] == []


def test_every_kind_is_checked_both_ways() -> None:
    for side in (1, 2):
        assert {row[0]["kind"] for row in CHECKS if row[side]} == {*list_kinds()}


@each("raw, expected", *DESCRIPTIONS)
def test_constraints_have_descriptions(raw: Raw, expected: str) -> None:
    assert describe(parse(raw)) == expected


@each("raw", *(raw for raw, *_ in CHECKS))
def test_description_is_one_line_with_every_argument(raw: Raw) -> None:
    description = describe(parse(raw))
    assert description[0].isupper()
    assert description.endswith((".", '."'))
    assert "\n" not in description
    # Descriptions give a relation in words and a language by its name.
    skipped = {"kind", "relation", "capital_relation", "let_relation", "language"}
    for value in (v for name, v in raw.items() if name not in skipped and v != 1):
        assert all(str(part).strip() in description for part in (value if isinstance(value, list) else [value]))


@each("raw, field, problem", *FAULTS)
def test_faulty_constraints_are_refused(raw: Raw, field: str, problem: str) -> None:
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


@given(st.text(), st.sampled_from([raw for raw, *_ in CHECKS]))
def test_any_text_has_an_answer(text: str, raw: Raw) -> None:
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
    with pytest.raises(UnavailableError, match=re.escape('pip install -c constraints.txt ".[language]"')) as caught:
        parse(language("de"))
    assert caught.value.field == "language"
    assert describe(Constraint("language:response_language", (("language", "de"),))).endswith("in German.")


PROMPT: dict[str, Any] = {
    "key": 7,
    "prompt": "Why is rain wet? Do not use any commas in your answer.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{"num_words": None}],
}
REPLY = {"prompt": PROMPT["prompt"], "response": "Because it is water."}


def test_prompts_are_joined_with_their_responses(tmp_path: Path) -> None:
    other = {**PROMPT, "key": "b", "prompt": "No answer here."}
    unknown = {**PROMPT, "key": 9, "prompt": "Odd.", "instruction_id_list": ["odd:kind"]}
    data = write_rows(tmp_path / "prompts.jsonl", [PROMPT, other, unknown])
    stray = {"prompt": "Stray.", "response": "x"}
    first = write_rows(tmp_path / "gpt-4.jsonl", [REPLY, stray])
    second = write_rows(tmp_path / "other.jsonl", [{**REPLY, "response": "Water, mostly."}])
    for spec in (data, f"ifeval:{data}"):
        loaded = load(spec, [first, second])
        (case,) = loaded.cases
        assert (case.id, case.prompt, case.source) == ("ifeval-7", ("Why is rain wet?",), "ifeval")
        texts = {r.author: r.text for r in case.responses}
        assert texts == {"gpt-4": "Because it is water.", "other": "Water, mostly."}
        assert case.constraints == (parse(NO_COMMA),)
        assert loaded.left_out == {
            "the prompt has no response": 1,
            "the kind odd:kind cannot be checked": 1,
            "a response matches no prompt": 1,
        }
        assert loaded.size == 3
    assert load(data, [first]).checksum != load(data, [first, second]).checksum
    # The same text by another author gives another run.
    renamed = write_rows(tmp_path / "other-name.jsonl", [REPLY, stray])
    assert load(data, [first]).checksum != load(data, [renamed]).checksum


@each(
    "change, problem",
    ({"key": None}, "field 'key': expected text"),
    ({"key": True}, "field 'key': expected text"),
    ({"prompt": 3}, "field 'prompt': expected text"),
    ({"instruction_id_list": []}, "field 'instruction_id_list': expected a list"),
    ({"instruction_id_list": [3]}, "field 'instruction_id_list[0]': expected text"),
    ({"kwargs": []}, "field 'kwargs': expected a list of 1 objects"),
    ({"kwargs": ["x"]}, "field 'kwargs[0]': expected an object"),
    ({"kwargs": [{"odd": 1}]}, "field 'kwargs[0].odd': unknown"),
)
def test_wrong_rows_are_named(change: Raw, problem: str, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "prompts.jsonl", [{**PROMPT, "key": 1, "prompt": "Fine."}, {**PROMPT, **change}])
    with pytest.raises(DataError) as caught:
        load(f"ifeval:{data}", [write_rows(tmp_path / "a.jsonl", [REPLY])])
    assert f"{data}:2" in str(caught.value)
    assert problem in str(caught.value)


def test_responses_need_prompts(tmp_path: Path) -> None:
    data, answers = write_rows(tmp_path / "prompts.jsonl", [PROMPT]), write_rows(tmp_path / "a.jsonl", [REPLY])
    (tmp_path / "b").mkdir()
    same, stray = write_rows(tmp_path / "b" / "a.jsonl", [REPLY]), [{**REPLY, "prompt": "Stray."}]
    twice = write_rows(tmp_path / "again.jsonl", [REPLY, REPLY])
    for kind, message, spec, responses in (
        (UsageError, "--responses", data, []),
        (UsageError, "native data hold their responses", "tweakset", [answers]),
        (DataError, "no such file", data, [str(tmp_path / "none")]),
        (DataError, r"again\.jsonl:2.*answered on an earlier line", data, [twice]),
        (DataError, "holds no cases: .*has no response", data, [write_rows(tmp_path / "stray.jsonl", stray)]),
        (UsageError, "two files are named after the author 'a'", data, [answers, same]),
        (DataError, "'tie' is reserved for labels", data, [write_rows(tmp_path / "tie.jsonl", [REPLY])]),
        (DataError, "is empty; expected responses", data, [write_rows(tmp_path / "empty.jsonl", [])]),
        (DataError, "7 was used on line 1", write_rows(tmp_path / "twice.jsonl", [PROMPT, PROMPT]), [answers]),
    ):
        with pytest.raises(kind, match=message):
            load(spec, responses)


def test_prompts_are_read_without_responses(tmp_path: Path) -> None:
    unknown = {**PROMPT, "key": "b", "instruction_id_list": ["odd:kind"]}
    data = write_rows(tmp_path / "prompts.jsonl", [PROMPT, unknown])
    for spec in (data, f"ifeval:{data}"):
        prompts = load_prompts(spec)
        assert prompts.prompts == (ConstrainedPrompt("7", PROMPT["prompt"], (parse(NO_COMMA),)),)
        assert (prompts.name, prompts.format, prompts.size) == ("prompts.jsonl", "ifeval", 2)
        assert prompts.left_out == {"the kind odd:kind cannot be checked": 1}
    assert prompts.checksum != load_prompts(write_rows(tmp_path / "other.jsonl", [PROMPT])).checksum


@each(
    "spec, kind, problem",
    ("tweakset", UsageError, "tweakset: native data hold no prompts with format requirements (these do: ifeval)"),
    ("native.jsonl", UsageError, "native data hold no prompts"),
    ("llmbar:twice.jsonl", UsageError, "llmbar data hold no prompts"),
    ("odd:twice.jsonl", UnknownName, "unknown data format 'odd'"),
    ("none.jsonl", DataError, "no such file"),
    ("ifeval:none.jsonl", DataError, "no such file"),
    ("empty.jsonl", DataError, "is empty; expected prompts"),
    ("words.jsonl", DataError, "not valid JSON"),
    ("twice.jsonl", DataError, "twice.jsonl:2: field 'key': 7 was used on line 1"),
    ("odd.jsonl", DataError, "holds no prompts: the kind odd:kind cannot be checked (1)"),
)
def test_unreadable_prompts_are_left_out(
    spec: str, kind: type[UsageError], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("native.jsonl"), [{"id": "a", "prompt": "b", "responses": []}])
    write_rows(Path("twice.jsonl"), [PROMPT, PROMPT])
    write_rows(Path("odd.jsonl"), [{**PROMPT, "instruction_id_list": ["odd:kind"]}])
    Path("empty.jsonl").write_text(" \n")
    Path("words.jsonl").write_text("words\n")
    with pytest.raises(kind) as caught:
        load_prompts(spec)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_language_library_leaves_the_prompt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    spoken = {**PROMPT, "key": 8, "prompt": "Hi.", "instruction_id_list": ["language:response_language"]}
    spoken["kwargs"] = [{"language": "de"}]
    loaded = load(write_rows(tmp_path / "p.jsonl", [PROMPT, spoken]), [write_rows(tmp_path / "a.jsonl", [REPLY])])
    assert [case.id for case in loaded.cases] == ["ifeval-7"]
    assert any("py3langid" in reason for reason in loaded.left_out)


WORDS, WHITE = words("at least", 300), forbid("white")


@each(
    "prompt, raw, question",
    ("Why is rain wet? Don't use commas.", [NO_COMMA], "Why is rain wet?"),
        ("Write a poem about rain. Avoid commas.\nYour answer must be at least 300 words.", [NO_COMMA, WORDS],
         "Write a poem about rain."),
        ("List colours of cars. Use exactly 2 bullet points, such as:\n* This is a point\n* Another", [bullets(2)],
         "List colours of cars."),
        ("Write to Tom. Finish your response with this exact phrase: Is that all? No other words should follow.",
         [end("Is that all?")], "Write to Tom."),
        ("Write a 300+ word poem about rain without commas.", [NO_COMMA, WORDS], None),
        ("Write a 300+ word poem about rain. Do not use commas.", [NO_COMMA, WORDS], None),
        ("Do not use commas.", [NO_COMMA], None),
        ("Please list famous mums and use no commas. It should rhyme.", [NO_COMMA], None),
        ("Write a song.", [repeat("Write a song.")], None),
        ('Expand: "It is old. The word is white." Do not use the word white.', [WHITE],
         'Expand: "It is old. The word is white."'),
        ("My cat is old. It is white. Describe it. Do not use the word white.", [WHITE],
         "My cat is old. It is white. Describe it."),
        ("Name a sea. Make it funny and do not use any commas.", [NO_COMMA], None),
        ("Name a sea. Include the phrase 'blue whale' and use no commas.", [NO_COMMA], None),
        ("Name a sea. Avoid the word white.", [WHITE], "Name a sea."),
)  # fmt: skip
def test_question_is_split_only_as_a_last_resort(prompt: str, raw: list[Raw], question: str | None) -> None:
    assert split_prompt(prompt, [parse(one) for one in raw]) == question
