"""Rating systems and their parameters as users write them. It knows no rating system by name."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings.system import RatingSystem

LARGEST = 1e6
"""Of a parameter: beyond, and below its inverse, ratings are no longer exact."""


def parse_spec(spec: str) -> tuple[RatingSystem, dict[str, Any]]:
    """A system and its parameters from ``elo`` or ``elo:k=16,order=file``.

    A comma opens a parameter only where a name and ``=`` follow, so that a model's name may hold one.
    """
    name, _, rest = spec.partition(":")
    system = ratings.get_system(name.strip())
    found: dict[str, Any] = {}
    for part in re.split(r",(?=\s*\w+\s*=)", rest) if rest.strip() else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(f"{name}: expected name=value, got {part!r}; {_list_parameters(system)}")
        if key in found:
            raise UsageError(f"{name}: parameter {key!r} is given twice")
        found[key] = _parse_value(system, key, text)
    return system, found


def check_parameter(system: RatingSystem, key: str) -> None:
    """See that a system has a parameter."""
    if key not in system.parameters:
        raise UsageError(f"{system.name}: no parameter {key!r}; {_list_parameters(system)}")


def _list_parameters(system: RatingSystem) -> str:
    return "known: " + (", ".join(f"{name}={value}" for name, value in system.parameters.items()) or "none")


def _parse_value(system: RatingSystem, key: str, text: str) -> Any:
    """A value by the type of the default; where that is None, by the annotation, as text since it need not resolve."""
    check_parameter(system, key)
    default = system.parameters[key]
    annotation = inspect.signature(system.rate).parameters[key].annotation
    kind = type(default).__name__ if default is not None else str(annotation)
    try:
        if re.search(r"\bfloat\b", kind) and math.isfinite(value := float(text)):
            if value and not 1 / LARGEST <= abs(value) <= LARGEST:
                raise UsageError(f"{system.name}: parameter {key!r}: expected {1 / LARGEST:g} to {LARGEST:g} in size")
            return value
        if re.search(r"\bint\b", kind):
            if abs(whole := int(text)) > LARGEST:
                raise UsageError(f"{system.name}: parameter {key!r}: expected {LARGEST:g} at most in size")
            return whole
    except ValueError:
        pass
    if sort := re.search(r"\b(int|float)\b", kind):
        wanted = "a whole number" if sort[0] == "int" else "a number"
        wanted += "" if default is None else f" like {default}"
        raise UsageError(f"{system.name}: parameter {key!r}: expected {wanted}, got {text!r}")
    return text
