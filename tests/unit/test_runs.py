"""Test the run folder: identity, growth, completeness, damage."""

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count as counting
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import case, damage_file, finish, request, row, run_parameters, scored, select, set_up, verdict
from command_result import Run, check_refusal
from hypothesis import example, given, strategies as st
from loops import each

import distract
from distract.core import job as jobs, registry, timer
from distract.core.errors import BackendError, DataError, DistractError, PluginError, UnknownName, UsageError
from distract.core.job import Job, Plans, open_stores, summarise
from distract.core.plan import Plan
from distract.core.plugin import Comparison
from distract.core.recorder import Recorder, default_path, dump
from distract.core.records import CaseResult, Reply, Request, Response, Rewrite, Row, Side, Slots
from distract.core.runs import LoadedRun, load
from distract.core.store import Store
from distract.core.study import BufferedSums, Study
from distract.core.timer import Clock, measure
from distract.core.usage import Tally
from distract.data import datasets
from distract.models.scripted import ScriptedBackend, make_planted
from distract.report.profile import PARTS, profile_lines
from distract.studies.attack import session

PARAMETERS = run_parameters(name="d", protocols={"absolute": ["score"]})
ROWS = [
    row("c1", [verdict("a"), verdict(None)]),
    row("c2", [scored((5.25, 4.0), (5, 4))], attack="f", target="b", protocol="absolute"),
    row("c3", [], excluded="rewrite rejected"),
]
REWRITES = [
    Rewrite("c2", Response("y", ("t\u2028ü",), "f", 1), ("t0",), "rules", ("unchanged",), (("marker", 1.5), ("n", "x")))
]


def write_run(path: Path) -> Path:
    with Recorder(path, PARAMETERS) as recorder:
        recorder.add(ROWS[:2], REWRITES)
        recorder.add(ROWS[2:], [])
        recorder.finish({"results": []}, {"replies": {"made": 3}})
    return path


def test_finished_run_loads_completely(tmp_path: Path) -> None:
    loaded = load(write_run(tmp_path / "run"))
    assert list(loaded.rows) == ROWS
    assert list(loaded.rewrites) == REWRITES
    assert (loaded.flaw, loaded.parameters) == (None, PARAMETERS)
    assert json.loads(loaded.summary or "") == {"results": []}


@each("text", "ü", "%s", "100%", "\0", '"\0"', "{case}", "\u2028", "")
def test_row_is_written_like_any_record(tmp_path: Path, text: str) -> None:
    more: Any = {"extra": {"beside": [{"author": text}], "lengths": [3, 4]}, "keys": ("k",), "label": "a"}
    whole = replace(ROWS[1], data=text, **more)
    rows = [*ROWS, whole, replace(ROWS[2], case=text, cluster=text, a=Side(text), excluded=text)]
    with Recorder(tmp_path / "run", PARAMETERS) as recorder:
        recorder.add(rows, [])
    assert (tmp_path / "run" / "rows.jsonl").read_text(encoding="utf-8") == "".join(f"{dump(one)}\n" for one in rows)


def test_same_command_restarts_the_files(tmp_path: Path) -> None:
    with Recorder(tmp_path, PARAMETERS) as recorder:
        recorder.add(ROWS, [])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"half a row')
    loaded = load(write_run(tmp_path))
    assert (loaded.flaw, list(loaded.rows)) == (None, ROWS)


def test_different_run_is_refused_with_the_differences(tmp_path: Path) -> None:
    write_run(tmp_path)
    with pytest.raises(UsageError, match=r"belongs to a different run \(they differ in judge, seed\)"):
        Recorder(tmp_path, {**PARAMETERS, "seed": 1, "judge": "k"})
    assert load(tmp_path).flaw is None


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="holds files but no run"):
        Recorder(tmp_path, PARAMETERS)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(UsageError, match="is a file; name a folder with --out"):
        Recorder(file, PARAMETERS)


@each("name", "rows.jsonl", "rewrites.jsonl", "summary.json", "run.json")
@each("damage", "emptied", "cut", "gone", "line dropped")
def test_damaged_run_never_counts_as_complete(tmp_path: Path, name: str, damage: str) -> None:
    damage_file(write_run(tmp_path) / name, damage)
    with suppress(DataError):
        assert load(tmp_path).flaw


def test_missing_run_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    write_run(tmp_path / "run").joinpath("rows.jsonl").write_text('{"case": "c1"}\n')
    for name, message in (
        *(("nothing", "no such run folder"), ("", r"holds no run\.json"), ("file", "is a file")),
        ("run", r"rows\.jsonl:1: not a record of a run"),
    ):
        with pytest.raises(DataError, match=message):
            load(tmp_path / name)


