"""The examples do what they say."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from distract import cli, registry
from distract.datasets import load

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_data_loads_with_labels_constraints_and_turns() -> None:
    cases = load(str(EXAMPLES / "own_data" / "cases.jsonl")).cases
    assert [case.id for case in cases] == ["tea", "list", "chat"]
    assert [len(case.prompt) for case in cases] == [1, 1, 2]
    assert cases[1].constraints


def test_own_attack_is_found_through_its_entry_point_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "own_attack"))
    monkeypatch.chdir(tmp_path)
    entry = importlib.metadata.EntryPoint("shouting", "shouting:shouting", "distract.attacks")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: importlib.metadata.EntryPoints([entry]).select(group=group)
    )
    registry._found.cache_clear()
    data = str(EXAMPLES / "own_data" / "cases.jsonl")
    arguments = ["attack", "--judge", "planted:bold", "--attack", "shouting", "--data", data, "--generator", "rules"]
    monkeypatch.setattr(sys, "argv", ["distract", *arguments])
    cli.main()
    registry._found.cache_clear()
    assert "shouting" in capsys.readouterr().out
