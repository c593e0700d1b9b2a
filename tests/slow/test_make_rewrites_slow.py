"""Test that a run with recorded rewrites equals a run that writes its own."""

from __future__ import annotations

from pathlib import Path

from builders import finish, set_up
from test_make_rewrites import ASKING, ATTACKS, models, record

from distract.models.scripted import make_planted
from distract.studies.attack import session


def judge(folder: Path, data: str, generator: str, with_models: bool) -> None:
    opened = models() if with_models else {}
    selected = session.select(
        data=data,
        attacks=ATTACKS,
        generator=generator,
        asking=ASKING,
        verifier="v" if with_models else None,
        models=opened,
        limit=6,
    )
    setup = set_up("planted:longer", make_planted("longer"), folder, helpers=opened)
    finish(session.prepare(selected, setup), folder.with_suffix(".sqlite"))


def test_recording_first_changes_neither_rewrites_nor_rows(tmp_path: Path) -> None:
    rewrites = record(tmp_path / "f.jsonl")
    assert {rewrite.is_accepted for rewrite in rewrites} == {True, False}
    reasons = {reason.partition(":")[0] for rewrite in rewrites for reason in rewrite.reasons}
    assert {"truncated", "verifier finds something lost", "comment about the task"} <= reasons
    judge(tmp_path / "one", "tweakset", "w", with_models=True)
    judge(tmp_path / "two", str(tmp_path / "f.jsonl"), "recorded", with_models=False)
    for name in ("rewrites.jsonl", "rows.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert len((tmp_path / "one" / "rewrites.jsonl").read_text().splitlines()) > 12
