"""Read ``[tool.distract]`` from a project's ``pyproject.toml``, or report what is wrong in one line."""

from __future__ import annotations

import re
import reprlib
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.errors import DataError, UnknownName

FILE = "pyproject.toml"
TABLE = ("tool", "distract")
KNOWN_KEYS = ("gate", "judge", "store")

MAX_NUMBER = 10**9
"""Upper bound for a setting; TOML sets none."""
_MAX_KEY = 60
"""Characters of a key that are enough to find it."""


@dataclass(frozen=True, slots=True)
class Project:
    """The settings of a project; None for those left out."""

    judge: str | None = None  # name of the judge for tests
    store: Path | None = None  # where to keep its replies
    gate: Any = None  # the table ``gate``, unchecked


def read_project(path: Path) -> Project:
    """Read the table ``[tool.distract]`` of a file."""
    table: Any = _read_toml(path)
    for depth, name in enumerate(TABLE, 1):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise setting_error(path, TABLE[:depth], f"expected a table, found {describe_value(table)}")
    # An unknown name in our table is a mistake, and an ignored limit would let a bad judge pass.
    for name in table:
        check_name(path, (*TABLE, name), "table or setting", name, KNOWN_KEYS)
    for name, expected in (("judge", "the name of a judge"), ("store", "the path of a file")):
        if name in table and (not isinstance(table[name], str) or not table[name].strip()):
            raise setting_error(
                path, (*TABLE, name), f"expected {expected} in quotes, found {describe_value(table[name])}"
            )
    store = table.get("store")
    return Project(table.get("judge"), None if store is None else path.parent / store, table.get("gate"))


def check_name(path: Path, at: tuple[str, ...], kind: str, name: str, names: Collection[str]) -> None:
    """Refuse an unknown name."""
    if name not in names:
        raise setting_error(path, at, str(UnknownName(kind, shorten(name), names)))


def setting_error(path: Path, at: tuple[str, ...], problem: str) -> DataError:
    """Make an error about a key, written as in TOML."""
    keys = (shorten(key) if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{shorten(key)}"' for key in at)
    return DataError(f"{'.'.join(keys)}: {problem}", path=path)


def shorten(name: str) -> str:
    """Shorten a name to a length that is enough to find it."""
    return name if len(name) <= _MAX_KEY else f"{name[:_MAX_KEY]}…"


def describe_value(value: object) -> str:
    """Describe a value of a file for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= MAX_NUMBER:
        return "a number that is far too large"  # Python may refuse to format it
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else reprlib.repr(value)


def _read_toml(path: Path) -> dict[str, Any]:
    text = files.read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise DataError("not TOML that can be read: nested too deeply; make it flat", path=path) from error
    except ValueError as error:
        reason, _, place = str(error).partition(" (at ")
        number = re.match(r"line (\d+)", place)
        line = int(number[1]) if number else text.rstrip("\n").count("\n") + 1 if place else None
        # After a semicolon, Python's message only advises programmers.
        raise DataError(f"not TOML: {reason.partition(';')[0]}; correct it there", path=path, line=line) from error
