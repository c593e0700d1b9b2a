"""Journeys and calls that may only fall: files that a case enters, modules it imports, calls per judgment.

Each is counted in a process of its own with a fixed hash seed, so the counts are the same on every machine.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_budget import BUDGET, ROOT, read_rooms

LIMITS = tomllib.loads((ROOT / BUDGET).read_text(encoding="utf-8"))
GREEN = ROOT / ".ci" / "nightly-green"

COUNT = """
import json, sys, threading
from collections import Counter
calls = Counter()
def count(frame, event, _):
    if event == "call":
        calls[frame.f_code.co_filename, frame.f_code.co_name] += 1
def start():
    threading.setprofile(count)
    sys.setprofile(count)
def stop():
    sys.setprofile(None)
    threading.setprofile(None)
def own_files():
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "distract"}
    return {module.__file__ for module in loaded.values()}, len(loaded)
"""

CASE = """
start()
sys.argv = ["distract", "attack", "--judge", "planted:longer", "--limit", "1"]
from distract.cli.main import main
main()
stop()
files, modules = own_files()
entered = {file for file, name in calls if name != "<module>"} & files
print(json.dumps({"files": len(entered), "modules": modules}))
"""

# The difference between two runs leaves out what starting costs. Python 3.12 calls no function for a comprehension, so
# none counts; the methods of dataclasses, in "<string>", count.
JUDGMENTS = """
import engine
def costs(cases):
    engine.write_cases(Path(f"{cases}.jsonl"), cases)
    calls.clear()
    start()
    judgments = engine.run_engine(Path(f"{cases}.jsonl"), engine.PLANTED, Path(f"run-{cases}"), Path(f"{cases}.sqlite"))
    stop()
    files = own_files()[0] | {"<string>"}
    inlined = {"<listcomp>", "<dictcomp>", "<setcomp>"}
    return judgments, sum(number for (file, name), number in calls.items() if file in files and name not in inlined)
costs(19)  # loads what only a first run loads
(few, start_cost), (many, cost) = costs(20), costs(163)
print(json.dumps({"judgments": many - few, "calls": (cost - start_cost) / (many - few)}))
"""


def count(script: str, folder: Path) -> dict[str, float]:
    """Run a script with the counters before it; return the last line of its output."""
    environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT / "benchmarks"), "PATH": "", "HOME": str(folder)}
    environment["DISTRACT_CACHE"] = str(folder.parent / "cache")
    command = [sys.executable, "-c", f"from pathlib import Path{COUNT}{script}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return counts


def check(name: str, value: float, tolerance: float) -> None:
    """Fail above the limit, and so far below it that the limit can fall."""
    limit = LIMITS["calls"][name]
    assert value <= limit + tolerance, f"{name}: {value:g}, above its limit of {limit:g} in {BUDGET}"
    lowest = limit - max(tolerance, 0.02 * limit)
    assert value >= lowest, f"{name}: {value:g}, below its limit of {limit:g}; lower it in {BUDGET}, in the same commit"


def test_case_enters_few_files(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    count(CASE, first)  # caches the list of plug-ins, as any first run does
    counts = count(CASE, second)
    check("files_entered", counts["files"], 2)
    check("modules_imported", counts["modules"], 2)


def test_judgment_costs_few_calls(tmp_path: Path) -> None:
    counts = count(JUDGMENTS, tmp_path)
    assert counts["judgments"] == 1001
    check("calls_per_judgment", counts["calls"], 1)


def test_base_only_falls() -> None:
    """Compare with the last commit for which everything ran."""
    commit = GREEN.read_text(encoding="utf-8").strip() if GREEN.is_file() else "HEAD"
    command = ["git", "-C", str(ROOT), "show", f"{commit}:{BUDGET}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{commit} has no budget")
    before, now = read_rooms(done.stdout), read_rooms((ROOT / BUDGET).read_text(encoding="utf-8"))
    raised = {name: room.base for name, room in now.items() if name in before and room.base > before[name].base}
    assert raised == {}, "a base may only fall; a raise states its issue"