@each(
    "wrong",
    *({"generator": ["x"]}, {"case": {}}, {"reasons": [1]}),
    *({"response": {"author": "y", "turns": [], name: []}} for name in ("author", "attack", "severity")),
)
def test_rewrite_of_other_types_is_one_clear_line(tmp_path: Path, wrong: dict[str, Any]) -> None:
    write_run(tmp_path)
    (tmp_path / "rewrites.jsonl").write_text(json.dumps(json.loads(dump(REWRITES[0])) | wrong) + "\n")
    message = r"rewrites\.jsonl:1: not a record of a run \(.* is not an? (string|integer|number)"
    with pytest.raises(DataError, match=message):
        list(load(tmp_path).rewrites)


def test_default_folder_depends_on_every_parameter() -> None:
    assert default_path(PARAMETERS) == default_path(dict(reversed(PARAMETERS.items())))
    assert default_path(PARAMETERS) != default_path({**PARAMETERS, "seed": 1})


IDENTITY = {"engine": "openai", "model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}

KEYS = {
    "absolute": "a935b87e9d3f04718f9c9eed", "alpaca-eval": "61f2f8a46af5a2efc924b184",
    "arena-hard": "fd63e36112fd731cd0021562", "base": "730196e5317c7d70a466f9a8", "cot": "f7fe503affe11ccd53a9037a",
    "cot-consistency": "414fa185cef2b9e63ebcf9c3", "fine-grained-diff": "c30f2980b7ac5a4ce94b6f63",
    "metric": "2b3a764ab7db21d5a3377931", "metric-reference": "2b3a764ab7db21d5a3377931",
    "multi-aspect-single": "128bf07a9abc6fefd859c257", "multi-aspect-two": "4663138eb47bce9c48e3010b",
    "multi-role-round1": "d163220b5ceb9f9095d9c67c", "multi-role-round2": "d163220b5ceb9f9095d9c67c",
    "pairwise": "f6b90d1d65a533e662b77b2d", "pointwise": "9654ff4a3f99d1ab5f5eb07e",
    "prepair": "177a1ae9038b4095f51101b4", "prepair-metric": "2b3a764ab7db21d5a3377931",
    "prepair-star": "85ff658d398a680a36e7888e", "prepair-tie": "177a1ae9038b4095f51101b4",
    "protocol-consistency": "f7fe503affe11ccd53a9037a", "rank": "8ade38be60a45dc598a478ef",
    "reference": "c189e4a4687ec547080907c1", "solve-first": "e04c87f44a3133f479e1ea1f",
    "strong-reference": "c189e4a4687ec547080907c1", "swap-synthesize": "f7fe503affe11ccd53a9037a",
    "wild-bench": "bede3ee8f07da26f8c64945e",
}  # fmt: skip
"""The keys of the first request of each protocol about one case, in the words of edition 1."""

KEYS_NOW = {
    "absolute": "6640256a2c020c425522edaf", "alpaca-eval": "0c2ec23f0228967585dd9deb",
    "arena-hard": "5bdf47555ff7f5376de8a443", "base": "22bd38413eec273d9157740f",
    "cot": "47d19a544fa9b2b7111ad873", "cot-consistency": "f7dd37a0a19e94b3441f38a3",
    "distracted-absolute": "faa511f7b84ff656f82f2a74", "distracted-pairwise": "230f9de14ae06c53f9d5194c",
    "fine-grained-diff": "b1729007bcbbd149c63fb9ad", "metric": "2b3a764ab7db21d5a3377931",
    "metric-reference": "2b3a764ab7db21d5a3377931", "multi-aspect-single": "0137db7d8a40f83311df0b9e",
    "multi-aspect-two": "996c214ba2cb600b908fe9bd", "multi-role-round1": "bff78f5638efdad1021ded2f",
    "multi-role-round2": "bff78f5638efdad1021ded2f", "pairwise": "b6909620e5850c8ce9f3d8c6",
    "pointwise": "72975217b8ace76e96523d83", "prepair": "d9ce50d2afd280d332d4572c",
    "prepair-metric": "2b3a764ab7db21d5a3377931", "prepair-star": "3c21577942ae33a496975a69",
    "prepair-tie": "d9ce50d2afd280d332d4572c", "protocol-consistency": "47d19a544fa9b2b7111ad873",
    "rank": "87d60b64656541926ca86d84", "reference": "c189e4a4687ec547080907c1",
    "solve-first": "5ef40e880b878e77e8fd4c54", "strong-reference": "c189e4a4687ec547080907c1",
    "swap-synthesize": "47d19a544fa9b2b7111ad873", "wild-bench": "bede3ee8f07da26f8c64945e",
}  # fmt: skip
"""The same keys in the words of today."""


@pytest.mark.parametrize(("name", "key"), [*((f"{name}@1", key) for name, key in KEYS.items()), *KEYS_NOW.items()])
def test_stored_keys_do_not_change(name: str, key: str, tmp_path: Path) -> None:
    case = datasets.load("tweakset").cases[0]
    first, second, *_ = case.originals
    plan = registry.get_protocol(name).ask(Comparison(case, first, second))
    request, *_ = next(plan)
    with Store(tmp_path / "store", IDENTITY) as store:
        assert store.key(request).hex()[:24] == key


WHO = {"model": "m", "engine": "scripted"}


def change_store(path: Path, statement: str, *values: object) -> None:
    """Change a store's file by another connection."""
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(statement, values)


def test_stored_reply_is_available_in_another_session(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "replies.sqlite"
    reply = Reply("ä\x00[[A]]", (0.1, 0.2, 0.7), 0.123456789012345, "choices", None, 11, 0)
    with Store(path, WHO) as store:
        key, missing = store.key(request()), store.key(request("other"))
        store.put([(key, reply)])
    with Store(path, WHO) as store, Store(path, {**WHO, "model": "n"}) as other:
        assert (store.get([key, missing]), len(store)) == ({key: reply}, 1)
        assert (other.get([other.key(request())]), len(other)) == ({}, 0)


@given(st.text(), st.text())
def test_keys_differ_exactly_when_the_request_does(one: str, two: str) -> None:
    with Store(Path(":memory:"), WHO) as store:
        assert (store.key(request(one)) == store.key(request(two))) == (one == two)
        assert store.key(request(one)) != store.key(request(one, sample=1))


def test_slots_enter_the_key_only_for_a_judge_that_reads_them() -> None:
    one, two = (request(slots=Slots(name, (Response("x", ("t",)),), ())) for name in ("c1", "c2"))
    with Store(Path(":memory:"), WHO) as reads_text, Store(Path(":memory:"), WHO, reads_slots=True) as reads_slots:
        assert reads_text.key(one) == reads_text.key(two)
        assert reads_slots.key(one) != reads_slots.key(two)


@given(st.text(), st.text(), st.text(), st.sampled_from([None, 1, 3]))
def test_key_is_a_digest_of_identity_and_request(name: str, text: str, label: str, severity: int | None) -> None:
    responses = (Response("x", (text, "t")), Response("y", (text,), "f", severity))
    outcomes = (("first", label),)
    arguments = request(text, slots=Slots(name, responses, outcomes))
    who = hashlib.sha256(json.dumps(sorted(WHO.items())).encode()).digest()
    slots = json.dumps((name, [(r.author, r.turns, r.attack, r.severity) for r in responses], outcomes))
    with Store(Path(":memory:"), WHO, reads_slots=True) as store:
        assert store.key(arguments) == hashlib.sha256(who + arguments.key.encode() + slots.encode()).digest()


def test_existing_reply_stays(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        key = store.key(request())
        for text in ("first", "second"):
            store.put([(key, Reply(text))])
        assert store.get([key])[key].text == "first"


def test_more_keys_than_one_query_takes_are_read(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        keys = [store.key(request(str(i))) for i in range(1201)]
        store.put((key, Reply(str(i))) for i, key in enumerate(keys))
        replies = store.get(keys)
        assert [replies[key].text for key in keys] == [str(i) for i in range(1201)]


def test_damage_during_a_run_is_our_error(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        change_store(tmp_path / "s", "drop table replies")
        with pytest.raises(BackendError, match="store of replies failed"):
            store.get([store.key(request())])


SETTINGS = {**run_parameters("d", {"pairwise": []}), "command": "attack"}


def plan_row(name: str) -> Plan[CaseResult]:
    """A row for one call."""
    yield [request(name)]
    return CaseResult([row(name, [verdict("a")])])


def job(
    out: Path, first: Sequence[str], *more: Sequence[str], say: Callable[[Request], str] = lambda _: "x"
) -> tuple[Job[Any], list[list[str]]]:
    """A job in stages, and the rows that each later stage received and found on disk at its start."""
    seen = list[list[str]]()

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        yield [plan_row(name) for name in first]
        for names in more:
            seen.extend([r.case for r in there] for there in (rows, load(out).rows))
            yield [plan_row(name) for name in names]

    nothing: Any = lambda *_: {}  # noqa: E731
    study = Study[Any](name="attack", measures=lambda _: BufferedSums(nothing), document=nothing, sections=nothing)
    return Job(study, {"judge": ScriptedBackend(say)}, (), (), stages, nothing, SETTINGS, out), seen


def run_job(job: Job[Any], tally: Tally | None = None) -> LoadedRun:
    return finish(job, job.out.parent / "store", tally).run


def test_each_stage_receives_the_stored_rows_of_earlier_stages(tmp_path: Path) -> None:
    result, seen = job(tmp_path / "r", ["a", "b"], ["c"], [], ["d"])
    done = run_job(result)
    assert seen == [["a", "b"]] * 2 + [["a", "b", "c"]] * 4
    assert [r.case for r in done.rows] == ["a", "b", "c", "d"]
    assert load(tmp_path / "r").rows == done.rows


def test_several_stages_leave_the_same_run_as_one(tmp_path: Path) -> None:
    tallies = Tally(), Tally()
    run_job(job(tmp_path / "r", ["a", "b", "c"])[0], tallies[0])
    run_job(job(tmp_path / "s", [], ["a"], ["b", "c"])[0], tallies[1])
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

    result, _ = job(tmp_path / "r", ["a"], ["b"], ["c"], say=breaks)
    with pytest.raises(BackendError):
        run_job(result)
    left = load(tmp_path / "r")
    assert ("unfinished" in (left.flaw or ""), [r.case for r in left.rows]) == (True, ["a", "b"])
    tally = Tally()
    again, _ = job(tmp_path / "r", ["a"], ["b"], ["c"])
    assert [r.case for r in run_job(again, tally).rows] == ["a", "b", "c"]
    assert (tally.made, tally.stored) == (1, 2)


def test_run_says_early_and_then_rarely_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("distract.core.job.time.monotonic", lambda: float(next(clock)))
    sentences, updates, names = list[str](), list[Tally](), [f"c{number}" for number in range(40)]
    watcher: Any = SimpleNamespace(update=updates.append, say=sentences.append)
    planned, _ = job(tmp_path / "r", names)
    study = replace(planned.study, interim=lambda parameters, result: f"{parameters['judge']} is odd")
    planned = replace(planned, study=study, cases=tuple(map(case, names)))
    with open_stores(planned.models, tmp_path / "store") as models:
        jobs.run_job(planned, models, Tally(), watcher)
    assert len(updates) > len(sentences)
    first, *others = sentences
    assert first == "after 2 of 40 cases: j is odd"
    assert len(others) < 3


def test_summary_equals_the_summary_of_reloaded_rows(tmp_path: Path) -> None:
    selected = select(data="tweakset", limit=3, attacks=("assertiveness", "severity-1"), control=True)
    setup = set_up("planted:bold", make_planted("bold"), tmp_path / "r")
    done = finish(session.prepare(selected, setup), tmp_path / "store")
    again = summarise(done.study, load(tmp_path / "r"))
    assert json.loads(done.run.summary or "") == json.loads(json.dumps(again.document))


def test_run_time_is_reported_by_part(tmp_path: Path) -> None:
    with measure() as clock:
        run_job(job(tmp_path / "r", ["a", "b"])[0])
    assert clock.seconds.keys() >= {"render", "store", "analysis"}


def test_demo_finds_the_planted_bias_and_writes_a_page(run: Run) -> None:
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    for text in ("most often under assertiveness (8 of 12", "{+", "page: distract-demo.html"):
        assert text in result.words
    page = Path("distract-demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    folder = result.out.rpartition("run folder: ")[2].partition("\n")[0]
    flips = {one["attack"]: one["k"] for one in distract.Run.read(folder).results if one["measure"] == "flip_rate"}
    # The bias is for bold wording alone.
    assert flips == {"assertiveness": 8, "prolixity": 0, "sycophancy": 0}
    assert "distract demo" in page


def test_demo_repeats_itself_elsewhere(run: Run) -> None:
    first = run("demo").out
    assert run("demo", "--html", "other.html").out == first.replace("distract-demo.html", "other.html")
    assert Path("other.html").read_bytes() == Path("distract-demo.html").read_bytes()
    Path("folder").mkdir()
    check_refusal(run("demo", "--html", "folder"))


@each(
    "error",
    lambda name: UsageError(f"{name}: no such folder"),
    lambda name: UnknownName("judge", name, [name + "x"], hint=name),
    lambda name: DataError(f"expected a number, not {name}", path=name, line=3, field=name),
    lambda name: PluginError(f"the attack {name} failed"),
    lambda name: BackendError(f"the server {name} has stopped answering"),
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
    assert [line.split()[0] for line in profiled.err.splitlines() if line.startswith("  ")] == [*PARTS, "rest"]
    # A planted judge needs no model, so no tokens are computed.
    assert not re.search("tokens:|model:", profiled.err)
    failed = run("attack", "--judge", "planted:longer", "--data", "nowhere.jsonl", "--profile")
    assert (failed.code, "where the time went" in failed.err) == (2, True)


def test_nested_or_failing_part_is_charged_once() -> None:
    # The clocks advance by one second per call.
    clock = Clock(_now=map(float, counting()).__next__)
    with clock.part("store"):
        for name in ("forward", "store"):
            with clock.part(name):
                pass
    assert clock.seconds == {"store": 4.0, "forward": 1.0}
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
