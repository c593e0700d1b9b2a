"""Test files of absolute scores as comparisons: wins, ties, missing scores, errors."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import DataError
from distract.studies.leaderboard.sources import read

OUTCOMES = ("a", "b", "tie")
Rows = list[dict[str, Any]]


def write_scores(path: Path, rows: Rows) -> str:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def list_games(spec: str) -> list[tuple[str, str, str]]:
    matches = read(spec)[0].matches
    sides = zip(matches.a, matches.b, matches.outcome, strict=True)
    return [(matches.models[a], matches.models[b], OUTCOMES[outcome]) for a, b, outcome in sides]


def score_rows(*scores: tuple[str, float | None], prompt: int = 1, **more: Any) -> Rows:
    return [{"model": name, "score": score, "question_id": prompt, **more} for name, score in scores]


@each("suffix", "jsonl", "csv", "parquet")
def test_every_model_meets_every_other_on_each_prompt(tmp_path: Path, suffix: str) -> None:
    rows = [*score_rows(("x", 7.0), ("y", 3.0), ("z", 7.0)), *score_rows(("z", 2.0), ("x", 1.0), prompt=2)]
    spec = write_scores(tmp_path / f"scores.{suffix}", rows)
    assert list_games(spec) == [("x", "y", "a"), ("x", "z", "tie"), ("y", "z", "b"), ("z", "x", "a")]
    (source,) = read(spec)
    assert (source.format, source.matches.clusters) == ("scores", 2)
    assert list_games(f"scores:{spec}") == list_games(spec)


def test_turns_and_judges_stay_apart_within_one_prompt(tmp_path: Path) -> None:
    rows = [
        row for turn in (1, 2) for row in score_rows(("x", turn), ("y", 1.5), turn=turn, judge=["gpt-4", "single-v1"])
    ]
    spec = write_scores(tmp_path / "scores.jsonl", rows)
    assert list_games(spec) == [("x", "y", "b"), ("x", "y", "a")]
    assert read(spec)[0].matches.clusters == 1


def test_missing_score_makes_no_match(tmp_path: Path) -> None:
    rows = [*score_rows(("x", None), ("y", 1.0), ("z", -1.0)), *score_rows(("x", 2.0), ("y", -1.0), prompt=2)]
    (source,) = read(write_scores(tmp_path / "scores.jsonl", rows))
    assert (len(source.matches), source.matches.invalid) == (2, 2)
    fastchat = [{**row, "judge": ["j", "single"], "judgment": "", "user_prompt": "", "turn": 1} for row in rows]
    with pytest.raises(DataError, match=r"no valid verdict \(4\)"):
        read(write_scores(tmp_path / "single.jsonl", fastchat))


@given(
    st.lists(st.dictionaries(st.sampled_from("wxyz"), st.integers(-20, 20), min_size=2), min_size=1, max_size=6),
    st.integers(-1000, 1000),
)
def test_constant_added_to_all_scores_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[dict[str, int]], constant: int
) -> None:
    folder = tmp_path_factory.mktemp("scores")
    plain, moved = (
        [
            row
            for i, one in enumerate(prompts)
            for row in score_rows(*((n, s / 8 + add) for n, s in one.items()), prompt=i)
        ]
        for add in (0, constant)
    )
    result = list_games(write_scores(folder / "one.jsonl", plain))
    assert result == list_games(write_scores(folder / "two.jsonl", moved))
    naive = [
        (a, b, "tie" if one[a] == one[b] else "a" if one[a] > one[b] else "b")
        for one in prompts
        for a, b in combinations(one, 2)
    ]
    assert result == naive


@each(
    "rows, message",
    ([*score_rows(("x", 1)), *score_rows(("x", 2))], r":2: field 'model': 'x' has a score for this prompt on line 1"),
    (
        [*score_rows(("x", 1)), {"model": "y", "score": "good", "question_id": 1}],
        r":2: field 'score': expected a number",
    ),
    ([*score_rows(("x", 1)), {"model": "y", "question_id": 1}], r":2: field 'score': missing"),
    ([*score_rows(("x", 1)), {"model": "y", "score": 1}], r":2: field 'question_id': missing"),
    ([*score_rows(("x", 1)), {"model": 3, "score": 1, "question_id": 1}], r":2: field 'model': expected text"),
    (score_rows(("x", 1)), "holds no match"),
    ([*score_rows(("x", True))], r":1: field 'score': expected a number"),
)
def test_wrong_scores_are_one_line(tmp_path: Path, rows: Rows, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write_scores(tmp_path / "scores.jsonl", rows))


def test_row_order_within_a_prompt_sets_the_pair_order(tmp_path: Path) -> None:
    (source,) = read(write_scores(tmp_path / "s.jsonl", score_rows(("z", 1), ("a", 2))))
    assert source.matches.models == ("a", "z")
    assert np.array_equal(source.matches.a, [1])
