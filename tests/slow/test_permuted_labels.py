"""A judge that cannot know the labels has no skill under attack: labels permuted within cases, all planted judges."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import pytest

from distract.core.loop import execute
from distract.core.records import MIRROR, Row
from distract.core.registry import get_attack, protocols
from distract.core.store import Store
from distract.data import datasets
from distract.models.scripted import PLANTED, make_planted
from distract.rewriting.writers import find_writer
from distract.studies.attack.design import AuditConfig, audit_case
from distract.studies.attack.labels import check_usability, count_robust

JUDGES = (*PLANTED, "longer=0.33", "bold=0.7")
RULES = {"pairwise": (None,), "absolute": ("score", "rating")}
ATTACKS = ("assertiveness", "prolixity", "sycophancy")
PERMUTATIONS = 200


@cache
def judge_all(judge: str) -> Sequence[Row]:
    """Judge all pairs of the embedded set once, before and after the recorded rewrites."""
    config = AuditConfig(
        judge,
        tuple(protocols()[name] for name in RULES),
        tuple(map(get_attack, ATTACKS)),
        find_writer("recorded"),
        frozenset(("flip",)),
    )
    backend = make_planted(judge)
    cases = datasets.load("tweakset").cases
    with Store(Path(":memory:"), backend.identity, backend.reads_slots) as store:
        results = execute([audit_case(case, config) for case in cases], {"judge": (backend, store)})
        return [row for result in results for row in result.rows]


def measure(rows: Sequence[Row], rule: str | None, attack: str) -> float:
    return fmean(value for _, value in count_robust(rows, rule, attack).values.values())


def relabel(rows: Sequence[Row], swapped: set[str]) -> list[Row]:
    return [replace(row, label=MIRROR[row.label]) if row.label and row.case in swapped else row for row in rows]


@pytest.mark.parametrize("protocol", RULES)
@pytest.mark.parametrize("judge", JUDGES)
def test_no_planted_judge_beats_permuted_labels(judge: str, protocol: str) -> None:
    rows = [row for row in judge_all(judge) if row.protocol == protocol]
    cases = sorted({row.case for row in rows})
    random = Random(f"{judge} {protocol}")
    swaps = [{case for case in cases if random.random() < 0.5} for _ in range(PERMUTATIONS)]
    for rule in RULES[protocol]:
        for attack in ATTACKS:
            chosen = [row for row in rows if row.target is None or row.attack == attack]
            accuracies = [measure(relabel(chosen, swap), rule, attack) for swap in swaps]
            assert fmean(accuracies) <= 0.5 + 2 * pstdev(accuracies) / sqrt(PERMUTATIONS)
            # For the opposite labels too: right before and after is possible for one of the two only.
            assert accuracies[0] + measure(relabel(chosen, {*cases} - swaps[0]), rule, attack) <= 1


@pytest.mark.parametrize("protocol", RULES)
@pytest.mark.parametrize("judge", JUDGES)
def test_usability_with_permuted_labels_is_seldom_shown(judge: str, protocol: str) -> None:
    rows = [row for row in judge_all(judge) if row.protocol == protocol and row.target is None]
    cases = sorted({row.case for row in rows})
    random = Random(f"usable {judge} {protocol}")
    shown = 0
    for _ in range(PERMUTATIONS):
        swapped = {case for case in cases if random.random() < 0.5}
        shown += check_usability(relabel(rows, swapped), protocol, RULES[protocol][0]).usable == "yes"
    # One-sided at 5%: at most 10 of 200 are expected, and 17 lie within two standard errors.
    assert shown <= 17
