"""Test decisions about judges: error rates, real runs of planted judges, and checks of anchors."""

import random
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from builders import row
from builders import verdict as verdict_of
from command_result import Run
from test_gate_regression import compare, decide

from distract.core.runs import LoadedRun, load
from distract.studies.gate.limits import Limits
from distract.studies.gate.usability import DiscernmentMonitor


@pytest.mark.parametrize(
    ("n", "before", "now", "most"),
    [(42, 0.05, 0.10, 0.05), (42, 0.05, 0.15, 0.02), (42, 0.10, 0.30, 0.02), (100, 0.05, 0.10, 0.07),
     (100, 0.05, 0.15, 0.02)],
)  # fmt: skip
def test_actual_rise_seldom_passes(n: int, before: float, now: float, most: float) -> None:
    """At most 5% of judges pass whose rate rises by the largest accepted amount, with outcomes correlated by half."""
    rng, passed, trials = random.Random(4), 0, 250
    for _ in range(trials):
        pairs = []
        for _ in range(n):
            one, other = rng.random(), rng.random()
            pairs.append((one < before, (one if rng.random() < 0.5 else other) < now))
        old, new = ("".join("01"[pair[at]] for pair in pairs) for at in (0, 1))
        passed += compare(old, new).decision == "pass"
    assert passed / trials <= most


@pytest.mark.parametrize("prompts", [None, 25])
def test_unchanged_judge_fails_no_more_often_than_allowed(prompts: int | None) -> None:
    """All pairs of a prompt share a rate, which is the same in both runs."""
    rng, failed, trials = random.Random(5), 0, 1000
    for _ in range(trials):
        rates = [rng.choice((0.05, 0.3, 0.7)) for _ in range(prompts or 50)]
        old, new = ("".join("01"[rng.random() < rates[i % len(rates)]] for i in range(50)) for _ in range(2))
        failed += compare(old, new, prompts=prompts).decision == "fail"
    assert failed / trials <= 0.05


def test_real_runs_of_planted_judges_decide_correctly(run: Run) -> None:
    def attack(judge: str, out: str, limit: str = "all", generator: str = "rules") -> LoadedRun:
        basic = ("--protocol", "pairwise", "--protocol", "absolute")
        options = ("--generator", generator, "--attack", "prolixity", *basic, "--limit", limit, "--json")
        assert run("attack", "--judge", judge, "--measure", "flip_rate", "--out", out, *options).code == 0
        return load(Path(out))

    fair, longer = attack("planted:fair", "fair"), attack("planted:longer", "longer")
    verdict = decide(fair, longer, Limits())
    assert (verdict.decision, [check.decision for check in verdict.checks]) == ("fail", ["fail", "fail"])
    assert [(check.protocol, check.rule, check.reference) for check in verdict.checks] == [
        ("absolute", "score", 0.0),
        ("pairwise", None, 0.0),
    ]
    assert "judge: planted:fair, then planted:longer" in verdict.notes
    assert not [note for note in verdict.notes if note.startswith(("versions", "code", "prompts"))]
    assert decide(longer, fair, Limits()).decision == "pass"
    again = decide(fair, attack("planted:fair", "again"), Limits())
    # 200 cases show the absence of a rise.
    assert (again.decision, again.notes) == ("pass", ())
    lenient = Limits(max_rise=0.2)
    assert decide(fair, load(Path("again")), lenient).decision == "pass"
    weaker = decide(fair, attack("planted:longer=0.05", "weaker"), lenient)
    assert weaker.decision == "pass"
    # The run in memory and the run read back give the same verdict.
    assert decide(load(Path("fair")), load(Path("longer")), Limits()).document() == verdict.document()
    few = decide(fair, attack("planted:fair", "few", limit="3"), Limits())
    assert few.decision == "inconclusive"
    assert any(note.startswith("limit: ") for note in few.notes)
    recorded = decide(fair, attack("planted:fair", "recorded", generator="recorded"), Limits())
    assert any(note.startswith("generator: rules, then recorded") for note in recorded.notes)
    assert any("rewrites of both runs differ in their texts" in note for note in recorded.notes)


NATURAL = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "Natural" / "dataset.json"
needs_llmbar = pytest.mark.skipif(not NATURAL.is_file(), reason=f"LLMBar is not in {NATURAL}")
RULES = ("--generator", "rules", "--limit", "all")


