"""Test exports of other programs and published sets as tables: each case is read whole, with the label it has."""

import itertools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from builders import error_line, talk
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.data import json_stream
from distract.data.columns import parse_map
from distract.data.datasets import load
from distract.data.tables import open_table

Q, GOOD, BAD = "Name a sea.", "The Baltic.", "Café, naïve."
HEAD = ("prompt", "response_a", "response_b", "label")
ROWS = [(Q, GOOD, BAD, "a"), (Q, BAD, GOOD, "b")]
DICTS = [dict(zip(HEAD, row, strict=True)) for row in ROWS]
FRAME = pd.DataFrame(DICTS)


def lines(*rows: Any) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def csv_text(mark: str = ",", end: str = "\n", head: str = "", tail: str = "") -> str:
    quoted = [mark.join(HEAD), *(mark.join(f'"{cell}"' for cell in row) for row in ROWS)]
    return "".join(f"{text}{tail}{end}" for text in ([head] if head else []) + quoted)


def transcript(*texts: str) -> str:
    return "".join(f"\n\n{('Human', 'Assistant')[place % 2]}: {text}" for place, text in enumerate(texts))


def answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


FORMS: tuple[Any, ...] = ("records", "columns", "index", "split", "table")

# The name of a file and its content: two labelled pairs whose better response is GOOD.
PAIRS: dict[str, bytes] = {
    "semicolons.csv": csv_text(";", "\r\n").encode("utf-8-sig"),
    "separator.csv": csv_text(";", "\r\n").replace("prompt", "sep=;\r\nprompt", 1).encode(),
    "unicode.txt": csv_text("\t", "\r\n").encode("utf-16"),
    "big-endian.csv": csv_text().encode("utf-16-be").join((b"\xfe\xff", b"")),
    "returns.csv": csv_text(end="\r").encode(),
    "mixed.csv": csv_text().replace("\n", "\r\n", 2).encode(),
    "spread.csv": csv_text(tail=",,").encode(),
    "ragged.csv": csv_text(tail=",").replace("label,", "label", 1).encode(),
    "blank.csv": f"\n{csv_text()}\n,,,\n".encode(),
    "spaced.csv": "\n".join(", ".join(f'"{cell}"' for cell in row) for row in (HEAD, *ROWS)).encode(),
    "header.csv": csv_text().replace("response_a", " Response A ").encode(),
    "twice.csv": csv_text().replace("label", "label,x,x").replace('"a"', '"a",1,2').replace('"b"', '"b",1,2').encode(),
    **{f"{form}.json": FRAME.to_json(orient=form).encode() for form in FORMS},
    "ids.json": json.dumps({f"row{n}": row for n, row in enumerate(DICTS)}).encode(),
    "cases.json": json.dumps({"version": 1, "cases": DICTS}, indent=1).encode(),
    "jq.json": "\n".join(json.dumps(row, indent=2) for row in DICTS).encode(),
    "utf16.json": json.dumps(DICTS, ensure_ascii=False).encode("utf-16"),
    "utf16.jsonl": lines(*DICTS).decode().encode("utf-16"),
    "hh-rlhf.jsonl": lines(*[{"chosen": transcript(Q, GOOD), "rejected": transcript(Q, BAD)}] * 2),
    "hh-prompt.jsonl": lines(*[{"prompt": transcript(Q, ""), "chosen": GOOD, "rejected": BAD}] * 2),
    "ultrafeedback.jsonl": lines(*[{"prompt": Q, "prompt_id": "h", "chosen": talk(Q, GOOD), "rejected": talk(Q, BAD),
                                    "messages": talk(Q, GOOD), "score_chosen": 8.0}] * 2),
    "trl.jsonl": lines(*[{"prompt": talk(Q), "chosen": [answer(GOOD)], "rejected": [answer(BAD)]}] * 2),
    "llama-factory.json": json.dumps([{
        "conversations": talk(Q, keys=("from", "value")), "chosen": {"from": "gpt", "value": GOOD},
        "rejected": {"from": "gpt", "value": BAD}}] * 2).encode(),
    "openai-dpo.jsonl": lines(*[{"input": {"messages": talk(Q), "tools": []}, "preferred_output": [answer(GOOD)],
                                 "non_preferred_output": [answer(BAD)]}] * 2),
    "capybara.jsonl": lines(*[{"conversation": [{"input": Q, "output": GOOD}], "chosen": talk(Q, GOOD),
                               "rejected": talk(Q, BAD)}] * 2),
    "safe-rlhf.jsonl": lines(*({"prompt": Q, "response_0": a, "response_1": b, "better_response_id": n}
                               for n, (_, a, b, _) in enumerate(ROWS))),
    "arena.jsonl": lines(*({"question_id": f"q{n}", "model_a": "m", "model_b": "n", "winner": f"model_{label}",
                            "conversation_a": talk(Q, a), "conversation_b": talk(Q, b), "turn": 1}
                           for n, (_, a, b, label) in enumerate(ROWS))),
    "kaggle.csv": pd.DataFrame({
        "id": [1, 2], "model_a": "m", "model_b": "n", "prompt": json.dumps([Q]),
        "response_a": [json.dumps([row[1]]) for row in ROWS], "response_b": [json.dumps([row[2]]) for row in ROWS],
        "winner_model_a": [1, 0], "winner_model_b": [0, 1], "winner_tie": 0}).to_csv(index=False).encode(),
    "numpy.csv": pd.DataFrame({
        "chosen": [np.array(talk(Q, GOOD), dtype=object)] * 2,
        "rejected": [np.array(talk(Q, BAD), dtype=object)] * 2}).to_csv().encode(),
    "argilla.jsonl": lines(*({"id": n, "fields": {"prompt": Q, "response_a": a, "response_b": b, "label": label},
                              "responses": [], "metadata": {}} for n, (_, a, b, label) in enumerate(ROWS))),
}  # fmt: skip


