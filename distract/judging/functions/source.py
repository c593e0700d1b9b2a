"""Find a judge function by name: ``python:my_judge.py:judge`` or ``python:package.module:judge``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from distract.core.errors import PLUGIN_ERRORS, UnknownName, UsageError, redirect_output
from distract.core.modules import import_error, load_file
from distract.judging.functions.adaptation import is_function
from distract.judging.functions.declaration import JudgeFunction, declare

PREFIX = "python:"
_registered: dict[str, JudgeFunction] = {}
"""Functions that were given as objects, by the name that was made for them."""


def register(function: Callable[..., Any]) -> str:
    """Give a function object a name under which ``find`` returns it; where possible, one that later runs find too."""
    declared = declare(function)
    code = inspect.unwrap(declared.function)
    file, qualname = getattr(inspect.getmodule(code), "__file__", None), getattr(code, "__qualname__", declared.name)
    place = os.path.relpath(file) if file else getattr(code, "__module__", "__main__")
    name = f"{PREFIX}{place}:{qualname}"
    _registered[name] = declared
    return name


def find(spec: str) -> JudgeFunction:
    """Find a function by the part of its name after ``python:``."""
    if registered := _registered.get(f"{PREFIX}{spec}"):
        return registered
    place, colon, attribute = spec.rpartition(":")
    if not colon or attribute.endswith(".py") or "/" in attribute:
        place, attribute = spec, ""
    if not place:
        raise UsageError(f"{PREFIX}{spec}: name a file and a function, as in python:my_judge.py:judge")
    module = load_file(Path(place)) if place.endswith(".py") or "/" in place else _load_module(place)
    names = _list_functions(module)
    if not attribute:
        if len(names) != 1:
            raise UsageError(
                f"{PREFIX}{spec}: name one of its functions after a colon ({', '.join(names) or 'it has none'})"
            )
        attribute = names[0]
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise UnknownName("function", attribute, names, f"in {place}")
        value = getattr(value, part)
    if not is_function(value):
        kind = "a class; name an instance that can be called" if inspect.isclass(value) else "not a function"
        raise UsageError(f"{PREFIX}{spec}: {attribute} is {kind}")
    declared = declare(value)
    declared.origin = declared.origin or getattr(module, "__file__", None) or ""
    return declared


def _load_module(name: str) -> ModuleType:
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_output():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise UsageError(
                f"{PREFIX}{name}: no module {error.name!r} here; check the name, or name a .py file"
            ) from error
        raise import_error(name, error) from error
    except PLUGIN_ERRORS as error:
        raise import_error(name, error) from error


def _list_functions(module: ModuleType) -> list[str]:
    """List the judges that a module declares, or else the functions that it defines."""
    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    declared = [name for name, value in own.items() if isinstance(value, JudgeFunction)]
    return declared or [
        name for name, value in own.items() if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
