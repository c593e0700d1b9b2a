"""What ``import distract`` offers: which names, from where, and that nothing takes their place."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
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

EVERYTHING = """
import importlib, pkgutil, sys
import distract
# In a checkout its other folders lie beside, this one among them.
beside = ("benchmarks", "build", "conftest", "distract", "examples", "tests")
def visit(package):
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if info.name.removeprefix("distract.") in beside or info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if (error.name or "distract").startswith("distract"):
                raise
        else:
            if info.ispkg:
                visit(module)
visit(distract)
public = {name: distract._MODULES[name] for name in distract.__all__}
for name, place in public.items():
    module = sys.modules[place]
    assert getattr(distract, name) is (module if place == f"distract.{name}" else getattr(module, name)), name
print(len([name for name in sys.modules if name.startswith("distract.")]))
"""


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


def test_no_submodule_takes_the_place_of_a_name() -> None:
    # A submodule becomes an attribute of the package once it is imported.
    done = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import distract", ("numpy", "click", "rich", "pandas", "importlib.metadata", "distract.errors")),
        ("import distract; distract.attack(judge='planted:longer', limit=2)", ("click", "rich", "pandas", "torch")),
        ("import distract; distract.attack, distract.gate", ("click", "rich", "pandas", "torch")),
        ("from distract import *", ("click", "torch", "pandas")),
    ],
)
def test_little_is_loaded(code: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    show = f"{code}\nimport sys; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", show], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
