"""Test ``--profile``: its report, and that it changes nothing else."""

from __future__ import annotations

from command_result import Run

from distract.core.timer import Clock
from distract.report.profile import PARTS, profile_lines


def test_profile_lines_add_up() -> None:
    counts = {"tokens asked": 147_622.0, "tokens computed": 64_736.0, "operations": 1.5e13}
    clock = Clock({"forward": 100.0, "load": 5.0, "wait": 1.0}, counts)
    lines = list(profile_lines(clock, 110.0, 2e11))
    assert lines[0] == "where the time went (110.0 s):"
    assert [line.split()[0] for line in lines[1:9]] == [*PARTS, "wait", "rest"]
    assert sum(float(line.split()[1]) for line in lines[1:9]) == 110.0
    assert lines[9] == "tokens: 147,622 asked, 64,736 computed (44%), 647 per second of model time"
    assert lines[10].startswith("model: 150 GFLOP/s, 75% of the 200 that")


def test_absent_events_are_not_listed() -> None:
    assert len(list(profile_lines(Clock(), 0.5))) == 1 + len(PARTS) + 1
    clock = Clock({"forward": 1.0}, {"tokens asked": 10.0, "operations": 5.0})
    assert not any(line.startswith("model:") for line in profile_lines(clock, 1.0))


def test_profiled_run_gives_the_same_bytes(run: Run) -> None:
    arguments = ["attack", "--judge", "planted:longer", "--limit", "3", "--json"]
    plain = run(*arguments)
    profiled = run(*arguments, "--profile", "--out", "other", "--store", "other.sqlite")
    assert (plain.code, profiled.code) == (0, 0)
    assert plain.out == profiled.out
    message = [line.split()[0] for line in profiled.err.splitlines() if line.startswith("  ")]
    assert message == [*PARTS, "rest"]
    # A planted judge needs no model, so no tokens are computed.
    assert "tokens:" not in profiled.err
    assert "model:" not in profiled.err


def test_failing_run_prints_its_profile(run: Run) -> None:
    failed = run("attack", "--judge", "planted:longer", "--data", "nowhere.jsonl", "--profile")
    assert failed.code == 2
    assert "where the time went" in failed.err
