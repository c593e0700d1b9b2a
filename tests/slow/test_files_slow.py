"""Test that one module writes all files, and writing to standard output."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WRITES = {"write_text", "write_bytes", "touch", "unlink", "rename", "rmdir", "symlink_to", "hardlink_to", "fdopen"}
"""Functions that write, remove or move files, by their last name."""

SYSTEM = {"open", "remove", "renames", "truncate", "copy", "copyfile", "copy2", "move", "rmtree", "mkstemp"}
"""More of them, in the modules of the standard library for it."""

ALLOWED = {
    ("distract/models/transformers/embedded.py", "rename"),  # of whole folders, in a cache that a lock guards
    ("distract/models/transformers/embedded.py", "rmtree"),  # leftovers of a killed conversion
    ("distract/cli/streams.py", "open"),  # the null device, in the place of a closed stream
    ("distract/core/replyfile.py", "truncate"),  # back to its size: SQLite has it mapped
}
"""Other writers, with the reason."""


def find_writers(path: Path) -> Iterator[str]:
    """The functions that write files and that a module calls."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        of = owner.id if isinstance(owner, ast.Name) else ""
        modes = [
            one.value
            for one in (*call.args, *[k.value for k in call.keywords if k.arg == "mode"])
            if isinstance(one, ast.Constant)
        ]
        is_mode = any(isinstance(one, str) and set(one) <= set("rwaxbt+") and set(one) & set("wax+") for one in modes)
        # A path is replaced by one other; a text by two, a record by names.
        is_path = name == "replace" and owner is not None and len(call.args) == 1 and not call.keywords
        is_system = name in SYSTEM and of in ("os", "shutil", "tempfile")
        if of != "files" and (name in WRITES or is_path or is_system or (name == "open" and is_mode)):
            yield name


def test_only_one_module_writes_files() -> None:
    places = [
        *ROOT.glob("distract/**/*.py"),
        *(f for d in ("judges", "attacks", "leaderboards") for f in (ROOT / d).rglob("*.py")),
    ]
    by_name = {str(place.relative_to(ROOT)): place for place in places}
    by_name.pop("distract/core/files.py")
    assert len(by_name) > 200
    assert {(name, call) for name, place in by_name.items() for call in find_writers(place)} == ALLOWED


# Paths named by the user.


@pytest.mark.parametrize("mode", ["pipe", "file"])
def test_standard_output_receives_the_whole_file(tmp_path: Path, mode: str) -> None:
    command = [sys.executable, "-m", "distract", "rewrite", "--attack", "sycophancy", "--limit", "2"]
    command += ["--out", "/dev/stdout", "--json"]
    plain = subprocess.run([*command[:-3], "--out", "plain.jsonl", "--json"], cwd=tmp_path, capture_output=True)
    assert plain.returncode == 0, plain.stderr
    if mode == "pipe":
        done = subprocess.run(command, cwd=tmp_path, capture_output=True)
        whole = done.stdout
    else:
        with (tmp_path / "out").open("wb") as out:
            done = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE)
        whole = (tmp_path / "out").read_bytes()
    assert done.returncode == 0, done.stderr
    assert whole == (tmp_path / "plain.jsonl").read_bytes() + plain.stdout
