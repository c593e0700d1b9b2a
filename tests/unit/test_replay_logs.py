"""Test stored grades of other tools as judges: logs of inspect_ai and results of promptfoo."""

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from builders import error_line
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import DataError
from distract.core.records import PASS_MARK, Case, Judgment, Response, Row, Side
from distract.data.datasets import load
from distract.data.tables import open_table
from distract.judging import published as replay
from distract.judging.published import PublishedRun, attach_labels, inspect_logs
from distract.judging.published.graded_responses import GradedResponse, assemble_runs, grade

DATA = Path(__file__).parents[1] / "data"
# Written by inspect_ai 0.3.285 (paths in its tracebacks are shortened) and by promptfoo 0.121.20.
INSPECT = DATA / "logs" / "inspect.eval"
PROMPTFOO = DATA / "logs" / "promptfoo.jsonl"

Verdicts = dict[tuple[str, str], list[str | None]]


def list_verdicts(runs: tuple[PublishedRun, ...]) -> Verdicts:
    """The verdicts by judge and protocol, or the reason why one is missing."""
    return {(run.judge, run.protocol): [verdict(row) for row in run.rows["stored"]] for run in runs}


def verdict(row: Row) -> str | None:
    return row.excluded or row.judgments[0].preferred or row.judgments[0].failure


def write_log(path: Path, *values: Any, scorer: str = "s", name: str = "", **more: Any) -> Path:
    """Write a log with one sample per value; a value of ``...`` is a missing score."""
    samples = [
        {
            "id": number,
            "epoch": 1,
            "input": f"Question {number}?",
            "target": "",
            "output": {"model": "m", "choices": [{}], "completion": f"Answer {number}.{name}"},
            "scores": {} if value is ... else {scorer: {"value": value, **more.get("score", {})}},
        }
        for number, value in enumerate(values)
    ]
    spec = {"task": "t", "scorers": [{"name": scorer, "options": more.get("options", {})}]}
    log = {"version": 2, "status": "success", "eval": spec, "plan": {}, "samples": samples}
    path.write_text(json.dumps(log, indent=2))
    return path


def problem(path: Path) -> str:
    return error_line(DataError, replay.load, str(path))


def test_log_of_inspect_ai_is_replayed() -> None:
    runs = replay.load(str(INSPECT))
    failed = "the sample failed"
    assert list_verdicts(runs) == {
        ("inspect_ai", "breaks"): ["a", f"no score: {failed}", "a", failed],
        ("inspect_ai", "keyed/fact"): ["a", "b", "b", failed],
        ("inspect_ai", "keyed/style"): ["a", "a", "a", failed],
        ("inspect_ai", "match"): ["a", "a", "b", failed],
        ("mockllm/grader", "model_graded_qa"): ["a", "no score: grader_failed", "b", failed],
        ("mockllm/grader-2", "model_graded_qa"): ["a", "a", "a", failed],
    }
    assert [run.notes for run in runs] == [
        (
            "passes 2 of 2 responses; no verdict on 1; 2 scores between 0 and 1",
            "left out: the scores of letters are 10 to 16 and not 0 to 1",
        ),
        ("passes 1 of 3 responses",),
        ("passes 3 of 3 responses; 3 scores between 0 and 1",),
        ("passes 2 of 3 responses",),
        ("passes 1 of 2 responses; no verdict on 1",),
        ("passes 3 of 3 responses",),
    ]
    prompts = {case.prompt for case in runs[0].cases.values()}
    assert prompts == {("Name a colour.",), ("Name a sea.",), ("Be brief.\n\nHi", "Name a river.")}


@each("path", INSPECT, PROMPTFOO)
def test_rows_are_responses_against_the_pass_mark(path: Path) -> None:
    for run in replay.load(str(path)):
        assert (run.rules, tuple(run.rows), run.ties, run.source) == (("stored",), ("stored",), False, str(path))
        assert run.sha256 == open_table(path).checksum()
        for row in run.rows["stored"]:
            assert (row.design, row.attack, row.b, row.label, row.shown) == ("pass", "none", Side(PASS_MARK), None, ())
            data = "seas" if path == INSPECT else path.name
            assert (row.judge, row.protocol, row.data) == (run.judge, run.protocol, data)
            assert len(row.judgments) == (row.excluded is None)
            for judgment in row.judgments:
                assert (judgment.failure is None) == (judgment.preferred in ("a", "b"))
                assert not judgment.scores or (judgment.scores[0] >= judgment.scores[1]) == (judgment.preferred == "a")
            if case := run.cases.get(row.case):
                assert row.cluster == case.cluster
                assert row.a.author in {response.author for response in case.responses}


