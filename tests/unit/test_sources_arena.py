"""Test files of votes: every form gives the same matches, and errors are located in one line."""

import csv
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import error_line
from hypothesis import HealthCheck, given, settings, strategies as st
from loops import each
from test_sources_judgments import prompt_id, write_table

from distract.core.errors import DataError, UsageError
from distract.data import json_stream
from distract.stats.ratings.matches import Matches, encode
from distract.studies.leaderboard.sources import MatchSource, read
from distract.studies.leaderboard.sources.tables import WORDS

HEADER = "model_a,model_b,winner\n"
Rows = Sequence[Mapping[str, Any]]


def vote(a: str = "x", b: str = "y", winner: object = "model_a", **more: object) -> dict[str, Any]:
    return {"model_a": a, "model_b": b, "winner": winner, **more}


FORMS = ("v.jsonl", "v.json", "v.csv", "v.parquet")


def read_source(path: Path) -> MatchSource:
    (source,) = read(str(path))
    assert source.format == "arena"
    return source


def cells(rows: Rows, tmp_path: Path, name: str = "v.jsonl") -> MatchSource:
    write_table(tmp_path / name, rows)
    return read_source(tmp_path / name)


def same(matches: Matches, expected: Matches) -> None:
    assert (matches.models, matches.prompts, matches.invalid) == (expected.models, expected.prompts, expected.invalid)
    for name in ("a", "b", "outcome", "cluster", "lengths"):
        left, right = getattr(matches, name), getattr(expected, name)
        assert (left is None) == (right is None), name
        assert left is None or (left.dtype == right.dtype and np.array_equal(left, right)), name


NAMES = ["gpt-4", "a, b", 'the "best"', "[red]模型[/red]", "🦙", "model_b", "x" * 200, "Y", "y"]
PAIRS = st.sampled_from([(a, b) for a in NAMES for b in NAMES if a != b and a != "model_b"])
VOTES = st.tuples(PAIRS, st.integers(0, 4), st.integers(0, 3), st.integers(0, 9), st.integers(0, 9))


