"""Read a project's settings, ``distract.toml`` or ``[tool.distract]`` in ``pyproject.toml``, or report what is wrong.

The commands check the values of the names that they know. A name close to a known one is always a typo, since an
ignored limit would let a bad judge pass.
"""

from __future__ import annotations

import difflib
import os
import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from distract.core import files
from distract.core.errors import DataError, UnknownName, UsageError
from distract.models.options import Setting
from distract.models.ranges import FLAG, PATH, TEXT, Kind, Range

T = TypeVar("T")
OWN_FILE, SHARED_FILE = "distract.toml", "pyproject.toml"
TABLE = ("tool", "distract")
_TEST_SETTINGS = {
    "judge": ("the name of a judge", Setting(None, "", TEXT, flag="--judge")),
    "store": ("the path of a file", Setting(None, "", PATH, flag="--distract-store", writes="own")),
}
"""What tests use, as an option of pytest overrides it."""

MAX_NUMBER = 10**9
"""Upper bound for a setting; TOML sets none."""
_MAX_KEY = 60
"""Characters of a key that are enough to find it."""


@dataclass(frozen=True, slots=True)
class Project:
    """The settings of a project: options for all commands, and a table for each command that has its own."""

    path: Path
    table: Mapping[str, Any] = field(default_factory=dict)  # by normalised name

    def at(self, *keys: str) -> tuple[str, ...]:
        """Locate a key in the file."""
        return (*_prefix(self.path), *keys)

    def command(self, name: str) -> Mapping[str, Any] | None:
        """Return the table of a command by normalised name; None if there is none."""
        table = self.table.get(name)
        return None if table is None else read_table(self.path, self.at(name), table)

    @property
    def judge(self) -> str | None:
        """Name of the judge."""
        return self._allow("judge", self.text("judge"))

    @property
    def store(self) -> Path | None:
        """Path of the reply store."""
        text = self.text("store")
        return None if text is None else Path(self._allow("store", str(self.path.parent / text)))

    def _allow(self, name: str, value: T) -> T:
        """Refuse a value that tests must not take from a file."""
        if value is not None and (problem := find_hazard(self.path, _TEST_SETTINGS[name][1], value)):
            raise setting_error(self.path, self.at(name), problem)
        return value

    def text(self, name: str) -> str | None:
        """Return the text of a setting that tests use too."""
        value = self.table.get(name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            expected = f"expected {_TEST_SETTINGS[name][0]} in quotes"
            raise setting_error(self.path, self.at(name), f"{expected}, found {describe_value(value)}")
        return value


def _prefix(path: Path) -> tuple[str, ...]:
    return () if path.name == OWN_FILE else TABLE


def find_project() -> Path | None:
    """Find the nearest file of settings, in the current folder or above it; raises ``OSError`` if none can be read."""
    here = Path.cwd()
    return next((file for folder in (here, *here.parents) if (file := find_in(folder))), None)


def find_in(folder: Path) -> Path | None:
    """Find the file of settings in a folder; a ``pyproject.toml`` counts even if it has none."""
    own, shared = (folder / name for name in (OWN_FILE, SHARED_FILE))
    if not own.is_file():
        return shared if shared.is_file() else None
    if shared.is_file() and read_project(shared).table:
        raise UsageError(f"{own}: {shared} beside it has [{'.'.join(TABLE)}] too; keep one of them")
    return own


def read_project(path: Path) -> Project:
    """Read a file of settings."""
    table: Any = _read_toml(path)
    for depth, name in enumerate(_prefix(path), 1):
        table = read_table(path, TABLE[:depth], table.get(name, {}))
    project = Project(path, read_table(path, _prefix(path), table))
    for name in table:
        check_typo(path, project.at(name), "table or setting", name, ("gate", *_TEST_SETTINGS))
        if name in _TEST_SETTINGS:
            project.text(name)
    return project


def find_hazard(file: Path, setting: Setting, value: object) -> str | None:
    """Say why a stranger's file must not set this value, which the command line may repeat."""
    advice = f"name it on the command line, with {setting.flag}"
    home = Path(os.path.realpath(file.parent))
    root = next((folder for folder in (home, *home.parents) if os.path.lexists(folder / ".git")), home)
    for kind, text in setting.leads(value):
        if kind == "code":
            return f"names a file that runs code or decides where your keys go; {advice}"
        if kind == "server" and _is_foreign(text):
            return f"names a server on another machine; {advice}"
        if kind == "path":
            places = [Path(os.path.realpath(one)) for one in (text, os.path.expanduser(text))]  # noqa: PTH111
            if setting.writes and any(home not in place.parents or ".git" in place.parts for place in places):
                return f"leads out of the folder of this file; {advice}"
            links = (Path(os.path.realpath(one)) for one in Path(text).rglob("*") if one.is_symlink())
            if not all(place.is_relative_to(root) for place in chain(places, () if setting.writes else links)):
                return f"leads out of the folder of this project; {advice}"
    return None


def check_recorded(file: Path, option: str, value: str) -> None:
    """Refuse what a file of data or a run names to be opened, if a stranger must not name it."""
    # Paths in it start in the current folder.
    if problem := find_hazard(Path(file.name), Setting(None, "", TEXT, flag=f"--{option}"), value):
        raise UsageError(f"{file}: its {option.replace('-', ' ')} {shorten(value)} {problem}")


def locate_prompt(file: Path, name: str) -> str:
    """Find a prompt that a file of data names, here or beside that file; other files may run code of a stranger's."""
    folders = (Path(), file.parent)
    for place in (folder / name for folder in folders):
        if place.suffix == ".txt" and place.is_file() and {*place.resolve().parents} & {*map(Path.resolve, folders)}:
            return str(place)
    raise UsageError(f"{file}: was made with --protocol {name}; name it here, with --protocol")


def _is_foreign(text: str) -> bool:
    from distract.models.server.addresses import OPENAI, is_near, parse_address

    # Ray takes addresses without a scheme, and imports the module that any scheme but its own names.
    try:
        place = parse_address(re.sub(r"\A(?:ray://|(?!.*://))", "http://", text.strip()))
    except UsageError:
        return True
    return not is_near(place.hostname or "") and place[:2] != parse_address(OPENAI)[:2]


def read_table(path: Path, at: tuple[str, ...], table: object) -> Mapping[str, Any]:
    """Check a table, and write its names with hyphens."""
    if not isinstance(table, dict):
        raise setting_error(path, at, f"expected a table, found {describe_value(table)}")
    names: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name in names:
            raise setting_error(path, (*at, key), "is given twice, with a hyphen and with an underscore")
        names[name] = value
    return names


def check_typo(path: Path, at: tuple[str, ...], kind: str, name: str, names: Collection[str]) -> None:
    """Refuse a name that is close to a known one."""
    near = difflib.get_close_matches(name[:_MAX_KEY], names, 1, cutoff=0.8)
    if near and name.replace("_", "-") not in names:
        raise setting_error(path, at, f"unknown {kind} {shorten(name)!r}; did you mean {near[0]!r}?")


def check_name(path: Path, at: tuple[str, ...], kind: str, name: str, names: Collection[str]) -> None:
    """Refuse an unknown name."""
    if name not in names:
        raise setting_error(path, at, str(UnknownName(kind, shorten(name), names)))


def setting_error(path: Path, at: tuple[str, ...], problem: str) -> DataError:
    """Make an error about a key, written as in TOML."""
    keys = (shorten(key) if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{shorten(key)}"' for key in at)
    return DataError(f"{'.'.join(keys)}: {problem}", path=path, line=_find_line(path, at))


def _find_line(path: Path, at: tuple[str, ...]) -> int | None:
    """Find the line of a key or of its table; None where they are written in an unusual way."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, text in enumerate(files.read_text(path).splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", text):
            table = _split_key(header[1])
            lines.setdefault(table, number)
        elif key := re.match(r"\s*([^=\[\]#]+?)\s*=", text):
            lines.setdefault((*table, *_split_key(key[1])), number)
    names = tuple(name.replace("_", "-") for name in at)
    return lines.get(names) or lines.get(names[:-1])


def _split_key(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'").replace("_", "-") for part in text.split("."))


def read_value(path: Path, at: tuple[str, ...], kind: Kind, value: object) -> bool | str:
    """Check a value of a file as its option would be; returns what the option would get."""
    if kind is FLAG:
        if not isinstance(value, bool):
            raise setting_error(path, at, f"expected true or false, found {describe_value(value)}")
        return value
    is_number = isinstance(kind, Range)
    if is_number and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**64:
        value = str(value)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        expected = "a number" if is_number else "a text in quotes"
        raise setting_error(path, at, f"expected {expected}, found {describe_value(value)}")
    try:
        kind.read(value)
    except ValueError as error:
        raise setting_error(path, at, str(error)) from None
    return value


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
    import tomllib  # most commands find no file

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
        hint = "put texts in quotes" if reason == "Invalid value" else "correct it there"
        raise DataError(f"not TOML: {reason.partition(';')[0]}; {hint}", path=path, line=line) from error
