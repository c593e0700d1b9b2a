"""Rewrites whose four writers saw none of the rules: what the rules alone keep and let pass, as the docs say.

``tests/data/blind_rewrites.jsonl`` holds 100 faithful, 100 subtly and 100 grossly changed rewrites of 100 answers of
MT-Bench and LLMBar. A rewrite is a list of new text and of spans ``[start, end]`` of the answer, which is not copied.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from distract.rewriting import fidelity

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
needs_answers = pytest.mark.skipif(
    not (SHARED / "mt_bench").is_dir() or not (SHARED / "llmbar").is_dir(),
    reason=f"needs the answers of MT-Bench and LLMBar in {SHARED}",
)


@dataclass(frozen=True)
class Rewrite:
    """A rewrite, what the rules make of it, and whether it has its change then."""

    label: str
    kind: str
    is_long: bool
    inspection: fidelity.Inspection
    changed: str

    @property
    def is_accepted(self) -> bool:
        return not self.inspection.reasons

    @property
    def is_left(self) -> bool:
        return self.is_accepted and self.changed in self.inspection.turns[0]


@cache
def read(file: str) -> dict[str, Any]:
    text = (SHARED / file).read_text(encoding="utf-8")
    if file.endswith(".jsonl"):
        return {str(row["question_id"]): row for row in map(json.loads, text.splitlines())}
    return {str(at): row for at, row in enumerate(json.loads(text))}


def find_answer(source: str) -> tuple[str, str]:
    """Return the prompt and the answer that a source names: FILE#ROW/PART."""
    file, row, part = re.fullmatch(r"(.+)#(\d+)/(\w+)", source).groups()  # type: ignore[union-attr]
    if part.isdigit():
        prompt = read("mt_bench/question.jsonl")[row]["turns"][int(part)]
        return prompt, read(file)[row]["choices"][0]["turns"][int(part)]
    return read(file)[row]["input"], read(file)[row][part]


@pytest.fixture(scope="module")
def rewrites() -> list[Rewrite]:
    lines = (ROOT / "tests" / "data" / "blind_rewrites.jsonl").read_text(encoding="utf-8").splitlines()
    results = []
    for row in map(json.loads, lines):
        prompt, answer = find_answer(row["source"])
        text = "".join(piece if isinstance(piece, str) else answer[slice(*piece)] for piece in row["rewrite"])
        inspection = fidelity.inspect((prompt,), (answer,), (text,), effect="same", needs="restyled")
        start, end = row.get("changed", (0, 0))
        results.append(Rewrite(row["label"], row["kind"], row["sentences"] >= 3, inspection, text[start:end]))
    return results


@needs_answers
def test_rules_keep_and_let_pass_what_the_docs_say(rewrites: list[Rewrite]) -> None:
    kept = Counter((one.is_long, one.is_accepted) for one in rewrites if one.label == "faithful")
    long, short = (100 * kept[size, True] / (kept[size, True] + kept[size, False]) for size in (True, False))
    evidence = [dict(one.inspection.evidence) for one in rewrites if one.label == "faithful" and one.is_accepted]
    share = 100 * fmean(float(one["restyled_share"]) for one in evidence)
    left = Counter(one.kind for one in rewrites if one.label == "subtle" and one.is_left)
    gross = sum(one.is_accepted for one in rewrites if one.label == "gross")
    hard = sum(left[kind] for kind in ("negation", "number", "comparison"))
    soft = sum(left[kind] for kind in ("quantifier", "condition", "modality"))
    page = " ".join((ROOT / "docs" / "attacks.md").read_text(encoding="utf-8").split())
    assert (
        f"accept {long:.0f}% of the faithful texts of three sentences or more and {short:.0f}% of shorter ones, with "
        f"{share:.0f}% of their words restyled; {left.total()}% of the subtle changes are left (negations, numbers and "
        f"comparisons {hard} of 30, quantities, conditions and modality {soft} of 30), and {gross}% of the gross ones"
    ) in page