@pytest.mark.parametrize("name", FORMS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(votes=st.lists(VOTES, min_size=1, max_size=12))
def test_every_form_matches_a_plain_loop(name: str, tmp_path: Path, votes: list[Any]) -> None:
    rows = [
        vote(first, second, ("model_a", "model_b", "tie", "", first)[place], question_id=prompt, length_a=a, length_b=b)
        for (first, second), place, prompt, a, b in votes
    ]
    message = [{"model_a": "a", "model_b": "b", "tie": "tie", row["model_a"]: "a"}.get(row["winner"]) for row in rows]
    valid = [(row, outcome) for row, outcome in zip(rows, message, strict=True) if outcome is not None]
    if not valid:
        write_table(tmp_path / name, rows)
        with pytest.raises(DataError, match=rf"nothing can be rated: no valid verdict \({len(rows)}\)"):
            read_source(tmp_path / name)
        return
    questions = [str(row["question_id"]) for row, _ in valid]
    expected = encode(
        [row["model_a"] for row, _ in valid],
        [row["model_b"] for row, _ in valid],
        [outcome for _, outcome in valid],
        [prompt_id(question) for question in questions] if len({*questions}) < len(questions) else None,
        [(row["length_a"], row["length_b"]) for row, _ in valid],
        len(rows) - len(valid),
    )
    matches = cells(rows, tmp_path, name)
    same(matches.matches, expected)
    assert matches.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    origin = (matches.name, matches.protocol, matches.rule, matches.attack, matches.left_out)
    assert origin == (name, None, None, "none", {})


@each("name", *FORMS)
@each("word", *([word for word in WORDS if word] + ["A", "B", "Tie", "TIE (bothbad)", "Error", "NaN"]))
def test_winners_match_the_table(word: str, name: str, tmp_path: Path) -> None:
    matches = cells([vote(winner="model_a"), vote(winner=word)], tmp_path, name).matches
    meaning = WORDS[word.casefold()]
    assert matches.invalid == (meaning is None)
    assert matches.outcome.tolist() == [0] + ([] if meaning is None else [("a", "b", "tie").index(meaning)])


def test_null_is_no_verdict_and_a_model_name_is_the_winner(tmp_path: Path) -> None:
    rows = [vote("x", "y", "y"), vote("x", "y", None), vote("y", "x", "y"), vote("a", "b", "a")]
    rows.append(vote("error", "x", "model_b"))
    for name in ("v.jsonl", "v.json", "v.parquet"):
        matches = cells(rows, tmp_path, name).matches
        assert (matches.invalid, matches.outcome.tolist()) == (1, [1, 0, 0, 1])


@each("name", *FORMS)
def test_kaggle_columns_are_read(name: str, tmp_path: Path) -> None:
    def row(*hot: int, text: object = "ok") -> dict[str, Any]:
        flags = dict(zip(("winner_model_a", "winner_model_b", "winner_tie"), hot, strict=True))
        names = {"id": hot[0], "model_a": "x", "model_b": "y", "prompt": "p"}
        return {**names, "response_a": text, "response_b": "o", **flags}

    matches = cells([row(1, 0, 0), row(0, 1, 0), row(0, 0, 1)], tmp_path, name).matches
    assert (matches.outcome.tolist(), matches.prompts) == ([0, 1, 2], (prompt_id("p"),))
    assert matches.lengths is not None
    assert matches.lengths.tolist() == [[2, 1]] * 3
    # In the published CSV a response is a JSON list of texts.
    if name == "v.csv":
        lists = [row(1, 0, 0, text=r'["a\n\u00fc", null]'), row(0, 1, 0, text="[none"), row(0, 1, 0, text='[["')]
        matches = cells(lists, tmp_path, name).matches
        assert matches.lengths is not None
        assert matches.lengths[:, 0].tolist() == [3, 5, 3]


@each(
    "columns, rows, prompts",
    (("question_id",), [(81,), (81,), (82,)], ["81", "81", "82"]),
    (("question_id",), [(81.0,), (81.0,), (82.0,)], ["81", "81", "82"]),
    (("prompt", "question_id"), [("p", 1), ("q", 2), ("p", 2)], ["1", "2", "2"]),
    (("prompt_id", "question_id"), [("u", 1), ("v", 1), ("u", 1)], ["u", "v", "u"]),
    (("prompt_id", "question_id"), [(None, 1), (None, 1), ("u", 2)], ["1", "1", "2"]),
    (("prompt",), [(["p", "q"],), (["p"],), (["p"],)], ["p\x1eq", "p", "p"]),
    (("instruction", "turn"), [("same", 1), ("same", 2), ("long " * 500, 1)], ["same", "same", "long " * 500]),
    (("question_id",), [("i",), ("j",), ("k",)], None),  # unique ids identify no prompt
    (("turn",), [(1,), (1,), (2,)], None),
)
def test_first_known_column_identifies_the_prompt(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]], prompts: list[str] | None, tmp_path: Path
) -> None:
    matches = cells([vote(**dict(zip(columns, row, strict=True))) for row in rows], tmp_path).matches
    clusters = None if matches.cluster is None else [matches.prompts[index] for index in matches.cluster]
    assert clusters == (None if prompts is None else [prompt_id(prompt) for prompt in prompts])


