"""The Python API: same bytes as the commands, flips and tables, errors as exceptions, no output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_result import Run
from test_api import SINGULAR, files, format_options

import distract


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"judge": "planted:bold=0.7", "control": True, "minimal": 2, "protocols": ["base", "pairwise", "absolute"]},
        {"attacks": ["severity-1", "severity-2+assertiveness"], "limit": 3, "seed": 7, "orders": "given"},
        {"generator": "rules", "measures": ["flip"], "limit": None, "samples": 2, "protocols": ["cot"]},
        {"attacks": ["prolixity"], "retries": 3, "temperature": 0.5, "best_of": 2, "judge_version": "2"},
    ],
)
def test_function_and_command_write_the_same_bytes(run: Run, options: dict[str, Any], capsys: Any) -> None:
    options = {"judge": "planted:longer", **options}
    ran = run("attack", *format_options(options, SINGULAR), "--out", "theirs", "--json")
    result = distract.attack(**options, out="mine", store="other.sqlite")
    assert capsys.readouterr() == ("", "")
    assert files(result.path) == files(Path("theirs"))
    assert result.summary == json.loads(ran.out)
    assert result.results == json.loads(ran.out)["results"]
    assert len(result.rows) == len(Path("theirs/rows.jsonl").read_text().splitlines())


def test_flips_match_the_figures(run: Run) -> None:
    attacked = distract.attack(judge="planted:bold=0.7", generator="rules", limit=None, control=True)
    flips = attacked.flips()
    counted = {
        (one["protocol"], one["rule"], one["attack"]): one["k"]
        for one in attacked.results
        if one["measure"] == "flip_rate" and one["k"] is not None and one["attack"] and one["rule"] != "rating"
    }
    result = dict.fromkeys(counted, 0)
    for flip in flips:
        result[flip.protocol, flip.rule, flip.attack] += 1
    assert result == {place: k for place, k in counted.items() if place in result}
    assert sum(result.values()) == len(flips) > 10
    texts = {rewrite.response.text for rewrite in attacked.rewrites}
    assert all(flip.rewrite in texts and flip.original and flip.original != flip.rewrite for flip in flips)
