"""Published judgments and answers as boards, against naive loops over the files, and as a consistency study."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from command_result import Run
from test_sources_judgments import list_games, prompt_id

from distract.core.errors import DataError
from distract.judging import published as replay
from distract.judging.verdicts import outcome
from distract.studies.leaderboard.boards.board_pairs import compare_boards, rate_sources
from distract.studies.leaderboard.boards.system_choice import choose_systems
from distract.studies.leaderboard.sources import read

SHARED = Path(__file__).parents[3] / "shared" / "data"
JUDGMENTS, MT_BENCH = SHARED / "mtbench_judges6" / "judgments", SHARED / "mt_bench"
needs_judgments = pytest.mark.skipif(not JUDGMENTS.is_dir(), reason=f"needs published judgments in {JUDGMENTS}")
needs_answers = pytest.mark.skipif(not MT_BENCH.is_dir(), reason=f"needs the answers of MT-Bench in {MT_BENCH}")

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


@needs_judgments
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


@needs_judgments
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


@needs_judgments
def test_every_system_rates_published_judgments(run: Run) -> None:
    source = f"mtbench-judges:{JUDGMENTS}/qwen-judge_14B"
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


@needs_answers
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
        assert (len(one["attacked"]), len(one["rows"]), one["rewritten"] + one["standing"]) == (1, 2, 1)
    assert all(board["matches"] + board["invalid"] == 1 for board in document["boards"])
    again = run(*command)
    assert again.out == result.out
    assert "no call is made" in again.err


@needs_judgments
@pytest.mark.parametrize("judge", JUDGES)
def test_replay_reads_the_published_verdicts(judge: str) -> None:
    (source,) = read(f"mtbench-judges:{JUDGMENTS / judge}")
    expected = Counter[tuple[str, str, str, str]]()
    invalid = 0
    files = sorted((JUDGMENTS / judge / "pairwise").glob("*.jsonl"))
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
    for spec in (JUDGMENTS / judge, JUDGMENTS / judge / "pairwise"):
        (again,) = read(str(spec))
        assert (again.name, again.sha256, again.matches.models) == (judge, source.sha256, source.matches.models)
    parts = [part for file in files for part in read(str(file))]
    assert sum(len(part.matches) for part in parts) == len(source.matches)


@needs_judgments
def test_replay_reads_the_same_outcomes() -> None:
    path = JUDGMENTS / "qwen-judge_14B" / "pairwise" / "gemma-2-9b-it_vs_Phi-3.5-mini-Instruct.jsonl"
    (source,), (published,) = read(str(path)), replay.load(str(path))
    outcomes = [(row, outcome(row.judgments, None)) for row in published.rows["stored"]]
    names = ({"a": row.a.author, "b": row.b.author}.get(result or "", result) for row, result in outcomes)
    assert Counter(winner for *_, winner in list_games(source.matches)) == Counter(name for name in names if name)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data sets")
def test_real_labelled_sets_load_completely() -> None:
    (source,) = read(str(SHARED / "pandalm" / "testset-v1.json"))
    assert (source.format, source.matches.models) == ("pandalm", ("response1", "response2"))
    assert len(source.matches) + sum(source.left_out.values()) == 999
    with pytest.raises(DataError, match="nothing can be rated: not two responses of different authors"):
        read(str(SHARED / "mt_bench"))


@needs_answers
def test_ten_models_answers_form_triples_and_quadruples(run: Run) -> None:
    ran = run("consistency", "--judge", "planted:fair", "--data", f"mt-bench:{MT_BENCH}", "--limit", "2", "--json")
    assert ran.code == 0
    figures = {(one["measure"], one["protocol"], one["place"]): (one["k"], one["n"]) for one in ran.results}
    assert figures["intransitivity", "pairwise", None] == figures["intransitivity", "rank", None] == (0, 8)
    assert figures["choice_set_sensitivity", "rank", "first"] == (0, 8)
