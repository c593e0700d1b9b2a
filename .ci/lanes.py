"""Decide which nightly parts a push runs: those whose paths have changed since the last commit for which all ran.

    python3 .ci/lanes.py due           # the nightly parts to run now, one a line
    python3 .ci/lanes.py tests PART    # the tests of a part
    python3 .ci/lanes.py left-out      # the options of pytest by which a push leaves out those of every part

``lanes.toml`` names each part's paths and tests, ``nightly-green`` the commit. ``DISTRACT_LANE=all`` runs every part,
``DISTRACT_LANE=push`` none. Where the commit is absent or unreachable, every part runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

CI = Path(__file__).parent
GREEN = ".ci/nightly-green"
LANES = ("", "push", "all")


def read_parts() -> dict[str, Any]:
    """The nightly parts by name: the ``paths`` that pull one into a push, its ``tests``, and those to run ``again``."""
    table = tomllib.loads((CI / "lanes.toml").read_text(encoding="utf-8"))
    parts: dict[str, Any] = table["parts"]
    for part in parts.values():
        files = [test.partition("::")[0] for test in part["tests"] + part["again"]]
        part["paths"] += [*table["always"], *files]
    return parts


def changed_files(root: Path) -> list[str] | None:
    """The files that differ from the green commit, uncommitted ones included; None if that commit is not at hand."""
    try:
        commit = (root / GREEN).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    git = ["git", "-C", str(root)]
    known = subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False)
    if not commit or known.returncode:
        return None
    diff = subprocess.run(
        [*git, "diff", "--name-only", "--no-renames", "-z", commit], capture_output=True, text=True, check=True
    )
    return [name for name in diff.stdout.split("\0") if name]


def due_parts(parts: Mapping[str, Any], lane: str, files: Iterable[str] | None) -> list[str]:
    """The parts to run in a lane, in the order of their table."""
    if lane not in LANES:
        raise SystemExit(f"lanes.py: DISTRACT_LANE is {lane!r}; it can be 'push' or 'all', or be left out")
    if lane == "push":
        return []
    if lane == "all" or files is None:
        return list(parts)
    places = {str(place) for name in files if name != GREEN for place in (name, *PurePosixPath(name).parents)}
    return [name for name, part in parts.items() if places & set(part["paths"])]


def main(arguments: Sequence[str]) -> None:
    """Print parts or files."""
    parts = read_parts()
    match arguments:
        case ["due"]:
            lines = due_parts(parts, os.environ.get("DISTRACT_LANE", ""), changed_files(CI.parent))
        case ["tests", name] if name in parts:
            lines = parts[name]["tests"] + parts[name]["again"]
        case ["left-out"]:
            tests = [test for part in parts.values() for test in part["tests"]]
            lines = [f"--deselect={test}" if "::" in test else f"--ignore={test}" for test in tests]
        case _:
            raise SystemExit(__doc__)
    for line in lines:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
