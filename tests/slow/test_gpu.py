"""Test the command for a GPU machine with tiny models on a CPU: all its parts, and its end in time."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from distract.core.errors import BackendError, UsageError
from distract.models.transformers import embedded

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
PARTS = ["correctness", "speed-8b", "speed-1b", "loop", "answers-1b", "embedded"]


@pytest.fixture(scope="module", autouse=True)
def weights() -> None:
    """The embedded judge's tokenizer and weights; skips where they cannot be fetched."""
    pytest.importorskip("torch")
    try:
        embedded.ensure()
    except (BackendError, UsageError) as error:
        pytest.skip(f"the embedded judge is not available: {error}")


def run(minutes: float, out: Path, *more: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--tiny", "--minutes", str(minutes), "--out", str(out)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=300, check=False)
    file = out / "gpu-cpu.json"
    return done, json.loads(file.read_text()) if file.exists() else {}


def test_every_part_checks_its_figures(tmp_path: Path) -> None:
    # It takes half a minute; a busy machine gets more.
    done, result = run(4, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (list(result["parts"]), result["left out"]) == (PARTS, {})
    for name, part in result["parts"].items():
        checks = {figure["name"]: figure["ok"] for figure in part["figures"] if figure["ok"] is not None}
        assert checks
        assert all(checks.values())
        assert f"| {name} | " in done.stdout


def test_it_ends_in_time_and_names_what_it_left_out(tmp_path: Path) -> None:
    begin = time.monotonic()
    done, result = run(20 / 60, tmp_path)
    # A busy machine takes seconds to start Python and to clear the processes.
    assert time.monotonic() - begin < 30
    assert result["seconds"] < 20
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["parts"].keys() | result["left out"].keys() == {*PARTS}
    assert "needs about" in result["left out"]["loop"]
    for name, reason in result["left out"].items():
        assert f"| {name} | left out | {reason} |" in done.stdout


def test_wrong_options_end_with_2(tmp_path: Path) -> None:
    done, result = run(1, tmp_path, "--parts", "speeed")
    assert (done.returncode, result) == (2, {})
    assert "unknown part 'speeed'" in done.stderr
