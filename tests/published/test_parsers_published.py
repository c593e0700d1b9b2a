"""Test parsing verdicts in a judge's own words on published judgments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distract.judging.parsers import BRACKETS, OUTPUT

SHARED = Path(__file__).parents[3] / "shared" / "data"


def test_published_winners_of_llmbar_are_parsed() -> None:
    files = sorted((SHARED / "llmbar").rglob("evaluators/*/*/result.json"))
    if not files:
        pytest.skip(f"no published results of LLMBar in {SHARED}")
    missed, n = [], 0
    for item in (item for file in files for item in json.loads(file.read_text(encoding="utf-8"))):
        material = (item["output_1"], item["output_2"], item["input"])
        for order, winners in (("swap = False", "ab"), ("swap = True", "ba")):
            stored_result = item["results"][-1][order]
            text, end = stored_result["completion"][:2]
            verdict = OUTPUT.read(text, ("a", "b"), material, cut=end == "length")
            winner = str(winners.index(verdict) + 1) if verdict else None
            n += 1
            if winner != stored_result["winner"]:
                missed.append((text, winner))
    assert n > 5000
    # The row whose published winner its judge did not give.
    ((text, winner),) = missed
    assert winner is None
    assert "I cannot claim that either Output (a) or Output (b) is better" in text


def test_published_winners_of_mtbench_are_parsed() -> None:
    files = sorted((SHARED / "mtbench_judges6" / "judgments").glob("*/pairwise/*"))
    if not files:
        pytest.skip(f"no published judgments on MT-Bench in {SHARED}")
    n = 0
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        item = json.loads(line)
        for order in ("ab", "ba"):
            n += 1
            verdict = BRACKETS.read(item[f"judgment_{order}"], ("A", "B", "C"))
            assert {"C": "tie"}.get(verdict or "", verdict) == item[f"winner_{order}"], item[f"judgment_{order}"]
    assert n > 4000
