"""Test IFEval data: join prompts with responses, skip unusable ones, split questions from their format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from loops import each

from distract.core.errors import DataError, UnknownName, UsageError
from distract.data import constraints as kinds
from distract.data.constraints import UnavailableError, parse
from distract.data.datasets import load, load_prompts
from distract.data.formats.reader import ConstrainedPrompt
from distract.data.prompt_parts import split_prompt

PROMPT: dict[str, Any] = {
    "key": 7,
    "prompt": "Why is rain wet? Do not use any commas in your answer.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{"num_words": None}],
}
ANSWER = {"prompt": PROMPT["prompt"], "response": "Because it is water."}


def write(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_prompts_are_joined_with_their_responses(tmp_path: Path) -> None:
    other = {**PROMPT, "key": "b", "prompt": "No answer here."}
    unknown = {**PROMPT, "key": 9, "prompt": "Odd.", "instruction_id_list": ["odd:kind"]}
    data = write(tmp_path / "prompts.jsonl", PROMPT, other, unknown)
    stray = {"prompt": "Stray.", "response": "x"}
    first = write(tmp_path / "gpt-4.jsonl", ANSWER, stray)
    second = write(tmp_path / "other.jsonl", {**ANSWER, "response": "Water, mostly."})
    for spec in (data, f"ifeval:{data}"):
        loaded = load(spec, [first, second])
        (case,) = loaded.cases
        assert (case.id, case.prompt, case.source) == ("ifeval-7", ("Why is rain wet?",), "ifeval")
        assert [(r.author, r.text) for r in case.responses] == [
            ("gpt-4", "Because it is water."),
            ("other", "Water, mostly."),
        ]
        assert case.constraints == (parse({"kind": "punctuation:no_comma"}),)
        assert loaded.left_out == {
            "the prompt has no response": 1,
            "the kind odd:kind cannot be checked": 1,
            "a response matches no prompt": 1,
        }
        assert loaded.size == 3
    assert load(data, [first]).checksum != load(data, [first, second]).checksum
    # The same text by another author gives another run.
    renamed = write(tmp_path / "other-name.jsonl", ANSWER, stray)
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
def test_wrong_rows_are_named(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    data = write(tmp_path / "prompts.jsonl", {**PROMPT, "key": 1, "prompt": "Fine."}, {**PROMPT, **change})
    with pytest.raises(DataError) as caught:
        load(f"ifeval:{data}", [write(tmp_path / "a.jsonl", ANSWER)])
    assert f"{data}:2" in str(caught.value)
    assert problem in str(caught.value)


def test_responses_need_prompts(tmp_path: Path) -> None:
    data, answers = write(tmp_path / "prompts.jsonl", PROMPT), write(tmp_path / "a.jsonl", ANSWER)
    with pytest.raises(UsageError, match="--responses"):
        load(data)
    with pytest.raises(UsageError, match="native data hold their responses"):
        load("tweakset", [answers])
    with pytest.raises(DataError, match="no such file"):
        load(data, [str(tmp_path / "none")])
    with pytest.raises(DataError, match=r"a\.jsonl:2.*answered on an earlier line"):
        load(data, [write(tmp_path / "a.jsonl", ANSWER, ANSWER)])
    with pytest.raises(DataError, match=r"holds no cases: .*has no response"):
        load(data, [write(tmp_path / "a.jsonl", {**ANSWER, "prompt": "Stray."})])
    (tmp_path / "b").mkdir()
    with pytest.raises(UsageError, match="two files are named after the author 'a'"):
        load(data, [answers, write(tmp_path / "b" / "a.jsonl", ANSWER)])
    with pytest.raises(DataError, match="'tie' is reserved for labels"):
        load(data, [write(tmp_path / "tie.jsonl", ANSWER)])
    with pytest.raises(DataError, match="is empty; expected responses"):
        load(data, [write(tmp_path / "none.jsonl")])
    with pytest.raises(DataError, match="7 was used on line 1"):
        load(write(tmp_path / "twice.jsonl", PROMPT, PROMPT), [answers])


def test_prompts_are_read_without_responses(tmp_path: Path) -> None:
    unknown = {**PROMPT, "key": "b", "instruction_id_list": ["odd:kind"]}
    data = write(tmp_path / "prompts.jsonl", PROMPT, unknown)
    for spec in (data, f"ifeval:{data}"):
        prompts = load_prompts(spec)
        assert prompts.prompts == (
            ConstrainedPrompt("7", PROMPT["prompt"], (parse({"kind": "punctuation:no_comma"}),)),
        )
        assert (prompts.name, prompts.format, prompts.size) == ("prompts.jsonl", "ifeval", 2)
        assert prompts.left_out == {"the kind odd:kind cannot be checked": 1}
    assert prompts.checksum != load_prompts(write(tmp_path / "other.jsonl", PROMPT)).checksum


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
    write(Path("native.jsonl"), {"id": "a", "prompt": "b", "responses": []})
    write(Path("twice.jsonl"), PROMPT, PROMPT)
    write(Path("odd.jsonl"), {**PROMPT, "instruction_id_list": ["odd:kind"]})
    Path("empty.jsonl").write_text(" \n")
    Path("words.jsonl").write_text("words\n")
    with pytest.raises(kind) as caught:
        load_prompts(spec)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_language_library_leaves_the_prompt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", missing)
    spoken = {**PROMPT, "key": 8, "prompt": "Hi.", "instruction_id_list": ["language:response_language"]}
    spoken["kwargs"] = [{"language": "de"}]
    with pytest.raises(UnavailableError, match="pip install"):
        kinds.parse({"kind": "language:response_language", "language": "de"})
    loaded = load(write(tmp_path / "p.jsonl", PROMPT, spoken), [write(tmp_path / "a.jsonl", ANSWER)])
    assert [case.id for case in loaded.cases] == ["ifeval-7"]
    assert any("py3langid" in reason for reason in loaded.left_out)


NO_COMMA = {"kind": "punctuation:no_comma"}
BULLETS = {"kind": "detectable_format:number_bullet_lists", "num_bullets": 2}
WORDS = {"kind": "length_constraints:number_words", "relation": "at least", "num_words": 300}
END = {"kind": "startend:end_checker", "end_phrase": "Is that all?"}
WHITE = {"kind": "keywords:forbidden_words", "forbidden_words": ["white"]}
REPEAT = {"kind": "combination:repeat_prompt", "prompt_to_repeat": "Write a song."}


@each(
    "prompt, raw, question",
    ("Why is rain wet? Don't use commas.", [NO_COMMA], "Why is rain wet?"),
        ("Write a poem about rain. Avoid commas.\nYour answer must be at least 300 words.", [NO_COMMA, WORDS],
         "Write a poem about rain."),
        ("List colours of cars. Use exactly 2 bullet points, such as:\n* This is a point\n* Another", [BULLETS],
         "List colours of cars."),
        ("Write to Tom. Finish your response with this exact phrase: Is that all? No other words should follow.",
         [END], "Write to Tom."),
        ("Write a 300+ word poem about rain without commas.", [NO_COMMA, WORDS], None),
        ("Write a 300+ word poem about rain. Do not use commas.", [NO_COMMA, WORDS], None),
        ("Do not use commas.", [NO_COMMA], None),
        ("Please list famous mums and use no commas. It should rhyme.", [NO_COMMA], None),
        ("Write a song.", [REPEAT], None),
        ('Expand: "It is old. The word is white." Do not use the word white.', [WHITE],
         'Expand: "It is old. The word is white."'),
        ("My cat is old. It is white. Describe it. Do not use the word white.", [WHITE],
         "My cat is old. It is white. Describe it."),
        ("Name a sea. Make it funny and do not use any commas.", [NO_COMMA], None),
        ("Name a sea. Include the phrase 'blue whale' and use no commas.", [NO_COMMA], None),
        ("Name a sea. Avoid the word white.", [WHITE], "Name a sea."),
)  # fmt: skip
def test_question_is_split_only_as_a_last_resort(prompt: str, raw: list[dict[str, Any]], question: str | None) -> None:
    assert split_prompt(prompt, [parse(one) for one in raw]) == question
