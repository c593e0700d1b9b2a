"""Test that the benchmarks run at their smallest size; their times are measured elsewhere."""

import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from distract.models.vllm import backend
from distract.models.vllm.backend import Vllm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LLMBAR = BENCHMARKS.parents[1] / "shared" / "data" / "llmbar"


def run_benchmark(name: str, *options: str) -> str:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "options", "figure"),
    [
        ("startup", ["--rounds", "1", "--starts", "0"], r"distract --help +\d+ ms"),
        ("engine", ["--judgments", "70", "--rounds", "1"], r"replay from the store +\d+"),
        ("coverage", [], r"45 cells above 97%, 0 below their goal"),
        ("power", [], r"5% .* 0\.957 +158"),
        ("meta_coverage", ["--repetitions", "20"], r"self-agreement +0\.\d+ +\d+\.\d"),
        (
            "leaderboard_coverage",
            ["--repetitions", "10", "--system", "bradley-terry"],
            r"bradley-terry: shift +\d+\.\d",
        ),
        ("gate_errors", ["--repetitions", "20"], r"at 0\.10: fail 0\.\d+, at most 0\.05"),
        ("discernment", ["--seeds", "2"], r"judges that know nothing: \d+ of 216 cells above 5%"),
        ("smallest_flip", ["--cases", "4", "--edits", "50"], r"planted:longer, \d+ flips of tweakset by prolixity"),
        ("plugin_start", ["--rounds", "1"], r"slower by +-?\d+\.\d"),
        ("anchors", ["--seeds", "1"], r"probabilities +the same judge +1 +0 +0"),
        ("rewriting", ["--responses", "120", "--alone", "1"], r"(?s)in all, each a share .* alone +\d+\.\d"),
        ("scale", ["--seconds", "0.5", "--workers", "2", "4"], r"(?s) 2 +4 +\d+ +\d+/s.*run folder +\d+ GB"),
        ("ratings", ["--quick"], r"bootstrap of 200 rounds, 6 x 1,689 +\d+\.\d+ +\d"),
        (
            "server",
            ["--requests", "20", "--comparisons", "2"],
            r"(?s)ratio \d\.\d+.*prepair over 2 comparisons, 8 calls",
        ),
    ],
)
def test_benchmark_runs_without_a_model(name: str, options: list[str], figure: str) -> None:
    assert re.search(figure, run_benchmark(name, *options))


@pytest.mark.skipif(not LLMBAR.is_dir(), reason=f"needs the data in {LLMBAR}")
def test_benchmark_measures_reading_and_writing(folders: Mapping[str, Path]) -> None:
    read = run_benchmark("reading", "--items", "1", "--generate", "9", "--padded", "--random", "tiny")
    for line in (r"one forward pass per prompt \(whole run: \d", r"generate\(32\)` per prompt", "padded batches of 16"):
        assert re.search(line, read)
    options = ("--prompts", "2", "--tokens", "4", "--rounds", "1", "--alone", "1", "--model", str(folders["llama"]))
    assert re.search(r"b +\S+ answers/s", run_benchmark("generation", *options))


@pytest.mark.vllm
@pytest.mark.skipif(not LLMBAR.is_dir(), reason=f"needs the data in {LLMBAR}")
def test_benchmark_measures_vllm(
    real: Vllm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Reuse the running engine, because starting another one takes a minute.
    monkeypatch.setattr(backend, "Vllm", lambda *_, **__: real)
    script = str(BENCHMARKS / "vllm_engine.py")
    monkeypatch.setattr(sys, "argv", [script, "--judgments", "4", "--rounds", "1"])
    runpy.run_path(script, run_name="__main__")
    assert "distract against raw, by rate" in capsys.readouterr().out