def test_json_log_is_the_same(tmp_path: Path) -> None:
    table = open_table(INSPECT)
    log = {**table.header, "samples": [value for _, value in table.read()]}
    (tmp_path / "log.json").write_text(json.dumps(log, indent=2), encoding="utf-8")
    first, second = (
        [(run.judge, run.protocol, run.rows, run.cases, run.notes) for run in replay.load(str(path))]
        for path in (INSPECT, tmp_path / "log.json")
    )
    assert first == second
    # Both forms in one folder are the same grades.
    (tmp_path / "log.eval").write_bytes(INSPECT.read_bytes())
    both = replay.load(str(tmp_path))
    assert [(run.judge, run.protocol, run.rows, run.cases) for run in both] == [one[:4] for one in first]
    assert both[1].notes == ("passes 1 of 3 responses; left out: 4 repeated grades",)


GOOD_VALUES = (("C", 1.0), ("P", 0.5), ("Yes", 1.0), ("true", 1.0), ("0.5", 0.5), (True, 1.0), (1, 1.0), (0.7, 0.7))
BAD_VALUES = (("I", 0.0), ("N", 0.0), ("No", 0.0), ("FALSE", 0.0), ("0.49", 0.49), (False, 0.0), (0, 0.0), (0.25, 0.25))
VALUES: list[tuple[Any, str, float | None]] = [
    *((value, "a", score) for value, score in GOOD_VALUES),
    *((value, "b", score) for value, score in BAD_VALUES),
    *((value, "unreadable score", None) for value in ("c", "maybe", "inf")),
    *((value, "no score", None) for value in (math.nan, None, ...)),
]


def test_values_are_read_as_inspect_ai_reads_them(tmp_path: Path) -> None:
    (run,) = replay.load(str(write_log(tmp_path / "l.json", *[value for value, *_ in VALUES])))
    assert list_verdicts((run,)) == {("inspect_ai", "s"): [expected for _, expected, _ in VALUES]}
    scores = [row.judgments[0].scores for row in run.rows["stored"]]
    assert [pair and pair[0] for pair in scores] == [score for *_, score in VALUES]


@each(
    "values, reason",
    ([[1, 0], [0, 0]], "the scores of s are lists"),
    ([3, 7.5], "the scores of s are 3 to 7.5 and not 0 to 1"),
    ([-1, 1], "the scores of s are -1 to 1 and not 0 to 1"),
    (["red\x1b[2J", "blue"], "the scores of s are texts as 'red"),
    ([..., ...], "no scores; run `inspect score`"),
    ([], "no samples; evaluate with --log-samples"),
)
def test_log_without_verdicts_is_refused(tmp_path: Path, values: list[Any], reason: str) -> None:
    message = problem(write_log(tmp_path / "l.json", *values))
    assert "l.json: holds no verdicts: " in message
    assert reason in message
    # In a folder, it is a remark on the logs that have verdicts.
    write_log(tmp_path / "m.json", "C", scorer="other")
    (run,) = replay.load(str(tmp_path))
    assert run.protocol == "other"
    assert any(reason in note for note in run.notes)


@each(
    "more, judge",
    ({}, "inspect_ai"),
    ({"options": {"model": "lab/one"}}, "lab/one"),
    ({"options": {"model": {"model": "lab/one", "config": {}}}}, "lab/one"),
    ({"options": {"model": ["lab/one", "lab/two", "lab/one"]}}, "lab/one + lab/two"),
    ({"score": {"metadata": {"grading": [{"role": "user"}, {"role": "assistant", "model": "lab/g"}]}}}, "lab/g"),
    ({"score": {"metadata": {"grading": "well"}}}, "inspect_ai"),
)
def test_judge_is_the_model_that_grades(tmp_path: Path, more: dict[str, Any], judge: str) -> None:
    (run,) = replay.load(str(write_log(tmp_path / "l.json", "C", **more)))
    assert (run.judge, run.protocol, run.data) == (judge, "s", "t")


def test_another_response_of_an_author_has_its_own_name(tmp_path: Path) -> None:
    for name, values in (("", "CI"), ("", "IC"), (" Again.", "CC")):
        write_log(tmp_path / f"{len(list(tmp_path.iterdir()))}.json", *values, name=name)
    (run,) = replay.load(str(tmp_path))
    rows = {row.case: row.judgments[0].preferred for row in run.rows["stored"]}
    assert rows == {"item-0": "a", "item-1": "b", "item-0~2": "a", "item-1~2": "a"}
    assert run.notes == ("passes 3 of 4 responses; left out: 2 repeated grades",)
    assert run.cases["item-1~2"].responses[0].text == "Answer 1. Again."