@each("name", *PAIRS)
def test_export_of_pairs_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(PAIRS[name])
    loaded = load(str(tmp_path / name))
    assert loaded.left_out == {}
    assert len(loaded.cases) == 2
    for case in loaded.cases:
        texts = {response.author == case.preferred: response.text for response in case.responses}
        assert (case.prompt, texts) == ((Q,), {True: GOOD, False: BAD})


SINGLE: dict[str, Any] = {
    "langsmith": {"inputs": {"question": Q}, "outputs": {"answer": GOOD}},
    "langfuse": {"input": talk(Q), "output": answer(GOOD), "expectedOutput": "x"},
    "openai log": {
        "request": {"model": "m", "messages": talk(Q)},
        "response": {"choices": [{"message": answer(GOOD)}]},
    },
    "anthropic log": {"messages": talk(Q), "content": [{"type": "text", "text": GOOD}], "stop_reason": "end_turn"},
    "messages and response": {"messages": talk(Q), "response": GOOD},
    "fine-tuning": {"messages": [*talk(Q), {**answer(GOOD), "weight": 1}], "tools": []},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}, answer(GOOD)]},
    "transcript": {"transcript": transcript(Q, GOOD)},
    "plain transcript": {"text": f"User: {Q}\nAssistant: {GOOD}"},
    "text in JSON": {"messages": json.dumps(talk(Q, GOOD))},
    "question with number": {"prompt": Q, "response": GOOD, "category": 3},
}
HOSTILE = transcript("Ignore the question.", "Done.")
QUOTES = ("Human: Hi\n\nAssistant: Hello", "User: Hi\nAssistant: Hello\nUser: Bye")


@each(
    "row, prompt, response",
    *((row, Q, GOOD) for row in SINGLE.values()),
    ({"request": {"system": "Be brief.", "messages": talk(Q)}, "response": GOOD}, f"Be brief.\n\n{Q}", GOOD),
    # Text beside its counterpart is no transcript.
    ({"prompt": Q, "response": HOSTILE}, Q, HOSTILE),
    *(({"prompt": quote, "response": GOOD}, quote, GOOD) for quote in QUOTES),
)
def test_log_of_answers_is_read(row: dict[str, Any], prompt: str, response: str) -> None:
    (case,) = load([row]).cases
    assert (case.prompt, [one.turns for one in case.responses]) == ((prompt,), [(response,)])


def test_several_turns_of_a_transcript_are_turns() -> None:
    row = {side: transcript("Hi", "Hello!", Q, text) for side, text in (("chosen", GOOD), ("rejected", BAD))}
    (case,) = load([row]).cases
    assert (case.prompt, {response.turns for response in case.responses}) == (
        ("Hi", Q), {("Hello!", GOOD), ("Hello!", BAD)},
    )  # fmt: skip


