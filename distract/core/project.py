"""What a project's ``pyproject.toml`` says to distract: TOML to ``[tool.distract]``, or one line on what is wrong.

It knows which names that table may have. What a gate may set is known to ``distract.studies.gate.settings``, and what
is done with any of it to others.
"""

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
"""No setting is so large; TOML's numbers have no end."""
_MAX_KEY = 60
"""Characters of a key that still help a reader to find it."""


@dataclass(frozen=True, slots=True)
class Project:
    """What a file sets; what it leaves out is None.

    Attributes:
        judge: name of the judge that tests ask.
        store: where their replies are kept.
        gate: what stands under ``gate``, as it was read.
    """

    judge: str | None = None
    store: Path | None = None
    gate: Any = None


def read_project(path: Path) -> Project:
    """The table ``[tool.distract]`` of a file."""
    table: Any = _read_toml(path)
    for depth, name in enumerate(TABLE, 1):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise setting_error(path, TABLE[:depth], f"expected a table, found {describe_value(table)}")
    # Another name in our table is a slip, and a limit that nobody reads would let a bad judge pass.
    for name in table:
        check_name(path, (*TABLE, name), "table or setting", name, KNOWN_KEYS)
    for name, wanted in (("judge", "the name of a judge"), ("store", "the path of a file")):
        if name in table and (not isinstance(table[name], str) or not table[name].strip()):
            raise setting_error(
                path, (*TABLE, name), f"expected {wanted} in quotes, found {describe_value(table[name])}"
            )
    store = table.get("store")
    return Project(table.get("judge"), None if store is None else path.parent / store, table.get("gate"))


def check_name(path: Path, at: tuple[str, ...], kind: str, name: str, names: Collection[str]) -> None:
    """Fail on a name that is not among the known ones."""
    if name not in names:
        raise setting_error(path, at, str(UnknownName(kind, shorten(name), names)))


def setting_error(path: Path, at: tuple[str, ...], problem: str) -> DataError:
    """What to raise about a key, told as TOML writes it."""
    keys = (shorten(key) if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{shorten(key)}"' for key in at)
    return DataError(f"{'.'.join(keys)}: {problem}", path=path)


def shorten(name: str) -> str:
    """A name cut to what helps a reader to find it."""
    return name if len(name) <= _MAX_KEY else f"{name[:_MAX_KEY]}…"


def describe_value(value: object) -> str:
    """A value of a file, for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= MAX_NUMBER:
        return "a number that is far too large"  # Python may refuse to write it out
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
        # What Python adds after a semicolon is advice to programmers.
        raise DataError(f"not TOML: {reason.partition(';')[0]}; correct it there", path=path, line=line) from error
