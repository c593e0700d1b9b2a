"""Test a run in stages: each sees the stored rows of all earlier stages."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count as counting
from pathlib import Path
from typing import Any

import pytest
from builders import case, finish, request, row, run_parameters, set_up, verdict
from command_result import Run, check_refusal
from hypothesis import example, given
from hypothesis import strategies as st

import distract
from distract.core import job as jobs
from distract.core import timer
from distract.core.errors import BackendError, DataError, DistractError, PluginError, UnknownName, UsageError
from distract.core.job import Job, Plans, open_stores, summarise
from distract.core.plan import Plan
from distract.core.records import CaseResult, Request, Rewrite, Row
from distract.core.runs import LoadedRun, load
from distract.core.study import BufferedSums, Study
from distract.core.timer import Clock, measure
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend, make_planted
from distract.report.profile import PARTS, profile_lines
from distract.studies.attack import session

PARAMETERS = {**run_parameters("d", {"pairwise": []}), "command": "attack"}


def plan_row(name: str) -> Plan[CaseResult]:
    """A row for one call."""
    yield [request(name)]
    return CaseResult([row(name, [verdict("a")])])


def job(
    out: Path, backend: ScriptedBackend, first: Sequence[str], *more: Sequence[str]
) -> tuple[Job[Any], list[list[str]]]:
    """A job in stages, and the rows that each later stage received and found on disk at its start."""
    seen = list[list[str]]()

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        yield [plan_row(name) for name in first]
        for names in more:
            seen.extend([r.case for r in there] for there in (rows, load(out).rows))
            yield [plan_row(name) for name in names]

    nothing: Any = lambda *_: {}  # noqa: E731
    study = Study[Any]("attack", {}, lambda _: BufferedSums(nothing), nothing, nothing)
    return Job(study, {"judge": backend}, (), (), stages, nothing, PARAMETERS, out), seen


def run_job(job: Job[Any], tally: Tally | None = None) -> LoadedRun:
    return finish(job, job.out.parent / "store", tally).run


def test_each_stage_receives_the_stored_rows_of_earlier_stages(tmp_path: Path) -> None:
    result, seen = job(tmp_path / "r", ScriptedBackend(lambda _: "x"), ["a", "b"], ["c"], [], ["d"])
    done = run_job(result)
    assert seen == [["a", "b"]] * 2 + [["a", "b", "c"]] * 4
    assert [r.case for r in done.rows] == ["a", "b", "c", "d"]
    assert load(tmp_path / "r").rows == done.rows


def test_several_stages_leave_the_same_run_as_one(tmp_path: Path) -> None:
    at_once, _ = job(tmp_path / "r", ScriptedBackend(lambda _: "x"), ["a", "b", "c"])
    staged, _ = job(tmp_path / "s", ScriptedBackend(lambda _: "x"), [], ["a"], ["b", "c"])
    tallies = Tally(), Tally()
    run_job(at_once, tallies[0])
    run_job(staged, tallies[1])
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json"):
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "s" / name).read_bytes()
    assert [tally.made for tally in tallies] == [3, 0]


def test_failing_stage_leaves_an_unfinished_run_that_resumes(tmp_path: Path) -> None:
    calls = list[str]()

    def breaks(request: Request) -> str:
        if len(calls) == 2:
            raise BackendError("the model broke")
        calls.append(request.messages[0].content)
        return "x"

    result, _ = job(tmp_path / "r", ScriptedBackend(breaks), ["a"], ["b"], ["c"])
    with pytest.raises(BackendError):
        run_job(result)
    left = load(tmp_path / "r")
    assert (left.flaw is None, [r.case for r in left.rows]) == (False, ["a", "b"])
    tally = Tally()
    again, _ = job(tmp_path / "r", ScriptedBackend(lambda _: "x"), ["a"], ["b"], ["c"])
    assert [r.case for r in run_job(again, tally).rows] == ["a", "b", "c"]
    assert (tally.made, tally.stored) == (1, 2)


def test_run_says_early_and_then_rarely_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.sentences, self.updates = list[str](), 0

        def update(self, tally: Tally) -> None:
            self.updates += 1

        def say(self, sentence: str) -> None:
            self.sentences.append(sentence)

    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("distract.core.job.time.monotonic", lambda: float(next(clock)))
    watcher, names = Watcher(), [f"c{number}" for number in range(40)]
    planned, _ = job(tmp_path / "r", ScriptedBackend(lambda _: "x"), names)
    study = replace(planned.study, interim=lambda parameters, result: f"{parameters['judge']} is odd")
    planned = replace(planned, study=study, cases=tuple(map(case, names)))
    with open_stores(planned.models, tmp_path / "store") as models:
        jobs.run_job(planned, models, Tally(), watcher)
    assert watcher.updates > len(watcher.sentences)
    first, *others = watcher.sentences
    assert first == "after 2 of 40 cases: j is odd"
    assert len(others) < 3


def test_summary_equals_the_summary_of_reloaded_rows(tmp_path: Path) -> None:
    selected = session.select(data="tweakset", limit=3, attacks=("assertiveness", "severity-1"), control=True)
    setup = set_up("planted:bold", make_planted("bold"), tmp_path / "r")
    done = finish(session.prepare(selected, setup), tmp_path / "store")
    again = summarise(done.study, load(tmp_path / "r"))
    assert json.loads(done.run.summary or "") == json.loads(json.dumps(again.document))


def test_run_time_is_reported_by_part(tmp_path: Path) -> None:
    with measure() as clock:
        run_job(job(tmp_path / "r", ScriptedBackend(lambda _: "x"), ["a", "b"])[0])
    assert clock.seconds.keys() >= {"render", "store", "analysis"}


def test_demo_finds_the_planted_bias_and_writes_a_page(run: Run) -> None:
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    assert "most often under assertiveness (8 of 12" in result.words
    assert "{+" in result.out
    assert "page: distract-demo.html" in result.out
    page = Path("distract-demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    folder = result.out.rpartition("run folder: ")[2].partition("\n")[0]
    loaded = distract.Run.read(folder)
    flips = {one["attack"]: one["k"] for one in loaded.results if one["measure"] == "flip_rate"}
    # The bias is for bold wording alone.
    assert flips == {"assertiveness": 8, "prolixity": 0, "sycophancy": 0}
    assert "distract demo" in page


def test_demo_repeats_itself_elsewhere(run: Run) -> None:
    first = run("demo").out
    assert run("demo", "--html", "other.html").out == first.replace("distract-demo.html", "other.html")
    assert Path("other.html").read_bytes() == Path("distract-demo.html").read_bytes()
    Path("folder").mkdir()
    check_refusal(run("demo", "--html", "folder"))


@pytest.mark.parametrize(
    "error",
    [
        lambda name: UsageError(f"{name}: no such folder"),
        lambda name: UnknownName("judge", name, [name + "x"], hint=name),
        lambda name: DataError(f"expected a number, not {name}", path=name, line=3, field=name),
        lambda name: PluginError(f"the attack {name} failed"),
        lambda name: BackendError(f"the server {name} has stopped answering"),
    ],
)
@given(name=st.text(max_size=30))
@example(name="~\x85")
@example(name="\u2028\x1b[2J\r\n\ud800")
def test_error_is_one_line(error: Callable[[str], DistractError], name: str) -> None:
    message = str(error(name))
    assert len(message.splitlines()) == 1
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in message)
    message.encode()


def test_profile_lines_add_up() -> None:
    counts = {"tokens asked": 147_622.0, "tokens computed": 64_736.0, "operations": 1.5e13}
    clock = Clock({"forward": 100.0, "load": 5.0, "wait": 1.0}, counts)
    lines = list(profile_lines(clock, 110.0, 2e11))
    assert lines[0] == "where the time went (110.0 s):"
    assert [line.split()[0] for line in lines[1:9]] == [*PARTS, "wait", "rest"]
    assert sum(float(line.split()[1]) for line in lines[1:9]) == 110.0
    assert lines[9] == "tokens: 147,622 asked, 64,736 computed (44%), 647 per second of model time"
    assert lines[10].startswith("model: 150 GFLOP/s, 75% of the 200 that")


def test_absent_events_are_not_listed() -> None:
    assert len(list(profile_lines(Clock(), 0.5))) == 1 + len(PARTS) + 1
    clock = Clock({"forward": 1.0}, {"tokens asked": 10.0, "operations": 5.0})
    assert not any(line.startswith("model:") for line in profile_lines(clock, 1.0))


def test_profiled_run_gives_the_same_bytes(run: Run) -> None:
    arguments = ["attack", "--judge", "planted:longer", "--limit", "3", "--json"]
    plain = run(*arguments)
    profiled = run(*arguments, "--profile", "--out", "other", "--store", "other.sqlite")
    assert (plain.code, profiled.code) == (0, 0)
    assert plain.out == profiled.out
    message = [line.split()[0] for line in profiled.err.splitlines() if line.startswith("  ")]
    assert message == [*PARTS, "rest"]
    # A planted judge needs no model, so no tokens are computed.
    assert "tokens:" not in profiled.err
    assert "model:" not in profiled.err


def test_failing_run_prints_its_profile(run: Run) -> None:
    failed = run("attack", "--judge", "planted:longer", "--data", "nowhere.jsonl", "--profile")
    assert failed.code == 2
    assert "where the time went" in failed.err


def test_nested_part_is_charged_once() -> None:
    # The clock advances by one second per call.
    clock = Clock(_now=map(float, counting()).__next__)
    with clock.part("store"):
        with clock.part("forward"):
            pass
        with clock.part("store"):
            pass
    assert clock.seconds == {"store": 4.0, "forward": 1.0}


def test_error_closes_its_part() -> None:
    clock = Clock(_now=map(float, counting()).__next__)
    with pytest.raises(ValueError, match="no"), clock.part("load"):
        raise ValueError("no")
    with clock.part("store"):
        pass
    assert clock.seconds == {"load": 1.0, "store": 1.0}


def test_nothing_is_measured_without_an_observer() -> None:
    with timer.time_part("load"):
        timer.count("tokens", 3)
        timer.count("tokens", lambda: 1 / 0)
    with timer.measure() as clock:
        pass
    assert (clock.seconds, clock.counts) == ({}, {})


def test_counts_add_up_without_other_threads() -> None:
    def elsewhere() -> None:
        with timer.time_part("load"):
            timer.count("tokens", 100)

    with timer.measure() as clock:
        timer.count("tokens", 3)
        timer.count("tokens", lambda: 4)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with timer.time_part("store"), timer.measure() as inner:
            timer.count("tokens", 9)
    assert clock.counts == {"tokens": 7}
    assert inner.counts == {"tokens": 9}
    assert set(clock.seconds) == {"store"}
