"""Test the judge's own words beside a run: which are kept, in what form, and that they change nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import finish, row, select, set_up, verdict
from command_result import Run
from loopback import FakeServer, ReceivedRequest, completion
from loops import each
from test_judge import texts
from test_leaderboard_design import data

import distract
from distract.core.job import FinishedRun
from distract.core.recorder import MAX_TEXT, Recorder
from distract.core.records import Answer, Judgment, KeepText, ParseFailure, Reply, Request, Side
from distract.core.runs import load
from distract.models.scripted import ScriptedBackend
from distract.studies import execution
from distract.studies.attack import session
from distract.studies.listener import Listener

KINDS: tuple[KeepText, ...] = ("failures", "all", "none")
SAME = ("run.json", "cases.jsonl", "rows.jsonl", "rewrites.jsonl", "summary.json")


def say(request: Request) -> Reply:
    """A judge in words: it analyses, mumbles about some cases, and prefers the first response otherwise."""
    outcomes = dict(request.slots.outcomes) if request.slots else {}
    if not outcomes:
        return Reply(f"An analysis. {request.key[:8]}")
    return Reply("Hm." if int(request.key[0], 16) < 8 else f"So: {outcomes.get('first', '4')}")


def attack_job(folder: Path, keep_text: KeepText, backend: ScriptedBackend, **more: Any) -> Any:
    selected = select(data="tweakset", generator="rules", attacks=("sycophancy",), limit=4, seed=0)
    protocols = more.pop("protocols", ("absolute", "cot", "prepair"))
    return session.prepare(selected, set_up("j", backend, folder, protocols, keep_text=keep_text, **more))


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., FinishedRun[Any]]:
    def judge(
        name: str, keep_text: KeepText, answer: Callable[[Request], Reply] = say, **more: Any
    ) -> FinishedRun[Any]:
        return finish(attack_job(tmp_path / name, keep_text, ScriptedBackend(answer), **more), tmp_path / "store")

    return judge


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in SAME]


def test_option_changes_the_texts_alone(tmp_path: Path, judged: Callable[..., FinishedRun[Any]]) -> None:
    runs = {kind: judged(kind, kind).run for kind in KINDS}
    assert contents(tmp_path / "failures") == contents(tmp_path / "all") == contents(tmp_path / "none")
    kept = {kind: texts(tmp_path / kind) for kind in KINDS}
    assert kept["none"] == []
    assert kept["failures"] == [one for one in kept["all"] if one["failure"]] != []
    marks = [(one["key"], one["failure"] is None) for one in kept["all"]]
    assert len({*marks}) == len(marks) < 1.2 * len({key for key, _ in marks})
    assert {key for key, _ in marks} == {key for row in runs["all"].rows for key in row.keys}
    for one in kept["all"]:
        (result,) = (
            row
            for row in runs["all"].rows
            if [getattr(row, name) for name in ("case", "data", "design", "protocol", "attack", "target")]
            == [one[name] for name in ("case", "data", "design", "protocol", "attack", "target")]
            and (row.a, row.b) == (Side(**one["a"]), Side(**one["b"]))
        )
        judgment = result.judgments[one["order"]]
        assert (judgment.preferred, judgment.scores and [*judgment.scores]) == (one["preferred"], one["scores"])
        assert one["key"] in result.keys
        assert one["failure"] in (None, judgment.failure)
    analyses = [one for one in kept["all"] if one["protocol"] == "prepair" and one["text"].startswith("An analysis.")]
    assert analyses
    assert all(one["text"].endswith(one["key"][:8]) for one in analyses)
    assert load(tmp_path / "all").is_copy_of(load(tmp_path / "all"))


def test_killed_run_ends_with_the_same_texts(tmp_path: Path, judged: Callable[..., FinishedRun[Any]]) -> None:
    judged("whole", "all")
    calls = list[Request]()

    def breaks(request: Request) -> Reply:
        calls.append(request)
        if len(calls) > 20:
            raise distract.BackendError("the model broke")
        return say(request)

    place = tmp_path / "other"
    for answer in (breaks, say):
        job = attack_job(tmp_path / "cut", "all", ScriptedBackend(answer))
        if answer is breaks:
            with pytest.raises(distract.BackendError):
                finish(job, place)
            assert not (tmp_path / "cut" / "manifest.json").exists()
        else:
            finish(job, place)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert (tmp_path / "cut" / "texts.jsonl").read_bytes() == (tmp_path / "whole" / "texts.jsonl").read_bytes()


def fail(request: Request) -> Reply:
    raise AssertionError("a call was made")


def repeat(folder: Path, keep_text: KeepText, store: Path) -> list[str]:
    """Ask for a run that is there; returns the notes."""
    listener = Listener()
    execution.run_job(attack_job(folder, keep_text, ScriptedBackend(fail)), store, listener)
    return [note.split(": ")[-1] for note in listener.notes]


COMPLETE = "no call is made"


def test_finished_run_gains_and_loses_texts_without_a_call(
    tmp_path: Path, judged: Callable[..., FinishedRun[Any]]
) -> None:
    whole, store = judged("whole", "all").run.path, tmp_path / "store"
    folder = judged("r", "failures").run.path
    failures, rest = (folder / "texts.jsonl").read_bytes(), contents(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    everything = (whole / "texts.jsonl").read_bytes()
    steps: list[tuple[KeepText, bytes]] = [
        ("failures", failures),
        ("all", everything),
        ("all", everything),
        ("failures", everything),  # the default takes nothing away
        ("none", b""),
        ("failures", failures),
    ]
    for keep_text, expected in steps:
        assert repeat(folder, keep_text, store) == [COMPLETE]
        assert (folder / "texts.jsonl").read_bytes() == expected
        assert contents(folder) == rest
        assert load(folder).flaw is None
        assert load(folder).is_copy_of(load(whole)) is False
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    assert {path.name for path in folder.iterdir()} == {*SAME, "texts.jsonl", "manifest.json"}


def test_missing_replies_leave_the_run_as_it_is(tmp_path: Path, judged: Callable[..., FinishedRun[Any]]) -> None:
    folder = judged("r", "failures").run.path
    before = (folder / "texts.jsonl").read_bytes()
    notes = repeat(folder, "all", tmp_path / "empty")
    assert notes[0] == COMPLETE
    assert notes[1:] == ["no text is added to it"]
    assert (folder / "texts.jsonl").read_bytes() == before
    assert load(folder).flaw is None
    (folder / "texts.jsonl").unlink()
    assert repeat(folder, "all", tmp_path / "store") == [COMPLETE]
    assert len(texts(folder)) > len(before.splitlines())


@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00{", b'{"text": 1}\n[]\nnull\n' + b"[" * 10**5])
def test_damaged_texts_leave_the_run_usable(
    tmp_path: Path, judged: Callable[..., FinishedRun[Any]], run: Run, damage: bytes | None
) -> None:
    folder = judged("r", "all").run.path
    (folder / "texts.jsonl").unlink()
    if damage is not None:
        (folder / "texts.jsonl").write_bytes(damage)
    assert load(folder).flaw is None
    assert run("report", str(folder)).code == 0
    assert repeat(folder, "failures", tmp_path / "store") == [COMPLETE]


@each("text", "\ud800 \x1b[31m ::error:: \u202e", "x" * MAX_TEXT, "A" + "é" * 10**6 + "Z")
def test_hostile_text_is_ascii_and_cut(tmp_path: Path, text: str) -> None:
    reply = Reply(text)
    for failure in (None, ParseFailure("no verdict", reply)):
        judgment = Judgment(
            None if failure else "a", read="text", failure=failure, answers=(Answer("k", reply, (), failure),)
        )
        with Recorder(tmp_path / "r", {"judge": "j"}, keep_text="all") as recorder:
            recorder.add([row("c", [judgment]), row("d", [judgment])], [])
            recorder.finish({}, {})
        (entry,) = texts(tmp_path / "r")
        assert entry["length"] == len(text)
        assert (entry["text"] == text) == (len(text) <= MAX_TEXT)
        assert len(entry["text"]) <= MAX_TEXT + 5
        assert (entry["text"][0], entry["text"][-1]) == (text[0], text[-1])
        assert b"answers" not in (tmp_path / "r" / "rows.jsonl").read_bytes()


def test_answers_leave_memory_with_their_row() -> None:
    judgment = Judgment("a", answers=(Answer("k", Reply("x"), (), None),))
    spoken, silent = row("c", [judgment]), row("c", [verdict("a")])
    assert spoken.without_answers() == spoken
    assert spoken.without_answers().judgments[0].answers == ()
    assert silent.without_answers() is silent


def test_unanswered_requests_have_no_text(tmp_path: Path, judged: Callable[..., FinishedRun[Any]]) -> None:
    judged("r", "all", lambda request: Reply(failure="no reply: gone"))
    assert texts(tmp_path / "r") == []


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("attack", ("--attack", "sycophancy")),
        ("gate", ("--max-flip-rate", "0.5", "--budget", "40")),
        ("leaderboard", ("--data", "d.jsonl")),
        ("consistency", ("--data", "d.jsonl")),
        ("meta", ()),
    ],
)
def test_every_command_takes_the_option(run: Run, command: str, more: tuple[str, ...]) -> None:
    data("d.jsonl")
    line = (command, "--judge", "planted:garbage", "--limit", "2", *more)
    for kind in ("none", "all"):
        assert run(*line, "--keep-text", kind, "--out", kind).code in (0, 3)
    assert texts(Path("none")) == []
    assert {one["text"] for one in texts(Path("all"))} == {"banana"}
    assert contents(Path("none")) == contents(Path("all"))
    assert "no call is made" in run(*line, "--keep-text", "all", "--out", "none").err
    assert texts(Path("none")) == texts(Path("all"))


def test_settings_file_takes_the_option(run: Run) -> None:
    line = ("attack", "--judge", "planted:garbage", "--limit", "2", "--attack", "sycophancy")
    assert "'some': expected failures, all or none" in run(*line, "--keep-text", "some").err
    Path("distract.toml").write_text('keep-text = "none"\n')
    assert run(*line, "--out", "r").code == 3
    assert texts(Path("r")) == []


def test_python_takes_the_option(run: Run) -> None:
    more: Any = {"judge": "planted:garbage", "attacks": ["sycophancy"], "limit": 2}
    result = distract.attack(**more, keep_text="all")
    assert texts(result.path)
    again = distract.attack(**more, keep_text="none")
    assert (again.path, texts(again.path)) == (result.path, [])
    with pytest.raises(distract.UsageError, match="keep_text 'some': expected failures, all or none"):
        distract.attack(**more, keep_text="some")  # type: ignore[arg-type]


def test_server_in_words_is_quoted(run: Run) -> None:
    def chat(request: ReceivedRequest) -> dict[str, Any]:
        return completion("[[A]]" if len(request.content) % 2 else "\x1b[31mNeither\ud800 ::error::")

    with FakeServer(chat, owner="x", probed=lambda _: completion("OK")) as server:
        more: Any = {"judge": f"{server.url}#m", "attacks": ["sycophancy"], "protocols": ["pairwise"], "limit": 3}
        result = distract.attack(**more, out="r")
        unread, asked = texts(result.path), len(server.chats)
        again = distract.attack(**more, out="r", keep_text="all")
        assert len(server.chats) == asked
    assert len(again.notes) == 1
    everything = texts(result.path)
    assert unread == [one for one in everything if one["failure"]]
    assert {one["text"] for one in everything if not one["failure"]} == {"A]]"}  # after the prefill
    assert {one["key"] for one in everything} == {key for row in result.rows for key in row.keys}
    shown = run("report", "r")
    assert f"1 of {len(unread)} unreadable answers" in shown.words
    assert "\x1b" not in shown.out


@each("keep_text, expected", ("failures", "xy"), ("all", "xyy"), ("none", ""))
def test_answer_read_beside_an_unreadable_one_is_kept_when_it_is_at_fault(
    tmp_path: Path, keep_text: KeepText, expected: str
) -> None:
    replies = {name: Reply(name) for name in "xyz"}

    def fail_at(name: str, *others: str) -> Judgment:
        failure = ParseFailure("no verdict", replies[name])
        answers = [Answer(one, replies[one], (), failure if one == name else None) for one in (name, *others)]
        return Judgment(None, read="text", failure=failure, answers=tuple(answers))

    with Recorder(tmp_path / "r", {"judge": "j"}, keep_text=keep_text) as recorder:
        recorder.add([row("c", [fail_at("x", "y")]), row("d", [fail_at("y")]), row("e", [fail_at("y")])], [])
        recorder.finish({}, {})
    kept = texts(tmp_path / "r")
    assert "".join(one["text"] for one in kept) == expected
    assert [one["case"] for one in kept if one["failure"]] == ["c", "d"][: len({*expected})]
