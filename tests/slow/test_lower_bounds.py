"""Install all lower bounds of pyproject.toml together and run distract with them.

The test installs from a package index and is skipped if none can be reached. torch is not tested at its lower
bound: any version but the CPU build that constraints.txt names can pull gigabytes of CUDA libraries.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from loopback import FakeServer, ReceivedRequest, completion, token

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALLED = ("openai", "language", "hub", "parquet", "pytest")
"""Extras that are small; ``local`` needs torch, and vLLM brings the versions that it runs on."""

RULES = ("--generator", "rules", "--limit", "3")
TEST = """
import pytest
from hypothesis import given
from distract.data import datasets; from distract.testing import invariants, strategies

@pytest.mark.distract
@given(case=strategies.rewrites("prolixity", data=datasets.load("tweakset").cases))
@strategies.unhurried(max_examples=9)
def test_is_not_distracted(judge, case):
    invariants.distractor_invariant(judge, case)
"""


def pins(*extras: str) -> list[str]:
    """Each requirement of distract and of these extras, at its lower bound."""
    stated = [*PROJECT["dependencies"], *(one for name in extras for one in PROJECT["optional-dependencies"][name])]
    return [re.sub(">=", "==", one) for one in dict.fromkeys(stated)]


@pytest.fixture(scope="module")
def lowest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with distract and the lower bounds; skips without a package index."""
    folder = tmp_path_factory.mktemp("lowest")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip"]
    first = pins()[0]
    probe = [*pip, "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0", "-d", "probe", first]
    result = subprocess.run(probe, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"{first} cannot be downloaded, so no index of packages can be reached: {result.stderr[-300:]}")
    # Build in a copy, because the build leaves files beside the source.
    left_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "tests", "benchmarks", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=left_out)
    source = f"{folder / 'source'}[{','.join(INSTALLED)}]"
    install = [*pip, "install", "-q", "--only-binary", ":all:", source, *pins(*INSTALLED)]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return programs


def run_program(lowest: Path, folder: Path, *command: object, code: int = 0, **environment: str) -> str:
    """The output of a program of the environment, which must end with this code and without a traceback."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [lowest / str(command[0]), *map(str, command[1:])],
        cwd=folder,
        env={**inherited, "PYTHONWARNINGS": "error::DeprecationWarning:distract", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


def test_every_lower_bound_is_stated_and_installed(lowest: Path, tmp_path: Path) -> None:
    assert all("==" in pin for pin in pins(*PROJECT["optional-dependencies"]))
    listed = json.loads(run_program(lowest, tmp_path, "python", "-m", "pip", "list", "--format", "json"))
    versions = {one["name"].lower(): one["version"] for one in listed}
    for pin in pins(*INSTALLED):
        name, _, version = pin.partition("==")
        assert f"{versions[name]}.".startswith(f"{version}."), pin


def test_commands_work_at_the_lower_bounds(lowest: Path, tmp_path: Path) -> None:
    for command in ("", "attack", "gate", "leaderboard"):
        assert "Usage: distract" in run_program(lowest, tmp_path, "distract", *command.split(), "--help")
    assert "planted:longer" in run_program(lowest, tmp_path, "distract", "list")
    attack = ("attack", "--judge", "planted:longer", *RULES, "--control", "--out", "r")
    assert "Flip rate" in run_program(lowest, tmp_path, "distract", *attack)
    assert json.loads(run_program(lowest, tmp_path, "distract", "report", "r", "--json"))["results"]
    assert "rewrites rejected" in run_program(lowest, tmp_path, "distract", "check", "r")
    gate = ("gate", "--judge", "planted:longer", "--generator", "rules", "--max-flip-rate", "0.1", "--junit", "j.xml")
    assert "FAIL" in run_program(lowest, tmp_path, "distract", *gate, code=1)
    run_program(lowest, tmp_path, "distract", "gate", "--max-flip-rate", "10", code=2)
    run_program(lowest, tmp_path, "distract", "consistency", "--judge", "planted:fair", "--limit", "2", code=2)


def test_rating_systems_and_tables_work_at_the_lower_bounds(lowest: Path, tmp_path: Path) -> None:
    write = (
        "import pyarrow\nfrom pyarrow import parquet\n"
        "pairs = [('x', 'y', 'model_a'), ('y', 'z', 'model_a'), ('z', 'x', 'model_b'), ('x', 'z', 'tie')] * 5\n"
        "names = 'model_a', 'model_b', 'winner', 'question_id'\n"
        "rows = [dict(zip(names, (*pair, i % 5))) for i, pair in enumerate(pairs)]\n"
        "parquet.write_table(pyarrow.Table.from_pylist(rows), 'v.parquet')\n"
    )
    run_program(lowest, tmp_path, "python", "-c", write)
    systems = [part for one in ("bradley-terry", "elo", "trueskill", "win-rate") for part in ("--system", one)]
    report = run_program(lowest, tmp_path, "distract", "leaderboard", "--matches", "v.parquet", *systems, "--json")
    assert [len(board["rows"]) for board in json.loads(report)["boards"]] == [3] * 4


def test_extras_work_at_the_lower_bounds(lowest: Path, tmp_path: Path) -> None:
    script = (
        "from distract.data.constraints.language import detect\n"
        "from distract.data.frames import load_hub_table\n"
        "import datasets\n"
        "assert detect('Das ist ein deutscher Satz und kein anderer.') == 'de'\n"
        "assert datasets.Dataset.from_list([{'a': 1}])[0] == {'a': 1}\n"
        "assert load_hub_table\n"
    )
    run_program(lowest, tmp_path, "python", "-c", script)


def test_server_client_works_at_the_lower_bounds(lowest: Path, tmp_path: Path) -> None:
    def prefers_a(request: ReceivedRequest) -> dict[str, Any]:
        if "continue_final_message" in request.body:
            return completion("A", logprobs=[token("A", {"A": 0.6, "B": 0.2, "C": 0.1})], finish="length")
        return completion(f"re: {request.content}")

    with FakeServer(prefers_a) as server:
        judge = ("--judge", "openai:m", "--base-url", server.url, "--protocol", "pairwise", "--attack", "sycophancy")
        report = run_program(lowest, tmp_path, "distract", "attack", *judge, *RULES, "--json", OPENAI_API_KEY="sk-none")
        assert server.chats
    assert json.loads(report)["results"]


def test_pytest_plugin_works_at_the_lower_bounds(lowest: Path, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    assert "1 passed" in run_program(lowest, tmp_path, "pytest", "--judge", "planted:fair", "-p", "no:cacheprovider")
    assert "1 failed" in run_program(
        lowest, tmp_path, "pytest", "--judge", "planted:longer", "-p", "no:cacheprovider", code=1
    )
