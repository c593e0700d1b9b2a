"""Test readers of published sets: golden files in the true schemas, errors in rows, whole real sets."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import error_line, talk
from hypothesis import HealthCheck, given, settings, strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.data.datasets import READERS, DataSet, load
from distract.data.formats import native
from distract.data.tables import open_table

GOLDEN = Path(__file__).parents[1] / "data" / "readers"

FILES = {
    "table": "table.jsonl",
    "native": "native.jsonl",
    "llmbar": "llmbar.json",
    "ifeval": "ifeval.jsonl",
    "reife": "reife.json",
    "mt-bench": "mt-bench",
    "mt-bench-human": "mt-bench-human.jsonl",
    "rewardbench": "rewardbench.jsonl",
    "judgebench": "judgebench.jsonl",
    "pandalm": "pandalm.json",
    "instrusum": "instrusum.json",
    "alpaca-eval": "alpaca-eval.json",
    # Written by the tools themselves: inspect_ai 0.3.285, promptfoo 0.121.20 and lm_eval 0.4.13.
    "inspect": "inspect.eval",
    "promptfoo": "promptfoo.json",
    "lm-eval": "lm-eval.jsonl",
}
FURTHER = {"ifeval": ["ifeval.writer.jsonl"], "alpaca-eval": ["alpaca-eval.other.json"]}
LEFT_OUT = {
    "mt-bench": {"no model has answered the question": 1},
    "mt-bench-human": {"the annotators do not agree": 1},
    "table": {"a response is missing": 1},
    "lm-eval": {"no text was generated": 1},
    "pandalm": {"the annotators do not agree": 1, "a response is true or false and no text": 1},
    "alpaca-eval": {"not every file has an output": 1, "an output matches no instruction": 1},
}


def golden(form: str, spec: str | None = None) -> DataSet:
    return load(spec or str(GOLDEN / FILES[form]), [str(GOLDEN / name) for name in FURTHER.get(form, ())])


def first_rows(form: str) -> list[dict[str, Any]]:
    """The rows of a golden data set in a single file."""
    return [dict(item.value) for item in open_table(GOLDEN / FILES[form]).items()]


def write(path: Path, rows: list[Any], *, lines: bool = True) -> str:
    text = "".join(json.dumps(row) + "\n" for row in rows) if lines else json.dumps(rows, indent=2)
    path.write_text(text, encoding="utf-8")
    return str(path)


def problem(spec: str, responses: list[str] | None = None) -> str:
    return error_line(UsageError, load, spec, responses or [])


def test_every_format_has_a_golden_file() -> None:
    assert set(FILES) == set(READERS)


@each("form", *FILES)
def test_golden_file_is_recognised_as_its_format_only(form: str) -> None:
    dataset = golden(form)
    assert dataset.format == form
    expected = (GOLDEN / f"{form}.cases.jsonl").read_text(encoding="utf-8")
    assert [native.dump(case) for case in dataset.cases] == [json.loads(line) for line in expected.splitlines()]
    assert dataset.left_out == LEFT_OUT.get(form, {})
    assert golden(form, f"{form}:{GOLDEN / FILES[form]}") == dataset
    assert len({case.id for case in dataset.cases}) == len(dataset.cases)
    path = GOLDEN / FILES[form]
    table = open_table(path / "question.jsonl" if path.is_dir() else path)
    assert {name for name, reader in READERS.items() if reader.recognise(table)} - {"table"} == {form} - {"table"}


@each("form", *(form for form in FILES if form not in ("native", "ifeval", "mt-bench")))
def test_array_and_lines_are_the_same_data(form: str, tmp_path: Path) -> None:
    further = [str(GOLDEN / name) for name in FURTHER.get(form, ())]
    for lines in (True, False):
        dataset = load(write(tmp_path / "data", first_rows(form), lines=lines), further)
        assert (dataset.format, dataset.cases) == (form, golden(form).cases)


# (format, index of the golden row, what changes in it (None: the field goes), field, message)
BAD: list[tuple[str, int, dict[str, Any], str, str]] = [
    ("llmbar", 1, {"label": True}, "label", "expected 1 or 2, found true or false"),
    ("llmbar", 1, {"label": "1"}, "label", 'expected 1 or 2, found "1"'),
    ("llmbar", 1, {"input": " "}, "input", "is blank"),
    ("reife", 1, {"winner": 3}, "winner", "expected 1, 2, 0 or 'tie', found 3"),
    ("reife", 1, {"winner": 1.0}, "winner", "expected 1, 2, 0 or 'tie', found the number 1.0"),
    ("reife", 1, {"winner": ["tie"]}, "winner", "found a list"),
    ("reife", 1, {"winner": None}, "winner", "missing; expected 1, 2, 0 or 'tie'"),
    ("reife", 1, {"output_2": 4}, "output_2", "expected text, found a whole number"),
    ("reife", 1, {"instruction": ""}, "instruction", "is blank"),
    ("instrusum", 1, {"winner": 0}, "winner", "expected 1 or 2, found 0"),
    ("instrusum", 1, {"article": None}, "article", "missing"),
    ("instrusum", 1, {"requirement": "\n"}, "requirement", "is blank"),
    ("judgebench", 1, {"label": "A<B"}, "label", "expected 'A>B', 'B>A' or 'A=B', found \"A<B\""),
    ("judgebench", 1, {"response_B": None}, "response_B", "missing"),
    ("judgebench", 1, {"source": "a\nb"}, "source", "holds control characters"),
    ("judgebench", 1, {"question": {}}, "question", "expected text, found an object"),
    ("pandalm", 1, {"annotator2": 3}, "annotator2", "expected 0, 1 or 2, found 3"),
    ("pandalm", 1, {"annotator2": "2"}, "annotator2", 'expected 0, 1 or 2, found "2"'),
    ("pandalm", 1, dict.fromkeys(("annotator1", "annotator2", "annotator3")), "annotator1", "missing; expected 0, 1"),
    ("pandalm", 1, {"instruction": " "}, "instruction", "is blank"),
    ("pandalm", 2, {"response1": 7}, "response1", "expected text, found a whole number"),
    ("rewardbench", 1, {"prompt": None}, "prompt", "missing"),
    ("rewardbench", 1, {"chosen": 1}, "chosen", "expected text"),
    ("rewardbench", 1, {"chosen": ["text", 7]}, "chosen[0]", "expected an object, found text"),
    ("rewardbench", 1, {"chosen": []}, "chosen", "expected its last message from the assistant"),
    ("rewardbench", 1, {"rejected": [{"role": "user", "content": "x"}]}, "rejected", "last message from the assistant"),
    ("rewardbench", 1, {"prompt": [{"role": "user", "content": " "}]}, "prompt[0].content", "is blank"),
    ("rewardbench", 1, {"prompt": [{"role": "judge", "content": "x"}]}, "prompt[0].role", "found 'judge'"),
    ("rewardbench", 1, {"subset": "\x1b[2J"}, "subset", "holds control characters"),
    ("mt-bench-human", 1, {"winner": "gpt-x"}, "winner", "expected 'model_a', 'model_b', 'tie', 'tie (inconsistent)'"),
    ("mt-bench-human", 1, {"model_b": "gpt-x"}, "model_b", "'gpt-x' is model_a too"),
    ("mt-bench-human", 1, {"model_a": "tie"}, "model_a", "'tie' is reserved for labels"),
    ("mt-bench-human", 1, {"turn": 0}, "turn", "expected the number of a turn, from 1"),
    ("mt-bench-human", 1, {"turn": True}, "turn", "expected the number of a turn, from 1"),
    ("mt-bench-human", 1, {"turn": 3}, "conversation_a", "has 2 turns, the vote is about turn 3"),
    ("mt-bench-human", 1, {"question_id": None}, "question_id", "missing"),
    ("mt-bench-human", 1, {"question_id": "a/../b"}, "question_id", "looks like a path"),
    ("mt-bench-human", 1, {"conversation_b": None}, "conversation_b", "missing; expected a list"),
    ("mt-bench-human", 1, {"conversation_b": [{"role": "user", "content": "x"}]}, "conversation_b",
     "ends without an answer to the last turn"),
    ("mt-bench-human", 1, {"conversation_b": [{"role": "assistant", "content": "x"}]}, "conversation_b[0].role",
     "expected 'user', found 'assistant'"),
    ("mt-bench-human", 4, {"conversation_b": [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]},
     "conversation_b", "the user's turns differ from those of conversation_a"),
    ("mt-bench-human", 5, {side: [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]
                           for side in ("conversation_a", "conversation_b")},
     "conversation_a", "the user's turns differ from line 5"),
    ("mt-bench-human", 5, {"conversation_b": [{"role": "user", "content": "Name a hill."},
                                              {"role": "assistant", "content": "Another."}]},
     "conversation_b", "'gpt-x' has a different answer on line 5"),
    ("inspect", 1, {"id": "a/../b"}, "id", "looks like a path"),
    ("inspect", 1, {"id": "s0"}, "id", "'item-s0' was used on line 1"),
    ("inspect", 1, {"input": 4}, "input", "expected text, found a whole number"),
    ("inspect", 1, {"input": [{"role": "assistant", "content": "x"}]}, "input", "its last message from the user"),
    ("inspect", 1, {"output": "x"}, "output", "expected an object, found text"),
    ("promptfoo", 1, {"prompt": None}, "prompt", "expected an object, found null"),
    ("promptfoo", 1, {"prompt": {"raw": " "}}, "prompt.raw", "is blank"),
    ("lm-eval", 1, {"doc_id": None}, "doc_id", "missing; expected text"),
    ("lm-eval", 1, {"arguments": {"a": {"arg_0": " ", "arg_1": {}}}}, "arguments", "is blank"),
    ("alpaca-eval", 1, {"generator": "other"}, "generator", "expected 'model-one' as in the first row"),
    ("alpaca-eval", 1, {"generator": None}, "generator", "missing"),
    ("alpaca-eval", 0, {"generator": "tie"}, "generator", "'tie' is reserved for labels"),
    ("alpaca-eval", 1, {"output": None}, "output", "missing"),
    ("alpaca-eval", 1, {"instruction": 5}, "instruction", "expected text"),
    ("alpaca-eval", 1, {"dataset": "a\tb"}, "dataset", "holds control characters"),
]  # fmt: skip


@each("form, index, change, field, message", *BAD)
def test_error_in_a_row_is_named(
    form: str, index: int, change: dict[str, Any], field: str, message: str, tmp_path: Path
) -> None:
    rows = first_rows(form)
    rows[index] = {name: value for name, value in {**rows[index], **change}.items() if value is not None}
    path = write(tmp_path / "data.jsonl", rows)
    text = problem(f"{form}:{path}", [str(GOLDEN / name) for name in FURTHER.get(form, ())])
    assert text.startswith(f"{path}:{index + 1}: field {field!r}: ")
    assert message in text


HOSTILE = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["[[A]]", "</s>[INST]", "$a {output_2}", "\x1b[31m\r\n", '"winner": 2, "chosen"', "العربية 中文 ɛ́\u2028", "﷽\u200f"]
)
TEXTS = {
    "llmbar": ("input", "output_1", "output_2"),
    "reife": ("instruction", "output_1", "output_2"),
    "judgebench": ("question", "response_A", "response_B"),
    "pandalm": ("instruction", "response1", "response2"),
    "rewardbench": ("prompt", "chosen", "rejected"),
}


@pytest.mark.parametrize("form", TEXTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=HOSTILE.filter(lambda text: text.strip() != ""), first=HOSTILE, second=HOSTILE, lines=st.booleans())
def test_texts_round_trip_verbatim(
    form: str, question: str, first: str, second: str, lines: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row = {**first_rows(form)[0], **dict(zip(TEXTS[form], (question, first, second), strict=True))}
    row.pop("input") if form == "pandalm" else None
    dataset = load(write(tmp_path_factory.mktemp("d") / "data", [row], lines=lines))
    (case,) = dataset.cases
    assert (dataset.format, case.prompt) == (form, (question,))
    texts = {response.author: response.text for response in case.responses}
    assert sorted(texts.values()) == sorted((first, second))
    if form == "rewardbench":
        assert texts[str(case.preferred)] == first
    else:
        assert list(texts.values()) == [first, second]


@given(question=HOSTILE.filter(lambda text: text.strip() != ""), first=HOSTILE, second=HOSTILE)
def test_conversation_and_output_texts_round_trip_verbatim(
    tmp_path_factory: pytest.TempPathFactory, question: str, first: str, second: str
) -> None:
    folder = tmp_path_factory.mktemp("d")
    sides = {"conversation_a": talk(question, first), "conversation_b": talk(question, second)}
    vote = {**first_rows("mt-bench-human")[0], **sides}
    texts_of = {"a": first, "b": second}
    models = [{"instruction": question, "output": text, "generator": name} for name, text in texts_of.items()]
    one, other = (write(folder / row["generator"], [row], lines=False) for row in models)
    (folder / "answers").mkdir()
    write(folder / "questions.jsonl", [{"question_id": 1, "category": "x", "turns": [question]}])
    for name, text in texts_of.items():
        write(folder / "answers" / f"{name}.jsonl", [{"question_id": 1, "choices": [{"turns": [text]}]}])
    for result, texts in (
        (load(write(folder / "votes", [vote])), [second, first]),
        (load(one, [other]), [first, second]),
        (load(str(folder)), [first, second]),
    ):
        (case,) = result.cases
        assert (case.prompt, [response.text for response in case.responses]) == ((question,), texts)


FIELDS = [*TEXTS["reife"], *TEXTS["pandalm"], "winner", "chosen", "generator", "id"]
VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3) | st.lists(st.none())


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_any_row_is_read_or_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]) -> None:
    path = write(tmp_path_factory.mktemp("d") / "data.jsonl", [row])
    for form in READERS:
        message = ""
        try:
            load(f"{form}:{path}")
        except UsageError as error:
            message = str(error)
        assert "\n" not in message


PLACES = ["item-0001", "item-0002", "item-0003"]


@each(
    "change, expected",
    ({}, ["item-9f-1", "item-9f-2", "item-9f-3"]),
    ({"pair_id": 7}, ["item-7", "item-9f-2", "item-9f-3"]),
    *(({"pair_id": name}, PLACES) for name in ("9f-2", None, "../../x", "a\nb")),
)
def test_unique_row_ids_become_case_ids(change: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    first, *others = first_rows("judgebench")
    cases = load(write(tmp_path / "d.jsonl", [{**first, **change}, *others])).cases
    assert [case.id for case in cases] == expected


@each(
    "votes, label",
    ((0,), "tie"), ((1,), "response1"), ((1, 2), None), ((2, 2, 1), "response2"), ((0, 0, 1, 2), "tie"),
     ((0, 0, 1, 1, 2), None), ((1,) * 6 + (2,) * 7, "response2"), ((2, None), "response2"),
)  # fmt: skip
def test_pandalm_takes_the_most_frequent_of_any_number_of_votes(
    votes: tuple[int | None, ...], label: str | None, tmp_path: Path
) -> None:
    row = {name: value for name, value in first_rows("pandalm")[0].items() if not name.startswith("annotator")}
    row |= {f"annotator{number}": vote for number, vote in enumerate(votes, 1)}
    sure = {**row, "idx": "sure", "annotator1": 1, **{f"annotator{n}": None for n in range(2, len(votes) + 1)}}
    dataset = load(write(tmp_path / "p.jsonl", [row, sure]))
    assert [case.preferred for case in dataset.cases[:-1]] == ([label] if label else [])
    assert dataset.left_out == ({} if label else {"the annotators do not agree": 1})


def test_votes_are_counted_by_model_in_any_pair_order(tmp_path: Path) -> None:
    row = first_rows("mt-bench-human")[0]
    names = {f"{name}_{x}": f"{name}_{y}" for name in ("model", "conversation") for x, y in ("ab", "ba")}
    swapped = {**row, **{name: row[other] for name, other in names.items()}}
    for votes, label in (
        ([(row, "model_a"), (swapped, "model_b")], "llama-x"),
        ([(row, "model_a"), (swapped, "model_a"), (row, "tie"), (swapped, "tie (inconsistent)")], "tie"),
        ([(row, "model_b"), (swapped, "model_a"), (row, "model_a")], "gpt-x"),
    ):
        path = write(tmp_path / "votes.jsonl", [{**one, "winner": winner} for one, winner in votes])
        (case,) = load(path).cases
        assert case.preferred == label
        assert [response.author for response in case.responses] == ["gpt-x", "llama-x"]
    odd = {**row, "model_a": "a-vs-b", "model_b": "c"}, {**row, "model_a": "a", "model_b": "b-vs-c"}
    assert "gives the case of line 1 the same id" in problem(write(tmp_path / "odd.jsonl", [*odd]))


def test_better_response_is_not_always_first(tmp_path: Path) -> None:
    row = first_rows("rewardbench")[0]
    rows = [{**row, "id": number, "chosen": f"good {number}", "rejected": f"bad {number}"} for number in range(400)]
    path = write(tmp_path / "r.jsonl", rows)
    dataset = load(path, seed=3).cases
    assert dataset == load(path, seed=3).cases
    assert dataset != load(path, seed=4).cases
    assert 160 < Counter(case.preferred for case in dataset)["response_1"] < 240
    for case in dataset:
        assert [response.author for response in case.responses] == ["response_1", "response_2"]
        (better,) = (response.text for response in case.responses if response.author == case.preferred)
        assert better.startswith("good")
    # The rows before a case do not affect it.
    assert load(write(tmp_path / "half.jsonl", rows[1::2]), seed=3).cases == dataset[1::2]
    assert load(str(GOLDEN / "llmbar.json"), seed=5) == load(str(GOLDEN / "llmbar.json"))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "mt-bench", tmp_path / "my-bench")
    return tmp_path / "my-bench"


def test_folder_may_be_given_by_itself_or_its_questions(bench: Path) -> None:
    dataset = load(str(bench))
    assert (dataset.name, dataset.format, dataset.size) == ("my-bench", "mt-bench", 3)
    for spec in (f"mt-bench:{bench}", str(bench / "question.jsonl"), f"mt-bench:{bench / 'question.jsonl'}"):
        assert load(spec) == dataset
    (bench / "question.jsonl").rename(bench / "questions.jsonl")
    (bench / "model_answer").rename(bench / "answers")
    assert load(str(bench)).cases == dataset.cases


def test_answers_to_other_questions_are_skipped_and_counted(bench: Path) -> None:
    whole = load(str(bench))
    questions = (bench / "question.jsonl").read_text().splitlines(keepends=True)
    (bench / "question.jsonl").write_text("".join(questions[1:]))
    dataset = load(str(bench))
    assert (dataset.cases, dataset.size) == (whole.cases[1:], whole.size - 1)
    assert dataset.left_out["an answer matches no question"] > 0


def test_every_file_of_a_folder_counts(bench: Path) -> None:
    seen = {load(str(bench)).checksum}
    for change in ("model_answer/small.jsonl", "reference_answer/gpt-x.jsonl", "question.jsonl"):
        with (bench / change).open("a") as file:
            file.write("\n")
        seen.add(load(str(bench)).checksum)
    (bench / "model_answer" / "small.jsonl").rename(bench / "model_answer" / "tiny.jsonl")
    renamed = load(str(bench))
    assert len(seen | {renamed.checksum}) == 5
    assert [response.author for response in renamed.cases[0].responses] == ["large", "tiny"]
    shutil.rmtree(bench / "reference_answer")
    assert not any(case.reference for case in load(str(bench)).cases)


@pytest.mark.parametrize(
    ("file", "row", "field", "message"),
    [
        ("question", {"question_id": 101, "turns": ["x"]}, "question_id", "101 was used on line 1; ids must be unique"),
        ("question", {"question_id": 1, "turns": []}, "turns", "is an empty list"),
        ("question", {"question_id": None, "turns": ["x"]}, "question_id", "expected text, found null"),
        ("question", {"question_id": "../x", "turns": ["x"]}, "question_id", "looks like a path"),
        ("model_answer/small", {"question_id": 101, "choices": []}, "question_id", "101 was answered on line 1"),
        ("model_answer/small", {"question_id": 102, "choices": []}, "choices", "is an empty list"),
        ("model_answer/small", {"question_id": 102}, "choices", "missing; expected a list"),
        ("model_answer/small", {"question_id": 102, "choices": [{"turns": ["x"]}]}, "choices[0].turns",
         "has 1 turn, the question has 2"),
        ("model_answer/small", {"question_id": 102, "choices": [{"turns": ["x", 1]}]}, "choices[0].turns[1]",
         "expected text, found a whole number"),
    ],
)  # fmt: skip
def test_error_in_a_folder_is_named(file: str, row: dict[str, Any], field: str, message: str, bench: Path) -> None:
    path = bench / f"{file}.jsonl"
    line = len(path.read_text().splitlines()) + 1
    with path.open("a") as handle:
        handle.write(json.dumps(row) + "\n")
    # A wrong question is detected when its case is built, after all answers.
    assert problem(str(bench)).startswith(f"{path}:{line}: field {field!r}: {message}")


def test_incomplete_folder_is_refused(bench: Path, tmp_path: Path) -> None:
    assert "--responses: mt-bench data hold their responses" in problem(str(bench), [str(bench / "question.jsonl")])
    (bench / "model_answer" / "small.jsonl").rename(bench / "model_answer" / "tie.jsonl")
    assert "'tie' is reserved for labels" in problem(str(bench))
    shutil.rmtree(bench / "model_answer")
    message = problem(str(bench / "question.jsonl"))
    assert message == f"{bench}: holds no answers; expected model_answer/*.jsonl or answers/*.jsonl"
    (tmp_path / "empty").mkdir()
    assert "is a directory; name a file in it" in problem(str(tmp_path / "empty"))
    assert "is a directory; is not a folder of question.jsonl" in problem(f"mt-bench:{tmp_path / 'empty'}")


def test_outputs_of_several_models_are_joined_by_prompt(tmp_path: Path) -> None:
    first, other = str(GOLDEN / "alpaca-eval.json"), str(GOLDEN / "alpaca-eval.other.json")
    message = problem(first)
    assert "alpaca-eval data hold no responses" in message
    assert "add --responses with a further file of {instruction, output, generator}" in message
    assert "two files hold outputs of 'model-one'" in problem(first, [first])
    assert "holds no outputs" in problem(first, [write(tmp_path / "none.json", [], lines=False)])
    rows = first_rows("alpaca-eval")
    third = write(tmp_path / "third.json", [{**row, "generator": "model-three"} for row in rows], lines=False)
    assert [r.author for r in load(first, [other, third]).cases[0].responses] == [
        "model-one", "org/model-two", "model-three",
    ]  # fmt: skip
    # A repeated row is unambiguous; two outputs for one instruction are not.
    twice = write(tmp_path / "twice.json", [*rows, rows[0], {**rows[1], "output": "Beech"}], lines=False)
    dataset = load(twice, [third])
    assert [case.prompt[0] for case in dataset.cases] == ["How do I boil an egg?", "Name a nut."]
    assert (dataset.left_out, dataset.size) == ({"the instruction is there twice": 1}, 3)
