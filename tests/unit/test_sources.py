"""Test how a spec of matches is resolved and how formats are recognised."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from loops import each

from distract.core.errors import DataError, DistractError, UnknownName, UsageError
from distract.data.datasets import READERS
from distract.data.tables import open_table
from distract.studies.leaderboard.sources import FORMATS, read

GOLDEN = Path(__file__).parents[1] / "data" / "readers"
VOTES = "model_a,model_b,winner\nx,y,tie\n"


def test_every_readable_data_set_is_a_format() -> None:
    assert {"arena", "mtbench-judges", "run", "scores", *READERS} == {*FORMATS}


def test_existing_path_wins_over_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("arena:v.csv", "nope:v.csv", "hub:v.csv", "v.csv"):
        Path(name).write_text(VOTES)
        (source,) = read(name)
        assert (source.name, source.format) == (name, "arena")
    (source,) = read("arena:arena:v.csv")
    assert source.name == "arena:v.csv"


@each(
    "spec, kind, expected",
    ("elsewhere.csv", DataError, r"elsewhere.csv: no such file \(built-in data sets: tweakset\)"),
    ("arena:elsewhere.csv", DataError, "elsewhere.csv: no such file"),
    ("", DataError, "no such file"),
    ("arena:", DataError, "no such file"),
    ("x" * 5000, DataError, "no such file"),
    ("a\0b", DataError, "no such file"),
    ("areana:v.csv", UnknownName, r"unknown format of matches 'areana'; did you mean 'arena'\? \(known: .*mt-bench"),
    ("tweakset", DataError, r"nothing can be rated: not two responses of different authors \(\d+\)"),
)
def test_missing_source_is_one_line(
    spec: str, kind: type[DistractError], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=expected):
        read(spec)


def test_irregular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: is not a regular file"):
        read(str(tmp_path / "pipe"))


@each(
    "name, form",
    ("native.jsonl", "native"),
    ("reife.json", "reife"),
    ("llmbar.json", "llmbar"),
    ("pandalm.json", "pandalm"),
    ("instrusum.json", "instrusum"),
    ("judgebench.jsonl", "judgebench"),
    ("rewardbench.jsonl", "rewardbench"),
    ("mt-bench-human.jsonl", "arena"),  # votes are recognised before the cases made of them
)
def test_content_identifies_the_format(name: str, form: str) -> None:
    (source,) = read(str(GOLDEN / name))
    assert source.format == form


def test_human_votes_are_read_as_votes_or_as_cases() -> None:
    path = GOLDEN / "mt-bench-human.jsonl"
    votes, cases = (read(f"{form}:{path}")[0] for form in ("arena", "mt-bench-human"))
    assert len(votes.matches) > len(cases.matches)
    assert votes.matches.models == cases.matches.models
    assert cases.left_out == {"the annotators do not agree": 1}


def test_labelled_hub_sets_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distract.data.hub.load_table", lambda *_: open_table(GOLDEN / "rewardbench.jsonl"))
    for spec in ("hub:org/name", "rewardbench:hub:org/name"):
        (source,) = read(spec)
        assert (source.format, source.matches.models) == ("rewardbench", ("response_1", "response_2"))


@each("name", "ifeval.jsonl", "alpaca-eval.json")
def test_prompts_without_comparisons_are_no_matches(name: str) -> None:
    with pytest.raises(UsageError, match="holds no labelled pairs of responses"):
        read(str(GOLDEN / name))


def test_vote_file_with_unknown_columns_lists_the_missing_ones(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps({"left": "x", "right": "y", "winner": "left"}))
    with pytest.raises(DataError, match="field 'model_a': missing; found 'left', 'right', 'winner'"):
        read(str(path))
    path.write_text(json.dumps([{"left": "x"}]))
    with pytest.raises(DataError, match="in no format that distract knows"):
        read(str(path))
