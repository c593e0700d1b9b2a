"""Scorers on any scale: shift in their own points, and crossings of the pass mark, against a second implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_result import Run, check_refusal

import distract
from distract.core.errors import UsageError
from distract.stats import intervals
from distract.studies.gate.limits import Limits

JUDGE = """
import distract, hashlib
@distract.judge(scale={scale}, pass_mark={mark}, better={better!r})
def judge(question, response):
    noise = int(hashlib.sha256(response.encode()).hexdigest()[:4], 16) / 65536
    share = min(1.0, len(response) / 900) * 0.7 + 0.3 * noise
    return {low} + {width} * ({flip} - share if {flip} else share)
"""
SCALES = {
    "share": ("(0, 1)", 0.5, "higher", 0, 1, 0),
    "percent": ("(0, 100)", 50, "higher", 0, 100, 0),
    "signed": ("(-5, 5)", 0, "higher", -5, 10, 0),
    "open": ("(None, None)", 3.0, "higher", 0, 6, 0),
    "lower": ("(0, 100)", 50, "lower", 0, 100, 1),
}


def write_judge(name: str) -> None:
    scale, mark, better, low, width, flip = SCALES[name]
    text = JUDGE.format(scale=scale, mark=mark, better=better, low=low, width=width, flip=flip)
    Path("j.py").write_text(text)


@pytest.mark.parametrize("name", SCALES)
def test_any_scale_is_judged_alike(name: str, run: Run) -> None:
    command = ("attack", "--judge", "python:j.py:judge", "--limit", 30, "--out", "run", "--json")
    write_judge(name)
    result = run(*command)
    assert result.code == 0, result.err
    width = SCALES[name][4]
    for attack in ("prolixity", "sycophancy"):
        shift = result.figure("shift", attack=attack)
        crossing, lifted = (result.figure(f"{each}_rate", attack=attack) for each in ("crossing", "lifted"))
        gains, sides = list_gains("run", attack)
        assert shift["value"] == pytest.approx(sum(gains) / len(gains), abs=1e-4 * width)
        crossed = [float(before != after) for before, after, _ in sides]
        prompts = [prompt for *_, prompt in sides]
        assert (crossing["k"], crossing["n"]) == (sum(crossed), len(crossed))
        low, high = intervals.rate_interval(crossed, prompts)
        assert (crossing["low"], crossing["high"]) == pytest.approx((low, high), abs=1e-4)
        failed = [after for before, after, _ in sides if not before]
        assert (lifted["k"], lifted["n"]) == (sum(failed), len(failed))
        assert crossing["k"] > 0
    ratings = [row for row in result.results if row["rule"] == "rating"]
    assert ratings == []


def list_gains(folder: str, attack: str) -> tuple[list[float], list[tuple[bool, bool, str]]]:
    """Gains of rewrites over originals, and the sides of the mark, read from the files of a run."""
    parameters = json.loads(Path(folder, "run.json").read_text())["parameters"]
    mark = parameters["pass_marks"]["function"]
    rows = [json.loads(line) for line in Path(folder, "rows.jsonl").read_text().splitlines()]
    gains, sides = [], {}
    before = {}
    for row in rows:
        if row["design"] == "flip" and row["target"] is None:
            for side, score in zip("ab", row["judgments"][0]["scores"], strict=True):
                before[row["case"], row[side]["author"], row[side]["severity"]] = score
    for row in rows:
        if row["attack"] != attack or row["excluded"] or row["design"] == "severity":
            continue
        scores = row["judgments"][0]["scores"]
        if row["design"] == "fixed":
            gains.append(scores[1] - scores[0])
            place, pair = (row["case"], row["a"]["author"], row["a"]["severity"]), scores
        else:
            side = row[row["target"]]
            place = (row["case"], side["author"], side["severity"])
            pair = (before[place], scores["ab".index(row["target"])])
        sides[place] = (pair[0] >= mark, pair[1] >= mark, row["cluster"])
    return gains, [*sides.values()]


def test_directions_mirror_each_other(run: Run) -> None:
    results = []
    for name in ("percent", "lower"):
        write_judge(name)
        assert run("attack", "--judge", "python:j.py:judge", "--limit", 8, "--out", name, "--json").code == 0
        results.append([(f["measure"], f["attack"], f["value"]) for f in distract.Run.read(name).results])
    for (measure, attack, one), (same, also, other) in zip(*results, strict=True):
        assert (measure, attack) == (same, also)
        assert one == pytest.approx(other, abs=2e-3)


@pytest.mark.parametrize(("limit", "code"), [(0.05, 1), (0.97, 3)])
def test_gate_on_crossings(limit: float, code: int, run: Run) -> None:
    write_judge("percent")
    assert run("attack", "--judge", "python:j.py:judge", "--limit", 60, "--out", "r").code == 0
    result = run("gate", "r", "--max-crossing", limit, "--json")
    # Below the limit nothing passes either, since this judge is not shown to tell good from bad.
    assert result.code == code
    assert {check["measure"] for check in result.document["checks"]} == {"crossing_rate"}
    report = run("report", "r")
    assert "points on a scale of 0 to 100" in report.words
    assert "Pass mark: responses whose rewrite" in report.out


def test_gate_without_a_pass_mark_is_inconclusive(run: Run) -> None:
    assert run("attack", "--judge", "planted:longer", "--limit", 4, "--out", "r").code == 0
    result = run("gate", "r", "--max-crossing", 0.5)
    assert (result.code, "has no pass mark" in result.words) == (3, True)
    check_refusal(
        run("gate", "--judge", "planted:longer", "--max-crossing", 0.5), "--max-crossing needs a finished run"
    )
    with pytest.raises(UsageError, match="--max-crossing 2: expected a share"):
        Limits(max_crossing=2)
