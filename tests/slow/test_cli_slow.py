"""Test the command line: exit codes, one-line errors, JSON, run folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file
from test_cli import PLANTED, pair, write

from distract.core.runs import load


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


BASIC = ("--protocol", "pairwise", "--protocol", "absolute", "--measure", "fixed", "--measure", "flip")


def test_biased_judge_is_detected_and_fair_one_is_not_flagged(run: Any) -> None:
    longer = run("attack", "--judge", "planted:longer", *PLANTED, *BASIC, "--json")
    assert longer.code == 0
    for protocol, rule in (("pairwise", None), ("absolute", "score")):
        assert longer.figure("flip_rate", protocol=protocol, rule=rule, attack="prolixity")["value"] > 0.5
        assert longer.figure("distractor_win_rate", protocol=protocol, rule=rule, attack="prolixity")["value"] > 0.9
    bold = run("attack", "--judge", "planted:bold", *PLANTED, *BASIC, "--json")
    assert bold.figure("distractor_win_rate", protocol="pairwise", attack="assertiveness")["value"] > 0.8
    fair = run("attack", "--judge", "planted:fair", *PLANTED, *BASIC, "--json")
    for result in fair.results:
        if result["measure"] == "flip_rate" and "against" not in result:
            assert (result["k"], result["n"] > 0) == (0, True)
        if result["measure"] == "tie_rate" and "against" not in result:
            assert result["value"] == 1.0


def test_json_output_is_one_document_equal_to_the_summary(run: Any) -> None:
    attack = run("attack", "--judge", "planted:longer", *PLANTED, "--out", "r", "--json")
    assert attack.out == Path("r/summary.json").read_text(encoding="utf-8")
    assert run("report", "r", "--json").out == attack.out
    table = run("attack", "--judge", "planted:longer", *PLANTED, "--out", "t").out
    assert table.replace("run folder: t\n", "") == run("report", "t").out
    again = run("attack", "--judge", "planted:longer", *PLANTED, "--out", "r", "--json")
    assert again.out == attack.out
    assert "no call is made" in again.err
    fields = {"measure", "protocol", "rule", "attack", "severity", "value", "low", "high", "k", "n", "invalid",
              "excluded", "unit"}  # fmt: skip
    assert all(fields <= result.keys() for result in attack.results)
    order = [json.dumps(result) for result in attack.results]
    assert len(set(order)) == len(order)


def test_rerun_writes_the_same_bytes(run: Any) -> None:
    for out, store in (("a", "s1"), ("b", "s2"), ("c", "s2")):
        assert run("attack", "--judge", "planted:random", *PLANTED, "--out", out, "--store", store).code == 0
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes() == Path("c", name).read_bytes()


def test_stderr_shows_the_plan_and_reply_counts(run: Any) -> None:
    arguments = ("attack", "--judge", "planted:longer", *PLANTED, "--store", "s")
    first, second = run(*arguments, "--out", "a"), run(*arguments, "--out", "b")
    assert "plan: about" in first.err
    assert "replies: 0 were stored" in first.err
    assert "of this judge; this run reuses those it needs" in second.err
    assert ", 0 made" in second.err
    assert "run folder: b" in second.out


def test_gate_passes_and_fails(run: Any) -> None:
    # Without labels, a judge that is blind to quality may pass.
    cases = [pair(f"c{i}", prompt=f"Name colour {i}.") for i in range(40)]
    data = write("d.jsonl", *cases)
    for judge, code in (("planted:fair", 0), ("planted:longer", 1)):
        out = judge.partition(":")[2]
        arguments = ("--data", data, "--generator", "rules", "--attack", "prolixity", "--limit", "all", "--out", out)
        assert run("attack", "--judge", judge, *arguments, *BASIC[:4]).code == 0
        gate = run("gate", out, "--max-flip-rate", "0.10", "--json")
        document = json.loads(gate.out)
        assert (gate.code, document["decision"]) == (code, {0: "pass", 1: "fail"}[code])
        assert {check["protocol"] for check in document["checks"]} == {"pairwise", "absolute"}
    few = run(
        "attack", "--judge", "planted:fair", "--data", data, "--generator", "rules", "--limit", "28", "--out", "few"
    )
    assert few.code == 0
    gate = run("gate", "few", "--max-flip-rate", "0.10")
    assert (gate.code, "at least 29 are needed to pass" in " ".join(gate.out.split())) == (3, True)


@pytest.mark.parametrize("name", ["rows.jsonl", "summary.json", "manifest.json", "run.json", "rewrites.jsonl"])
@pytest.mark.parametrize("damage", ["emptied", "cut", "gone"])
def test_damaged_run_never_passes_the_gate(run: Any, name: str, damage: str) -> None:
    data = write("d.jsonl", *(pair(f"c{i}", prompt=f"Name colour {i}.") for i in range(60)))
    arguments = ("--data", data, "--generator", "rules", "--measure", "flip_rate", "--limit", "all", "--out", "r")
    assert run("attack", "--judge", "planted:fair", *arguments).code == 0
    assert run("gate", "r", "--max-flip-rate", "0.10").code == 0
    damage_file(Path("r", name), damage)
    gate = run("gate", "r", "--max-flip-rate", "0.10")
    assert gate.code in (2, 3)
    assert "Traceback" not in gate.err


@pytest.mark.parametrize("damage", ["", '{"case": 1}\n', "half a ro"])
def test_same_command_repairs_a_damaged_run(run: Any, damage: str) -> None:
    base = ("attack", "--judge", "planted:fair", *PLANTED, "--out", "r")
    assert run(*base).code == 0
    whole = Path("r/rows.jsonl").read_bytes()
    Path("r/rows.jsonl").write_text(damage)
    again = run(*base)
    assert (again.code, ", 0 made" in again.err) == (0, True)
    assert Path("r/rows.jsonl").read_bytes() == whole
    assert json.loads(Path("r/manifest.json").read_text())["times"]["seconds"] >= 0


def test_limit_draws_by_seed_and_keeps_data_order(run: Any) -> None:
    data = write("d.jsonl", *(pair(f"c{i:02}") for i in range(30)))

    def drawn(seed: str) -> list[str]:
        ran = run("attack", "--judge", "planted:fair", "--data", data, "--limit", "7", "--seed", seed, "--out", seed)
        assert ran.code == 0
        return list(dict.fromkeys(r.case for r in load(Path(seed)).rows))

    assert len(drawn("1")) == 7
    assert drawn("1") == sorted(drawn("1"))
    assert drawn("1") != drawn("2")


def test_planted_judges_need_no_torch_and_little_time() -> None:
    script = (
        "import sys; sys.argv = ['distract', 'attack', '--judge', 'planted:longer', '--generator', 'rules']\n"
        "from distract.cli.main import main\n"
        "main()\n"
        "assert not {'torch', 'transformers', 'gguf'} & sys.modules.keys(), 'heavy import'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr


OTHERS = {
    *("gate", "gating", "leaderboard", "leaderboards", "ratings", "boards", "tournament", "meta", "consistency"),
    *("explain", "explaining", "minimal", "making", "replay"),
}
"""Parts of module names that belong to studies other than an attack."""


def test_attack_imports_no_other_study(tmp_path: Path) -> None:
    script = (
        "import sys; sys.argv = ['distract', 'attack', '--judge', 'planted:longer', '--limit', '1', '--out', 'run']\n"
        "from distract.cli.main import main\n"
        "main()\n"
        "rooms = {part for name in sys.modules if name.startswith('distract.') for part in name.split('.')}\n"
        "assert 'attack' in rooms\n"
        f"print(*sorted(rooms & {OTHERS}), 'end')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].strip()) == (0, "end"), done.stderr


@pytest.mark.parametrize("command", [[], ["gate"], ["compare"], ["plan-gate"]])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    script = (
        f"import sys; sys.argv = {['distract', *command, '--help']}\n"
        "from distract.cli.main import cli\n"
        "cli(standalone_mode=False)\n"
        "assert not {'numpy', 'scipy', 'rich', 'torch', 'sqlite3'} & sys.modules.keys(), 'heavy import'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Exit codes" in done.stdout


def test_closed_pipe_prints_no_traceback() -> None:
    command = f"{sys.executable} -m distract.cli.main list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ})
    assert done.stdout == "judges:\n"
    assert "Traceback" not in done.stderr


def test_distractor_lowers_the_accuracy_of_a_biased_judge(run: Any) -> None:
    options = ("--attack", "severity-2", "--attack", "severity-2+assertiveness")
    result = run("attack", "--judge", "planted:bold", *options, "--limit", "all", "--json")
    plain, distracted = (
        result.figure("severity_accuracy", attack=attack, protocol="pairwise") for attack in ("none", "assertiveness")
    )
    assert plain["value"] > distracted["value"] + 0.2


def test_protocols_are_ranked_for_one_judge(run: Any) -> None:
    choices = [part for name in ("base", "cot", "metric", "prepair", "rank") for part in ("--protocol", name)]
    options = ("--judge", "planted:longer", *PLANTED, *choices, "--attack", "prolixity", "--attack", "sycophancy")
    ran = run("attack", *options, "--out", "r", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    standings = {one["protocol"]: one for one in document["ranking"]}
    assert (standings["base"]["against_base"], standings["base"]["calls"]) == (None, 2.0)
    assert standings["cot"]["against_base"] == "not distinguishable"
    # Questions are made once per prompt and analyses once per response, so a comparison costs fewer calls.
    assert 2 < standings["metric"]["calls"] < 3
    assert 2 < standings["prepair"]["calls"] < 4
    assert document["ties"] == ["rank"]
    prompts = json.loads(Path("r/run.json").read_text())["parameters"]["prompts"]
    assert {"rubric", "base", "metrics", "metric", "prepair-analysis", "prepair"} <= prompts.keys()
    ties = {one["protocol"] for one in document["results"] if one["measure"] == "tie_rate"}
    assert ties == {"rank"}
    accuracies = {one["protocol"] for one in document["results"] if one["measure"] == "distractor_win_rate"}
    assert accuracies == standings.keys()
    report = run("report", "r").out
    # Eight cases do not show that it can tell good from bad.
    assert "Protocols side by side, not ranked" in report
    assert "Pareto front" not in report
    assert {(one["rank"], one["usable"], one["n"]) for one in document["ranking"]} == {(None, "not shown", 16)}
    assert all(len(line.rstrip()) <= 80 for line in report.splitlines())
    assert run("gate", "r", "--max-flip-rate", "0.1").code == 1


def test_every_protocol_reports_accuracy_by_severity(run: Any) -> None:
    names = ["base", "triadic", "quadruple", "wild-bench", "arena-hard", "alpaca-eval", "protocol-consistency"]
    options = [part for name in names for part in ("--protocol", name)]
    ran = run("attack", "--judge", "planted:fair", *PLANTED, *options, "--attack", "severity-2", "--json")
    figures = {
        one["protocol"]: one for one in ran.results if one["measure"] == "severity_accuracy" and "against" not in one
    }
    assert figures.keys() == set(names)
    assert all(one["value"] == 1.0 and one["n"] == 8 for one in figures.values())
