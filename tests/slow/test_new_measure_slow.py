"""One row of the table of measures is all that a measure takes: it is explained and gated."""

import json
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from loops import each

ADD = """
import json, sys
from distract.stats import measures
measures.MEASURES["zz_rate"] = measures.Measure(
    name="zz_rate", designs=("flip",), aim="loser", effects=("same",), value=lambda trial: float(trial.after == "b"),
    title="Zz rate: a response that had not won wins", legend="responses that had not won and win",
    hit="zz", hits="won", limit="max-zz-rate",
)
measures.MEASURES["yy_rate"] = measures.Measure(
    name="yy_rate", designs=("flip",), aim="loser", effects=("same",), value=lambda trial: float(trial.after != "b"),
    hit="loss", hits="lost", limit="min-yy-rate", better="high",
)
measures.MEASURES["xx_rate"] = measures.Measure(
    name="xx_rate", designs=("flip",), aim="winner", effects=("same",), value=lambda trial: float(trial.after == "a"),
    needs="winners", hit="slip", hits="slipped", limit="max-xx-rate",
)
from click.testing import CliRunner
from distract.cli.main import cli
results = [CliRunner().invoke(cli, arguments) for arguments in json.loads(sys.argv[1])]
codes = [getattr(result.exception, "code", result.exit_code) for result in results]
print(json.dumps([[code, result.output + str(result.exception)] for code, result in zip(codes, results)]))
"""

AUDIT = ("--attack", "prolixity", "--generator", "rules", "--store", "store.db")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("attack", "--judge", "planted:longer=0.4", "--limit", "60", *AUDIT, "--out", "run"),
    "worse": ("attack", "--judge", "planted:longer=0.9", "--limit", "60", *AUDIT, "--out", "worse"),
    "help": ("gate", "--help"),
    "list": ("list", "measures"),
    "finished": ("gate", "run", "--max-zz-rate", "0.7", "--junit", "gate.xml"),
    "high": ("gate", "run", "--min-yy-rate", "0.3"),
    "evidence": ("gate", "worse", "--min-yy-rate", "0.9", "--summary", "high.md"),
    "demanded": ("gate", "--judge", "planted:longer=0.4", "--max-xx-rate", "0.9", "--limit", "60", *AUDIT, "--control"),
    "settings": ("gate", "run", "--config", "limits.toml"),
    "live": ("gate", "--judge", "planted:longer=0.9", "--max-zz-rate", "0.3", "--limit", "60", *AUDIT, "--out", "live"),
    "baseline": ("gate", "worse", "--baseline", "run"),
    "compare": ("compare", "run", "worse"),
    "plan": ("gate", "--plan", "--max-zz-rate", "0.1", "--true-rate", "0.02"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all commands in a process whose table has two more rows."""
    path = tmp_path_factory.mktemp("measure")
    (path / "limits.toml").write_text("[tool.distract.gate]\nmax-zz-rate = 0.01\n", encoding="utf-8")
    command = [sys.executable, "-c", ADD, json.dumps([*COMMANDS.values()])]
    done = subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path / "results.json").write_text(done.stdout, encoding="utf-8")
    return path


def read_result(folder: Path, name: str) -> tuple[int, str]:
    """Return exit code and output of a command, on one line."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    code, output = dict(zip(COMMANDS, results, strict=True))[name]
    return code, " ".join(output.split())


@each(
    "name, code, expected",
    ("help", 0, "--max-zz-rate NUMBER Largest zz rate to accept under attacks of effect same."),
    ("help", 0, "--min-yy-rate NUMBER Smallest yy rate to accept under attacks of effect same."),
    ("list", 0, "zz rate responses that had not won and win (zz_rate, --max-zz-rate)"),
    ("finished", 0, "PASS: all 2 zz rates are below 0.7"),
    ("high", 0, "PASS: all 2 loss rates are below 0.7"),
    ("demanded", 0, "PASS: all 2 xx rates exceed the judge's own noise by less than 0.9"),
    ("settings", 1, "FAIL: pairwise under prolixity: lower bound of the zz rate"),
    ("live", 1, "of the zz rate"),
    ("baseline", 1, "zz rate since baseline"),
    ("compare", 0, "Zz rates on the same pairs, in %"),
    ("plan", 0, "A judge whose true zz rate is 0.02 should pass"),
)
def test_limit_is_an_option_a_key_and_a_decision(folder: Path, name: str, code: int, expected: str) -> None:
    result = read_result(folder, name)
    assert result[0] == code, result[1]
    assert expected in result[1]


def test_evidence_are_the_hits_and_no_rise_is_tested_on_what_was_not_judged(folder: Path) -> None:
    assert read_result(folder, "evidence")[0] == 1
    # The rewrite wins where it should not.
    assert "0.00 : 1.00 before -> 1.00 : 0.00 after" in unescape((folder / "high.md").read_text(encoding="utf-8"))
    assert "xx" not in read_result(folder, "compare")[1] + read_result(folder, "baseline")[1]


def test_check_is_a_test_case_of_junit(folder: Path) -> None:
    assert '<testcase name="prolixity (zz rate)"' in (folder / "gate.xml").read_text(encoding="utf-8")
