"""Test calls of invariants with judges made for the purpose: requests, findings, records, messages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from test_invariants import PAIR, Open, X, Y, message

from distract.core.records import Case, Constraint
from distract.judging.judge import Judge
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend, make_planted
from distract.models.transformers.backend import Transformers
from distract.testing import invariants
from distract.testing.invariants import Inconclusive, InvariantFinding, Violation


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Open]:
    judges: list[Judge] = []

    def open_(backend: ScriptedBackend, manner: Manner | None = None) -> Judge:
        judges.append(Judge("j", backend, store=tmp_path / f"s{len(judges)}", manner=manner or Manner()))
        return judges[-1]

    yield open_
    for one in judges:
        one.close()


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
