"""Planted judges follow their bias, are found out by the families that they fall for, and get documented figures."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from types import ModuleType

import pytest
from command_result import Run
from test_scripted import LONG, SHORT, prefers

import distract
from distract.core import registry, runs
from distract.core.loop import execute
from distract.core.records import MIRROR, Response, Row
from distract.core.registry import get_attack, protocols
from distract.core.store import Store
from distract.data import datasets
from distract.models.scripted import PLANTED, make_planted
from distract.rewriting.writers import find_writer
from distract.stats.figure import count
from distract.stats.measures import MEASURES
from distract.stats.trials import Aim
from distract.studies.attack.ranks import check_protocols
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import audit_case
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import list_trials

DOCS = Path(__file__).parents[2] / "docs"


def load_benchmark(name: str) -> ModuleType:
    """Load a benchmark as a module of its own, whose functions are judges."""
    spec = spec_from_file_location(name, DOCS.parent / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KNOWN = load_benchmark("known_judges")
"""The judges of the table, each with why its figures are as they are."""


@pytest.fixture(scope="module")
def attack_known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], distract.Run]:
    folder = tmp_path_factory.mktemp("known")
    return cache(lambda name: KNOWN.attack(name, folder))


def test_table_has_every_known_judge() -> None:
    page = DOCS.joinpath("reading-results.md").read_text(encoding="utf-8")
    table = page.partition("<!-- judges -->\n")[2].partition("<!-- end -->")[0]
    assert re.findall(r"(?m)^\| `(.+?)` \|", table) == [*KNOWN.JUDGES]
    assert len(KNOWN.JUDGES) == 22


@pytest.mark.parametrize("judge", KNOWN.JUDGES)
def test_documented_headline_is_what_the_judge_gets(judge: str, attack_known: Callable[[str], distract.Run]) -> None:
    cells = KNOWN.list_cells(judge, attack_known(judge))
    assert f"| {' | '.join(cells)} |\n" in DOCS.joinpath("reading-results.md").read_text(encoding="utf-8")


def test_judges_that_know_nothing_have_no_skill_on_average(attack_known: Callable[[str], distract.Run]) -> None:
    """Labels permuted within cases say nothing about the responses, whatever the judge knows or likes."""
    means = [0.0] * 50
    for name in KNOWN.JUDGES:
        every = runs.load(attack_known(name).path).rows
        rows = [row for row in every if row.design == "flip" and (row.target is None or row.attack == KNOWN.ATTACK)]
        cases, random = sorted({row.case for row in rows}), Random(name)
        for at in range(len(means)):
            relabelled = relabel(rows, {case for case in cases if random.random() < 0.5})
            skill = 2 * measure(relabelled, None, KNOWN.ATTACK, "both") - 1
            means[at] += skill / len(KNOWN.JUDGES)
    assert fmean(means) <= 2 * pstdev(means) / sqrt(len(means))


EFFECTS = ("same", "unearned", "hollow", "injection")
FAMILIES = sorted({attack.family for attack in registry.attacks().values() if attack.effect in EFFECTS})

WEAKNESSES: dict[str, set[str]] = {
    "fair": set(),
    "markdown": {"format"},
    "citations": {"citation", "social"},
    "gullible": {"injection"},
    "blind": {"hollow"},
}


def read_matrix() -> dict[str, dict[str, str]]:
    """Read the matrix of the docs: the strongest shown effect by judge and family, in percent, or a dash."""
    page = DOCS.joinpath("attacks.md").read_text(encoding="utf-8")
    table = page[page.index("| judge |") :].partition("\n\n")[0]
    lines = re.findall(r"(?m)^\| (?:judge|`\w+`) \|.*\|$", table)
    head, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.parametrize("judge", WEAKNESSES)
def test_planted_judge_is_found_out_by_its_families(run: Run, judge: str) -> None:
    attacks = [part for effect in EFFECTS for part in ("--attack", f"all:{effect}")]
    options = ("--judge", f"planted:{judge}", *attacks, "--generator", "rules", "--control", "--limit", "60")
    assert run("attack", *options, "--protocol", "pairwise", "--measure", "flip", "--out", "r").code == 0
    strengths = json.loads(Path("r/summary.json").read_text(encoding="utf-8"))["strength"]
    assert {one["family"] for one in strengths} == {*FAMILIES}
    strongest = dict.fromkeys(FAMILIES, 0.0)
    for one in strengths:
        if one["is_stronger"]:
            strongest[one["family"]] = max(strongest[one["family"]], one["value"])
    assert {family for family, value in strongest.items() if value} == WEAKNESSES[judge]
    shown = {family: f"{100 * value:.0f}" if value else "–" for family, value in strongest.items()}
    assert read_matrix()[judge] == shown


# test_protocols covers protocols that show more than two responses.
@pytest.mark.parametrize("protocol", [name for name, p in protocols().items() if p.shows in (2, None)])
class TestEveryProtocol:
    def test_strength_is_the_share_of_biased_cases(self, protocol: str) -> None:
        alike = Response("z", SHORT.turns), Response("z", LONG.turns)
        biased = sum(prefers("longer=0.3", protocol, *alike, f"c{i}") == "b" for i in range(160))
        assert 0.22 < biased / 160 < 0.38
        assert prefers("longer=0", protocol, *alike) == "tie"


JUDGES = (*PLANTED, "longer=0.33", "bold=0.7")
RULES = {"pairwise": (None,), "absolute": ("score", "rating")}
TONES = ("assertiveness", "prolixity", "sycophancy")
PERMUTATIONS = 200


@cache
def judge_all(judge: str) -> Sequence[Row]:
    """Judge all pairs of the embedded set once, before and after the recorded rewrites."""
    config = AuditConfig(
        tuple(map(get_attack, TONES)),
        judge=judge,
        protocols=tuple(protocols()[name] for name in RULES),
        writer=find_writer("recorded"),
        designs=frozenset(("flip",)),
    )
    backend = make_planted(judge)
    cases = datasets.load("tweakset").cases
    with Store(Path(":memory:"), backend.identity, backend.reads_slots) as store:
        results = execute([audit_case(case, config) for case in cases], {"judge": (backend, store)})
        return [row for result in results for row in result.rows]


def measure(rows: Sequence[Row], rule: str | None, attack: str, aim: Aim = "loser") -> float:
    counts = count(MEASURES["robust_accuracy"], list_trials(rows, rule, attack, aim))
    return fmean(value for _, value in counts.values.values())


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
        for attack in TONES:
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
    shown, rules = 0, {protocol: [rule for rule in RULES[protocol] if rule]}
    for _ in range(PERMUTATIONS):
        swapped = {case for case in cases if random.random() < 0.5}
        shown += check_protocols(CompactRows(relabel(rows, swapped), rules), rules)[0].usable == "yes"
    # One-sided at 5%: at most 10 of 200 are expected, and 17 lie within two standard errors.
    assert shown <= 17
