"""Test ``distract meta`` on the command line: published figures, live judges, run folders, hostile names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_result import fits
from test_meta_cli import ASKED, REPLAY, render, source, write, write_curly_data

# Files of other formats, joined with labels.


def test_every_golden_file_replays_in_one_run(run: Any) -> None:
    ran = run("meta", "--judge", f"replay:{REPLAY}")
    assert ran.code == 0, ran.err
    fits(ran.out)
    assert run("meta", "--judge", f"replay:{REPLAY}").out == ran.out
    for judge in ("gpt-x", "lab/judge-1", "reward-1", "judge-1", "judge-7B", "gpt-4", "llama-3.1-8b"):
        assert f"judge {judge}\n" in ran.out


# Live judges.


def test_each_judge_has_a_folder_and_all_share_one_document(run: Any) -> None:
    judges = ("planted:longer", "planted:first", "planted:random=0.5")
    arguments = ("meta", *(part for judge in judges for part in ("--judge", judge)), "--data", write("d.jsonl"), *ASKED)
    ran = run(*arguments, "--out", "all", "--json")
    assert ran.code == 0
    folders = sorted(path.name for path in Path("all").iterdir())
    assert [name.rpartition("-")[0] for name in folders] == ["planted-first", "planted-longer", "planted-random-0.5"]
    assert [judge["judge"] for judge in ran.document["judges"]] == list(judges)
    together = ran.document["results"]
    for folder in folders:
        alone = json.loads(Path("all", folder, "summary.json").read_text(encoding="utf-8"))
        (judge,) = alone["judges"]
        assert alone["results"] == [one for one in together if one["judge"] == judge["judge"]]
        assert judge in ran.document["judges"]
    assert {one["judge"] for one in ran.document["panel"]["judges"]} == {*judges}
    again = run(*arguments, "--out", "all", "--json")
    assert (again.out, again.err.count("no call is made")) == (ran.out, 3)
    text = run(*arguments, "--out", "all", "--verbose")
    assert "Protocols over 3 judges: accuracy in %, gains over base in points" in text.words
    assert "Over 3 judges and the 6 comparisons that all of them have, base matches the label" in text.words
    assert ran.document["panel"]["comparisons"] == 6
    fits(text.out)
    # Run folders can be replayed and give the same figures, with the labels from their rows.
    replayed = run("meta", "--judge", "replay:all", "--json")
    assert replayed.code == 0
    assert replayed.document["results"] == [one for one in together if one["measure"] != "verdict_change_rate"]
    assert replayed.document["panel"] == ran.document["panel"]


def test_drawn_order_does_not_change_which_pair_it_is(run: Any) -> None:
    data = write("d.jsonl", 12, preferred="x")
    options = ("--data", data, "--limit", "all")
    assert run("attack", "--judge", "planted:longer", "--generator", "rules", *options, "--out", "a").code == 0
    ran = run("meta", "--judge", "replay:a", "--judge", "planted:first", *options, "--json")
    assert "always listed at the same place in d.jsonl; the seed draws the order there" in ran.err
    assert ran.document["panel"]["difficulty"]["n"] == 12


def test_replayed_run_keeps_its_noise_floor(run: Any) -> None:
    names = (*ASKED, "--protocol", "cot-consistency", "--control")
    result = run(
        "meta", "--judge", "planted:random", "--data", write_curly_data("d.jsonl"), *names, "--out", "r", "--json"
    )
    ran = run("meta", "--judge", "replay:r", "--json")
    assert ran.figure("verdict_change_rate", protocol="base", attack="null")["n"] == 2
    assert ran.figure("verdict_change_rate", protocol="cot-consistency", attack="resample")["n"] == 6
    assert ran.document["results"] == result.document["results"]
    assert {*ran.document["controls"]} == {*result.document["controls"]} == {"null", "resample"}
    (before,), (after,) = result.document["judges"], ran.document["judges"]
    assert (after["excluded"], after["invalid"]) == (before["excluded"], before["invalid"])


# Wrong input.


# Hostile, long and numerous names.

HOSTILE = ("[bold red]m[/] \x1b[31mred\n\x07", "x" * 200, "word " * 40, "名前" * 30, "‮")


def wide(line: str) -> int:
    """Columns of a terminal: some characters take two."""
    from rich.cells import cell_len

    return cell_len(line.rstrip())


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("what", ["judge", "protocol", "data", "subset", "note"])
def test_names_break_no_line_and_no_layout(name: str, what: str) -> None:
    def called(own: str, other: str) -> str:
        return name if own == what else other

    specs = [
        (called("protocol", "cot"), called("data", "d"), called("subset", "s")),
        (called("protocol", "cot"), called("data", "d"), "t"),
        ("base", called("data", "d"), called("subset", "s")),
        ("base", called("data", "d"), "t"),
    ]
    record = {"self_judging": [called("note", "kin")], "replayed": []}
    sources = [
        source(called("judge", "j"), *specs, record=record, notes=(called("note", "note"),)),
        source("other", *specs, shift=1),
    ]
    text = render(*sources)
    assert not [line for line in text.splitlines() if wide(line) > 80]
    assert not {"\x1b", "\x07", "‮"} & set(text)
    plain = render(
        source("j", *(("cot" if i < 2 else "base", "d", "s" if i % 2 else "t") for i in range(4))),
        source("other", *(("cot" if i < 2 else "base", "d", "s" if i % 2 else "t") for i in range(4)), shift=1),
    )
    # Every figure is still there, whatever the names are.
    for figure in ("66.7", "16/24", "24/24"):
        assert text.count(figure) == plain.count(figure) or figure not in plain, figure
    if name.startswith("[bold red]") and what in ("judge", "protocol"):
        assert r"[bold red]m[/] \x1b[31mred \x07" in " ".join(text.split())


def test_many_data_sets_and_protocols_fit_eighty_columns() -> None:
    specs = [
        (f"a-protocol-with-a-long-name-{p}", f"an-adversarial-data-set-{d}", "") for p in range(5) for d in range(12)
    ]
    text = render(source("j", *specs), source("k", *specs, shift=1), base="a-protocol-with-a-long-name-0")
    assert not [line for line in text.splitlines() if len(line.rstrip()) > 80]
    assert text.count("…") == 1, "the base as a title"
    # Each judge shows only the four of ten pairs that include the base.
    assert text.count("a-protocol-with-a-long-name-0 –") == 8
    assert "a-protocol-with-a-long-name-1 –" not in text
