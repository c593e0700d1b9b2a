"""The headline figures of judges with known biases are those that the docs print, and no coin is called usable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import distract

PAGE = Path(__file__).parents[2] / "docs" / "reading-results.md"
HEADING = "| judge | usable | clean |"
ATTACKS = ("assertiveness", "prolixity")


def read_table() -> dict[str, list[str]]:
    """Read the figures of each planted judge from the docs, without the last column, which says why."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(HEADING))
    rows = dict[str, list[str]]()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        judge, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        rows[judge] = cells[:-1]
    return rows


TABLE = read_table()


def list_cells(run: distract.Run) -> Iterator[str]:
    """Format the headline figures: by comparison, but the worth of a style by score."""

    def find(measure: str, protocol: str, attack: str) -> dict[str, Any]:
        rules = (None, "score")
        return next(
            figure
            for figure in run.results
            if (figure["measure"], figure["protocol"], figure["attack"]) == (measure, protocol, attack)
            and figure["rule"] in rules
            and figure["severity"] is None
        )

    yield run.summary["usable"]["pairwise"]
    yield format_share(find("clean_accuracy", "pairwise", "none")["value"])
    for measure in ("skill_under_attack", "flip_rate"):
        for attack in ATTACKS:
            yield format_share(find(measure, "pairwise", attack)["value"])
    for attack in ATTACKS:
        rates = [f for f in run.results if (f["measure"], f["attack"]) == ("exchange_rate", attack)]
        value = rates[0]["value"] if rates else None
        yield "–" if value is None else f"{value:.1f}".replace("-0.0", "0.0")


def format_share(value: float | None) -> str:
    if value is None or 0 < value < 0.01:
        return "–" if value is None else "<1"
    return f"{100 * value:.0f}".replace("-", "−")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


def test_table_has_nine_judges() -> None:
    assert len(TABLE) == 9
    assert TABLE["coin"][0] != "yes"


@pytest.mark.parametrize("judge", TABLE)
def test_documented_headline_is_what_the_judge_gets(judge: str, folder: Path) -> None:
    run = distract.attack(
        judge=f"planted:{judge}", attacks=ATTACKS, limit=None, out=folder / judge, store=folder / "replies.sqlite"
    )
    assert list(list_cells(run)) == TABLE[judge]