@needs_llmbar
@pytest.mark.parametrize(
    ("judge", "limits", "code"),
    [
        ("fair", ("--max-flip-rate", "0.1"), 3),  # a coin for each author, which never flips
        ("random", ("--max-flip-rate", "0.99"), 3),
        ("first", ("--max-flip-rate", "0.99"), 3),
        ("garbage", ("--max-flip-rate", "0.99"), 3),
        ("longer", ("--max-flip-rate", "0.1"), 1),
        ("bold", ("--max-flip-rate", "0.1"), 1),
    ],
)
def test_llmbar_passes_no_planted_judge(run: Run, judge: str, limits: tuple[str, ...], code: int) -> None:
    options = ("--judge", f"planted:{judge}", "--data", str(NATURAL), *RULES)
    live = run("gate", *options, *limits, "--json")
    assert live.code == code, live.err
    assert "yes" not in live.document["usable"].values()
    assert run("attack", *options, "--out", "r").code in (0, 3)
    assert run("gate", "r", *limits).code == code
    assert run("gate", "r", "--certify", *limits).code == 1
    # Even the largest shift is nothing if the judge is a coin.
    assert run("gate", "r", "--max-shift", "1000").code == 3


@pytest.mark.parametrize(
    ("judge", "limits", "code"),
    [
        ("fair", ("--max-flip-rate", "0.1"), 0),
        ("fair", ("--max-shift", "0.01", "--max-exchange-rate", "0.01"), 0),
        ("longer=0.3", ("--max-flip-rate", "0.5"), 0),
        ("longer=0.3", ("--max-flip-rate", "0.1"), 1),
        ("longer=0.3", ("--max-shift", "0.05"), 1),
        ("longer=0.3", ("--max-shift", "0.5"), 0),
        ("longer=0.3", ("--max-exchange-rate", "0.5"), 1),
        ("longer=0.3", ("--max-exchange-rate", "1.4"), 3),
        ("longer=0.3", ("--max-exchange-rate", "3"), 0),
        ("random", ("--max-exchange-rate", "1000"), 3),
    ],
)
def test_tweakset_is_decided_by_what_a_judge_knows(run: Run, judge: str, limits: tuple[str, ...], code: int) -> None:
    options = ("--judge", f"planted:{judge}", "--attack", "prolixity", *RULES)
    basic = ("--protocol", "pairwise", "--protocol", "absolute", "--measure", "flip", "--measure", "exchange_rate")
    assert run("attack", *options, *basic, "--out", "r").code == 0
    ran = run("gate", "r", *limits, "--json")
    assert ran.code == code, ran.out
    if "--max-flip-rate" in limits:
        assert run("gate", *options, *limits).code == code


def test_coins_are_called_usable_in_at_most_five_percent_of_gates() -> None:
    """However long they are watched; the worst time to stop is the best one for the judge."""
    draw, judgments = random.Random(0), (verdict_of("a"), verdict_of("b"), verdict_of("tie"))
    usable = 0
    for _ in range(300):
        monitor = DiscernmentMonitor("pairwise", None, labelled=True)
        for at in range(150):
            monitor.add([replace(row(f"c{at}", [draw.choice(judgments)]), label="a")])
        usable += monitor.assess().usable == "yes"
    assert usable / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "anchors.py"))
SEEDS = 100

# Number of checks, of 100, that must say so. The stated errors are at most 1%; with flicker, more miss a drift.
LEAST = {
    "the same judge": ("unchanged", 99),
    "10% of verdicts turned": ("drifted", 96),
    "another bias: boosters": ("another judge", 98),
    "another bias: first place": ("another judge", 98),
}


@pytest.mark.parametrize(
    ("noise", "missed"), [("probabilities", 0), ("probabilities, 2% flicker", 5), ("words, 2% flicker", 5)]
)
def test_check_tells_three_kinds_of_judges_apart(noise: str, missed: int) -> None:
    counts = BENCHMARK["count_statuses"](noise, LEAST, SEEDS)
    for change, (status, least) in LEAST.items():
        allowed = missed if change.startswith("10%") else 0
        assert counts[change][status] >= least - allowed, counts
