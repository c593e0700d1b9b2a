"""Test discovery of published runs and own run folders, and errors in their files."""

import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from builders import damage_file, error_line, row, run_parameters, verdict
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import DataError, DistractError, UsageError
from distract.core.recorder import Recorder
from distract.core.records import Row
from distract.judging import published as replay

DATA = Path(__file__).parents[1] / "data" / "replay"
PARAMETERS = run_parameters(name="colours", protocols={"pairwise": [], "absolute": ["score", "rating"], "unused": []})


def run(path: Path, rows: list[Row], finish: bool = True) -> Path:
    with Recorder(path, PARAMETERS) as recorder:
        recorder.add(rows, [])
        if finish:
            recorder.finish({"results": []}, {})
    return path


def test_folder_gives_all_its_runs_in_order() -> None:
    runs = replay.load(str(DATA))
    assert [(one.judge, one.protocol) for one in runs] == [
        ("gpt-x", "pair"),
        ("lab/judge-1", "arena_hard"),
        ("reward-1", "reward_model"),
        ("judge-1", "Rating"),
        ("judge-1", "Reference"),
        ("judge-7B", "pairwise"),
        ("gpt-4", "pairwise_chateval.pairwise_chateval.round_1"),
        ("gpt-4", "protocol_vote.majority_vote"),
        ("llama-3.1-8b", "base_pairwise.pairwise_vanilla"),
    ]
    assert runs == replay.load(str(DATA))
    assert len({one.sha256 for one in runs}) == len(runs), "each is of files of its own"


def test_folder_is_recognised_from_within(monkeypatch: pytest.MonkeyPatch) -> None:
    there = DATA / "llmbar" / "Colours" / "evaluators"
    monkeypatch.chdir(there / "judge-1")
    for path, source in ((".", "Rating/result.json"), ("..", "../judge-1/Rating/result.json")):
        runs = replay.load(path)
        assert [one.protocol for one in runs] == ["Rating", "Reference"]
        assert ({(one.judge, one.data) for one in runs}, runs[0].source) == ({("judge-1", "Colours")}, source)


