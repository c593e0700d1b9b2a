"""Test the public API of ``import distract``: its names, their modules, and that nothing shadows them."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from loops import each

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
    "Provider",
    "RatingSystem",
    "Ratings",
    "Request",
    "Response",
    "Run",
    "Slots",
    "UnknownName",
    "UsageError",
    "Verdict",
    "WritingTask",
    "attack",
    "constraints",
    "facts",
    "fidelity",
    "gate",
    "instructions",
    "invariants",
    "judge",
    "load",
    "orders",
    "parsers",
    "prompts",
    "setting",
    "strategies",
    "verdicts",
]


MODULES = {name for name in NAMES if isinstance(getattr(distract, name), ModuleType)}


def test_public_names_are_pinned() -> None:
    assert distract.__all__ == NAMES == sorted(NAMES)
    assert {*NAMES, "__version__"} <= {*dir(distract)}


@each("name", *NAMES)
def test_each_public_name_is_the_object_of_its_module(name: str) -> None:
    module = importlib.import_module(distract._MODULES[name])
    value = getattr(distract, name)
    assert value is (module if isinstance(value, ModuleType) else vars(module)[name])


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'distract' has no attribute 'nope'"):
        _ = distract.nope  # type: ignore[attr-defined]


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(distract.__file__).read_text(encoding="utf-8"))
    (first,) = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    imports = [one for one in first.body if isinstance(one, ast.ImportFrom)]
    seen = {
        alias.name: f"{one.module}.{alias.name}" if alias.name in MODULES else one.module
        for one in imports
        for alias in one.names
    }
    assert seen == distract._MODULES == dict.fromkeys(NAMES, None) | seen