def make_conversation(user: str, *assistant: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": user}, *({"role": "assistant", "content": text} for text in assistant)]


@each("name", "v.jsonl", "v.json", "v.parquet")
def test_conversations_supply_prompt_and_lengths(name: str, tmp_path: Path) -> None:
    rows = [
        vote(conversation_a=make_conversation("hi", "1", "22"), conversation_b=make_conversation("hi", "")),
        vote(conversation_a=make_conversation("hi", "ü🦙"), conversation_b=make_conversation("hi", "333")),
        vote(conversation_a=make_conversation("ho", "1"), conversation_b=make_conversation("ho", "1")),
    ]
    matches = cells(rows, tmp_path, name).matches
    assert matches.prompts == (prompt_id("hi"), prompt_id("ho"))
    assert matches.lengths is not None
    assert matches.lengths.tolist() == [[3, 0], [2, 3], [1, 1]]


@each(
    "more",
    [{"length_a": 1, "length_b": 2}, {"length_a": None, "length_b": 2}],
    [{"length_a": 1}, {"length_a": 1}],
    [{"response_a": "", "response_b": ""}, {}],
    [{"response_a": "r", "response_b": "s"}, {"response_a": "r"}],
    [
        {"conversation_a": make_conversation("p", "r"), "conversation_b": make_conversation("p", "r")},
        {"conversation_a": make_conversation("p", None)},
    ],
    [{}, {"response_a": "r", "response_b": "s"}],
)
def test_some_rows_may_lack_lengths(more: list[dict[str, Any]], tmp_path: Path) -> None:
    assert cells([vote(**one) for one in more], tmp_path).matches.lengths is None


GOOD = json.dumps(vote(winner="tie"))
WRONG: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty; expected matches"),
    "blank": (" \n\n", "is empty; expected matches"),
    "header only": (HEADER, "holds no match, so that nothing can be rated"),
    "no rows": ("[]", "holds no match, so that nothing can be rated"),
    "missing column": ("model_a,winner\nx,tie\n", "field 'model_b': missing; found 'model_a', 'winner'"),
    "no winner": ("model_a,model_b\nx,y\n", "field 'winner': missing; found 'model_a', 'model_b', or winner_model_a"),
    "no CSV": ("some words", "field 'model_a': missing; found 'some words'"),
    "twice": ("model_a,model_b,winner,winner\nx,y,tie,tie\n", "v:1: duplicate column 'winner'"),
    "draw": (HEADER + "x,y,tie\nx,y,draw\n", "v:3: field 'winner': expected model_a, .*, found 'draw'"),
    "third": (HEADER + "x,y,z\n", "v:2: field 'winner': expected model_a, .*, found 'z'"),
    "self": (HEADER + "x,y,tie\nx,x,tie\n", "v:3: field 'model_b': 'x' is model_a too; a match needs two models"),
    "one": (HEADER + "x,x,\n", "v:2: field 'model_b': 'x' is model_a too"),
    "blank name": (HEADER + "x,,tie\n", "v:2: field 'model_b': is blank; expected text"),
    "nan": (HEADER + "NaN,y,tie\n", "v:2: field 'model_a': 'NaN' is a placeholder for a missing value"),
    "None": (HEADER + "x,None,tie\n", "v:2: field 'model_b': 'None' is a placeholder for a missing value"),
    "tie": (HEADER + "x,tie,tie\n", "v:2: field 'model_b': 'tie' is a verdict"),
    "escape": (HEADER + "x,\x1b[2J,tie\n", "v:2: field 'model_b': holds control characters"),
    "line": (HEADER + '"x\nz",y,tie\n', "v:2: field 'model_a': holds control characters"),
    "path": (HEADER + "x,../y,tie\n", "v:2: field 'model_b': looks like a path"),
    "long": (HEADER + f"x,{'y' * 201},tie\n", "v:2: field 'model_b': has 201 characters"),
    "slot": (HEADER + "b,y,b\n", "v:2: field 'winner': 'b' is both a model name and a reserved word"),
    "error": (HEADER + "error,y,error\n", "v:2: field 'winner': 'error' is both a model name"),
    "spaces": (HEADER + "x, y,tie\n", "v:2: field 'model_b': ' y' has leading or trailing spaces"),
    "late prompt": (f"question_id,{HEADER},x,y,tie\n1,x,y,tie\n", "v:3: .*: identifies the"),
    "more": (HEADER + "\nx,y,tie,,z\n", "v:3: has 5 cells, the header has 3"),
    "after lines": ('prompt,model_a,model_b,winner\n"1\n2\n",x,y,tie\np,x,y,draw\n', "v:5: field 'winner'"),
    "in lines": ('prompt,model_a,model_b,winner\n"1\n2\n",x,y,draw\n', "v:2: field 'winner'"),
    "quotes": (HEADER + 'x,"y" z,tie\n', "v:2: not valid CSV"),
    "all invalid": (HEADER + "x,y,\nx,y,error\n", r"nothing can be rated: no valid verdict \(2\)"),
    "prompt": (f"question_id,{HEADER}1,x,y,tie\n,x,y,tie\n", "v:3: .*: expected a prompt"),
    "length": ("length_a,length_b,model_a,model_b,winner\n1,-1,x,y,tie\n", "v:2: field 'length_b': expected a number"),
    "words": ("length_a,length_b,model_a,model_b,winner\n1,few,x,y,tie\n", "v:2: field 'length_b': .* found 'few'"),
    "huge": ("length_a,length_b,model_a,model_b,winner\n1,1e10,x,y,tie\n", "v:2: field 'length_b': .* found '1e10'"),
    "hot": ("model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,1,0\n", "v:2: .* found it in 2"),
    "cold": ("model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,0,0,0\n", "v:2: .* found it in 0"),
    "warm": ("model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,.5,.5,0\n", "v:2: .* found '.5'"),
    "null name": (GOOD.replace('"x"', "null"), "v:1: field 'model_a': expected text, found"),
    "NaN": (GOOD.replace('"x"', "NaN"), "v:1: field 'model_a': expected text, found null"),
    "number": (GOOD.replace('"x"', "1"), "v:1: field 'model_a': expected text, found a"),
    "list": (GOOD.replace('"x"', '["x"]'), "v:1: field 'model_a': expected text, found a"),
    "true": (GOOD.replace('"tie"', "true"), "v:1: field 'winner': found true or false; expected"),
    "absent": (f'{GOOD}\n\n{{"model_a": "x", "model_b": "y"}}', "v:3: field 'winner': missing; expected model_a"),
    "no model": (f'{GOOD}\n{{"model_a": "x", "winner": "tie"}}', "v:2: field 'model_b': missing; expected the name"),
    "open array": ('[{"model_a": "x", "model_b": "y", "winner": "tie"}\n', "v:2: expected ',' or ']'"),
    "more text": ('[{"model_a": "x", "model_b": "y", "winner": "tie"}]\n!', "v:2: unexpected text after the end"),
    "array item": (f"[{GOOD},\n\n7]", "v:3: expected an object"),
    "array line": (f'[{GOOD},\n\n{{"model_a": "x",\n"model_b": "y", "winner": "?"}}]', "v:3: field 'winner'"),
}


