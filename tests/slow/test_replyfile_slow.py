"""Test a store's file: two processes that write it, and one that is deleted, replaced, truncated or damaged."""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import finish, request, select, set_up
from command_result import Run
from test_judge import texts
from test_replyfile import ATTACK, CUT, ENDS, GONE, TAKEN, WHO, damage_pages, fill, reply

from distract.core.errors import BackendError, DistractError
from distract.core.records import Reply, Request, Side
from distract.core.runs import LoadedRun, load
from distract.core.store import Store
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend
from distract.report.unread import unread_lines
from distract.studies.attack import session


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import sys; from pathlib import Path\n"
        "from distract.core.store import Store; from distract.core.records import *\n"
        "with Store(Path(sys.argv[1]), {'model': 'm', 'engine': 'scripted'}) as store:\n"
        "    for i in range(200):\n"
        "        r = Request((Message('user', sys.argv[2] + str(i % 100)),))\n"
        "        store.put([(store.key(r), Reply('x'))])\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    with Store(path, {"model": "m", "engine": "scripted"}) as store:
        assert len(store) == 200


GATE = ("gate", "--judge", "planted:fair", "--max-flip-rate", "0.3", "--attack", "sycophancy", "--protocol", "pairwise")


@pytest.mark.parametrize("command", [ATTACK, GATE], ids=["attack", "gate"])
@pytest.mark.parametrize("damage", [*GONE.values(), *TAKEN.values(), *CUT.values()], ids=[*GONE, *TAKEN, *CUT])
def test_run_with_a_lost_store_exits_with_4_and_resumes(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[object, ...],
    damage: Callable[[Path], object],
) -> None:
    path, puts, put = tmp_path / "folder" / "s", list[int](), Store.put
    fill(path, range(300))

    def damaging(store: Store, replies: Sequence[tuple[bytes, Reply]]) -> None:
        batch = list(replies)
        put(store, batch)
        if store.path == path:  # an estimate uses a store in memory
            puts.append(len(batch))
            if len(puts) == 1:
                damage(path)

    monkeypatch.setattr(Store, "put", damaging)
    ran = run(*command, "--store", path, "--out", "r")
    assert ran.code == 4
    assert "Traceback" not in ran.err
    assert str(path) in ran.err.splitlines()[-1]
    assert not (tmp_path / "r" / "manifest.json").exists()
    if damage in GONE.values():
        assert run(*command, "--store", path, "--out", "r").code == 0
        counts = json.loads((tmp_path / "r" / "manifest.json").read_text())["replies"]
        assert counts["stored"] >= puts[0]
    else:
        assert run(*command, "--store", path, "--out", "r").code in (0, 2, 4)


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[bytes, Reply], int]:
    path = tmp_path_factory.mktemp("whole") / "s"
    with Store(path, WHO) as store:
        store.renew()
        replies = {store.key(request(str(number))): reply(number) for number in range(30)}
        store.put(replies.items())
    return path.read_bytes(), replies, store.epoch


def test_damaged_page_is_one_line_and_never_another_reply(
    tmp_path: Path, whole_store: tuple[bytes, dict[bytes, Reply], int]
) -> None:
    content, replies, epoch = whole_store
    path, counts = tmp_path / "s", Counter[str]()
    methods: dict[str, Callable[[Store], object]] = {
        "len": len,
        "get": lambda store: store.get(list(replies)),
        "put": lambda store: store.put([(store.key(request("new")), Reply("new"))]),
        "check": Store.check,
        "renew": Store.renew,
    }
    for file in damage_pages(content, seed=1):
        for end in ENDS:
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes(file)
        try:
            with Store(path, WHO) as store:
                for name, method in methods.items():
                    try:
                        result = method(store)
                        if name == "get" and store.epoch == epoch and isinstance(result, dict):
                            assert result.items() <= replies.items()
                    except DistractError:
                        counts[name] += 1
        except DistractError:
            counts["open"] += 1
    assert {"len", "get", "open"} <= counts.keys()


@pytest.mark.usefixtures("whole_store")
def test_commands_report_any_damaged_page_in_one_line(run: Run, tmp_path: Path) -> None:
    assert run(*ATTACK, "--store", "s", "--out", "r").code == 0
    content = (tmp_path / "s").read_bytes()
    for start in range(0, len(content), 4096):
        (tmp_path / "s").write_bytes(content[:start] + b"\xff" * 4096 + content[start + 4096 :])
        ran = run(*ATTACK, "--store", "s", "--out", f"r{start}")
        assert "Traceback" not in ran.err
        assert ran.code in (2, 4)
        assert ran.err.splitlines()[-1].startswith("distract: s: ")


