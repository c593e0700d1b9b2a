"""``distract card``: one page on a judge from its run folders."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path

import pytest
from builders import write_several
from command_result import Run

from distract.core.printable import percent


@pytest.fixture
def runs(run: Run) -> Run:
    """An attack and a live gate of one judge."""
    judge = ("--judge", "planted:bold=0.7")
    assert run("attack", *judge, "--limit", "9", "--protocol", "pairwise", "--out", "attacked").code == 0
    assert run("gate", *judge, "--max-flip-rate", "0.2", "--out", "gated").code == 1
    return run


def test_card_states_what_the_runs_hold(runs: Run) -> None:
    result = runs("card", "attacked", "gated", "--max-flip-rate", "0.2")
    assert result.code == 0, result.err
    card = unescape(result.out)
    for text in (
        "## Judge card: planted:bold=0.7",
        "| 1 | attack | tweakset | 9 of 200 | 0 |",
        "| 2 | gate | tweakset | 200 of 200 | 0 |",
        "### Run 1: attack",
        "### Run 2: gate",
        "### Gate",
        "### Fidelity of the rewrites",
        "Run 1 has 9 cases: too few to be sure of a rate.",
        "Run 1 measured no noise",
        "Rewrites were checked by rules alone",
    ):
        assert text in card
    assert card.count("<strong>FAIL</strong>") == 2
    assert "<svg" not in card
    for one in json.loads(Path("attacked/summary.json").read_text())["results"]:
        if one["measure"] in ("flip_rate", "skill_under_attack", "severity_accuracy") and one["n"]:
            assert f"| {percent(one['value'])} |" in card


def test_card_goes_to_files(runs: Run) -> None:
    printed = runs("card", "attacked").out
    assert runs("card", "attacked", "--markdown", "card.md", "--html", "card.html").out == ""
    assert Path("card.md").read_text(encoding="utf-8") == printed
    assert "Judge card" in Path("card.html").read_text(encoding="utf-8")


def test_card_is_of_one_judge_and_of_whole_runs(runs: Run) -> None:
    assert runs("attack", "--judge", "planted:fair", "--limit", "2", "--out", "other").code == 0
    wrong = runs("card", "attacked", "other")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "the runs are of different judges (planted:bold=0.7, planted:fair): make a card for each" in wrong.err
    shutil.copytree("attacked", "cut")
    Path("cut/manifest.json").unlink()
    damaged = runs("card", "cut")
    assert "warning: " in damaged.err
    assert unescape(damaged.out).count("the run is unfinished") == 2
    assert runs("card", "missing").code == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("leaderboard", "--attack", "assertiveness", "--generator", "rules"), "Kendall's tau"),
        (("consistency",), "chains"),
        (("meta",), "match the label"),
    ],
)
def test_every_study_has_a_place_on_a_card(run: Run, command: tuple[str, ...], words: str) -> None:
    data = () if command == ("meta",) else ("--data", write_several())
    result = run(*command, "--judge", "planted:longer", "--limit", "4", *data, "--out", "r")
    assert result.code in (0, 3), result.err
    card = run("card", "r")
    assert card.code == 0, card.err
    assert f"### Run 1: {command[0]}" in unescape(card.out)
    assert words in unescape(card.out)
    assert ("No run attacks" in card.out) == (command[0] != "leaderboard")