@each("key", *WRONG)
def test_malformed_votes_are_located_in_one_line(key: str, tmp_path: Path) -> None:
    text, expected = WRONG[key]
    (tmp_path / "v").write_text(text, encoding="utf-8", newline="")
    assert re.search(expected, error_line(DataError, read, str(tmp_path / "v")))


ODD: dict[str, bytes] = {
    "mark": b"\xef\xbb\xbfmodel_a,model_b,winner\nx,y,tie\n",
    "CRLF": b"model_a,model_b,winner\r\nx,y,tie\r\n",
    "no end": b"model_a,model_b,winner\nx,y,tie",
    "blank lines": b"\n\nmodel_a,model_b,winner\n\nx,y,tie\n\n",
    "lines": b'\xef\xbb\xbf{"model_a": "x", "model_b": "y", "winner": "tie"}\r\n\r\n',
    "array": b'\xef\xbb\xbf\n[\r\n{"model_a": "x", "model_b": "y", "winner": "tie"}\r\n]\r\n',
    "separator": '{"model_a": "x", "model_b": "y", "winner": "tie", "note": "\u2028\u0085"}'.encode(),
    "order": b'prompt,winner,model_b,model_a\n"a ""b"",\r\nc",tie,y,x\n',
}


@each("key", *ODD)
def test_odd_files_are_read(key: str, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(ODD[key])
    matches = read_source(tmp_path / "v").matches
    assert (matches.models, [*matches.a], [*matches.b], [*matches.outcome]) == (("x", "y"), [0], [1], [2])


@each(
    "raw",
    b"model_a,model_b,winner\nx,y,tie\nx,\xff,tie\n",
    b'{"model_a": "x", "model_b": "y", "winner": "tie"}\n\n{"model_a": "\xff"}',
    b'[{"model_a": "x", "model_b": "y", "winner": "tie"},\n\n{"model_a": "\xff"}]',
)
def test_undecodable_bytes_name_their_line(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(raw)
    with pytest.raises(DataError, match=r"v:3: not UTF-8; convert the file"):
        read(str(tmp_path / "v"))


def test_long_cell_is_read_and_the_csv_limit_restored(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    matches = cells([vote(prompt="p" * 200_000), vote(prompt="p" * 200_000)], tmp_path, "v.csv").matches
    assert (matches.prompts, csv.field_size_limit()) == ((prompt_id("p" * 200_000),), before)


def read_array(path: Path) -> list[json_stream.Object]:
    with path.open("rb") as file:
        return list(json_stream.stream_array(file, str(path)))


@each("chunk", 1, 2, 7, 64)
def test_array_is_the_same_however_it_is_read(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    rows = [{"n": n, "text": 'ü🦙 "]},{[ \\', "more": [1.5, None, {"x": True}]} for n in range(5)]
    for indent in (None, 2):
        text = json.dumps(rows, indent=indent, ensure_ascii=indent is None)
        (tmp_path / "v").write_text(text, encoding="utf-8")
        result = read_array(tmp_path / "v")
        assert [value for _, value in result] == rows
        begins = [number for number, line in enumerate(text.split("\n"), 1) if line == "  {"]
        assert [line for line, _ in result] == (begins if indent else [1] * 5)
    (tmp_path / "v").write_bytes(b'[{"a": 1},\n{"b": "\xff"}]')
    with pytest.raises(DataError, match=r"v:2: not UTF-8"):
        read_array(tmp_path / "v")
    (tmp_path / "v").write_bytes(b'[{"a": 1},\n{"b": 1,\n  c}]' + b" " * 100)
    with pytest.raises(DataError, match=r"v:3: not valid JSON \(Expecting property name"):
        read_array(tmp_path / "v")


def test_parquet_errors_name_the_row(tmp_path: Path) -> None:
    library = pytest.importorskip("pyarrow")
    path = tmp_path / "v.parquet"
    for rows, message in (
        ([vote(), vote(winner="draw")], r"v.parquet:2: field 'winner': .*found 'draw'"),
        ([vote(b=None)], r"v.parquet:1: field 'model_b': expected text, found null"),  # type: ignore[arg-type]
        ([vote(winner=float("nan")), vote(winner=1.0)], r"v.parquet:2: field 'winner': found the number 1.0"),
        ([{"model_a": "x", "winner": "tie"}], r"field 'model_b': missing; found 'model_a', 'winner'"),
    ):
        write_table(path, rows)
        with pytest.raises(DataError, match=message):
            read(str(path))
    for raw in (b"", b"PAR1 and no more", b"model_a,model_b,winner\nx,y,tie\n"):
        path.write_bytes(raw)
        with pytest.raises(DataError, match=r"is not a readable Parquet file|is empty"):
            read(f"arena:{path}")
    broken = tmp_path / "damaged"
    library.parquet.write_table(library.table({"model_a": [b"\xff"], "model_b": ["y"], "winner": ["tie"]}), broken)
    with pytest.raises(DataError, match=r"damaged:1: field 'model_a': expected text, found bytes"):
        read(str(broken))
    whole = broken.read_bytes()
    broken.write_bytes(whole[:4] + bytes(36) + whole[40:])
    with pytest.raises(DataError, match="damaged"):
        read(str(broken))


def test_missing_parquet_library_names_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(tmp_path / "v.parquet", [vote()])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        UsageError, match=r'needs pyarrow, which is not installed: pip install -c constraints.txt "\.\[parquet\]"'
    ):
        read(str(tmp_path / "v.parquet"))


def test_repeated_votes_count_repeatedly(tmp_path: Path) -> None:
    assert len(cells([vote(), vote(), vote("y", "x")], tmp_path).matches) == 3


@each("name", *FORMS)
def test_lookalike_names_are_two_models(name: str, tmp_path: Path) -> None:
    assert len(cells([vote("GPT-4", "gpt-4"), vote("\u00e9", "e\u0301")], tmp_path, name).matches.models) == 4


def test_unused_columns_may_hold_anything(tmp_path: Path) -> None:
    parquet, library = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = library.Table.from_pylist([vote()])
    odd: dict[str, tuple[int, Any]] = {"when": (2**40, library.timestamp("s")), "long": (2**62, library.duration("s"))}
    odd["day"] = (2**30, library.date32())
    for name, (value, kind) in odd.items():
        table = table.append_column(name, library.array([value], kind))
    parquet.write_table(table, tmp_path / "v.parquet")
    assert len(read_source(tmp_path / "v.parquet").matches) == 1
    twice = library.Table.from_arrays([library.array(["x"])] * 2, names=["winner", "winner"])
    parquet.write_table(twice, tmp_path / "w.parquet")
    with pytest.raises(DataError, match="duplicate column 'winner'"):
        read(str(tmp_path / "w.parquet"))
