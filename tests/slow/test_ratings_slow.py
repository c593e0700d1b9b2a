"""Test rating systems on hard and many matches, draws, boards under other names, and TrueSkill's error function."""

import itertools
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_result import Run, fits
from distract.leaderboards.shuffles import Orders
from hypothesis import given, strategies as st
from rating_matches import simulate_matches, table
from test_boards import POINTS, matches, sample_rows
from test_bradley_terry import CONTROLLED, LOGIT, PLAIN, Played, fit_naively, matches_of, plant_matches
from test_elo import EXACT, ours, rate_with_library
from test_leaderboard_design import PLAY, data, votes

from distract.core.runs import load
from distract.stats.ratings.draws import draw
from distract.stats.ratings.matches import Matches
from distract.studies.leaderboard.boards.board import build_board

HARD: dict[str, tuple[Played, set[str]]] = {
    "two models, one match": ([("a", "b", "a", "p")], {"a", "b"}),
    "a million wins": ([("a", "b", "a", "p")] * 1_000_000, {"a", "b"}),
    "a chain of winners": ([(f"m{i}", f"m{i + 1}", "a", "p") for i in range(9)] * 30, {"m0", "m9"}),
    "a cycle": ([("a", "b", "a", "p"), ("b", "c", "a", "p"), ("c", "a", "a", "p")] * 5, set()),
    "two groups": ([("a", "b", "a", "p"), ("b", "a", "a", "p"), ("c", "d", "tie", "p")], set()),
    "one that lost all": ([("a", "b", "tie", "p"), ("a", "c", "a", "q"), ("b", "c", "a", "p")], {"c"}),
    "one tie among a thousand wins": ([("a", "b", "a", "p")] * 1000 + [("a", "b", "tie", "q")], set()),
}


@pytest.mark.parametrize(("rows", "resting"), HARD.values(), ids=HARD)
def test_hard_matches_have_finite_maximum_ratings(rows: Played, resting: set[str]) -> None:
    matches = matches_of(rows)
    for sd in (30.0, 1000.0, 20_000.0):
        ratings = PLAIN.rate(matches, prior=sd)
        theta = (ratings.rating - 1000) / LOGIT
        # At the maximum, the wins of a model equal its expected wins less the pull of the prior.
        slope = -((LOGIT / sd) ** 2) * theta
        gap = theta[matches.a] - theta[matches.b]
        residual = np.array([1.0, 0.0, 0.5])[matches.outcome] - 1 / (1 + np.exp(-gap))
        np.add.at(slope, matches.a, residual)
        np.add.at(slope, matches.b, -residual)
        assert slope == pytest.approx(np.zeros(len(theta)), abs=1e-9 * max(1, len(rows)))
        assert np.isfinite(ratings.covariance).all()
        assert {note.split(" ")[0] for note in ratings.notes} == resting


def measure_peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def rate_and_draw(matches: Matches) -> None:
    PLAIN.rate(matches)
    PLAIN.redraw(matches, draw(0, 20, matches.clusters))


# The allowance for style control covers the size of the last part.
@pytest.mark.parametrize(
    ("work", "few", "many", "allowance"),
    [(rate_and_draw, 300_000, 1_500_000, 1.1), (CONTROLLED.rate, 100_000, 600_000, 1.5)],
)
def test_memory_does_not_grow_with_matches(
    work: Callable[[Matches], object], few: int, many: int, allowance: float
) -> None:
    def peak(count: int) -> int:
        matches: Any = plant_matches(6, 2000, 50, 50)
        names, times = ("a", "b", "outcome", "cluster"), count // 2000
        columns = {name: np.tile(getattr(matches, name), times) for name in names}
        tiled = replace(matches, **columns, lengths=np.tile(matches.lengths, (times, 1)))
        return measure_peak(lambda: work(tiled))

    assert peak(many) < allowance * peak(few)


