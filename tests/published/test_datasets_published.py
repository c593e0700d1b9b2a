"""Test reading data sets: valid data load, errors are one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distract.data.datasets import load

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("folder", "rows"),
    [("Natural", 100), ("Adversarial/GPTInst", 92), ("Adversarial/GPTOut", 47), ("Adversarial/Manual", 46),
     ("Adversarial/Neighbor", 134), ("MT-Bench", 200)],
)  # fmt: skip
def test_llmbar_loads_as_published(folder: str, rows: int) -> None:
    path = SHARED / "llmbar" / folder / "dataset.json"
    if not path.exists():
        pytest.skip(f"needs {SHARED / 'llmbar'}")
    cases = load(str(path)).cases
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert len(cases) == rows
    assert [c.preferred for c in cases] == [f"output_{r['label']}" for r in raw]
    assert [c.responses[1].turns for c in cases] == [(r["output_2"],) for r in raw]
    if folder == "MT-Bench":
        assert len({c.cluster for c in cases}) == 75
