"""The rule attacks: invariants over arbitrary text, faithful rewrites of real data, and texts checked by eye."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_attacks import by_distractor, tweakset

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.data.constraints import parse
from distract.rewriting.fidelity import inspect


@by_distractor
@pytest.mark.parametrize(
    "piece", ["a ", ". ", "it may be. ", '"', "```\n", "[", "I think the ", "5.", "'a ", "\\(", "<a"]
)
def test_long_hostile_text_can_be_rewritten(attack: Attack, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert len(attack.rewrite(text, (), 0)) > 0.5 * len(text)


def find_rejections(
    attack: Attack, answers: Iterator[tuple[str, str, tuple[Constraint, ...]]]
) -> tuple[int, list[str]]:
    total, failures = 0, []
    for seed, (prompt, text, constraints) in enumerate(answers):
        total += 1
        reasons = inspect((prompt,), (text,), (attack.rewrite(text, constraints, seed),), constraints, attack.marker)[0]
        failures += [f"{seed}: {'; '.join(reasons)}"] if reasons else []
    return total, failures


def answers(attacked: str | None) -> Iterator[tuple[str, str, str, tuple[Constraint, ...]]]:
    """Prompt, original, recorded rewrite (or the original if there is none) and constraints, from the embedded set."""
    for case in tweakset():
        constraints = tuple(parse(c) for c in case["constraints"])  # type: ignore[attr-defined]
        responses: list[dict[str, str]] = case["responses"]  # type: ignore[assignment]
        originals = {(r["author"], r.get("severity")): r["text"] for r in responses if not r.get("attack")}
        for r in responses:
            if r.get("attack") == attacked:
                yield str(case["prompt"]), originals[r["author"], r.get("severity")], r["text"], constraints


@by_distractor
def test_most_rewrites_of_embedded_answers_pass(attack: Attack) -> None:
    total, failures = find_rejections(
        attack, ((prompt, text, constraints) for prompt, text, _, constraints in answers(None))
    )
    assert len(failures) <= 0.1 * total, failures


@by_distractor
def test_recorded_rewrites_pass(attack: Attack) -> None:
    problems = [
        (old, reasons)
        for prompt, old, new, constraints in answers(attack.name)
        if (reasons := inspect((prompt,), (old,), (new,), constraints, attack.marker)[0])
    ]
    assert not problems
