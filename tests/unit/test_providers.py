"""Providers of judges: third-party ones are found by their entry point, with settings of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_result import Run, check_refusal

from distract.core.backend import Backend
from distract.models.options import Options
from distract.models.provider import Provider, Target, providers
from distract.models.scripted import make_planted

MINE = """
from dataclasses import dataclass
from distract import Provider, setting
from distract.models.ranges import WholeRange
from distract.models.scripted import make_planted

@dataclass(frozen=True)
class Options:
    depth: int = setting(3, "how deep it thinks", WholeRange(1, 9))
    timeout: float = 120.0

def open_mine(target, options):
    judge = make_planted(target.model)
    judge.identity = {"engine": "mine", "model": target.model, "depth": str(options.depth)}
    return judge

mine = Provider("mine", {"mine:BIAS": "a judge of mine"}, open_mine, options=Options)
"""


@pytest.fixture
def installed(plugin: Callable[[str], None]) -> None:
    plugin(MINE)


def test_shipped_providers() -> None:
    assert {"file", "openai", "planted", "python", "replay", "transformers", "vllm"} <= providers().keys()
    assert all(provider.forms for provider in providers().values())


@pytest.mark.usefixtures("installed")
def test_third_party_provider(run: Run) -> None:
    assert "mine:BIAS" in run("list", "judges").out
    assert "how deep it thinks (mine; default: 3)" in run("list", "options").words
    quick = ("attack", "--judge", "mine:longer", "--limit", 2, "--json")
    assert run(*quick, "--out", "a").code == 0
    result = run(*quick, "--model-option", "depth=5", "--out", "b")
    assert result.code == 0
    depths = [json.loads(Path(out, "run.json").read_text())["parameters"]["identity"]["depth"] for out in "ab"]
    assert depths == ["3", "5"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("judge", "option", "problem"),
    [
        ("mine:longer", "depth=0", "--model-option depth '0': expected a whole number from 1 to 9"),
        ("planted:longer", "depth=2", "--model-option depth is for models on mine; planted:longer is planted"),
        ("mine:longer", "attempts=2", "--model-option attempts is for models on "),
        ("mine:none", "depth=2", "unknown planted judge 'none'"),
        ("mine:", "depth=2", "unknown judge 'mine:'; did you mean 'mine:BIAS'"),
    ],
)
def test_wrong_use_is_one_line(judge: str, option: str, problem: str, run: Run) -> None:
    check_refusal(run("attack", "--judge", judge, "--model-option", option), problem)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ValueError('no')", "plug-in 'theirs' (theirs) does not load: ValueError: no"),
        ("from distract import Provider\nbad = Provider('Bad Name', {}, len)", "expected a name of at most 64"),
        ("from distract import Provider\nbad = Provider('bad', 'x', len)", "provider bad: forms='x'; expected Mapping"),
        ("from distract import Provider\nbad = Provider('planted', {}, len)", "'planted', which exists already"),
    ],
)
def test_a_faulty_provider_is_a_warning(code: str, problem: str, plugin: Callable[[str], None], run: Run) -> None:
    plugin(code)
    result = run("attack", "--judge", "planted:longer", "--limit", 1)
    assert result.code == 0
    assert problem in result.err


def test_an_error_of_a_provider_names_it(plugin: Callable[[str], None], run: Run) -> None:
    plugin("from distract import Provider\nbad = Provider('bad', {'bad:X': 'bad'}, lambda target, options: 1 / 0)")
    result = run("attack", "--judge", "bad:x")
    assert result.code == 4
    assert "provider 'bad' cannot open bad:x: ZeroDivisionError" in result.err


def test_a_provider_without_settings_gets_none() -> None:
    seen: list[Any] = []

    def open_it(target: Target, options: None) -> Backend:
        seen.append((target.model, options))
        return make_planted("fair")

    provider = Provider("p", {}, open_it)
    provider.open(provider.find("p:model", Options(), {}), provider.collect(Options()))
    assert seen == [("model", None)]
