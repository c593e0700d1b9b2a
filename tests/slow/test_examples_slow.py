"""Test that the examples work as described."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from test_examples import EXAMPLES


def test_own_judge_is_tested_in_a_few_lines(pytester: pytest.Pytester) -> None:
    text = (EXAMPLES / "test_my_judge.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    pytester.makepyfile(test_my_judge=text)
    result = pytester.runpytest("--judge", "planted:first", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["*Violation: pairwise verdict changes when the two responses are shown in the other order"]
    )


def test_notebook_runs_as_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "notebook.py"), run_name="__main__")
    output = capsys.readouterr()
    assert "pairwise             prolixity    195 of 198 verdicts flipped" in output.out
    assert "fail: pairwise under prolixity" in output.out
    assert output.err == ""
