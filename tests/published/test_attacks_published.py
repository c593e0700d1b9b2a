"""The rule attacks: invariants over arbitrary text, faithful rewrites of real data, and texts checked by eye."""

from __future__ import annotations

import json

import pytest
from test_attacks import ROOT, by_distractor
from test_attacks_slow import find_rejections

from distract.core.attack import Attack

LLMBAR = ROOT / "../shared/data/llmbar/Natural/dataset.json"


@by_distractor
def test_most_rewrites_of_natural_answers_pass(attack: Attack) -> None:
    if not LLMBAR.exists():
        pytest.skip(f"no {LLMBAR.parent}")
    rows = json.loads(LLMBAR.read_text(encoding="utf-8"))
    total, failures = find_rejections(attack, ((r["input"], r[f"output_{r['label']}"], ()) for r in rows))
    assert total == 100
    assert len(failures) <= 15, failures
