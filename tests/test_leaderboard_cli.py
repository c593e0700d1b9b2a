"""``distract leaderboard`` as a user meets it: boards of votes and judgments, attacks on boards, wrong input."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commanding import Ran, fits

from distract.runfolder import load

SHARED = Path(__file__).parents[2] / "shared" / "data"
PAIRS, MT_BENCH = SHARED / "mtbench_judges6", SHARED / "mt_bench"
published = pytest.mark.skipif(not PAIRS.is_dir(), reason=f"needs published judgments of pairs in {PAIRS}")
answers = pytest.mark.skipif(not MT_BENCH.is_dir(), reason=f"needs the answers of MT-Bench in {MT_BENCH}")

Run = Callable[..., Ran]
VOTES = [("a", "b", "model_a"), ("b", "c", "model_a"), ("a", "c", "tie"), ("c", "a", "model_b"), ("b", "a", "model_b")]


def votes(path: str, rows: list[tuple[str, str, str]] | None = None, prompts: int = 5) -> str:
    lines = [
        json.dumps({"model_a": a, "model_b": b, "winner": winner, "question_id": index % prompts})
        for index, (a, b, winner) in enumerate(VOTES * 4 if rows is None else rows)
    ]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def data(path: str, cases: int = 6, models: str = "wxyz") -> str:
    """Answers that differ in length, so that the planted judge of length ranks them."""
    hedged = "I think it might be {} of the reasons, and perhaps it could be more. "
    lines = [
        {
            "id": f"c{i}",
            "prompt": f"Give reason number {i}.",
            "responses": [
                {"author": name, "text": hedged.format(3 + i) * (len(models) - place)}
                for place, name in enumerate(models)
            ],
        }
        for i in range(cases)
    ]
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


PLAY = ("leaderboard", "--judge", "planted:bold", "--generator", "rules", "--limit", "all")


@published
def test_published_judgments_are_rated_by_every_system(run: Run) -> None:
    source = f"mtbench-judges:{PAIRS}/judgments/qwen-judge_14B"
    systems = [part for name in ("bradley-terry", "elo", "trueskill") for part in ("--system", name)]
    found = run("leaderboard", "--matches", source, *systems, "--json")
    assert (found.code, found.err) == (0, "")
    boards = found.document["boards"]
    assert [board["system"] for board in boards] == ["bradley-terry", "elo", "trueskill"]
    for board in boards:
        assert (board["matches"] + board["invalid"], board["prompts"], len(board["rows"])) == (1200, 80, 6)
        assert all(row["low"] < row["rating"] < row["high"] for row in board["rows"])
        assert [row["rank"] for row in board["rows"]] == [1, 2, 3, 4, 5, 6]
    assert len({board["rows"][0]["model"] for board in boards}) == 1


def test_votes_are_rated_and_shown_in_eighty_columns(run: Run) -> None:
    found = run("leaderboard", "--matches", votes("votes.jsonl"), "--system", "bradley-terry", "--system", "win-rate")
    assert found.code == 0
    fits(found.out)
    assert "bradley-terry: 20 matches, 5 prompts" in found.words
    assert "win-rate" in found.words
    again = run("leaderboard", "--matches", "votes.jsonl", "--json")
    rows = again.document["boards"][0]["rows"]
    assert [(row["model"], row["wins"], row["losses"], row["ties"]) for row in rows] == [
        ("a", 12, 0, 4),
        ("b", 4, 8, 0),
        ("c", 0, 8, 4),
    ]


def test_an_anchor_holds_its_rating(run: Run) -> None:
    votes("votes.jsonl")
    found = run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "bradley-terry", "--json")
    by = {row["model"]: row for row in found.document["boards"][0]["rows"]}
    assert (by["c"]["rating"], by["c"]["low"], by["c"]["high"]) == (1000.0, 1000.0, 1000.0)
    assert found.document["boards"][0]["parameters"]["anchor"] == "c"
    refused = run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "elo")
    assert refused.code == 2
    assert "bradley-terry" in refused.err


def test_boards_of_two_files_are_compared(run: Run) -> None:
    votes("one.jsonl")
    votes("two.jsonl", [(a, b, {"model_a": "model_b", "model_b": "model_a"}.get(w, w)) for a, b, w in VOTES * 4])
    found = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json")
    (one,) = found.document["against"]
    by = {row["model"]: row for row in one["rows"]}
    assert (by["a"]["rank_before"], by["a"]["rank_after"]) == (3, 1)
    assert by["a"]["change"] > 0 > by["c"]["change"]
    assert one["tau"] == -1
    same = run("leaderboard", "--matches", "one.jsonl", "--against", "one.jsonl")
    assert same.code == 0
    assert "Kendall's tau between the two boards: 1.00" in same.words
    fits(same.out)


def test_the_lowest_are_restyled_and_both_boards_stand_side_by_side(run: Run) -> None:
    data("d.jsonl")
    found = run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 2, "--out", "run")
    assert found.code == 0, found.err
    fits(found.out)
    assert "before" in found.out
    assert "after" in found.out
    assert found.out.count("Kendall's tau between the two boards") == 3
    document = json.loads(Path("run/summary.json").read_text())
    assert {board["condition"] for board in document["boards"]} == {"baseline", "attacked"}
    for one in document["shift"]:
        assert len(one["attacked"]) == 2
        rose = [row for row in one["rows"] if row["model"] in one["attacked"]]
        assert all(row["change"] > 0 and row["p_rose"] > 0.5 for row in rose)
    shown = run("report", "run")
    assert shown.out.rstrip() == found.out.partition("\nrun folder:")[0].rstrip()
    assert run("report", "run", "--json").document == document
    again = run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 2, "--out", "run", "--json")
    assert again.document == document
    assert "no call is made" in again.err


def test_a_second_run_gives_the_same_bytes(run: Run) -> None:
    data("d.jsonl")
    for out in ("one", "two"):
        assert (
            run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--out", out, "--store", f"{out}.db").code == 0
        )
    for name in ("rows.jsonl", "summary.json", "rewrites.jsonl"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_another_system_asks_nothing_new(run: Run) -> None:
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


def test_a_plan_is_shown_and_nothing_is_asked(run: Run) -> None:
    data("d.jsonl")
    command = (*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--lowest", 1, "--plan")
    found = run(*command, "--json")
    # Six matches of four models on six prompts, three of them again after the attack, under two protocols.
    assert found.document["plan"]["comparisons"] == 2 * (36 + 18)
    assert found.document["plan"]["requests"] == {"absolute": 24 + 6, "pairwise": 2 * (36 + 18)}
    assert not Path(".distract").exists()
    said = run(*command)
    assert "36 matches a protocol" in said.out
    made = run(*command[:-1])
    assert made.code == 0
    assert f", {24 + 6 + 2 * (36 + 18)} made" in made.err


def test_a_plan_of_sampled_matches_is_no_less_than_what_is_played(run: Run) -> None:
    data("d.jsonl", cases=20)
    for seed in range(3):
        command = (*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--pairs", 40, "--seed", seed)
        plan = run(*command, "--plan", "--json").document["plan"]
        made = run(*command, "--json", "--out", f"run{seed}")
        judged = sum(bool(row.judgments) for row in load(Path(f"run{seed}")).rows)
        assert made.code == 0
        assert judged <= plan["comparisons"] <= judged * 1.3
    named = run(*command, "--target", "w", "--plan", "--json").document["plan"]
    # Both protocols judge the same rewrites, one for each answer of the model that plays.
    assert named["rewrites"] <= 20


def test_an_unfinished_run_shows_no_attack(run: Run) -> None:
    data("d.jsonl")
    assert run(*PLAY, "--data", "d.jsonl", "--attack", "assertiveness", "--out", "run").code == 0
    for name in ("manifest.json", "summary.json"):
        Path("run", name).unlink()
    rows = Path("run/rows.jsonl").read_text().splitlines(keepends=True)
    for kept in (len(rows) - 5, 20):
        Path("run/rows.jsonl").write_text("".join(rows[:kept]))
        found = run("report", "run", "--json")
        assert found.document["shift"] == []
        assert "unfinished" in found.document["unfinished"]
        assert {board["condition"] for board in found.document["boards"]} == {"baseline"}
        assert "before and after" not in run("report", "run").out


def test_what_cannot_be_compared_does_not_hide_what_was_paid_for(run: Run) -> None:
    data("d.jsonl")
    votes("votes.jsonl", [("w", "x", "tie"), ("x", "y", "model_a")])
    found = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--against", "votes.jsonl", "--json")
    assert found.code == 3
    assert found.document["boards"] == []
    assert "not compared" in found.err


def test_boards_without_a_common_prompt_are_not_paired(run: Run) -> None:
    votes("one.jsonl")
    Path("two.jsonl").write_text(Path("one.jsonl").read_text().replace('"question_id": ', '"question_id": 1'))
    (found,) = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json").document["against"]
    assert (found["paired"], found["shared"], found["prompts"]) == (False, 0, 10)
    assert "no prompt is on both boards" in found["notes"][0]


def test_where_every_prompt_says_the_same_no_interval_is_made_up(run: Run) -> None:
    votes("v.jsonl", [("a", "b", "model_a"), ("a", "c", "model_a"), ("b", "c", "model_a")] * 4, prompts=4)
    systems = [part for name in ("elo", "elo:order=file", "trueskill", "win-rate") for part in ("--system", name)]
    for board in run("leaderboard", "--matches", "v.jsonl", *systems, "--json").document["boards"]:
        assert all(row["low"] is None for row in board["rows"]), board["system"]
        assert any("no interval" in note for note in board["notes"])
        assert any("4 prompts only" in note for note in board["notes"])


def test_large_counts_and_sigma_fit(run: Run) -> None:
    names = [f"a-model-with-a-name-{i}" for i in range(3)]
    rows = [(a, b, ("tie", "model_a")[i % 2]) for i in range(9000) for a, b in itertools.pairwise(names)]
    votes("votes.jsonl", rows, prompts=50)
    found = run("leaderboard", "--matches", "votes.jsonl", "--system", "trueskill:shuffles=1", "--draws", "5")
    fits(found.out)
    assert "sigma" in found.out
    assert "18.0k" in found.out


def test_matches_are_sampled_in_a_balanced_design(run: Run) -> None:
    data("d.jsonl")
    found = run(*PLAY, "--data", "d.jsonl", "--pairs", 12, "--json", "--protocol", "pairwise", "--out", "run")
    (board,) = found.document["boards"]
    assert board["matches"] == 12
    assert {row["matches"] for row in board["rows"]} == {6}
    assert {(row.a.author, row.b.author) for row in load(Path("run")).rows} == {
        (a, b) for a, b in ("wx", "wy", "wz", "xy", "xz", "yz")
    }


def test_a_run_is_compared_with_another(run: Run) -> None:
    data("d.jsonl")
    assert run(*PLAY, "--data", "d.jsonl", "--out", "one").code == 0
    command = ["leaderboard", "--judge", "planted:longer", "--data", "d.jsonl", "--limit", "all", "--against", "one"]
    found = run(*command, "--json")
    assert {(one["protocol"], one["rule"]) for one in found.document["against"]} == {
        ("absolute", "rating"),
        ("absolute", "score"),
        ("pairwise", None),
    }
    boards = run("leaderboard", "--matches", "one", "--against", "one", "--json").document
    # A judge that sees no difference in quality rates all answers alike, and then there is no order to keep.
    assert [(one["rule"], one["tau"]) for one in boards["against"]] == [("score", 1), ("rating", None), (None, 1)]
    assert run(*command).code == 0


def test_names_are_text_whatever_they_hold(run: Run) -> None:
    names = ['Ann, "the" judge', "[bold]red[/bold]", "🦙 llama", "=1+1"]
    rows = [(a, b, "model_a") for i, a in enumerate(names) for b in names[i + 1 :]]
    votes("votes.jsonl", rows * 3)
    found = run("leaderboard", "--matches", "votes.jsonl", "--anchor", names[0])
    assert found.code == 0, found.err
    fits(found.out)
    for name in names:
        assert name in found.out
    shown = run("leaderboard", "--matches", "votes.jsonl", "--json").document["boards"][0]
    assert {row["model"] for row in shown["rows"]} == set(names)


def test_models_are_named_also_with_commas(run: Run) -> None:
    text = Path(data("d.jsonl")).read_text().replace('"w"', '"w, the first"')
    Path("d.jsonl").write_text(text)
    found = run(*PLAY, "--data", "d.jsonl", "--models", "w, the first", "--models", "x,y", "--json")
    assert found.document["models"] == ["w, the first", "x", "y"]


WRONG: list[tuple[tuple[Any, ...], str]] = [
    (("--matches", "nowhere.jsonl"), "no such file"),
    (("--matches", "votes.jsonl", "--system", "glicko"), "unknown rating system 'glicko'"),
    (("--matches", "votes.jsonl", "--system", "elo:kk=3"), "no parameter 'kk'"),
    (("--matches", "votes.jsonl", "--system", "elo:k=much"), "expected a number"),
    (("--matches", "votes.jsonl", "--system", "style-control"), "length"),
    (("--matches", "votes.jsonl", "--anchor", "nobody"), "unknown model 'nobody'"),
    (("--matches", "votes.jsonl", "--system", "elo:k=1e308"), "in size"),
    (("--matches", "votes.jsonl", "--system", "bradley-terry:anchor=a", "--anchor", "b"), "anchor a already"),
    (("--matches", "votes.jsonl", "--against", ""), "no such file"),
    (("--data", "d.jsonl", "--anchor", "nobody"), "unknown model 'nobody'"),
    (("--data", "d.jsonl", "--system", "elo:k=-3"), "k: expected"),
    (("--data", "d.jsonl", "--against", "votes.jsonl"), "fewer than two models in common"),
    (("--data", "d.jsonl", "--pairs", "1"), "too few for 4 models to play; expected 2"),
    (("--matches", "votes.jsonl", "--judge", "planted:fair"), "--judge goes with a judge that is asked"),
    (("--matches", "votes.jsonl", "--lowest", "1"), "--lowest goes with a judge that is asked"),
    (("--matches", "self.jsonl"), "self.jsonl:1"),
    (("--matches", "odd.jsonl"), "winner"),
    (("--matches", "votes.jsonl", "--against", "others.jsonl"), "fewer than two models in common"),
    (("--data", "d.jsonl", "--models", "w,nobody"), "unknown model 'nobody'"),
    (("--data", "d.jsonl", "--models", "w"), "w alone is no leaderboard"),
    (("--data", "d.jsonl", "--attack", "bold"), "unknown attack 'bold'"),
    (("--data", "d.jsonl", "--attack", "severity-1"), "name an attack on style"),
    (("--data", "d.jsonl", "--attack", "none"), "attacks nothing"),
    (("--data", "d.jsonl", "--lowest", "1"), "--attack"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--lowest", "4"), "expected 1 to 3"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "nobody"), "unknown target 'nobody'"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "w", "--lowest", "1"), "leave out --lowest"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--generator", "recorded"), "no recorded rewrites"),
    (("--data", "d.jsonl", "--protocol", "triadic"), "shows 3 responses"),
    (("--data", "d.jsonl", "--protocol", "strong-reference"), "reference"),
    (
        (
            "--data",
            "one.jsonl",
        ),
        "no case can be judged",
    ),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=lambda value: " ".join(map(str, value)) if value else "")
def test_wrong_input_is_one_line(run: Run, options: tuple[Any, ...], said: str) -> None:
    data("d.jsonl")
    votes("votes.jsonl")
    votes("others.jsonl", [("x", "y", "tie")])
    votes("self.jsonl", [("a", "a", "tie")])
    votes("odd.jsonl", [("a", "b", "both great")])
    one = {"prompt": "Why?", "responses": [{"author": "w", "text": "So."}]}
    other = {"prompt": "Why not?", "responses": [{"author": "x", "text": "So."}]}
    Path("one.jsonl").write_text(f"{json.dumps({'id': 'c1', **one})}\n{json.dumps({'id': 'c2', **other})}\n")
    found = run("leaderboard", *(() if "--matches" in options else ("--judge", "planted:fair")), *options)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert len(found.err.strip().splitlines()) == 1, found.err


def test_a_judge_without_verdicts_is_inconclusive(run: Run) -> None:
    data("d.jsonl")
    found = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--attack", "assertiveness")
    assert found.code == 3
    assert "no verdict was valid" in found.err
    assert "nothing is rated" in found.words


@answers
def test_the_embedded_judge_plays_a_small_tournament(run: Run, smollm2: object) -> None:
    models = "gpt-4,llama-13b"
    command = ["leaderboard", "--judge", "smollm2-135m", "--data", f"mt-bench:{MT_BENCH}", "--models", models]
    command += ["--attack", "assertiveness", "--generator", "rules", "--lowest", "1", "--limit", "1", "--json"]
    found = run(*command)
    assert found.code == 0, found.err
    document = found.document
    assert {(one["protocol"], one["condition"]) for one in document["boards"]} == {
        (protocol, condition) for protocol in ("absolute", "pairwise") for condition in ("baseline", "attacked")
    }
    for one in document["shift"]:
        assert len(one["attacked"]) == 1
        assert len(one["rows"]) == 2
        assert one["rewritten"] + one["standing"] == 1
    assert all(board["matches"] + board["invalid"] == 1 for board in document["boards"])
    again = run(*command)
    assert again.out == found.out
    assert "no call is made" in again.err
