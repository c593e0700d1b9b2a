"""Test ``distract leaderboard`` on the command line: boards of votes and judgments, attacks on boards, wrong input."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_result import Run

SHARED = Path(__file__).parents[3] / "shared" / "data"
PAIRS, MT_BENCH = SHARED / "mtbench_judges6", SHARED / "mt_bench"
published = pytest.mark.skipif(not PAIRS.is_dir(), reason=f"needs published judgments of pairs in {PAIRS}")
answers = pytest.mark.skipif(not MT_BENCH.is_dir(), reason=f"needs the answers of MT-Bench in {MT_BENCH}")


@published
def test_every_system_rates_published_judgments(run: Run) -> None:
    source = f"mtbench-judges:{PAIRS}/judgments/qwen-judge_14B"
    systems = [part for name in ("bradley-terry", "elo", "trueskill") for part in ("--system", name)]
    result = run("leaderboard", "--matches", source, *systems, "--json")
    assert (result.code, result.err) == (0, "")
    boards = result.document["boards"]
    assert [board["system"] for board in boards] == ["bradley-terry", "elo", "trueskill"]
    for board in boards:
        assert (board["matches"] + board["invalid"], board["prompts"], len(board["rows"])) == (1200, 80, 6)
        assert all(row["low"] < row["rating"] < row["high"] for row in board["rows"])
        assert [row["rank"] for row in board["rows"]] == [1, 2, 3, 4, 5, 6]
    assert len({board["rows"][0]["model"] for board in boards}) == 1


@answers
def test_embedded_judge_plays_a_small_tournament(run: Run, smollm2: object) -> None:
    models = "gpt-4,llama-13b"
    command = ["leaderboard", "--judge", "smollm2-135m", "--data", f"mt-bench:{MT_BENCH}", "--models", models]
    command += ["--attack", "assertiveness", "--generator", "rules", "--lowest", "1", "--limit", "1", "--json"]
    result = run(*command)
    assert result.code == 0, result.err
    document = result.document
    assert {(one["protocol"], one["condition"]) for one in document["boards"]} == {
        (protocol, condition) for protocol in ("absolute", "pairwise") for condition in ("baseline", "attacked")
    }
    for one in document["shift"]:
        assert len(one["attacked"]) == 1
        assert len(one["rows"]) == 2
        assert one["rewritten"] + one["standing"] == 1
    assert all(board["matches"] + board["invalid"] == 1 for board in document["boards"])
    again = run(*command)
    assert again.out == result.out
    assert "no call is made" in again.err
