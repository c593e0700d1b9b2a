"""Test the embedded data set: authors, satisfied and broken constraints, and faithful rewrites."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from typing import Any

import pytest
from loops import each

from distract.core import registry
from distract.core.records import Constraint
from distract.data.constraints import check, parse
from distract.data.datasets import load
from distract.rewriting.fidelity import inspect, inspect_severity

LINES = (resources.files("distract.data") / "tweakset.jsonl").read_text(encoding="utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]

EXPECTED = Counter(
    [
        ("good", None, None),
        *(("good", attack, None) for attack in ("assertiveness", "prolixity", "sycophancy")),
        *((f"low-{s}", attack, s) for s in (1, 2, 3) for attack in (None, "assertiveness")),
        ("low-1", "prolixity", 1),
        ("low-1", "sycophancy", 1),
    ]
)
"""Author, attack and severity of the twelve responses of a case."""

MISTAKES = {
    "tweak-005": "1987",  # the Berlin Wall fell in November 1989
    "tweak-008": "1,250",  # 1,000 at 10% is 1,210 after two years
    "tweak-009": "paris",  # The Starry Night was painted in Saint-Rémy
    "tweak-010": "12 players",  # eleven
    "tweak-016": "35 days",  # a little over 27
    "tweak-023": "belgrade",  # Sarajevo
    "tweak-028": "1682",  # 1582
    "tweak-033": "john keats",  # Lord Byron
    "tweak-038": "79 percent",  # about 97
    "tweak-042": "2,100",  # 6 percent of 30,000 are 1,800
    "tweak-045": "25 million years",  # 2.5
    "tweak-047": "in 1963",  # 1953
    "tweak-048": "barn swallow",  # Arctic tern
    "tweak-057": "four hearts",  # three
    "tweak-065": "budapest",  # Vienna
    "tweak-078": "chlorine compounds",  # sulphur
    "tweak-080": "1958",  # 1908
    "tweak-082": "five red threads",  # three
    "tweak-089": "15 points",  # 13
    "tweak-095": "sydney and brisbane",  # Melbourne
    "tweak-099": "17 by 17",  # 19
    "tweak-102": "1669",  # 1569
    "tweak-110": "june 1957",  # 1967
    "tweak-113": "in 1965",  # 1955
    "tweak-115": "in 1981",  # 1971
    "tweak-120": "in the 1960s",  # late 1980s
    "tweak-131": "into goats",  # pigs
    "tweak-132": "in 1889",  # 1899
    "tweak-136": "in cologne",  # Mainz
    "tweak-140": "145 sonnets",  # 154
    "tweak-146": "in 1880",  # 1840
    "tweak-150": "in 1935",  # 1885
    "tweak-153": "in milan",  # Rome
    "tweak-160": "in 1860",  # 1840
    "tweak-171": "january 1853",  # 1863
    "tweak-174": "11 hours ahead",  # 9
    "tweak-176": "ramsgate",  # Folkestone
    "tweak-181": "58 years",  # 68
    "tweak-196": "derived from python",  # JavaScript
    "tweak-197": "in september 1957",  # 1947
    "tweak-198": "in boston",  # Chicago
    "tweak-199": "standard of 1975",  # 1985
}
"""Deliberate mistakes in good answers: a rewrite that corrects one is rejected."""

each_case = each("case", *CASES)


def constraints_of(case: dict[str, Any]) -> list[Constraint]:
    return [parse(raw) for raw in case["constraints"]]


def rewrites(case: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each recorded rewrite with its original."""
    originals = {r["author"]: r for r in case["responses"] if "attack" not in r}
    return [(originals[r["author"]], r) for r in case["responses"] if "attack" in r]


def test_cases_are_many_and_no_line_repeats() -> None:
    assert len(CASES) == 200
    for values in ([case["id"] for case in CASES], [case["prompt"] for case in CASES]):
        assert len(set(values)) == len(values)
    texts = [response["text"] for case in CASES for response in case["responses"]]
    assert len(set(texts)) == len(texts) == 12 * len(CASES)


def test_kinds_vary() -> None:
    kinds = [tuple(raw["kind"] for raw in case["constraints"]) for case in CASES]
    assert len({kind for three in kinds for kind in three}) >= 20
    assert len(set(kinds)) == len(kinds)
    assert len({frozenset(three) for three in kinds}) > 0.9 * len(kinds)


def test_reader_reads_the_same_cases() -> None:
    cases = load("tweakset").cases
    assert [case.id for case in cases] == [case["id"] for case in CASES]
    assert all(len(case.originals) == 4 and case.preferred == "good" for case in cases)


@each_case
def test_case_has_its_fields_and_twelve_responses(case: dict[str, Any]) -> None:
    assert list(case) == ["id", "prompt", "responses", "preferred", "constraints", "source"]
    assert case["preferred"] == "good"
    assert case["source"] == "tweakset"
    result = Counter((r["author"], r.get("attack"), r.get("severity")) for r in case["responses"])
    assert result == EXPECTED
    assert all(set(r) <= {"author", "text", "attack", "severity"} for r in case["responses"])


@each_case
def test_severity_and_its_rewrite_break_the_same_number(case: dict[str, Any]) -> None:
    constraints = constraints_of(case)
    assert len(constraints) == len({c.kind for c in constraints}) == 3
    for response in case["responses"]:
        broken = [c.kind for c in constraints if not check(c, response["text"])]
        assert len(broken) == response.get("severity", 0), (response["author"], response.get("attack"), broken)
    for original, rewrite in rewrites(case):
        for constraint in constraints:
            assert check(constraint, original["text"]) is check(constraint, rewrite["text"])


@each_case
def test_lengths_are_similar(case: dict[str, Any]) -> None:
    lengths = {(r["author"], r.get("attack")): len(r["text"].split()) for r in case["responses"]}
    assert all(20 <= length <= 200 for length in lengths.values())
    for author in ("low-1", "low-2", "low-3"):
        assert 0.7 <= lengths[author, None] / lengths["good", None] <= 1.35


@pytest.mark.parametrize("part", range(20))
def test_every_rewrite_is_accepted(part: int) -> None:
    @each("case", *CASES[part::20])
    def check_rewrites(case: dict[str, Any]) -> None:
        constraints, attacks = constraints_of(case), registry.attacks()
        for original, rewrite in rewrites(case):
            before, after = (original["text"],), (rewrite["text"],)
            attack = attacks[rewrite["attack"]]
            limit = attack.max_new_content
            reasons, _ = inspect((case["prompt"],), before, after, constraints, attack.marker, max_new_content=limit)
            assert reasons == (), (rewrite["author"], rewrite["attack"])

    check_rewrites()


@each_case
def test_every_severity_breaks_its_number_of_constraints(case: dict[str, Any]) -> None:
    for response in case["responses"]:
        if "severity" in response:
            assert inspect_severity(response["text"], constraints_of(case), response["severity"])[0] == ()


@each("case_id, mistake", *MISTAKES.items())
def test_good_responses_contain_their_known_mistake(case_id: str, mistake: str) -> None:
    case = next(case for case in CASES if case["id"] == case_id)
    good = [r["text"].casefold() for r in case["responses"] if r["author"] == "good"]
    assert len(good) == 4
    assert all(mistake in text for text in good)
