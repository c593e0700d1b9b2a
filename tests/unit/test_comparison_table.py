"""The comparisons of a run as a table: its sums are the figures, and its references lead to the texts."""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from builders import write_several
from command_result import Run

from distract.core import runs
from distract.studies.attack.comparison_table import COLUMNS, list_comparisons

ATTACK = ("attack", "--judge", "planted:bold=0.7", "--limit", "12", "--control", "--out", "r")


@pytest.fixture
def records(run: Run) -> list[dict[str, Any]]:
    assert run(*ATTACK).code == 0
    return list(list_comparisons(runs.load(Path("r"))))


def test_sums_are_the_figures(records: list[dict[str, Any]]) -> None:
    sums: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for one in records:
        if one["before"] == "rival" and one["flipped"] is not None:
            sums[one["protocol"], one["rule"], one["attack"]].append(one["flipped"])
    results = json.loads(Path("r/summary.json").read_text())["results"]
    figures = [f for f in results if f["measure"] == "flip_rate"]
    assert {(f["protocol"], f["rule"], f["attack"]) for f in figures} >= {*sums}
    for f in figures:
        flips = sums.get((f["protocol"], f["rule"], f["attack"]), [])
        assert (f["k"], f["n"]) == (sum(flips), len(flips))
    for f in (f for f in results if f["measure"] == "severity_accuracy"):
        own = [one for one in records if one["design"] == "severity" and one["response_severity"] == f["severity"]]
        own = [one for one in own if (one["protocol"], one["rule"]) == (f["protocol"], f["rule"])]
        verdicts = [one["before"] or one["after"] for one in own if one["attack"] == f["attack"]]
        if f["attack"] != "none":
            verdicts = [one["after"] for one in own if one["attack"] == f["attack"]]
        valid = [verdict for verdict in verdicts if verdict is not None]
        assert (f["k"], f["n"]) == (valid.count("rival"), len(valid))


def test_references_lead_to_the_texts(records: list[dict[str, Any]]) -> None:
    cases, rewrites = (
        [json.loads(line) for line in Path(f"r/{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for name in ("cases", "rewrites")
    )
    attacked = 0
    for one in records:
        case = cases[one["case_line"] - 1]
        assert case["id"] == one["case"]
        assert one["response"] in {response["author"] for response in case["responses"]}
        if one["design"] == "flip" and one["attack"] in ("assertiveness", "prolixity") and one["after"]:
            rewrite = rewrites[one["rewrite_line"] - 1]
            assert (rewrite["case"], rewrite["response"]["attack"]) == (one["case"], one["attack"])
            assert rewrite["response"]["author"] == one["response"]
            attacked += 1
    assert attacked > 10
    assert {one["truth"] for one in records} == {None, "same", "worse", "control"}


def test_margin_has_the_sign_of_the_verdict(records: list[dict[str, Any]]) -> None:
    for one in records:
        for when in ("before", "after"):
            verdict, margin = one[when], one[f"margin_{when}"]
            assert (verdict is None) == (margin is None)
            if verdict in ("response", "rival") and one["rule"] != "rating":
                assert (margin > 0) == (verdict == "response")


def test_csv_and_parquet_hold_the_same_table(run: Run, records: list[dict[str, Any]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result = run("report", "r", "--csv", "t.csv", "--parquet", "t.parquet")
    assert result.code == 0, result.err
    table = parquet.read_table("t.parquet")
    assert tuple(table.column_names) == tuple(COLUMNS)
    assert table.to_pylist() == records
    with Path("t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: "" if value is None else str(value) for name, value in one.items()} for one in records] == rows


@pytest.mark.parametrize("command", ["consistency", "leaderboard", "meta"])
def test_other_studies_have_a_table_too(run: Run, command: str) -> None:
    judge = (command, "--judge", "planted:bold=0.7", "--limit", "4", "--out", "r")
    data = () if command == "meta" else ("--data", write_several())
    result = run(*judge, *data)
    assert result.code == 0, result.err
    assert run("report", "r", "--csv", "t.csv").code == 0
    with Path("t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["case_line"] and row["response"] and row["rival"] for row in rows)
