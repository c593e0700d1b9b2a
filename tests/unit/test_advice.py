"""Advice after a run: each piece where its figure calls for it, and none elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_result import Run

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
