"""``distract flips``: order, texts, filters, files, and texts that try to be something else."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_result import Run, check_refusal
from hypothesis import given
from hypothesis import strategies as st
from loops import each

import distract
from distract.core.printable import clean_text
from distract.core.runs import LoadedRun, load
from distract.report.blocks import Sentence
from distract.report.spreadsheet import format_csv
from distract.studies.attack.flip_view import COLUMNS, ShownFlip, flips_report
from distract.studies.attack.flips import Flip, FlipOutcome

HOSTILE = "=cmd()|[bold]<script>alert(1)</script>\x1b[31m ![x](http://a) [[A]] ${y} {output_2}"

AUTHOR = HOSTILE.replace("\x1b", "")

ATTACK = ("attack", "--judge", "planted:longer", "--measure", "flip", "--protocol", "pairwise", "--data", "d.jsonl")


def write_data(texts: Mapping[str, tuple[str, str]]) -> None:
    """Write a case for each name, with a good response and a rival."""
    lines = [
        {
            "id": name,
            "prompt": f"{name}? {HOSTILE}",
            "responses": [{"author": AUTHOR, "text": good}, {"author": "y", "text": rival}],
        }
        for name, (good, rival) in texts.items()
    ]
    Path("d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


@pytest.fixture
def attacked(run: Run) -> Run:
    """A run ``r`` in which the shorter response wins once it is longer."""
    near = "It is perhaps 4 words long, I think, and probably so."
    write_data(
        {
            "one": (f"{near} {HOSTILE}", f"{near} {HOSTILE} Yes."),
            "two": (near, f"{near} No."),
            "far": ("It may be.", near * 9),
        }
    )
    result = run(*ATTACK, "--attack", "assertiveness", "--attack", "prolixity", "--generator", "rules", "--out", "r")
    assert result.code == 0, result.err
    return run


def test_flips_are_those_of_the_api_and_of_the_figures(attacked: Run) -> None:
    document = json.loads(attacked("flips", "r", "--top", "all", "--json").out)
    loaded = distract.Run.read("r")
    assert [(one["case"], one["attack"], one["margin"]) for one in document["flips"]] == [
        (flip.case, flip.attack, round(flip.margin, 4)) for flip in loaded.flips()
    ]
    counted = {one["attack"]: one["k"] for one in loaded.results if one["measure"] == "flip_rate"}
    assert document["total"] == sum(counted.values()) > 0
    margins = [one["margin"] for one in document["flips"]]
    assert margins == sorted(margins, reverse=True)
    for one in document["flips"]:
        assert one["question"] == f"{one['case']}? {HOSTILE}"
        assert one["original"] != one["rewrite"]
        assert one["rival_text"]
        assert one["before_rewritten"] < one["before_rival"]
        assert one["after_rewritten"] > one["after_rival"]


def test_report_shows_texts_and_both_verdicts(attacked: Run) -> None:
    report = attacked("flips", "r", "--top", "1", "--verbose")
    assert report.code == 0
    assert re.search(r"^1\. case \w+ · \w+ · pairwise$", report.out, re.M)
    for word in ("question: ", "rival (", "rewritten (", "before: ", "after:  ", "shown: 1 of ", "{+"):
        assert word in report.out
    assert "\x1b" not in report.out
    assert r"\x1b[31m" in report.out.replace("\n", "")


def test_filters_choose_protocols_and_attacks(attacked: Run) -> None:
    whole = json.loads(attacked("flips", "r", "--top", "all", "--json").out)["flips"]
    part = json.loads(attacked("flips", "r", "--top", "all", "--attack", "prolixity", "--json").out)["flips"]
    assert part == [one for one in whole if one["attack"] == "prolixity"]
    wrong = attacked("flips", "r", "--protocol", "absolute")
    assert (wrong.code, "unknown protocol 'absolute'" in wrong.err, wrong.err.count("\n")) == (2, True, 1)


def test_csv_holds_every_flip_and_no_formula(attacked: Run) -> None:
    assert attacked("flips", "r", "--top", "all", "--csv", "f.csv").code == 0
    with Path("f.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    document = json.loads(attacked("flips", "r", "--top", "all", "--json").out)["flips"]
    assert [row["case"] for row in rows] == [one["case"] for one in document]
    assert tuple(rows[0]) == COLUMNS
    assert not any(cell.startswith(("=", "@", "+")) for row in rows for cell in row.values())
    assert attacked("flips", "r", "--csv", "r/rows.jsonl").code == 2


def test_run_without_flips_says_how_many_could(run: Run) -> None:
    write_data({"one": ("It is so, I think.", "It is not so.")})
    judge = ("attack", "--judge", "planted:fair", *ATTACK[3:], "--attack", "prolixity", "--generator", "rules")
    assert run(*judge, "--out", "r").code == 0
    report = run("flips", "r")
    assert report.code == 0
    assert "no verdict flipped" in report.out
    assert "pairwise under prolixity: none of " in report.out
    check_refusal(run("explain", "r"), "r: no verdict flipped, so there is nothing to explain")
    check_refusal(run("explain", "r", "--attack", "prolixity"), "no verdict of these protocols and attacks flipped")


def test_report_without_flips_counts_only_what_was_asked_for(attacked: Run) -> None:
    loaded = load(Path("r"))
    for attacks in (["prolixity"], ["prolixity", "assertiveness"]):
        _, *counts = flips_report(loaded, [], 0, whole=False, protocols=["pairwise"], attacks=attacks)
        assert len(counts) == len(attacks)
    assert len(list(flips_report(loaded, [], 0, whole=False, protocols=["pairwise"]))) == 3


def test_damaged_texts_are_skipped(attacked: Run) -> None:
    whole = attacked("flips", "r").out
    entries = [{"key": ["x"], "text": "a"}, {"key": {}}, {"text": 1}, {"key": None, "text": None}]
    Path("r/texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")
    report = attacked("flips", "r")
    assert (report.code, report.out) == (0, whole)


def test_explain_takes_the_clearest_flip(attacked: Run) -> None:
    first = json.loads(attacked("flips", "r", "--top", "1", "--json").out)["flips"][0]
    assert attacked("explain", "r").out.startswith(f"case {first['case']} · ")


def test_words_of_the_judge_are_shown_where_they_are_kept(run: Run) -> None:
    write_data({"one": ("It is perhaps so, I think.", "It is perhaps so, I think. Yes.")})
    judge = (*ATTACK, "--attack", "prolixity", "--generator", "rules", "--protocol", "cot")
    assert run(*judge, "--keep-text", "all", "--out", "r").code == 0
    flips: list[dict[str, Any]] = json.loads(run("flips", "r", "--protocol", "cot", "--json").out)["flips"]
    assert all(one["said_before"] and one["said_after"] for one in flips)
    assert len(flips) == 1
    shown = run("flips", "r", "--protocol", "cot").words
    for place in ("before, y first: ", "after, y first: ", "after, =cmd()|"):
        assert shown.count(f"the judge said {place}") == 1
    assert run(*judge, "--keep-text", "none", "--out", "r").code == 0
    assert "adds them with --keep-text all" in run("flips", "r", "--protocol", "cot").words


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.one_of(st.text(), st.integers(), st.none())), max_size=4))
def test_csv_reads_back_without_formulas(records: list[dict[str, Any]]) -> None:
    rows = list(csv.reader(io.StringIO(format_csv("ab", records))))
    assert len(rows) == len(records) + 1
    for row, record in zip(rows[1:], records, strict=True):
        for cell, value in zip(row, (record.get("a"), record.get("b")), strict=True):
            if isinstance(value, str):
                assert not cell.startswith(("=", "+", "-", "@", "\t"))
                assert cell.removeprefix("'") == clean_text(value).removeprefix("'")
            else:
                assert cell == ("" if value is None else str(value))


def test_other_outcomes_are_shown_when_asked_for(run: Run) -> None:
    judge = ("attack", "--judge", "planted:longer", "--limit", "8", "--protocol", "pairwise", "--measure", "net")
    assert run(*judge, "--out", "r").code == 0
    flips = json.loads(run("flips", "r", "--top", "all", "--json").out)["flips"]
    assert {one["outcome"] for one in flips} == {"flip"}
    every = json.loads(
        run("flips", "r", "--top", "all", "--outcome", "counter-flip", "--outcome", "flip", "--json").out
    )["flips"]
    counters = [one for one in every if one["outcome"] == "counter-flip"]
    assert every == [*counters, *flips]
    for one in counters:
        assert one["before_rewritten"] > one["before_rival"]
        assert one["after_rewritten"] < one["after_rival"]
    check_refusal(run("flips", "r", "--outcome", "held"))


@each("outcome", "flip", "softened", "counter-flip")
def test_sentences_name_the_winner_of_each_outcome(outcome: FlipOutcome) -> None:
    pairs = {
        "flip": ((0.2, 0.7), (0.8, 0.1)),
        "softened": ((0.2, 0.7), (0.4, 0.4)),
        "counter-flip": ((0.8, 0.1), (0.2, 0.7)),
    }
    before, after = pairs[outcome]
    flip = Flip("c", "pairwise", None, "f", "mine", "other", before, after, 0.0, "a", "b", outcome=outcome)
    run = LoadedRun(Path("r"), {"judge": "j"}, (), (), None, None)
    *_, first, second = flips_report(run, [ShownFlip(flip, "", "", ((), ()))], 1, whole=False)
    assert isinstance(first, Sentence)
    assert isinstance(second, Sentence)
    assert (
        str(first.text)
        == {
            "flip": "before: other wins by probability 0.70 to 0.20 for mine",
            "softened": "before: other wins by probability 0.70 to 0.20 for mine",
            "counter-flip": "before: mine wins by probability 0.80 to 0.10 for other",
        }[outcome]
    )
    assert (
        str(second.text)
        == {
            "flip": "after:  mine wins by probability 0.80 to 0.10 for other",
            "softened": "after:  mine ties by probability 0.40 to 0.40 for other",
            "counter-flip": "after:  other wins by probability 0.70 to 0.20 for mine",
        }[outcome]
    )
