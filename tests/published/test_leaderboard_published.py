"""Published verdicts of two judges on six models, rated by distract and by naive loops over the files."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from distract.studies.leaderboard.boards.board_pairs import compare_boards, rate_sources
from distract.studies.leaderboard.boards.system_choice import choose_systems
from distract.studies.leaderboard.sources import read

JUDGMENTS = Path(__file__).parents[3] / "shared" / "data" / "mtbench_judges6" / "judgments"
pytestmark = pytest.mark.skipif(not JUDGMENTS.is_dir(), reason=f"needs published judgments of pairs in {JUDGMENTS}")

JUDGES = ("exaone-judge_32B", "qwen-judge_14B")
Played = tuple[str, str, float]
"""Two models and the points of the first: 1, 0 or 0.5."""


def load_games(judge: str) -> list[Played]:
    """Every comparison with two verdicts: a win if both orders name the same model, else half a point each."""
    results = []
    for path in sorted((JUDGMENTS / judge / "pairwise").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            first = {"A": row["model_a"], "B": row["model_b"]}.get(row["winner_ab"], row["winner_ab"])
            second = {"A": row["model_b"], "B": row["model_a"]}.get(row["winner_ba"], row["winner_ba"])
            if "error" in (first, second) or None in (first, second):
                continue
            points = (
                0.5
                if first != second or first not in (row["model_a"], row["model_b"])
                else float(first == row["model_a"])
            )
            results.append((row["model_a"], row["model_b"], points))
    return results


def bradley_terry(matches: list[Played], prior: float = 1000.0) -> dict[str, float]:
    """Ratings by gradient ascent on the penalised likelihood, match by match."""
    table = Counter(matches)
    unit = math.log(10) / 400
    rating = dict.fromkeys(sorted({name for a, b, _ in matches for name in (a, b)}), 0.0)
    for _ in range(4000):
        slope = {name: -value / (prior * unit) ** 2 for name, value in rating.items()}
        for (a, b, points), n in table.items():
            surprise = n * (points - 1 / (1 + math.exp(rating[b] - rating[a])))
            slope[a] += surprise
            slope[b] -= surprise
        rating = {name: value + slope[name] / 200 for name, value in rating.items()}
    return {name: 1000 + value / unit for name, value in rating.items()}


def elo(matches: list[Played], k: float = 4.0) -> dict[str, float]:
    """Ratings from the matches in the order of the files."""
    rating = {name: 1000.0 for a, b, _ in matches for name in (a, b)}
    for a, b, points in matches:
        gain = k * (points - 1 / (1 + 10 ** ((rating[b] - rating[a]) / 400)))
        rating[a] += gain
        rating[b] -= gain
    return rating


def win_rate(matches: list[Played]) -> dict[str, float]:
    points, n = Counter[str](), Counter[str]()
    for a, b, gained in matches:
        points.update({a: gained, b: 1 - gained})
        n.update((a, b))
    return {name: points[name] / n[name] for name in n}


@pytest.mark.parametrize("judge", JUDGES)
def test_boards_match_naive_loops(judge: str) -> None:
    systems = choose_systems(["bradley-terry", "elo:order=file", "win-rate"])
    boards = rate_sources(read(f"mtbench-judges:{JUDGMENTS / judge}"), systems, 20, 0)
    matches = load_games(judge)
    for one, naive in zip(boards, (bradley_terry, elo, win_rate), strict=True):
        assert one.board.matches == len(matches)
        ratings = {standing.model: standing.rating for standing in one.board.standings}
        assert ratings == pytest.approx(naive(matches), abs=1e-6)
    assert sum(standing.wins for standing in boards[0].board.standings) == sum(points != 0.5 for *_, points in matches)


def test_two_judges_compare_on_the_same_prompts() -> None:
    exaone, qwen = (read(f"mtbench-judges:{JUDGMENTS / judge}") for judge in JUDGES)
    (one,) = compare_boards(qwen, exaone, choose_systems(["bradley-terry"]), 200, 0)
    assert one.shift.paired
    assert (one.shift.models, one.shift.prompts) == (6, 80)
    apart = rate_sources((*qwen, *exaone), choose_systems(["bradley-terry"]), 200, 0)
    widths = [{s.model: (s.high or 0) - (s.low or 0) for s in figure.board.standings} for figure in apart]
    for change in one.shift.changes:
        assert change.low is not None
        assert change.high is not None
        # Prompt effects shared by both boards cancel, so the interval is narrower than for unrelated boards.
        assert change.high - change.low < math.hypot(*(side[change.model] for side in widths))
