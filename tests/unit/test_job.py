"""Test a run in stages: each sees the stored rows of all earlier stages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, finish, request, row, run_parameters, set_up, verdict

from distract.core import job as jobs
from distract.core.errors import BackendError
from distract.core.job import Job, Plans, open_stores, summarise
from distract.core.plan import Plan
from distract.core.records import CaseResult, Request, Rewrite, Row
from distract.core.runs import LoadedRun, load
from distract.core.study import BufferedSums, Study
from distract.core.timer import measure
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend, make_planted
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
