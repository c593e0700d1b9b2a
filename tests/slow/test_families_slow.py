"""Planted judges are found out by exactly the families that they fall for, and the fair judge by none.

``docs/attacks.md`` shows the same matrix.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_result import Run

from distract.core import registry

TRUTHS = ("same", "unsupported", "hollow", "injection")
FAMILIES = sorted({attack.family for attack in registry.attacks().values() if attack.truth in TRUTHS})

WEAKNESSES: dict[str, set[str]] = {
    "fair": set(),
    "markdown": {"format"},
    "citations": {"citation", "social"},
    "gullible": {"injection"},
    "blind": {"hollow"},
}


def read_matrix() -> dict[str, dict[str, str]]:
    """Read the matrix of the docs: the strongest shown effect by judge and family, in percent, or a dash."""
    page = Path(__file__).parents[2].joinpath("docs", "attacks.md").read_text(encoding="utf-8")
    table = page[page.index("| judge |") :].partition("\n\n")[0]
    lines = re.findall(r"(?m)^\| (?:judge|`\w+`) \|.*\|$", table)
    head, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.parametrize("judge", WEAKNESSES)
def test_planted_judge_is_found_out_by_its_families(run: Run, judge: str) -> None:
    attacks = [part for truth in TRUTHS for part in ("--attack", f"all:{truth}")]
    options = ("--judge", f"planted:{judge}", *attacks, "--generator", "rules", "--control", "--limit", "60")
    assert run("attack", *options, "--protocol", "pairwise", "--measure", "flip", "--out", "r").code == 0
    strengths = json.loads(Path("r/summary.json").read_text(encoding="utf-8"))["strength"]
    assert {one["family"] for one in strengths} == {*FAMILIES}
    strongest = dict.fromkeys(FAMILIES, 0.0)
    for one in strengths:
        if one["is_stronger"]:
            strongest[one["family"]] = max(strongest[one["family"]], one["value"])
    assert {family for family, value in strongest.items() if value} == WEAKNESSES[judge]
    shown = {family: f"{100 * value:.0f}" if value else "–" for family, value in strongest.items()}
    assert read_matrix()[judge] == shown
