"""Test published judgments as matches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from test_sources_judgments import Played, list_games, prompt_id

from distract.judging import published as replay
from distract.judging.verdicts import outcome
from distract.studies.leaderboard.sources import read

SHARED = Path(__file__).parents[3] / "shared" / "data"
JUDGES = SHARED / "mtbench_judges6" / "judgments"


@pytest.mark.skipif(not JUDGES.is_dir(), reason="needs the shared data sets")
@pytest.mark.parametrize("judge", ["qwen-judge_14B", "exaone-judge_32B"])
def test_replay_reads_the_published_verdicts(judge: str) -> None:
    (source,) = read(f"mtbench-judges:{JUDGES / judge}")
    expected = Counter[Played]()
    invalid = 0
    files = sorted((JUDGES / judge / "pairwise").glob("*.jsonl"))
    for file in files:
        for entry in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            models = (entry["model_a"], entry["model_b"])
            winners = {
                {"A": models[0], "B": models[1]}.get(entry["winner_ab"], entry["winner_ab"]),
                {"A": models[1], "B": models[0]}.get(entry["winner_ba"], entry["winner_ba"]),
            }
            invalid += bool(winners & {"error", None})
            if not winners & {"error", None}:
                winner = winners.pop() if len(winners) == 1 else "tie"
                expected[prompt_id(str(entry["question_id"])), min(models), max(models), winner] += 1
    assert (source.name, source.format, source.protocol) == (judge, "mtbench-judges", None)
    assert Counter(list_games(source.matches)) == expected
    assert (source.matches.invalid, source.matches.clusters, len(source.matches.models)) == (invalid, 80, 6)
    for spec in (JUDGES / judge, JUDGES / judge / "pairwise"):
        (again,) = read(str(spec))
        assert (again.name, again.sha256, again.matches.models) == (judge, source.sha256, source.matches.models)
    parts = [part for file in files for part in read(str(file))]
    assert sum(len(part.matches) for part in parts) == len(source.matches)


@pytest.mark.skipif(not JUDGES.is_dir(), reason="needs the shared data sets")
def test_replay_reads_the_same_outcomes() -> None:
    path = JUDGES / "qwen-judge_14B" / "pairwise" / "gemma-2-9b-it_vs_Phi-3.5-mini-Instruct.jsonl"
    (source,), (published,) = read(str(path)), replay.load(str(path))
    outcomes = [(row, outcome(row.judgments, None)) for row in published.rows["stored"]]
    names = ({"a": row.a.author, "b": row.b.author}.get(result or "", result) for row, result in outcomes)
    assert Counter(winner for *_, winner in list_games(source.matches)) == Counter(name for name in names if name)
