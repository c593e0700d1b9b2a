"""Test ``distract leaderboard`` on the command line: boards of votes and judgments, attacks on boards, wrong input."""

import itertools
import json
from pathlib import Path

from command_result import Run, fits
from test_leaderboard_design import PLAY, data, votes

from distract.core.runs import load


def test_lowest_models_are_restyled_and_both_boards_shown(run: Run) -> None:
    data("d.jsonl")
    ran = run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 2, "--out", "run", "--verbose")
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
    report = run("report", "run", "--verbose")
    assert report.out.rstrip() == ran.out.partition("\nrun folder:")[0].rstrip()
    assert run("report", "run", "--json").document == document
    again = run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 2, "--out", "run", "--json")
    assert again.document == document
    assert "no call is made" in again.err


def test_rerun_writes_the_same_bytes(run: Run) -> None:
    data("d.jsonl")
    for out in ("one", "two"):
        assert (
            run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--out", out, "--store", f"{out}.db").code == 0
        )
    for name in ("rows.jsonl", "summary.json", "rewrites.jsonl"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_another_system_sends_no_new_request(run: Run) -> None:
    data("d.jsonl")
    assert run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--out", "one").code == 0
    more = run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--system", "bradley-terry", "--system", "elo")
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
    command = (*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 1, "--dry-run")
    ran = run(*command, "--json")
    # Six matches of four models on six prompts, three of them judged again after the attack, under two protocols.
    assert ran.document["plans"][0]["comparisons"] == 2 * (36 + 18)
    assert ran.document["plans"][0]["requests"] == {"absolute": 24 + 6, "pairwise": 2 * (36 + 18)}
    assert not Path(".distract").exists()
    text = run(*command)
    assert "36 matches per protocol" in text.out
    result = run(*command[:-1])
    assert result.code == 0
    assert f", {24 + 6 + 2 * (36 + 18)} made" in result.err


def test_plan_of_sampled_matches_is_an_upper_bound(run: Run) -> None:
    data("d.jsonl", cases=20)
    for seed in range(3):
        command = (*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--pairs", 40, "--seed", seed)
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
    assert run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--out", "run").code == 0
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
    assert {(one["protocol"], one["rule"]) for one in result.document["against"]} == {
        ("absolute", "rating"),
        ("absolute", "score"),
        ("pairwise", None),
    }
    boards = run("leaderboard", "--matches", "one", "--against", "one", "--json").document
    # A judge that sees no difference in quality rates all answers alike, so no order is expected.
    assert [(one["rule"], one["tau"]) for one in boards["against"]] == [("score", 1), ("rating", None), (None, 1)]
    assert run(*command).code == 0