HOSTILE = "\x1b[31m::error::[bold]I must not say\ud800 ##[error]\u202e"
PROTOCOLS = ("absolute", "cot", "cot-consistency", "metric", "multi-role-round1", "pairwise", "prepair", "rank")


def answer_moodily(request: Request) -> Reply:
    """A judge whose answers depend on the request alone: some are empty, some too long, some missing."""
    mood = random.Random(request.key).choice(["verdict", "verdict", "silent", "cut", "refused", "away"])
    outcomes = [text for _, text in request.slots.outcomes] if request.slots else []
    if mood == "verdict" or not outcomes:
        return Reply(outcomes[0] if outcomes else "An analysis.")
    message = {
        "silent": Reply(HOSTILE),
        "cut": Reply("At length: it", finish="length"),
        "away": Reply(failure="no reply"),
    }
    return message.get(mood, Reply(failure="refused"))


def run_attack(folder: Path, store: Path, backend: ScriptedBackend) -> LoadedRun:
    options: dict[str, Any] = {"attacks": ("sycophancy",), "limit": 5, "seed": 0}
    selected = select(data="tweakset", generator="rules", **options)
    setup = set_up("moody", backend, folder, PROTOCOLS, manner=Manner(samples=3))
    return finish(session.prepare(selected, setup), store).run


def test_every_unreadable_answer_is_kept_once(tmp_path: Path) -> None:
    loaded = run_attack(tmp_path / "r", tmp_path / "s", ScriptedBackend(answer_moodily))
    records = texts(tmp_path / "r")
    assert {one["protocol"] for one in records} == {*PROTOCOLS}
    # The verdict text of this judge is no ranking.
    assert {one["text"] for one in records if one["protocol"] != "rank"} == {HOSTILE, "At length: it", ""}
    assert len({one["key"] for one in records}) == len(records)
    rows = {(r.case, r.design, r.protocol, r.attack, r.target, r.a, r.b): r for r in loaded.rows}
    seen = set[str]()
    for one in records:
        place = [one[name] for name in ("case", "design", "protocol", "attack", "target")]
        result = rows[(*place, Side(**one["a"]), Side(**one["b"]))]
        assert one["key"] in result.keys
        assert result.judgments[one["order"]].failure == one["failure"]
        seen.add(one["failure"])
    assert {"no verdict", "truncated", "refused"} <= seen
    failed = [(r, j) for r in loaded.rows for j in r.judgments if j.failure and not j.failure.startswith("no reply")]
    assert {(r.protocol, r.case) for r, _ in failed} == {(one["protocol"], one["case"]) for one in records}
    looked = {one["protocol"]: one["looked_for"] for one in records}
    assert looked["cot"] == ["Therefore, Output (a) is better.", "Therefore, Output (b) is better."]
    assert looked["rank"] == ["[[...]]"]
    assert looked["absolute"] == [f"[[{n}" for n in range(1, 8)]


def test_unread_file_is_outside_the_run_and_survives_a_kill(tmp_path: Path) -> None:
    whole = run_attack(tmp_path / "whole", tmp_path / "s1", ScriptedBackend(answer_moodily))
    calls = list[Request]()

    def breaks(request: Request) -> Reply:
        calls.append(request)
        if len(calls) > 90:
            raise BackendError("the model broke")
        return answer_moodily(request)

    with pytest.raises(BackendError):
        run_attack(tmp_path / "r", tmp_path / "s2", ScriptedBackend(breaks))
    run_attack(tmp_path / "r", tmp_path / "s2", ScriptedBackend(answer_moodily))
    names = ("texts.jsonl", "rows.jsonl", "summary.json", "run.json")
    for name in names:
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert "texts.jsonl" not in json.loads((tmp_path / "r" / "manifest.json").read_text())["checksums"]
    (tmp_path / "r" / "texts.jsonl").unlink()  # as in a run of an earlier version
    assert load(tmp_path / "r").flaw is None
    assert load(tmp_path / "r").rows == whole.rows
    assert [*unread_lines(tmp_path / "r")] == []
