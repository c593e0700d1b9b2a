"""Test ``distract leaderboard`` on the command line: boards, attacks on boards, wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_result import Run, check_refusal, fits

from distract.core.runs import load

VOTES = [("a", "b", "model_a"), ("b", "c", "model_a"), ("a", "c", "tie"), ("c", "a", "model_b"), ("b", "a", "model_b")]


def votes(path: str, rows: list[tuple[str, str, str]] | None = None, prompts: int = 5) -> str:
    lines = [
        json.dumps({"model_a": a, "model_b": b, "winner": winner, "question_id": index % prompts})
        for index, (a, b, winner) in enumerate(VOTES * 4 if rows is None else rows)
    ]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def data(path: str, cases: int = 6, models: str = "wxyz") -> str:
    """Answers of different lengths, so that the planted judge of length ranks them."""
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


def test_rated_votes_fit_eighty_columns(run: Run) -> None:
    result = run("leaderboard", "--matches", votes("votes.jsonl"), "--system", "bradley-terry", "--system", "win-rate")
    assert result.code == 0
    fits(result.out)
    assert "bradley-terry: 20 matches, 5 prompts" in result.words
    assert "win-rate" in result.words
    rows = run("leaderboard", "--matches", "votes.jsonl", "--json").document["boards"][0]["rows"]
    assert [(row["model"], row["wins"], row["losses"], row["ties"]) for row in rows] == [
        ("a", 12, 0, 4),
        ("b", 4, 8, 0),
        ("c", 0, 8, 4),
    ]


def test_anchor_keeps_its_rating(run: Run) -> None:
    votes("votes.jsonl")
    result = run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "bradley-terry", "--json")
    by = {row["model"]: row for row in result.document["boards"][0]["rows"]}
    assert (by["c"]["rating"], by["c"]["low"], by["c"]["high"]) == (1000.0, 1000.0, 1000.0)
    assert result.document["boards"][0]["parameters"]["anchor"] == "c"
    check_refusal(run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "elo"), "bradley-terry")


def test_boards_of_two_files_are_compared(run: Run) -> None:
    votes("one.jsonl")
    votes("two.jsonl", [(a, b, {"model_a": "model_b", "model_b": "model_a"}.get(w, w)) for a, b, w in VOTES * 4])
    result = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json")
    (one,) = result.document["against"]
    by = {row["model"]: row for row in one["rows"]}
    assert (by["a"]["rank_before"], by["a"]["rank_after"]) == (3, 1)
    assert by["a"]["change"] > 0 > by["c"]["change"]
    assert one["tau"] == -1
    turned = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--verbose")
    assert "more:" not in turned.words
    assert "2 of 3 models changed rank: " in turned.words
    assert "a (3 → 1)" in turned.words[: turned.words.index("Kendall's tau")]
    same = run("leaderboard", "--matches", "one.jsonl", "--against", "one.jsonl")
    assert "0 of 3 models changed rank." in same.words
    assert same.code == 0
    assert "Kendall's tau between the two boards: 1.00" in same.words
    fits(same.out)


def test_failed_comparison_keeps_the_paid_results(run: Run) -> None:
    data("d.jsonl")
    votes("votes.jsonl", [("w", "x", "tie"), ("x", "y", "model_a")])
    result = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--against", "votes.jsonl", "--json")
    assert (result.code, result.document["boards"]) == (3, [])
    assert "not compared" in result.err


def test_boards_without_a_common_prompt_are_not_paired(run: Run) -> None:
    votes("one.jsonl")
    Path("two.jsonl").write_text(Path("one.jsonl").read_text().replace('"question_id": ', '"question_id": 1'))
    (result,) = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json").document["against"]
    assert (result["paired"], result["shared"], result["prompts"]) == (False, 0, 10)
    assert "no prompt is on both boards" in result["notes"][0]


def test_constant_prompts_give_no_interval(run: Run) -> None:
    votes("v.jsonl", [("a", "b", "model_a"), ("a", "c", "model_a"), ("b", "c", "model_a")] * 4, prompts=4)
    systems = [part for name in ("elo", "elo:order=file", "trueskill", "win-rate") for part in ("--system", name)]
    for board in run("leaderboard", "--matches", "v.jsonl", *systems, "--json").document["boards"]:
        assert all(row["low"] is None for row in board["rows"]), board["system"]
        assert any("no interval" in note for note in board["notes"])
        assert any("4 prompts only" in note for note in board["notes"])


def test_sampled_matches_are_balanced(run: Run) -> None:
    data("d.jsonl")
    result = run(*PLAY, "--data", "d.jsonl", "--pairs", 12, "--json", "--protocol", "pairwise", "--out", "run")
    (board,) = result.document["boards"]
    assert board["matches"] == 12
    assert {row["matches"] for row in board["rows"]} == {6}
    assert {(row.a.author, row.b.author) for row in load(Path("run")).rows} == {
        (a, b) for a, b in ("wx", "wy", "wz", "xy", "xz", "yz")
    }


def test_names_stay_text(run: Run) -> None:
    names = ['Ann, "the" judge', "[bold]red[/bold]", "🦙 llama", "=1+1"]
    votes("votes.jsonl", [(a, b, "model_a") for i, a in enumerate(names) for b in names[i + 1 :]] * 3)
    result = run("leaderboard", "--matches", "votes.jsonl", "--anchor", names[0])
    assert result.code == 0, result.err
    fits(result.out)
    for name in names:
        assert name in result.out
    report = run("leaderboard", "--matches", "votes.jsonl", "--json").document["boards"][0]
    assert {row["model"] for row in report["rows"]} == set(names)


def test_models_option_accepts_names_with_commas(run: Run) -> None:
    text = Path(data("d.jsonl")).read_text().replace('"w"', '"w, the first"')
    Path("d.jsonl").write_text(text)
    result = run(*PLAY, "--data", "d.jsonl", "--models", "w, the first", "--models", "x,y", "--json")
    assert result.document["models"] == ["w, the first", "x", "y"]


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
    (("--data", "d.jsonl", "--against", "votes.jsonl"), "shares fewer than two models"),
    (("--data", "d.jsonl", "--pairs", "1"), "too few for matches of 4 models; expected at least 2"),
    (("--matches", "votes.jsonl", "--judge", "planted:fair"), "--judge applies only when a judge is asked"),
    (("--matches", "votes.jsonl", "--lowest", "1"), "--lowest applies only when a judge is asked"),
    (("--matches", "self.jsonl"), "self.jsonl:1"),
    (("--matches", "odd.jsonl"), "winner"),
    (("--matches", "votes.jsonl", "--against", "others.jsonl"), "shares fewer than two models"),
    (("--data", "d.jsonl", "--models", "w,nobody"), "unknown model 'nobody'"),
    (("--data", "d.jsonl", "--models", "w"), "w is the only model"),
    (("--data", "d.jsonl", "--attack", "boldly"), "unknown attack 'boldly'"),
    (("--data", "d.jsonl", "--attack", "severity-1"), "name an attack on style"),
    (("--data", "d.jsonl", "--attack", "none"), "rewrites nothing"),
    (("--data", "d.jsonl", "--lowest", "1"), "--attack"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--lowest", "4"), "expected 1 to 3"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "nobody"), "unknown target 'nobody'"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "w", "--lowest", "1"), "omit --lowest"),
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


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_input_is_one_line(run: Run, options: tuple[Any, ...], message: str) -> None:
    data("d.jsonl")
    votes("votes.jsonl")
    votes("others.jsonl", [("x", "y", "tie")])
    votes("self.jsonl", [("a", "a", "tie")])
    votes("odd.jsonl", [("a", "b", "both great")])
    one = {"prompt": "Why?", "responses": [{"author": "w", "text": "So."}]}
    other = {"prompt": "Why not?", "responses": [{"author": "x", "text": "So."}]}
    Path("one.jsonl").write_text(f"{json.dumps({'id': 'c1', **one})}\n{json.dumps({'id': 'c2', **other})}\n")
    result = run("leaderboard", *(() if "--matches" in options else ("--judge", "planted:fair")), *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1, result.err


def test_judge_without_verdicts_is_inconclusive(run: Run) -> None:
    data("d.jsonl")
    result = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--attack", "assertiveness")
    assert result.code == 3
    assert "no verdict was valid" in result.err
    assert "nothing is rated" in result.words
