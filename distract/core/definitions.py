"""Checks on plug-ins when they are defined: third-party code may never have seen a type checker."""

from __future__ import annotations

import re
import reprlib
from typing import Any

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def check_plugin(kind: str, plugin: object, **fields: Any) -> None:
    """Check that a plug-in has a name and fields of the right types."""
    name = getattr(plugin, "name", None)
    if type(name) is not str or not NAME_PATTERN.fullmatch(name):
        rule = "expected a name of small letters, digits and hyphens, 64 at most"
        raise ValueError(f"{kind} {reprlib.repr(name)}: {rule}")
    for field, expected in fields.items():
        value = getattr(plugin, field)
        if not isinstance(value, expected):
            type_name = getattr(expected, "__name__", str(expected))
            raise ValueError(f"{kind} {name}: {field}={reprlib.repr(value)}; expected {type_name}")
