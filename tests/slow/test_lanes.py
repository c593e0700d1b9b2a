"""The lanes of CI: which nightly parts a change pulls into its push, and that no test is left out of both."""

import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT

from distract.core.modules import load_file

CI = ROOT / ".ci"


@pytest.fixture
def lanes() -> ModuleType:
    return load_file(CI / "lanes.py")


PARTS = {
    "ray": {"paths": ["distract/models/ray", "pyproject.toml", ".ci"]},
    "vllm": {"paths": ["distract/models/vllm", "pyproject.toml", ".ci"]},
}


@pytest.mark.parametrize(
    ("lane", "files", "due"),
    [
        ("", [], []),
        ("", None, ["ray", "vllm"]),
        ("", ["distract/models/vllm/backend.py", "README.md"], ["vllm"]),
        ("", ["distract/models/vllm_else.py", "distract/models/server/x.py"], []),
        ("", ["distract/models/ray/deep/x.py"], ["ray"]),
        ("", ["pyproject.toml"], ["ray", "vllm"]),
        ("", [".ci/run"], ["ray", "vllm"]),
        ("", [".ci/nightly-green"], []),
        ("all", [], ["ray", "vllm"]),
        ("push", None, []),
    ],
)
def test_change_pulls_in_the_parts_of_its_paths(
    lanes: ModuleType, lane: str, files: list[str] | None, due: list[str]
) -> None:
    assert lanes.due_parts(PARTS, lane, files) == due


def test_unknown_lane_is_refused(lanes: ModuleType) -> None:
    with pytest.raises(SystemExit, match="'nightly'; it can be 'push' or 'all', or be left out"):
        lanes.due_parts(PARTS, "nightly", [])


def test_green_commit_is_compared_with_the_working_tree(lanes: ModuleType, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@y.z")
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    git("init", "-q")
    for name in ("a.py", "b c.py", "d.py"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".ci").mkdir()
    git("add", ".")
    git("commit", "-qm", "all")
    assert lanes.changed_files(tmp_path) is None
    green = tmp_path / lanes.GREEN
    green.write_text("0" * 40 + "\n")
    assert lanes.changed_files(tmp_path) is None
    green.write_text(git("rev-parse", "HEAD"))
    assert lanes.changed_files(tmp_path) == []
    git("mv", "a.py", "moved.py")
    (tmp_path / "b c.py").write_text("2\n")
    assert sorted(lanes.changed_files(tmp_path)) == ["a.py", "b c.py", "moved.py"]


def test_parts_name_what_exists(lanes: ModuleType) -> None:
    for part in lanes.read_parts().values():
        assert part.keys() == {"paths", "tests", "again"}
        assert {".ci", "pyproject.toml"} < set(part["paths"])
        assert [path for path in part["paths"] if not (ROOT / path).exists()] == []
        assert part["tests"] or part["again"]


def test_marked_tests_belong_to_their_part(lanes: ModuleType) -> None:
    parts = lanes.read_parts()
    for mark in ("vllm", "neighbours"):
        marked = re.compile(rf"pytest\.mark\.{mark}\b")
        paths = (path for path in (ROOT / "tests").glob("*/test_*.py") if path != Path(__file__))
        files = {str(path.relative_to(ROOT)) for path in paths if marked.search(path.read_text("utf-8"))}
        assert files == {*parts[mark]["tests"], *parts[mark]["again"]}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("part one true; summarise", 0),
        ("part one false; summarise", 1),
        ("begin one true; part one finish one; summarise", 0),
        ("begin one false; part one finish one; summarise", 1),
        ("begin one sleep 60; part two true; summarise", 0),  # ended by the trap
        ("jobs() { echo 999999999; }; part one true; summarise", 0),  # gone before `kill`
    ],
)
def test_run_ends_with_what_its_parts_say(script: str, code: int) -> None:
    command = ["bash", "-c", f"set -euo pipefail; . .ci/parts.sh; {script}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, "FAILED" in done.stdout) == (code, code == 1), done


def test_every_named_test_exists() -> None:
    """A part that names a test which is gone fails, and only on the night."""
    ids = re.findall(r'"(tests/[^":]+)::([^"\[]+)(\[)?', (ROOT / ".ci" / "lanes.toml").read_text(encoding="utf-8"))
    for file, name, has_parameters in ids:
        before, definition, _ = (ROOT / file).read_text(encoding="utf-8").partition(f"def {name.split('::')[-1]}(")
        assert definition, (file, name)
        assert not has_parameters or "@each" not in before.rpartition("\n\n\n")[2], (file, name)
