"""Test the public API of ``import distract``: its names, their modules, and that nothing shadows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EVERYTHING = """
import importlib, pkgutil, sys
import distract
# A checkout has its other folders beside the package, this one included.
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
    assert getattr(distract, name) is (module if place.endswith(f".{name}") else getattr(module, name)), name
print(len([name for name in sys.modules if name.startswith("distract.")]))
"""


def test_no_submodule_shadows_a_public_name() -> None:
    # A submodule becomes an attribute of the package once it is imported.
    done = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import distract", ("numpy", "click", "rich", "pandas", "importlib.metadata", "distract.core.errors")),
        ("import distract; distract.attack(judge='planted:longer', limit=2)", ("click", "rich", "pandas", "torch")),
        ("import distract; distract.attack, distract.gate", ("click", "rich", "pandas", "torch")),
        ("from distract import *", ("click", "torch", "pandas")),
    ],
)
def test_import_distract_loads_little(code: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    show = f"{code}\nimport sys; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", show], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
