"""Test the run folder: identity, growth, completeness, damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file, row, run_parameters, scored, verdict
from loops import each

from distract.core.errors import DataError, UsageError
from distract.core.recorder import Recorder, default_path, dump
from distract.core.records import Response, Rewrite, Row, Side
from distract.core.runs import load

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
    rows = [
        *ROWS,
        replace(
            ROWS[1], data=text, beside=(Side(text, "g", 2),), place="first", lengths=(3, 4), keys=("k",), label="a"
        ),
        replace(ROWS[2], case=text, cluster=text, a=Side(text), excluded=text),
    ]
    with Recorder(tmp_path / "run", PARAMETERS) as recorder:
        recorder.add(rows, [])
    assert (tmp_path / "run" / "rows.jsonl").read_text(encoding="utf-8") == "".join(f"{dump(one)}\n" for one in rows)


def test_unfinished_run_keeps_its_rows_and_is_marked(tmp_path: Path) -> None:
    with Recorder(tmp_path, PARAMETERS) as recorder:
        recorder.add(ROWS[:1], [])
    loaded = load(tmp_path)
    assert list(loaded.rows) == ROWS[:1]
    assert "unfinished" in (loaded.flaw or "")


def test_same_command_restarts_the_files(tmp_path: Path) -> None:
    with Recorder(tmp_path, PARAMETERS) as recorder:
        recorder.add(ROWS, [])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"half a row')
    before = write_run(tmp_path)
    assert load(before).flaw is None
    assert list(load(before).rows) == ROWS


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


def flaw_of(path: Path) -> str | None:
    try:
        return load(path).flaw
    except DataError as error:
        return str(error)


@each("name", "rows.jsonl", "rewrites.jsonl", "summary.json", "run.json")
@each("damage", "emptied", "cut", "gone", "line dropped")
def test_damaged_run_never_counts_as_complete(tmp_path: Path, name: str, damage: str) -> None:
    path = write_run(tmp_path) / name
    damage_file(path, damage)
    assert flaw_of(tmp_path)


def test_missing_run_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run folder"):
        load(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"holds no run\.json"):
        load(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file"):
        load(tmp_path / "file")
    write_run(tmp_path / "run")
    (tmp_path / "run" / "rows.jsonl").write_text('{"case": "c1"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl:1: not a record of a run"):
        load(tmp_path / "run")


@each(
    "wrong",
    *(
        [{"generator": ["x"]}, {"case": {}}, {"reasons": [1]}]
        + [{"response": {"author": "y", "turns": [], name: []}} for name in ("author", "attack", "severity")]
    ),
)
def test_rewrite_of_other_types_is_one_clear_line(tmp_path: Path, wrong: dict[str, Any]) -> None:
    write_run(tmp_path)
    (tmp_path / "rewrites.jsonl").write_text(json.dumps(json.loads(dump(REWRITES[0])) | wrong) + "\n")
    with pytest.raises(
        DataError, match=r"rewrites\.jsonl:1: not a record of a run \(.* is not an? (string|integer|number)"
    ):
        list(load(tmp_path).rewrites)


def test_default_folder_depends_on_every_parameter() -> None:
    assert default_path(PARAMETERS) == default_path(dict(reversed(PARAMETERS.items())))
    assert default_path(PARAMETERS) != default_path({**PARAMETERS, "seed": 1})


def test_rows_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert Row(**{**json.loads((one / "rows.jsonl").read_text().splitlines()[2]), "judgments": ()}).excluded
