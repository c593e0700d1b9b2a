"""The examples do what they say."""

from __future__ import annotations

import pytest
from test_examples import EXAMPLES


def test_a_judge_of_ones_own_is_tested_in_a_few_lines(pytester: pytest.Pytester) -> None:
    text = (EXAMPLES / "test_my_judge.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    pytester.makepyfile(test_my_judge=text)
    said = pytester.runpytest("--judge", "planted:first", "-p", "no:cacheprovider")
    said.assert_outcomes(failed=1, passed=1)
    said.stdout.fnmatch_lines(
        ["*Violation: pairwise verdict changes when the two responses are shown in the other order"]
    )
