"""Test constraints: parsing, checking, descriptions, and agreement with IFEval's own labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from distract.data.constraints import check, describe, list_kinds, parse

IFEVAL = Path(__file__).parents[3] / "shared" / "data" / "ifeval"

BY_LANGUAGE = [
    (202, "change_case:english_lowercase", "ours True, theirs False"),
    (1843, "change_case:english_lowercase", "ours True, theirs False"),
    (2341, "change_case:english_capital", "ours True, theirs False"),
    (2571, "change_case:english_capital", "ours True, theirs False"),
    (3456, "change_case:english_capital", "ours True, theirs False"),
]
"""Texts of a few words or names whose language the original guesses wrong; we do not guess it."""

needs_ifeval = pytest.mark.skipif(not IFEVAL.is_dir(), reason=f"IFEval's data are not in {IFEVAL}")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (IFEVAL / name).read_text(encoding="utf-8").splitlines()]


@needs_ifeval
def test_every_ifeval_constraint_parses_and_has_a_description() -> None:
    for row in rows("input_data.jsonl"):
        for kind, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            assert describe(parse({"kind": kind, **arguments}))


@needs_ifeval
def test_constraints_agree_with_the_original_checkers() -> None:
    prompts = {row["prompt"]: row for row in rows("input_data.jsonl")}
    reworded = next(row for row in prompts.values() if row["key"] == 1174)
    labels, disagreements = Counter[str](), list[tuple[int, str, str]]()
    for result in rows("eval_results_strict_gpt4.jsonl"):
        prompt = prompts.get(result["prompt"], reworded)
        assert prompt["instruction_id_list"] == result["instruction_id_list"]
        results = zip(prompt["instruction_id_list"], prompt["kwargs"], result["follow_instruction_list"], strict=True)
        for kind, arguments, follows in results:
            labels[kind] += 1
            ours = check(parse({"kind": kind, **arguments}), result["response"])
            if ours is not follows:
                disagreements.append((prompt["key"], kind, f"ours {ours}, theirs {follows}"))
    assert labels.total() == 832
    assert set(labels) == set(list_kinds())
    assert len(disagreements) <= 0.01 * labels.total()
    assert sorted(disagreements) == BY_LANGUAGE