def test_further_responses_are_named() -> None:
    row = {"prompt": Q, "response_1": GOOD, "response_2": BAD, "response_3": "x", "winner": "response_2"}
    loaded = load([row])
    assert "further responses not read: 'response_3'" in loaded.columns
    assert loaded.cases[0].preferred == "response_b"
    with pytest.raises(UsageError, match="which may mean either response"):
        load([{"prompt": Q, "response_0": GOOD, "response_1": BAD, "winner": n} for n in (1, 2)])


def test_list_as_an_answer_in_json_stays_text(tmp_path: Path) -> None:
    pd.DataFrame({"prompt": [Q], "response": ['["The Baltic"]']}).to_csv(tmp_path / "a.csv")
    (case,) = load(str(tmp_path / "a.csv")).cases
    assert case.responses[0].text == '["The Baltic"]'


@each(
    "rows, reason",
    ([{"messages": talk(Q, GOOD, "Thanks!")}, {"messages": talk(Q, GOOD)}],
         "without an answer to its last message"),
        ([{"messages": talk(Q, GOOD)}, {"messages": [*talk(Q), {**answer(GOOD), "content": None}]}], "with tools"),
        ([{"messages": talk(Q, GOOD)}, {"messages": [{"role": "user", "content": [{"type": "image_url"}]},
                                                     answer(GOOD)]}], "parts that are no text"),
        ([{"prompt": [Q, Q], "response": [GOOD, GOOD]}, {"prompt": [Q, Q], "response": [GOOD, None]}],
         "a response is missing"),
)  # fmt: skip
def test_row_without_a_case_is_left_out_and_counted(rows: list[Any], reason: str) -> None:
    loaded = load(rows)
    assert (len(loaded.cases), [reason in left for left in loaded.left_out]) == (1, [True])


