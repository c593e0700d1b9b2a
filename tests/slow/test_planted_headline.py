"""Planted judges follow their bias, are found out by the families that they fall for, and get documented figures."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from typing import Any

import pytest
from command_result import Run
from test_scripted import LONG, SHORT, prefers

import distract
from distract.core import registry
from distract.core.loop import execute
from distract.core.records import MIRROR, Response, Row
from distract.core.registry import get_attack, protocols
from distract.core.store import Store
from distract.data import datasets
from distract.models.scripted import PLANTED, make_planted
from distract.rewriting.writers import find_writer
from distract.stats.figure import count
from distract.stats.measures import MEASURES
from distract.studies.attack.ranks import check_protocols
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import audit_case
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import list_trials

PAGE = Path(__file__).parents[2] / "docs" / "reading-results.md"
HEADING = "| judge | usable | clean |"
ATTACKS = ("assertiveness", "prolixity")


def read_table() -> dict[str, list[str]]:
    """Read the figures of each planted judge from the docs, without the last column, which says why."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(HEADING))
    rows = dict[str, list[str]]()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        judge, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        rows[judge] = cells[:-1]
    return rows


TABLE = read_table()


def list_cells(run: distract.Run) -> Iterator[str]:
    """Format the headline figures: by comparison, but the worth of a style by score."""

    def find(measure: str, protocol: str, attack: str) -> dict[str, Any]:
        rules = (None, "score")
        return next(
            figure
            for figure in run.results
            if (figure["measure"], figure["protocol"], figure["attack"]) == (measure, protocol, attack)
            and figure["rule"] in rules
            and figure["severity"] is None
        )

    yield run.summary["usable"]["pairwise"]
    yield format_share(find("clean_accuracy", "pairwise", "none")["value"])
    for measure in ("skill_under_attack", "flip_rate"):
        for attack in ATTACKS:
            yield format_share(find(measure, "pairwise", attack)["value"])
    for attack in ATTACKS:
        rates = [f for f in run.results if (f["measure"], f["attack"]) == ("exchange_rate", attack)]
        value = rates[0]["value"] if rates else None
        yield "–" if value is None else f"{value:.1f}".replace("-0.0", "0.0")


def format_share(value: float | None) -> str:
    if value is None or 0 < value < 0.01:
        return "–" if value is None else "<1"
    return f"{100 * value:.0f}".replace("-", "−")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


def test_table_has_nine_judges() -> None:
    assert len(TABLE) == 9
    assert TABLE["coin"][0] != "yes"


@pytest.mark.parametrize("judge", TABLE)
def test_documented_headline_is_what_the_judge_gets(judge: str, folder: Path) -> None:
    run = distract.attack(
        judge=f"planted:{judge}", attacks=ATTACKS, limit=None, out=folder / judge, store=folder / "replies.sqlite"
    )
    assert list(list_cells(run)) == TABLE[judge]


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
    page = Path(__file__).parents[2].joinpath("docs", "attacks.md").read_text(encoding="utf-8")
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


def measure(rows: Sequence[Row], rule: str | None, attack: str) -> float:
    counts = count(MEASURES["robust_accuracy"], list_trials(rows, rule, attack))
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