def test_many_matches_are_processed_in_parts() -> None:
    # More matches than are kept as rows, against the same matches counted one by one.
    matches = plant_matches(4, 40_000, 50, 60)
    ratings = CONTROLLED.rate(matches)
    theta = fit_naively(matches)
    assert ratings.rating == pytest.approx(1000 + LOGIT * (theta[:-1] - theta[:-1].mean()), abs=1e-4)


@given(st.integers(0, 10**6), st.permutations("abcd"), st.randoms(use_true_random=False))
def test_names_and_match_order_do_not_matter(seed: int, names: Sequence[str], random: Any) -> None:
    rows = sample_rows(seed, 6)
    new = dict(zip("abcd", names, strict=True))
    again = [(new[a], new[b], outcome, prompt) for a, b, outcome, prompt in rows]
    one, other = build_board(matches(rows), POINTS), build_board(matches(again), POINTS)
    by = {s.model: s for s in other.standings}
    for standing in one.standings:
        twin = by[new[standing.model]]
        assert (standing.rating, standing.error) == pytest.approx((twin.rating, twin.error))
        assert (standing.rank, standing.wins, standing.ties) == (twin.rank, twin.wins, twin.ties)
    # Within a prompt, so that prompts keep their numbers and with them their draws.
    random.shuffle(rows)
    rows.sort(key=lambda row: int(row[3][1:]))
    mixed = {s.model: s for s in build_board(matches(rows), POINTS).standings}
    for standing in one.standings:
        assert mixed[standing.model].error == pytest.approx(standing.error)


def test_all_orders_are_equally_likely() -> None:
    order_counts = Counter(tuple(Orders(4, "shuffled", 6000, 0).last(index, 4).tolist()) for index in range(6000))
    assert len(order_counts) == 24
    assert sum((often - 250) ** 2 / 250 for often in order_counts.values()) < 49.7  # chi square, 23 degrees, 0.999


def test_exact_error_function_agrees_with_the_library() -> None:
    played = simulate_matches(6, 1689)
    ratings = ours.rate(table(played), order="file")
    share = sum(outcome == "tie" for _, _, outcome in played) / len(played)
    assert ratings.parameters["draw_probability"] == share
    assert ratings.notes == (f"draw probability {share:.3f}: the share of ties among these matches",)
    expected = rate_with_library(played, ratings.models, backend=EXACT, draw_probability=share)
    assert ratings.rating == pytest.approx([mu for mu, _ in expected], abs=1e-11)
    assert ratings.sigma == pytest.approx([sigma for _, sigma in expected], abs=1e-11)


ATTACKED = (*PLAY, "--data", "d.jsonl", "--attack", "assertiveness")


def test_lowest_models_are_restyled_and_both_boards_shown(run: Run) -> None:
    data("d.jsonl")
    ran = run(*ATTACKED, "--lowest", 2, "--out", "run", "--verbose")
    assert ran.code == 0, ran.err
    fits(ran.out)
    assert "before" in ran.out
    assert "after" in ran.out
    assert ran.words.count("Kendall's tau between the two boards") == 3
    assert ran.words.index("2 of 2 attacked models rose in rank after assertiveness") < ran.words.index("rose in %")
    document = json.loads(Path("run/summary.json").read_text())
    assert {board["condition"] for board in document["boards"]} == {"baseline", "attacked"}
    for one in document["shift"]:
        assert len(one["attacked"]) == 2
        rose = [row for row in one["rows"] if row["model"] in one["attacked"]]
        assert all(row["change"] > 0 and row["p_rose"] > 0.5 for row in rose)
    assert run("report", "run", "--verbose").out.rstrip() == ran.out.partition("\nrun folder:")[0].rstrip()
    assert run("report", "run", "--json").document == document
    again = run(*ATTACKED, "--lowest", 2, "--out", "run", "--json")
    assert again.document == document
    assert "no call is made" in again.err


