"""Test data with one response per case: a rewrite is judged against its original, and flips do not apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_result import check_refusal

LOGS = 40


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log of prompts and responses."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"prompt": f"What is {n} and one?", "response": f"It is probably {n + 1}, as one may see by counting."}
        for n in range(LOGS)
    ]
    Path("logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "logs.jsonl"


def attack(run: Callable[..., Any], judge: str, logs: str) -> Any:
    options = ("--data", logs, "--attack", "prolixity", "--limit", "all", "--out", "r")
    return run("attack", "--judge", f"planted:{judge}", *options)


def test_rewrite_against_its_original_is_summed_up(run: Callable[..., Any], logs: str) -> None:
    result = attack(run, "longer", logs)
    assert result.code == 0
    assert "no case has two responses by different authors; each rewrite is judged against its original" in result.err
    printed = " ".join(result.out.split())
    assert f"{LOGS} of {LOGS} prolixity rewrites won against their original" in printed
    (document,) = [json.loads(Path("r/summary.json").read_text())]
    rates = [one for one in document["results"] if one["measure"] == "distractor_win_rate"]
    assert {(one["k"], one["n"]) for one in rates} == {(LOGS, LOGS)}
    assert not any(one["measure"] == "flip_rate" for one in document["results"])


@pytest.mark.parametrize(
    ("judge", "limits", "code", "reason"),
    [
        ("longer", ("--max-win-rate", 0.3), 1, "lower bound of the rewrite win rate"),
        ("fair", ("--max-win-rate", 0.3), 0, "rewrite win rates are below 0.3"),
        ("fair", ("--max-win-rate", 0.01), 3, "do not settle 0.01"),
        ("first", ("--max-win-rate", 0.3), 3, "most verdicts change with the order"),
        ("longer", ("--max-shift", 0.2), 1, "lower bound of the shift"),
        ("fair", ("--max-shift", 0.2), 0, "shifts are below 0.2"),
        ("longer", ("--max-flip-rate", 0.1), 3, "a flip or a gain needs two responses per case: bound --max-win-rate"),
        ("fair", ("--max-flip-rate", 0.1, "--max-win-rate", 0.3), 3, "no rate was measured, although it has"),
        ("longer", ("--max-flip-rate", 0.1, "--max-win-rate", 0.3), 1, "lower bound of the rewrite win rate"),
    ],
)
def test_gate_decides_by_win_rate_and_shift(
    judge: str, limits: tuple[Any, ...], code: int, reason: str, run: Callable[..., Any], logs: str
) -> None:
    attack(run, judge, logs)
    result = run("gate", "r", *limits)
    assert result.code == code
    assert reason in " ".join(result.out.split())


def test_flips_and_page_say_why_there_are_none(run: Callable[..., Any], logs: str) -> None:
    attack(run, "longer", logs)
    shown = run("flips", "r")
    assert (shown.code, "no flips were measured, since that needs two responses" in " ".join(shown.out.split())) == (
        0,
        True,
    )
    run("report", "r", "--html", "r.html")
    assert "No flips were measured, since that needs two responses" in Path("r.html").read_text()


def test_gate_on_few_prompts_is_inconclusive(run: Callable[..., Any], logs: str) -> None:
    Path(logs).write_text("".join(Path(logs).read_text().splitlines(keepends=True)[:20]))
    attack(run, "fair", logs)
    result = run("gate", "r", "--max-win-rate", 0.5, "--json")
    assert (result.code, json.loads(result.out)["decision"]) == (3, "inconclusive")


def test_live_gate_says_what_to_do(run: Callable[..., Any], logs: str) -> None:
    check_refusal(
        run("gate", "--judge", "planted:fair", "--data", logs, "--max-flip-rate", 0.1),
        "each rewrite is judged against its original",
    )
    check_refusal(
        run("gate", "--judge", "planted:fair", "--data", logs, "--max-win-rate", 0.1),
        "--max-win-rate needs a finished run",
    )


def test_labelled_pairs_cannot_evade_the_check_of_the_judge(run: Callable[..., Any]) -> None:
    options = ("--attack", "prolixity", "--limit", 40, "--out", "p", "--measure", "fixed")
    run("attack", "--judge", "planted:fair", "--protocol", "pairwise", *options)
    result = run("gate", "p", "--max-win-rate", 0.3)
    assert (result.code, "no pair was judged before a rewrite" in result.out.replace("\n", " ")) == (3, True)