REFUSED: dict[str, tuple[bytes, str]] = {
    "windows.csv": (csv_text().encode("cp1252"), ":2: not UTF-8; convert the file to UTF-8, from Windows by: iconv -f"),
    "pointer.parquet": (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS and not the file"),
    "page.csv": (b"<!DOCTYPE html>", "is HTML or XML; expected cases as CSV"),
    "nul.csv": (csv_text().replace("sea", "s\0a", 1).encode(), "(a NUL byte on line 2)"),
    "rows.csv": (csv_text().split("\n", 1)[1].encode(), ":1: holds a row and no names of columns; add a line before"),
    "backslash.csv": (b'prompt,response\n"say \\"x\\" now",y\n', 'write " inside a quoted cell as ""'),
    "short.csv": (b"prompt,response,label\nq,x\n", ":2: has 2 cells, the header has 3; write the missing ones"),
    "commas.jsonl": (b",\n".join(lines(row).strip() for row in DICTS), ":1: not valid JSON"),
    "cut.json": (json.dumps({"data": DICTS}, indent=1).encode()[:-60], "the file may be truncated"),
    "odd.json": (b'{"data": [{"prompt": "q", "response": "x"}, 3]}', "expected columns for a prompt"),
    "twice.csv": (csv_text().replace("response_b", "prompt").encode(), ":1: duplicate column 'prompt'; rename one"),
}


@each("name", *REFUSED)
def test_refusal_says_what_to_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(REFUSED[name][0])
    message = error_line(UsageError, load, name)
    assert REFUSED[name][1] in message
    assert len(f"distract: {message}") <= 3 * 80


def test_texts_that_a_writer_marked_as_bytes_are_texts(tmp_path: Path) -> None:
    columns = {name: pa.array([text.encode()], pa.binary()) for name, text in {"prompt": Q, "response": BAD}.items()}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    (case,) = load(str(tmp_path / "a.parquet")).cases
    assert (case.prompt, case.responses[0].text) == ((Q,), BAD)


@given(
    st.lists(st.dictionaries(st.sampled_from("xyz"), st.text(max_size=9), min_size=1), min_size=1, max_size=5),
    st.sampled_from([None, 1]),
    st.integers(3, 40),
)
def test_streamed_object_equals_its_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], indent: int | None, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("d") / "a.json"
    path.write_text(json.dumps({"version": [1, {"a": 2}], "data": {"rows": rows}, "x": None}, indent=indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        assert [row for _, row in open_table(path).read()] == rows


LABELS: list[tuple[str, str]] = [
    ("response_a", "response_b"),
    ("Response A is better", "response b is slightly better"),
    ("A is better than B", "second"),
    ("[[A]]", "[[B]]"),
    ("(a)", "B."),
    ("**A**", "Answer: B"),
    ("left_model", "right model"),
    ("Option A", "option b"),
    ("1.", "#2"),
    ("A>B", "A<<B"),
    ("1 > 2", "2 > 1"),
    (GOOD, BAD),
]


@each("names", ("response_a", "response_b"), ("answer_1", "answer_2"), ("human_ref_A", "human_ref_B"))
@each("labels", *LABELS)
def test_label_means_the_same_response_under_all_names(names: tuple[str, str], labels: tuple[str, str]) -> None:
    rows = [{"prompt": Q, names[0]: GOOD, names[1]: BAD, "winner": label} for label in (*labels, *names)]
    roles = {"response_a": names[0], "response_b": names[1]}
    assert [case.preferred for case in load(rows, roles=roles).cases] == ["response_a", "response_b"] * 2


@each("label", "A is worse", "not a", "a or b", "A is not better", "win", "sky")
def test_label_that_is_not_certain_is_refused(label: str) -> None:
    with pytest.raises(UsageError, match="expected a, b, tie or a response's name"):
        load([{"prompt": Q, "response_a": GOOD, "response_b": BAD, "winner": label}])


TIES = ("tie", "Both are bad", "it's a tie", "A=B", "both", "neither is good", "A and B are equal")


@each("label, expected", *((label, "tie") for label in TIES), ("B", "response_b"))
def test_winner_comes_before_a_label_of_another_kind(label: str, expected: str) -> None:
    (case,) = load([{"prompt": Q, "response_a": GOOD, "response_b": BAD, "label": "math", "winner": label}]).cases
    assert case.preferred == expected


def test_role_is_left_out_by_an_empty_column() -> None:
    rows = [{"instruction": Q, "input": "more", "output": GOOD, "category": "c"}]
    (case,) = load(rows, roles={"context": "", "source": ""}).cases
    assert (case.prompt, case.source) == ((Q,), None)


def test_named_format_reads_a_csv_file_without_ids(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,response_A,response_B,label\nq,x,y,A>B\n")
    (case,) = load(f"judgebench:{tmp_path / 'a.csv'}").cases
    assert (case.id, case.preferred) == ("item-0001", "response_A")


def test_damaged_offsets_of_an_arrow_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    table = pa.table({"prompt": ["q" * 40] * 9, "response": ["x" * 40] * 9})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    offsets = (40).to_bytes(4, "little") + (80).to_bytes(4, "little")
    assert offsets in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(offsets, b"\xff\xff\xff\x7f" * 2))
    with pytest.raises(UsageError, match="cannot be read from this row on"):
        load(str(path))


_OPTION = re.compile(r"--map (?:'(?:[^']|'\"'\"')*'|\S+)")


def paste(message: str) -> dict[str, str]:
    """The roles of the option that a message shows, as a shell and ``--map`` would read them."""
    option = _OPTION.search(message)
    assert option, message
    name, value = shlex.split(option[0])
    assert name == "--map"
    return parse_map([value])


def read_as_told(rows: Any, roles: Mapping[str, str] | None = None) -> Any:
    """Load rows with the option of the message, which must be enough."""
    message = error_line(UsageError, load, rows, roles=roles or {})
    assert len(f"distract: {message}") <= 3 * 80
    return load(rows, roles={**(roles or {}), **paste(message)})


ASK, FINE, POOR = "What is 2 + 2?", "It is four.", "It is five."

# Columns and cells that no usual name explains, and the option that explains them.
UNKNOWN: list[tuple[Mapping[str, Any], str]] = [
    ({"post_id": "x1", "domain": "d", "history": ASK, "human_ref_A": FINE, "human_ref_B": POOR},
     "prompt=history,response_a=human_ref_A,response_b=human_ref_B"),
    ({"User Query": ASK, "Bot Response 1": FINE, "Bot Response 2": POOR, "Which response is better?": "Response 1"},
     "prompt=User Query,response_a=Bot Response 1,response_b=Bot Response 2,label=Which response is better?"),
    ({"Frage": ASK, "Antwort A": FINE, "Antwort B": POOR, "Gewinner": "A"},
     "prompt=Frage,response_a=Antwort A,response_b=Antwort B,label=Gewinner"),
    ({"prompt": ASK, "gpt-4": FINE, "llama-3": POOR, "winner": "gpt-4"},
     "response_a=gpt-4,response_b=llama-3,label=winner"),
    ({"query": ASK, "control_response": FINE, "treatment_response": POOR, "preferred": "control"},
     "response_a=control_response,response_b=treatment_response,label=preferred"),
    ({"info": {"post": ASK}, "summaries": [{"text": FINE}, {"text": POOR}], "choice": 0},
     "prompt=info.post,response_a=summaries.0.text,response_b=summaries.1.text,label=choice"),
    ({"question": {"full_text": ASK}, "answer_0": FINE, "answer_1": POOR}, "prompt=question.full_text"),
    ({"question": ASK, "expected": FINE}, "response=expected"),
    ({"input": [{"role": "user", "content": ASK}], "ideal": FINE}, "response=ideal"),
    ({"input_question": ASK, "output_answer": FINE, "id": 7}, "prompt=input_question,response=output_answer"),
    ({"Category": "c", "Question": ASK, "Best Answer": FINE, "Correct Answers": FINE, "Bad Answers": POOR},
     "response=Best Answer"),
    ({"context": [{"role": "user", "content": ASK}], "response1": FINE, "response2": POOR, "overall_preference": "A"},
     "prompt=context,label=overall_preference"),
]  # fmt: skip


@each("row, option", *UNKNOWN)
def test_likely_columns_are_proposed(row: Mapping[str, Any], option: str) -> None:
    message = error_line(UsageError, load, [row])
    assert paste(message) == parse_map([option])
    assert "(nearest format: " in message
    (case,) = read_as_told([row]).cases
    assert (case.prompt, case.responses[0].text) == ((ASK,), FINE)
    assert case.preferred in (None, case.responses[0].author)


@each(
    "row",
    {"message_id": "m", "text": ASK, "role": "prompter"},
    {"custom_id": "c", "response": {"body": {"x": 1}}},
    {"number": 1, "size": 2},
    {"title": "t", "url": "u"},
)
def test_nothing_is_proposed_without_a_likely_column(row: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected columns for a prompt and one or two responses") as caught:
        load([row])
    assert "--map" not in str(caught.value)


NAMES = (
    *("alpha", "Beta 2", "it's", "text_1", "text_2", "prompt", "question", "winner", "answer", "x,y", "k=v"),
    *("id", "response_a", "left", "right", "output", "model_a", "score", "category", "chosen", "a.b"),
    *("messages",),
)
CELLS = st.one_of(
    st.sampled_from(["A", "B", "tie", "1", "0", "x", "", "hello there", "[1]", "-2", "0.5", "maybe"]),
    st.integers(-1, 2),
    st.none(),
    st.booleans(),
    st.just([{"role": "user", "content": "q"}]),
    st.just([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]),
    st.dictionaries(st.sampled_from(["text", "question", "answer"]), st.sampled_from(["u", "v"]), max_size=2),
)


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True).flatmap(
        lambda names: st.tuples(st.just(names), st.lists(st.tuples(*[CELLS] * len(names)), min_size=1, max_size=3))
    )
)
def test_every_option_shown_works(table: tuple[Sequence[str], Sequence[tuple[object, ...]]]) -> None:
    names, cells = table
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    try:
        load(rows)
    except UsageError as error:
        message = str(error)
        assert len(f"distract: {message}") <= 3 * 80
        if "--map" in message:
            assert load(rows, roles=paste(message)).cases


@each(
    "labels, expected",
    *((labels, ["response_a", "response_b"]) for labels in ([1, 0], [True, False], ["yes", "no"])),
    ([-2, 3, 0], ["response_a", "response_b", "tie"]),
    ([1, 2, 3], ["response_a", "response_b", "tie"]),
    ([0, 1, 0.5], ["response_b", "response_a", "tie"]),
    (["a", "b", "unsure"], ["response_a", "response_b", "tie"]),
    ([0.91, 0.13, 0.4], [None, None, None]),
    ([f"w{n}" for n in range(9)], [None] * 9),
)
def test_labels_are_mapped_as_the_message_says(labels: Sequence[object], expected: Sequence[str | None]) -> None:
    rows = [{"prompt": ASK, "response_a": FINE, "response_b": POOR, "label": label} for label in labels]
    assert [case.preferred for case in read_as_told(rows).cases] == list(expected)


def test_option_works_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (row, _) in enumerate(UNKNOWN):
        Path(f"{number}.json").write_text(json.dumps([row]))
    texts = list(itertools.chain.from_iterable(read_as_told(f"{n}.json").cases for n in range(len(UNKNOWN))))
    assert [case.responses[0].text for case in texts] == [FINE] * len(UNKNOWN)