def test_another_system_sends_no_new_request(run: Run) -> None:
    data("d.jsonl")
    assert run(*ATTACKED, "--out", "one").code == 0
    more = run(*ATTACKED, "--system", "bradley-terry", "--system", "elo")
    assert more.code == 0
    assert ", 0 made" in more.err
    lengths = run(*PLAY, "--data", "d.jsonl", "--system", "style-control", "--json")
    assert "length" in lengths.document["boards"][0]["extra"]
    former = run(*PLAY, "--data", "d.jsonl", "--system", "length-controlled", "--json")
    assert former.out == lengths.out
    assert "length-controlled is called style-control" in former.err
    assert "called style-control" not in lengths.err


def test_dry_run_shows_the_plan_and_sends_no_request(run: Run) -> None:
    data("d.jsonl")
    command = (*ATTACKED, "--lowest", 1, "--dry-run")
    ran = run(*command, "--json")
    # Six matches of four models on six prompts, three of them judged again after the attack, under two protocols.
    assert ran.document["plans"][0]["comparisons"] == 2 * (36 + 18)
    assert ran.document["plans"][0]["requests"] == {"absolute": 24 + 6, "pairwise": 2 * (36 + 18)}
    assert not Path(".distract").exists()
    assert "36 matches per protocol" in run(*command).out
    result = run(*command[:-1])
    assert result.code == 0
    assert f", {24 + 6 + 2 * (36 + 18)} made" in result.err


def test_plan_of_sampled_matches_is_an_upper_bound(run: Run) -> None:
    data("d.jsonl", cases=20)
    for seed in range(3):
        command = (*ATTACKED, "--pairs", 40, "--seed", seed)
        plan = run(*command, "--dry-run", "--json").document["plans"][0]
        result = run(*command, "--json", "--out", f"run{seed}")
        judged = sum(bool(row.judgments) for row in load(Path(f"run{seed}")).rows)
        assert result.code == 0
        assert judged <= plan["comparisons"] <= judged * 1.3
    target_plan = run(*command, "--target", "w", "--dry-run", "--json").document["plans"][0]
    # Both protocols judge the same rewrites, one for each answer of the model that plays.
    assert target_plan["rewrites"] <= 20


def test_unfinished_run_shows_no_attack(run: Run) -> None:
    data("d.jsonl")
    assert run(*ATTACKED, "--out", "run").code == 0
    for name in ("manifest.json", "summary.json"):
        Path("run", name).unlink()
    rows = Path("run/rows.jsonl").read_text().splitlines(keepends=True)
    for line_count in (len(rows) - 5, 20):
        Path("run/rows.jsonl").write_text("".join(rows[:line_count]))
        result = run("report", "run", "--json")
        assert result.document["shift"] == []
        assert "unfinished" in result.document["unfinished"]
        assert {board["condition"] for board in result.document["boards"]} == {"baseline"}
        assert "before and after" not in run("report", "run").out


def test_large_counts_and_sigma_fit(run: Run) -> None:
    names = [f"a-model-with-a-name-{i}" for i in range(3)]
    rows = [(a, b, ("tie", "model_a")[i % 2]) for i in range(9000) for a, b in itertools.pairwise(names)]
    votes("votes.jsonl", rows, prompts=50)
    result = run("leaderboard", "--matches", "votes.jsonl", "--system", "trueskill:shuffles=1", "--draws", "5")
    fits(result.out)
    assert "sigma" in result.out
    assert "18.0k" in result.out


def test_run_is_compared_with_another(run: Run) -> None:
    data("d.jsonl")
    assert run(*PLAY, "--data", "d.jsonl", "--out", "one").code == 0
    command = ["leaderboard", "--judge", "planted:longer", "--data", "d.jsonl", "--limit", "all", "--against", "one"]
    result = run(*command, "--json")
    boards = {(one["protocol"], one["rule"]) for one in result.document["against"]}
    assert boards == {("absolute", "rating"), ("absolute", "score"), ("pairwise", None)}
    own = run("leaderboard", "--matches", "one", "--against", "one", "--json").document["against"]
    # A judge that sees no difference in quality rates all answers alike, so no order is expected.
    assert [(one["rule"], one["tau"]) for one in own] == [("score", 1), ("rating", None), (None, 1)]
    assert run(*command).code == 0
