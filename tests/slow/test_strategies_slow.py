"""Test that strategies draw different responses, and the message without hypothesis."""

from __future__ import annotations

import subprocess
import sys

from drawing import few
from hypothesis import given
from hypothesis import strategies as st

from distract.core.records import Case
from distract.testing import strategies


@given(st.integers(1, 10).flatmap(lambda number: st.tuples(st.just(number), strategies.cases(responses=number))))
@few
def test_responses_of_a_case_differ(drawn: tuple[int, Case]) -> None:
    number, case = drawn
    assert len(case.originals) == len(case.responses) == number
    assert len({one.author for one in case.responses}) == len({one.text for one in case.responses}) == number


def test_missing_hypothesis_is_one_line() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import distract.testing.strategies"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    hint = 'pip install ".[pytest]" in the source folder of distract'
    assert ran.stderr.splitlines()[-1] == f"ImportError: distract.testing.strategies needs hypothesis: {hint}"