def test_files_of_no_format_are_skipped_unread(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"accuracy": 1}', encoding="utf-8")
    (tmp_path / "answers.jsonl").write_text('{"question_id": 1, "choices": []}\nnot JSON at all\n', encoding="utf-8")
    (tmp_path / "list.jsonl").write_text("[1]\n", encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("\n\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_bytes(b"\xff\xfe")
    hidden = tmp_path / ".cache"
    hidden.mkdir()
    (hidden / "bad.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds nothing that can be replayed \(LLMBar's result.json; .* run folders\)"):
        replay.load(str(tmp_path))
    (tmp_path / "z").symlink_to(DATA / "fastchat")
    name = "fastchat/colours/model_judgment/gpt-x_pair.jsonl"
    (tmp_path / "pair.jsonl").write_bytes((DATA / name).read_bytes())
    runs = replay.load(str(tmp_path))
    assert [(one.data, one.source) for one in runs] == [("pair.jsonl", str(tmp_path / "pair.jsonl"))]


def test_run_folder_gives_its_comparisons_of_authors(tmp_path: Path) -> None:
    rows = [
        row("c1", [verdict("a"), verdict(None)]),
        row("c2", [verdict("a"), verdict("b")], attack="f", target="b"),
        replace(row("c3", [verdict("tie")], design="people", protocol="absolute"), label="a", data="other"),
        row("c4", [verdict("a")], design="fixed"),
        row("c5", [], excluded="fewer than 2 responses"),
    ]
    second, first = replay.load(str(run(tmp_path / "deep" / "r", rows).parent))
    assert first.rows == {"": tuple(replace(one, design="people", data="colours") for one in (rows[0], rows[4]))}
    assert second.rows == {"": (rows[2],)}
    assert (first.judge, first.protocol, first.data, first.rules, first.ties) == ("j", "pairwise", "colours", (), False)
    assert (second.protocol, second.rules, second.ties) == ("absolute", ("score", "rating"), True)
    assert first.source == str(tmp_path / "deep" / "r")
    assert (first.convention, first.statistics, first.calls, first.cases) == ("", {}, None, {})


def test_search_skips_run_folders_that_cannot_be_replayed(tmp_path: Path) -> None:
    run(tmp_path / "b", [row("c1", [verdict("a")])], finish=False)
    with pytest.raises(UsageError, match="b: the run is unfinished"):
        replay.load(str(tmp_path))
    run(tmp_path / "c", [row("c1", [verdict("a")], design="fixed")])
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "run.json").write_text('{"somebody": "else"}', encoding="utf-8")
    damage_file(run(tmp_path / "e", [row("c1", [verdict("a")])]) / "rows.jsonl", "cut")
    # Without a readable run, the first reason is reported.
    with pytest.raises(UsageError, match="b: the run is unfinished"):
        replay.load(str(tmp_path))
    whole = replay.load(str(run(tmp_path / "a", [row("c1", [verdict("a")])])))
    (tmp_path / "z.jsonl").write_bytes((DATA / FASTCHAT).read_bytes())
    first, second = replay.load(str(tmp_path))
    assert (replace(first, notes=()),) == whole
    assert [note.partition(": ")[0] for note in first.notes] == ["passed over"] * 4
    for note, message in zip(first.notes, ("b: the run is unfin", "c: holds no comp", "d", "e: "), strict=True):
        assert f"{tmp_path}/{message}" in note
        assert note.isprintable()
    assert not any("passed over" in note for note in second.notes)
    # A folder named explicitly is not skipped.
    for name, kind, flaw in (
        ("b", UsageError, "b: the run is unfinished; the command that began it resumes it"),
        ("c", DataError, "holds no comparison of two authors"),
        ("d", DistractError, "d"),
        ("e", UsageError, r"rows\.jsonl does not match its checksum"),
    ):
        with pytest.raises(kind, match=flaw):
            replay.load(str(tmp_path / name))


def test_damaged_judgment_file_is_not_skipped(tmp_path: Path) -> None:
    run(tmp_path / "a", [row("c1", [verdict("a")])])
    (tmp_path / "z.jsonl").write_text((DATA / FASTCHAT).read_text(encoding="utf-8") + "{\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"z\.jsonl:5"):
        replay.load(str(tmp_path))


@each(
    "path, names",
    ("Set/evaluators/judge/CoT/result.json", ("judge", "CoT", "Set")),
    ("Set/judge/CoT/result.json", ("judge", "CoT", "Set")),
    ("evaluators/Set/judge/CoT/result.json", ("judge", "CoT", "Set")),
    ("Set/evaluators/deeper/judge/CoT/result.json", ("judge", "CoT", "deeper")),
    ("Set/evaluators/evaluators/CoT/result.json", ("evaluators", "CoT", "Set")),
    ("Set/evaluators/judge/CoT/other.json", ("CoT", "replay", "other.json")),
)
def test_llmbar_names_come_from_the_last_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, names: tuple[str, str, str]
) -> None:
    there = tmp_path / path
    there.parent.mkdir(parents=True)
    there.write_bytes((DATA / LLMBAR).read_bytes())
    # The working directory does not matter.
    monkeypatch.chdir(there.parent)
    for folder in (str(there), there.name):
        (runs,) = replay.load(folder)
        assert (runs.judge, runs.protocol, runs.data) == names


def test_llmbar_data_set_is_no_run(tmp_path: Path) -> None:
    rows = json.loads((DATA / LLMBAR).read_text(encoding="utf-8"))
    for one in rows:
        del one["results"]
        one["input"] += ' "results" "swap = False"'
    for name in ("dataset.json", "result.json"):
        (tmp_path / name).write_text(json.dumps(rows), encoding="utf-8")
        with pytest.raises(DataError, match=f"{name}: in no format that can be replayed"):
            replay.load(str(tmp_path / name))
    with pytest.raises(DataError, match="holds nothing that can be replayed"):
        replay.load(str(tmp_path))


def test_llmbar_run_with_a_long_first_row_is_recognised(tmp_path: Path) -> None:
    rows = json.loads((DATA / LLMBAR).read_text(encoding="utf-8"))
    rows[0]["output_2"] = "long " * 40_000
    (tmp_path / "result.json").write_text(json.dumps(rows), encoding="utf-8")
    assert [len(one.rows["stored"]) for one in replay.load(str(tmp_path))] == [len(rows)]


def test_other_files_are_no_judgments(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, text, message in (
        ("nowhere", None, "nowhere: no such file or folder"),
        ("empty", "", "empty: is empty"),
        ("text", "Hello.", "text: in no format that can be replayed"),
        ("cut.jsonl", '\n{"question_id": 1, "win', r"cut.jsonl:2: does not begin with a JSON object on one line"),
        ("pipe.jsonl", None, r"pipe\.jsonl: is not a regular file"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            replay.load(str(tmp_path / name))


FASTCHAT = "fastchat/colours/model_judgment/gpt-x_pair.jsonl"
PAIRS = "pairs/judgments/judge-7B/pairwise/bee_vs_ant.jsonl"
JUDGEBENCH = "judgebench/dataset=judgebench,response_model=writer-1,judge_name=arena_hard,judge_model=lab_judge-1.jsonl"
REIFE = "reife/colours.gpt-4.protocol_vote.majority_vote.jsonl"
LLMBAR = "llmbar/Colours/evaluators/judge-1/Rating/result.json"


@each(
    "name, old, new, message",
    (LLMBAR, '"winner": "2"', '"winner": "tie"', r'winner.: expected one of "1", "2", null, found "tie"'),
    (LLMBAR, '"winner": "2"', '"winner": true', r'winner.: expected one of "1", "2", null, found true'),
    (LLMBAR, '"winner": "2"', '"won": "2"', r"json:2: field 'results\[0\].swap = False.winner': missing"),
    (LLMBAR, '"swap = True"', '"swap"', r"results\[0\].swap = True': expected an object, found null"),
    (LLMBAR, '"results"', '"result"', "field 'results': expected a list of stages"),
    (LLMBAR, '"label": 1', '"label": 3', "field 'label': expected 1 or 2, found 3"),
    (LLMBAR, '"winner": "2"', '"winner": "2", "completion": "a"', "completion.: expected a list of the text"),
    (PAIRS, '"winner_ba": "A"', '"winner_ba": "bee"', r":1: field 'winner_ba': expected one of .* found \"bee\""),
    (PAIRS, '"winner_ba": "A"', '"winner_bb": "A"', "in no format that can be replayed"),
    (PAIRS, '"model_b": "ant"', '"model_b": "bee"', "field 'model_b': is the same as 'model_a'; expected two models"),
    (PAIRS, '"model_b": "ant"', '"model_b": "../ant"', "field 'model_b': looks like a path to another folder"),
    (PAIRS, '"model_b": "ant"', '"model_b": "a\\u001b[2Jnt"', "field 'model_b': holds control characters"),
    (PAIRS, '"question_id": 1', '"question_id": [1]', "field 'question_id': expected text, found a list"),
    (PAIRS, '"turn": 2', '"turn": 3', "field 'turn': expected one of 1, 2, found 3"),
    (PAIRS, '"judgment_ba": "', '"judgment_ba": 1, "was": "', "field 'judgment_ba': expected text"),
    (PAIRS, "inconsistent", "\udcff", "bee_vs_ant.jsonl:2: not UTF-8"),
    (FASTCHAT, '"g2_winner": "tie"', '"g2_winner": "A"', r"pair.jsonl:2: field 'g2_winner': expected one of"),
    (FASTCHAT, '["gpt-x", "pair-v2"]', '"gpt-x"', ":1: field 'judge': expected a list of the judge's model"),
    (FASTCHAT, '["gpt-x", "pair-v2"]', '["gpt-x\\n", "pair-v2"]', "field 'judge': holds control characters"),
    (FASTCHAT, '"question_id": 2', '"question": 2', ":3: field 'question_id': missing"),
    (FASTCHAT, '"turn": 2, "tstamp"', '"turn": 2, "turn"', ":2: not valid JSON .duplicate field 'turn'"),
    (JUDGEBENCH, '"label": "B>A"', '"label": "B"', r'field .label.: expected one of "A>B", "B>A", "A=B", found "B"'),
    (JUDGEBENCH, '"decision": "A>B"', '"decision": 1', r"field 'judgments\[0\].decision': expected text"),
    (JUDGEBENCH, '"judgments": [', '"judgments": [null, ', "expected a list of one judgment, or of two"),
    (JUDGEBENCH, '"judge_model": "lab/judge-1"', '"judge_model": "other"', None),
    (JUDGEBENCH, '"lab/judge-1"', '"/etc"', "judge_model': looks like a path to another folder"),
    (JUDGEBENCH, '"pair_id": "pair-2"', '"pair_id": ""', "field 'pair_id': is blank"),
    (REIFE, '"winners": [1, 1, 2]', '"winners": [1, 1, 3]', "field 'result.winners': expected a list of 1 and 2"),
    (REIFE, '"winners": [1, 1, 2]', '"fails": 0', None),
    (REIFE, '"winner": 1, "tie": 0, "fail": false, "winners"', '"winner": 0, "w"', "result.winner.: expected one of"),
    (REIFE, '"fail": false, "winners"', '"fail": "no", "w"', "result.fail': expected true or false"),
    (REIFE, '"output_2": "Yes."', '"output_2": null', "field 'output_2': expected text, found null"),
)
def test_wrong_rows_name_file_line_and_field(
    tmp_path: Path, name: str, old: str, new: str, message: str | None
) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / Path(name).name
    path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    if message is None:
        replay.load(str(path))
    else:
        error = error_line(DataError, replay.load, str(path))
        assert re.search(message, error)
        assert error.startswith(f"{path}"), "the file is named"


def test_two_judges_in_one_file_must_be_separated_by_hand(tmp_path: Path) -> None:
    text = (DATA / JUDGEBENCH).read_text(encoding="utf-8")
    path = tmp_path / "two.jsonl"
    path.write_text(text.replace("lab/judge-1", "other", 1), encoding="utf-8")
    with pytest.raises(DataError, match="field 'judge_model': has two values, lab/judge-1 and other; split the file"):
        replay.load(str(path))


@each("judge", "a\x1b[31m", "two\nlines", "x" * 201, "[bold]<b>$a{x}")
def test_hostile_folder_names_are_refused_or_kept(judge: str, tmp_path: Path) -> None:
    there = tmp_path / "evaluators" / judge / "CoT"
    there.mkdir(parents=True)
    (there / "result.json").write_bytes((DATA / LLMBAR).read_bytes())
    if judge.startswith("["):
        assert replay.load(str(there))[0].judge == judge
    else:
        message = error_line(DataError, replay.load, str(there / "result.json"))
        assert ("field 'folder name'" in message, message.isprintable()) == (True, True)


def test_broken_statistics_are_reported(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes((DATA / LLMBAR).read_bytes())
    for text in ("{", "[]"):
        (tmp_path / "statistics.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"statistics\.json: .*; repair or remove the file"):
            replay.load(str(tmp_path))


WINNERS = st.sampled_from(["A", "B", "tie", "error", None])


@given(judged=st.lists(st.tuples(st.booleans(), WINNERS, WINNERS), min_size=1, max_size=6), texts=st.booleans())
def test_slot_letters_map_back_as_in_a_naive_reader(
    judged: list[tuple[bool, str | None, str | None]], texts: bool
) -> None:
    def answer(letter: str | None) -> str | None:
        return f"[[{'C' if letter == 'tie' else letter}]]" if texts and letter in ("A", "B", "tie") else None

    rows, expected = [], []
    for number, (turned, ab, ba) in enumerate(judged):
        first, second = ("y", "x") if turned else ("x", "y")
        row = {"question_id": number, "model_a": first, "model_b": second, "winner_ab": ab, "winner_ba": ba}
        rows.append({**row, "judgment_ab": answer(ab), "judgment_ba": answer(ba)})
        names = [
            {"A": first, "B": second, "tie": "tie"}.get(ab or ""),
            {"A": second, "B": first, "tie": "tie"}.get(ba or ""),
        ]
        expected.append(names[::-1] if turned else names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        (published,) = replay.load(str(path))
    for result in published.rows.values():
        message = [[{"a": "x", "b": "y", None: None}.get(j.preferred, "tie") for j in one.judgments] for one in result]
        assert message == expected
    assert texts <= ("parsed" in published.rows)


@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda text: ('{"question_id": ' + text).encode()))
def test_no_bytes_cause_a_traceback(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("result.json", "x.jsonl"):
            (Path(folder) / name).write_bytes(raw)
            with pytest.raises(DataError):
                replay.load(str(Path(folder) / name))
        with pytest.raises(DataError):
            replay.load(folder)