def test_unknown_texts_keep_their_row(tmp_path: Path) -> None:
    path = write_log(tmp_path / "l.json", "C", "I")
    log = json.loads(path.read_text())
    log["samples"][0]["input"] = [{"role": "user", "content": [{"type": "image", "image": "data:image/png;base64,"}]}]
    path.write_text(json.dumps(log, indent=1))
    (run,) = replay.load(str(path))
    assert (list_verdicts((run,)), [*run.cases]) == ({("inspect_ai", "s"): ["a", "b"]}, ["item-1"])
    assert load(str(path)).left_out == {"a message with parts that are no text": 1}


@each(
    "content, message",
    (INSPECT.read_bytes()[:9000], "is a damaged ZIP archive; if it is a log of inspect_ai, `inspect log recover`"),
    (INSPECT.read_bytes().replace(b"(\xb5/\xfd", b"(\xb5/\xfc"), "header.json: damaged ("),
    (b"PK\x03\x04", "is a damaged ZIP archive"),
    (b"", "is empty"),
)
def test_damaged_archive_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "l.eval").write_bytes(content)
    assert message in problem(tmp_path / "l.eval")
    assert message in problem(tmp_path)
    with pytest.raises(DataError, match=r"l\.eval"):
        load(str(tmp_path / "l.eval"))


@each(
    "member, text, message",
    ("samples/1.json", b"{", "samples/1.json: not valid JSON"),
    ("samples/1.json", b"[]", "samples/1.json: expected an object"),
    ("samples/1.json", b"\xff", "samples/1.json: not valid JSON"),
    ("samples/1.json", b'{"id": 1, "epoch": 1, "input": "x", "target": "", "output": {}, "scores": [1]}', "'scores'"),
    ("header.json", b"[1]", "header.json: expected an object"),
)
def test_damaged_sample_is_located(tmp_path: Path, member: str, text: bytes, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "l.eval", "w") as archive:
        for name, content in {"header.json": b"{}", member: text}.items():
            archive.writestr(name, content)
    assert message in problem(tmp_path / "l.eval")


def labelled(passed: bool | None, prompt: str = "Question 0?", text: str = "Answer 0.", name: str = "item-0") -> Case:
    return Case(name, (prompt,), (Response("response", (text,)),), passed=passed)


@each(
    "case, label",
    (labelled(True, name="x"), "a"),
    (labelled(False, name="x"), "b"),
    (labelled(None, name="x"), None),
    (labelled(True, prompt="Question 0, put otherwise?", text="Answer  0.\n"), "a"),
    (labelled(True, prompt="Another?", name="x"), None),
    (labelled(True, text="Another answer."), None),
)
def test_labels_are_attached_by_texts_or_by_id_and_answer(tmp_path: Path, case: Case, label: str | None) -> None:
    (run,) = replay.load(str(write_log(tmp_path / "l.json", "C", "I")))
    joined = attach_labels(run, {"people.csv": [case]})
    first, second = joined.rows["stored"]
    assert (first.label, second.label) == (label, None)
    is_known = case.passed is None or label is not None
    assert (first.case, first.data) == (case.id, "people.csv") if is_known else first.case.startswith("texts-")
    assert (first.b, first.judgments) == (Side(PASS_MARK), run.rows["stored"][0].judgments)
    assert joined.notes[1:] == (f"{'1 row is' if is_known else '2 rows are'} in none of the data sets",)


def test_epochs_share_a_label(tmp_path: Path) -> None:
    path = write_log(tmp_path / "l.json", "C", "I")
    log = json.loads(path.read_text())
    log["samples"][1] |= {"id": 0, "epoch": 2}
    path.write_text(json.dumps(log, indent=1))
    (run,) = replay.load(str(path))
    assert [row.case for row in run.rows["stored"]] == ["item-0", "item-0-epoch-2"]
    joined = attach_labels(run, {"d": [labelled(True, prompt="Put otherwise?", text="Answer 1.")]})
    assert [row.label for row in joined.rows["stored"]] == [None, "a"]


