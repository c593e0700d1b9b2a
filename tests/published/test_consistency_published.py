"""Test ``distract consistency`` on published answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MT_BENCH = Path(__file__).parents[3] / "shared" / "data" / "mt_bench"


@pytest.mark.skipif(not MT_BENCH.is_dir(), reason=f"needs {MT_BENCH}")
def test_ten_models_answers_form_triples_and_quadruples(run: Any) -> None:
    ran = run("consistency", "--judge", "planted:fair", "--data", f"mt-bench:{MT_BENCH}", "--limit", "2", "--json")
    assert ran.code == 0
    figures = {(one["measure"], one["protocol"], one["place"]): (one["k"], one["n"]) for one in ran.results}
    assert figures["intransitivity", "pairwise", None] == figures["intransitivity", "rank", None] == (0, 8)
    assert figures["choice_set_sensitivity", "rank", "first"] == (0, 8)
