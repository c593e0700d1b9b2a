"""The rule attacks: invariants over arbitrary text, faithful rewrites of real data, and texts checked by eye."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from test_attacks import (
    ROOT,
    by_distractor,
    tweakset,
)

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.data.constraints import parse
from distract.rewriting.fidelity import inspect

LLMBAR = ROOT / "../shared/data/llmbar/Natural/dataset.json"


def find_rejections(
    attack: Attack, answers: Iterator[tuple[str, str, tuple[Constraint, ...]]]
) -> tuple[int, list[str]]:
    total, failures = 0, []
    for seed, (prompt, text, constraints) in enumerate(answers):
        total += 1
        reasons = inspect((prompt,), (text,), (attack.rewrite(text, constraints, seed),), constraints, attack.marker)[0]
        failures += [f"{seed}: {'; '.join(reasons)}"] if reasons else []
    return total, failures


@by_distractor
def test_most_rewrites_of_natural_answers_pass(attack: Attack) -> None:
    if not LLMBAR.exists():
        pytest.skip(f"no {LLMBAR.parent}")
    rows = json.loads(LLMBAR.read_text(encoding="utf-8"))
    total, failures = find_rejections(attack, ((r["input"], r[f"output_{r['label']}"], ()) for r in rows))
    assert total == 100
    assert len(failures) <= 15, failures


def answers(attacked: str | None) -> Iterator[tuple[str, str, str, tuple[Constraint, ...]]]:
    """Prompt, original, recorded rewrite (or the original if there is none) and constraints, from the embedded set."""
    for case in tweakset():
        constraints = tuple(parse(c) for c in case["constraints"])  # type: ignore[attr-defined]
        responses: list[dict[str, str]] = case["responses"]  # type: ignore[assignment]
        originals = {(r["author"], r.get("severity")): r["text"] for r in responses if not r.get("attack")}
        for r in responses:
            if r.get("attack") == attacked:
                yield str(case["prompt"]), originals[r["author"], r.get("severity")], r["text"], constraints