def test_results_of_promptfoo_are_replayed(tmp_path: Path) -> None:
    runs = replay.load(str(PROMPTFOO))
    failed = "the grader failed"
    assert list_verdicts(runs) == {
        ("file://prov.js", "llm-rubric"): ["a", "a", "a", "a", failed, failed],
        ("file://prov.js", "llm-rubric 2"): [failed] * 6,
        ("promptfoo", "contains"): ["a", "a", "a", "a", "b", "b"],
        ("promptfoo", "length"): ["a"] * 6,
    }
    assert [note for run in runs for note in run.notes] == [
        "passes 4 of 4 responses; no verdict on 2",
        "not graded: 2 outputs (the output failed)",
        "passes 0 of 0 responses; no verdict on 6",
        "passes 4 of 6 responses",
        "passes 6 of 6 responses",
    ]
    graded = [(row.case, row.a.author) for row in runs[2].rows["stored"]]
    assert graded[:3] == [("item-0001", "plain"), ("item-0002", "plain"), ("item-0001", "down")]
    # A prompt of messages is read as a conversation, and the cases are those that --data reads.
    assert runs[0].cases["item-0002"].prompt == ("Be brief.\n\nWhich sea lies north of Poland?",)
    assert [*runs[0].cases.values()] == [*load(str(PROMPTFOO)).cases]
    results = [json.loads(line) for line in PROMPTFOO.read_text(encoding="utf-8").splitlines()]
    whole = {"version": 3, "timestamp": "2026", "results": results}
    log = {"evalId": "e", "results": whole, "config": {"description": "seas"}}
    (tmp_path / "r.json").write_text(json.dumps(log, indent=2), encoding="utf-8")
    assert list_verdicts(replay.load(str(tmp_path))) == list_verdicts(runs)
    assert {run.data for run in replay.load(str(tmp_path))} == {"seas"}


@each(
    "change, field",
    ({"prompt": {}}, "prompt.raw"),
    ({"gradingResult": {"componentResults": [1]}}, "gradingResult.componentResults[0]"),
    ({"gradingResult": {"componentResults": [{"assertion": {}}]}}, "gradingResult.componentResults[0].assertion.type"),
)
def test_fault_in_results_is_located(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    lines = PROMPTFOO.read_text(encoding="utf-8").splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), **change})
    (tmp_path / "r.jsonl").write_text("\n".join(lines), encoding="utf-8")
    message = problem(tmp_path / "r.jsonl")
    assert "r.jsonl:2: " in message
    assert repr(field) in message


def test_results_without_assertions_are_refused(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in PROMPTFOO.read_text(encoding="utf-8").splitlines()]
    text = "\n".join(json.dumps({**line, "gradingResult": None}) for line in lines)
    (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")
    assert "holds no grades to replay" in problem(tmp_path / "r.jsonl")


TEXTS = st.sampled_from(["x", "y"])


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.booleans()), min_size=1, max_size=12))
def test_no_grade_is_lost_or_counted_twice(entries: list[tuple[str, str, str, bool]]) -> None:
    responses = [
        GradedResponse(
            ("j", "p", "d"), "item-1", author, Case("item-1", (prompt,), (Response(author, (text,)),)), grade(is_passed)
        )
        for author, prompt, text, is_passed in entries
    ]
    (run,) = assemble_runs(responses, [open_table(PROMPTFOO)])
    rows = run.rows["stored"]
    first = {(author, prompt, text): is_passed for author, prompt, text, is_passed in reversed(entries)}
    answers = {}
    for row in rows:
        case = run.cases[row.case]
        (response,) = [one for one in case.responses if one.author == row.a.author]
        answers[row.a.author, case.prompt[0], response.text] = row.judgments[0].preferred == "a"
    assert (answers, len(rows)) == (first, len(first))


IS_LOG = {b'{"version": 2, "status": "error",\n "eval": {}': True, b'{"version": 2}': False, b"[]": False}


@each("content, is_log", *IS_LOG.items())
def test_module_reads_the_first_bytes_only(content: bytes, is_log: bool, tmp_path: Path) -> None:
    (tmp_path / "l.json").write_bytes(content)
    assert inspect_logs.can_read(tmp_path / "l.json") is is_log


def test_grade_keeps_its_score_and_words() -> None:
    judgment = grade(False, "Too short.\ud800", scores=(0.2, 0.5))
    assert judgment == Judgment("b", (0.0, 1.0, 0.0), (0.2, 0.5), read="text")
    assert [answer.reply.text for answer in judgment.answers] == ["Too short.?"]
    for words in (None, " ", 3):
        assert grade(None, words, failure="no score") == Judgment(None, failure="no score", read="text")
        assert not grade(None, words).answers


def test_words_of_graders_are_kept() -> None:
    words = {
        (run.protocol, answer.reply.text)
        for path in (INSPECT, PROMPTFOO)
        for run in replay.load(str(path))
        for row in run.rows["stored"]
        for judgment in row.judgments
        for answer in judgment.answers
    }
    assert ("model_graded_qa", "Grade not found in model output: I cannot tell.") in words
    assert ("model_graded_qa", "GRADE: C") in words
    assert ("llm-rubric 2", "the grader is down") in words
    assert not any(protocol in ("contains", "length") for protocol, _ in words)
