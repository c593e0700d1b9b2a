"""Test IFEval data: join prompts with responses, skip unusable ones, split questions from their format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distract.data.datasets import load
from distract.data.good_responses import compliant_response

SHARED = Path(__file__).parents[3] / "shared" / "data" / "ifeval"


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"IFEval's data are not in {SHARED}")
def test_real_ifeval_data_load_completely() -> None:
    loaded = load(f"ifeval:{SHARED / 'input_data.jsonl'}", [str(SHARED / "responses_gpt4.jsonl")])
    assert loaded.size == 541
    assert loaded.left_out == {"the prompt has no response": 2, "a response matches no prompt": 1}
    assert sum(compliant_response(case) is not None for case in loaded.cases) == 422
    rows = [json.loads(line) for line in (SHARED / "input_data.jsonl").read_text(encoding="utf-8").splitlines()]
    prompts = {f"ifeval-{row['key']}": row["prompt"] for row in rows}
    shorter = [case for case in loaded.cases if case.prompt[0] != prompts[case.id]]
    assert 300 < len(shorter) < 380
    for case in shorter:
        assert set(case.prompt[0].split()) <= set(prompts[case.id].split())
