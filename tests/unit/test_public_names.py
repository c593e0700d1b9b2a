"""What ``import distract`` offers: which names, from where, and that nothing takes their place."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

import distract

NAMES = [
    "Attack",
    "BackendError",
    "Calls",
    "Case",
    "Comparison",
    "Constraint",
    "DataError",
    "DistractError",
    "Draws",
    "Judge",
    "Judgment",
    "Matches",
    "Outcome",
    "Plan",
    "PluginError",
    "Protocol",
    "RatingSystem",
    "Ratings",
    "Request",
    "Response",
    "Run",
    "Slots",
    "UnknownName",
    "UsageError",
    "Verdict",
    "attack",
    "constraints",
    "facts",
    "fidelity",
    "gate",
    "invariants",
    "load",
    "manner",
    "prompts",
    "reading",
    "rubric",
    "strategies",
    "verdicts",
]


def test_the_names_are_these() -> None:
    assert distract.__all__ == NAMES == sorted(NAMES)
    assert {*NAMES, "__version__"} <= {*dir(distract)}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_object_of_its_module(name: str) -> None:
    module = importlib.import_module(distract._MODULES[name])
    value = getattr(distract, name)
    assert value is (module if isinstance(value, ModuleType) else vars(module)[name])


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="module 'distract' has no attribute 'nope'"):
        _ = distract.nope  # type: ignore[attr-defined]


def test_type_checkers_see_the_same_as_the_table() -> None:
    tree = ast.parse(Path(distract.__file__).read_text(encoding="utf-8"))
    (first,) = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    imports = [one for one in first.body if isinstance(one, ast.ImportFrom)]
    seen = {
        alias.name: f"distract.{alias.name}" if one.module == "distract" else one.module
        for one in imports
        for alias in one.names
    }
    assert seen == distract._MODULES == dict.fromkeys(NAMES, None) | seen
