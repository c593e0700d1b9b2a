"""Test the options that messages about tables show: each works when it is pasted, or none is shown."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.data.columns import parse_map
from distract.data.datasets import load

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
    with pytest.raises(UsageError) as caught:
        load(rows, roles=roles or {})
    assert len(f"distract: {caught.value}") <= 3 * 80
    return load(rows, roles={**(roles or {}), **paste(str(caught.value))})


Q, GOOD, BAD = "What is 2 + 2?", "It is four.", "It is five."

# Columns and cells that no usual name explains, and the option that explains them.
UNKNOWN: list[tuple[Mapping[str, Any], str]] = [
    ({"post_id": "x1", "domain": "d", "history": Q, "human_ref_A": GOOD, "human_ref_B": BAD},
     "prompt=history,response_a=human_ref_A,response_b=human_ref_B"),
    ({"User Query": Q, "Bot Response 1": GOOD, "Bot Response 2": BAD, "Which response is better?": "Response 1"},
     "prompt=User Query,response_a=Bot Response 1,response_b=Bot Response 2,label=Which response is better?"),
    ({"Frage": Q, "Antwort A": GOOD, "Antwort B": BAD, "Gewinner": "A"},
     "prompt=Frage,response_a=Antwort A,response_b=Antwort B,label=Gewinner"),
    ({"prompt": Q, "gpt-4": GOOD, "llama-3": BAD, "winner": "gpt-4"},
     "response_a=gpt-4,response_b=llama-3,label=winner"),
    ({"query": Q, "control_response": GOOD, "treatment_response": BAD, "preferred": "control"},
     "response_a=control_response,response_b=treatment_response,label=preferred"),
    ({"info": {"post": Q}, "summaries": [{"text": GOOD}, {"text": BAD}], "choice": 0},
     "prompt=info.post,response_a=summaries.0.text,response_b=summaries.1.text,label=choice"),
    ({"question": {"full_text": Q}, "answer_0": GOOD, "answer_1": BAD}, "prompt=question.full_text"),
    ({"question": Q, "expected": GOOD}, "response=expected"),
    ({"input": [{"role": "user", "content": Q}], "ideal": GOOD}, "response=ideal"),
    ({"input_question": Q, "output_answer": GOOD, "id": 7}, "prompt=input_question,response=output_answer"),
    ({"Category": "c", "Question": Q, "Best Answer": GOOD, "Correct Answers": GOOD, "Bad Answers": BAD},
     "response=Best Answer"),
    ({"context": [{"role": "user", "content": Q}], "response1": GOOD, "response2": BAD, "overall_preference": "A"},
     "prompt=context,label=overall_preference"),
]  # fmt: skip


@each("row, option", *UNKNOWN)
def test_likely_columns_are_proposed(row: Mapping[str, Any], option: str) -> None:
    with pytest.raises(UsageError) as caught:
        load([row])
    assert paste(str(caught.value)) == parse_map([option])
    assert "(nearest format: " in str(caught.value)
    (case,) = read_as_told([row]).cases
    assert (case.prompt, case.responses[0].text) == ((Q,), GOOD)
    assert case.preferred in (None, case.responses[0].author)


@each(
    "row",
    {"message_id": "m", "text": Q, "role": "prompter"},
    {"custom_id": "c", "response": {"body": {"x": 1}}},
    {"number": 1, "size": 2},
    {"title": "t", "url": "u"},
)
def test_nothing_is_proposed_without_a_likely_column(row: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected columns for a prompt and one or two responses") as caught:
        load([row])
    assert "--map" not in str(caught.value)


NAMES = (
    "alpha",
    "Beta 2",
    "it's",
    "text_1",
    "text_2",
    "prompt",
    "question",
    "winner",
    "answer",
    "x,y",
    "k=v",
    "id",
    "response_a",
    "left",
    "right",
    "output",
    "model_a",
    "score",
    "category",
    "chosen",
    "a.b",
    "messages",
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
    ([1, 0], ["response_a", "response_b"]),
    ([True, False], ["response_a", "response_b"]),
    ([-2, 3, 0], ["response_a", "response_b", "tie"]),
    ([1, 2, 3], ["response_a", "response_b", "tie"]),
    ([0, 1, 0.5], ["response_b", "response_a", "tie"]),
    (["yes", "no"], ["response_a", "response_b"]),
    (["a", "b", "unsure"], ["response_a", "response_b", "tie"]),
    ([0.91, 0.13, 0.4], [None, None, None]),
    ([f"w{n}" for n in range(9)], [None] * 9),
)
def test_labels_are_mapped_as_the_message_says(labels: Sequence[object], expected: Sequence[str | None]) -> None:
    rows = [{"prompt": Q, "response_a": GOOD, "response_b": BAD, "label": label} for label in labels]
    assert [case.preferred for case in read_as_told(rows).cases] == list(expected)


def test_option_works_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (row, _) in enumerate(UNKNOWN):
        Path(f"{number}.json").write_text(json.dumps([row]))
    texts = list(itertools.chain.from_iterable(read_as_told(f"{n}.json").cases for n in range(len(UNKNOWN))))
    assert [case.responses[0].text for case in texts] == [GOOD] * len(UNKNOWN)
