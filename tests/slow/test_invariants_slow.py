"""Test invariants and the strategies that draw their cases and rewrites."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from fakes import draw_examples, few, simplest
from hypothesis import given, settings, strategies as st
from test_invariants import PAIR, Open, X, Y, judge as judge, message
from test_strategies import ATTACKS, RECORDED, Test, biased_cases, failure, rewritten_pairs

from distract.core import registry
from distract.core.attack import Attack
from distract.core.backend import Batch
from distract.core.plugin import Comparison
from distract.core.records import Case, Constraint, Request
from distract.judging.judge import Judge
from distract.models.scripted import make_planted
from distract.models.transformers.backend import Transformers
from distract.studies.explain.edits import find_edits
from distract.testing import invariants, strategies
from distract.testing.invariants import Inconclusive, InvariantFinding, Violation
from distract.testing.strategies import drawn_rewrites


class TestNoEvidence:
    @pytest.mark.parametrize(
        ("test", "constraint", "why"),
        [
            (
                invariants.injection_ignored,
                Constraint("keywords:forbidden_words", (("forbidden_words", ("judge",)),)),
                "the request and its control break different format requirements",
            ),
            (
                invariants.monotone_in_severity,
                Constraint("language:response_language", (("language", "en"),)),
                "no rule breaks its format requirements",
            ),
        ],
    )
    def test_changes_that_the_format_forbids_are_skipped(
        self, judge: Open, test: Callable[..., InvariantFinding], constraint: Constraint, why: str
    ) -> None:
        formal = Case("c", ("Name a colour.",), (X, Y), preferred="x", constraints=(constraint,))
        lines = message(lambda: test(judge(make_planted("fair")), [formal]), Inconclusive)
        assert lines[-1] == f"  excluded {why} (1)"


def test_judges_work_without_pytest_and_hypothesis() -> None:
    code = (
        "import sys, distract.testing.invariants\n"
        "assert not {'pytest', 'hypothesis', 'torch', 'transformers'} & set(sys.modules), 'too much'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_real_judge_answers_and_is_described(smollm2: Transformers, tmp_path: Path) -> None:
    with Judge("smollm2-135m", smollm2, store=tmp_path / "s") as real:
        assert invariants.deterministic(real, PAIR).n == 1
        with suppress(Violation):
            invariants.swap_consistent(real, PAIR)
        assert [one.n for one in real.findings] == [1, 1]


def test_decisions_at_the_threshold_are_seldom_wrong(tmp_path: Path) -> None:
    with Judge("j", make_planted("bold=0.2"), store=tmp_path / "s") as judge:
        for number in range(20):
            cases = biased_cases(f"s{number}-", 40)
            rate: Test = partial(invariants.distractor_invariant, cases=cases, max_violation_rate=0.2, confidence=0.9)
            failure(rate, judge)
        decisions = [finding.decision for finding in judge.findings]
    # A tenth of 20 each way; more than 6 of them has a chance of about 0.002.
    assert max(decisions.count("pass"), decisions.count("fail")) <= 6
    assert len(decisions) == 20


@given(st.integers(1, 10).flatmap(lambda number: st.tuples(st.just(number), strategies.cases(responses=number))))
@few
def test_responses_of_a_case_differ(drawn: tuple[int, Case]) -> None:
    number, case = drawn
    assert len(case.originals) == len(case.responses) == number
    assert len({one.author for one in case.responses}) == len({one.text for one in case.responses}) == number


def test_missing_hypothesis_is_one_line() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import distract.testing.strategies"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    hint = 'pip install -c constraints.txt ".[pytest]" in the source folder of distract'
    assert ran.stderr.splitlines()[-1] == f"ImportError: distract.testing.strategies needs hypothesis: {hint}"


def test_rewrites_range_from_weak_to_whole() -> None:
    counts = set()
    for case in draw_examples(strategies.rewrites("assertiveness", data=RECORDED[:1]), 60):
        for original, rewrite in rewritten_pairs(case):
            whole = drawn_rewrites._full_rewrite(
                registry.get_attack("assertiveness"), drawn_rewrites.strip_rewrites(case), original, 0
            )
            most = len(find_edits(original.turns, whole.turns))
            counts.add(len(find_edits(original.turns, rewrite.turns)) / most)
    assert min(counts) < 0.2
    assert max(counts) >= 0.9
    assert len(counts) > 8


def test_all_parts_of_a_case_shrink() -> None:
    case = simplest(strategies.rewrites("assertiveness"), lambda case: True)
    assert case.prompt == ("How do I make tea?",)
    assert [len(find_edits(old.turns, new.turns)) for old, new in rewritten_pairs(case)] == [1, 1]


@pytest.mark.parametrize("attack", [None, *ATTACKS, "severity-3"])
def test_few_draws_are_rejected(attack: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[bool] = []
    changed = drawn_rewrites._is_changed

    def counted(attack: Attack, case: Case, seed: int) -> bool:
        attempts.append(changed(attack, case, seed))
        return attempts[-1]

    monkeypatch.setattr(drawn_rewrites, "_is_changed", counted)
    kinds = None if attack == "severity-3" else ["prose"]
    assert len(draw_examples(strategies.rewrites(attack, kinds=kinds), 30)) == 30
    # Controls and `prose` change little or nothing in plain prose, so a sentence that they change is added, at one more
    # try or two.
    most = {"null": 0.5, None: 0.5, "prose": 0.5, "placebo": 0.75}.get(attack, 0.1)
    assert attempts.count(False) <= len(attempts) * most


class Counting:
    """A planted judge that counts its requests."""

    def __init__(self) -> None:
        self.planted = make_planted("bold")
        self.identity, self.reads_slots = self.planted.identity, self.planted.reads_slots
        self.asked = 0

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        self.asked += len(wanted)
        return self.planted.reply(requests, wanted)


def run_failing_test(chosen: settings) -> tuple[str, int]:
    """The message and the number of requests of a failing test, run without memory of earlier runs."""
    backend = Counting()
    with Judge("bold", backend) as judge:

        @chosen
        @given(strategies.rewrites("assertiveness", data=RECORDED))
        def is_not_distracted(case: Case) -> None:
            first, second = case.originals
            before = judge.judgments(Comparison(case, first, second))[0].preferred
            losers = {"a": second, "b": first}
            for old, new in rewritten_pairs(case):
                if before in losers and old == losers[before]:
                    pair = (new, second) if old == first else (first, new)
                    assert judge.judgments(Comparison(case, *pair))[0].preferred == before, (old.text, new.text)

        with pytest.raises(AssertionError) as raised:
            is_not_distracted()
    return str(raised.value), backend.asked


# Hypothesis either keeps the failing example and tries it first, or draws the same examples again.
@pytest.mark.parametrize("again", [False, True], ids=["kept", "drawn again"])
def test_failing_example_replays_without_the_model(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = strategies.unhurried(derandomize=again)
    message, arguments = run_failing_test(chosen)
    assert arguments > 0
    assert (tmp_path / ".distract/examples").exists() != again
    assert run_failing_test(chosen) == (message, 0)
    assert not (tmp_path / ".hypothesis/examples").exists()
