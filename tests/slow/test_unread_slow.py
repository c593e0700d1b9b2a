"""Test unreadable verdicts: replies kept beside the run, and one example shown."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from builders import finish, set_up
from test_verdicts import texts

from distract.core.errors import BackendError
from distract.core.records import Reply, Request, Side
from distract.core.runs import LoadedRun, load
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend
from distract.report.unread import unread_lines
from distract.studies.attack import session

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
    selected = session.select(data="tweakset", generator="rules", **options)
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
