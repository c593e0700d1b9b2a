"""Advice after a run: each piece where its figure calls for it, and none elsewhere."""

import json
import shutil
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from builders import write_several
from command_result import Run
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.printable import clean_text, percent
from distract.rewriting.fidelity import facts
from distract.studies.differences import mark_difference

FLIP = ("--protocol", "pairwise", "--measure", "flip", "--limit", "40")


@pytest.mark.parametrize(
    ("judge", "options", "present", "absent"),
    [
        (
            "planted:bold",
            FLIP,
            ["under assertiveness, pairwise flips 40 of 40", "distract gate --max-flip-rate", "(`--control`)"],
            ["Do not", "Do not rely", "No losing response"],
        ),
        (
            "planted:first",
            FLIP,
            ["Do not rely on this judge: by no way of asking can it tell good from bad here. Use another one."],
            ["pairwise flips", "distract gate"],
        ),
        (
            "planted:coin",
            ("--protocol", "pairwise", "--measure", "flip", "--limit", "8"),
            ["Do not rely on pairwise yet: nothing shows that it can tell good from bad there. Judge more cases."],
            ["Do not use", "distract gate", "Use another"],
        ),
        (
            "planted:gullible",
            FLIP,
            ["No losing response won after its rewrite: try other attacks"],
            ["pairwise flips", "distract gate"],
        ),
        ("planted:bold", (*FLIP, "--control"), ["pairwise flips"], ["(`--control`)"]),
        (
            "planted:first",
            ("--protocol", "pairwise", "--protocol", "pointwise", "--measure", "flip", "--limit", "40"),
            ["Do not use pairwise with this judge: it cannot tell good from bad there."],
            ["Do not rely"],
        ),
        (
            "planted:longer=0.3",
            ("--protocol", "pairwise", "--measure", "flip", "--limit", "9"),
            ["Judge more cases (`--limit`)", "comparisons for each attack; this run has 9."],
            ["Do not use"],
        ),
    ],
)
def test_advice_follows_from_the_figures(
    run: Run, judge: str, options: tuple[str, ...], present: list[str], absent: list[str]
) -> None:
    assert run("attack", "--judge", judge, *options, "--out", "r").code in (0, 3)
    report = run("report", "r", "--verbose").words
    advice = report.partition("What to do next")[2].partition("Skill under attack:")[0]
    for text in present:
        assert text in advice
    for text in absent:
        assert text not in advice


def test_advice_is_on_pages_and_not_among_the_findings(run: Run) -> None:
    options = ("--html", "p.html", "--markdown", "p.md")
    assert "What to do next" not in run("attack", "--judge", "planted:bold", *FLIP, "--out", "r", *options).out
    for name in ("p.html", "p.md"):
        assert Path(name).read_text(encoding="utf-8").count("What to do next") == 1


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


WORDS = [f"w{number}" for number in range(8000)]
TEXT = " ".join(WORDS)


def rebuild(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Put both sequences together again from their edits."""
    first, second = list[str](), list[str]()
    for what, a, b, c, d in facts.opcodes(old, new):
        assert (what == "equal") == (old[a:b] == new[c:d])
        first += old[a:b]
        second += new[c:d]
    return first, second


@given(st.text("ab c\n.\x1bé", max_size=60), st.text("ab c\n.\x1bé", max_size=60))
def test_difference_holds_both_texts(before: str, after: str) -> None:
    spans = mark_difference(before, after).spans
    for text, gone in ((before, "added"), (after, "removed")):
        left = "".join(one.text for one in spans if one.tone != gone)
        assert left.split() == clean_text(text).split()


def test_long_difference_shows_what_is_near_changes() -> None:
    middle = " ".join(WORDS[:300])
    shown = str(mark_difference(f"a {middle} b {middle}", f"c {middle} d {middle}", near=20))
    assert shown.count("[…]") == 2
    assert len(shown) < 200
    assert "[-a-]{+c+}" in shown


def test_long_change_is_cut() -> None:
    shown = str(mark_difference("a" * 100_000, "b " * 50_000, near=20))
    assert shown.startswith("[-aaa")
    assert (shown.count(" […] "), len(shown) < 300) == (2, True)


@each(
    "before, after",
    (TEXT, " ".join(f"{word}," for word in WORDS)),
    (TEXT, " ".join(f"{word} y{word}" for word in WORDS)),
    (TEXT, " ".join(WORDS[::-1])),
    (TEXT, "".join(WORDS)),
)
def test_difference_of_long_texts_is_bounded(before: str, after: str) -> None:
    # No timing is needed: an unbounded search takes a quarter of a minute for each.
    spans = mark_difference(before, after).spans
    assert "".join(one.text for one in spans if one.tone != "added") == before
    assert "".join(one.text for one in spans if one.tone != "removed") == after


@given(st.lists(st.sampled_from("abcdefgh"), max_size=24), st.lists(st.sampled_from("abcdefgh"), max_size=24))
def test_edits_lead_from_one_sequence_to_the_other(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for most in (0, 20, 10**6):
            patch.setattr(facts, "MOST_CELLS", most)
            assert rebuild(old, new) == (old, new)
