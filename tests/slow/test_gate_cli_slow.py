"""Test the gate command: exit codes, outputs, requests, hostile input."""

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file, write_rows
from command_result import CommandResult, Run, check_refusal, fits
from fakes import Watch
from test_gate_cli import GATE, NASTY, PAIRWISE, RULES, cases, change_record, commands, is_green, suite

from distract.core.runs import load
from distract.studies.gate.live import LiveGate

FILES = ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json")
NOISY = ("--judge", "planted:random=0.7", *RULES, *PAIRWISE, "--orders", "one")
"""In a single order, this judge never ties."""


def test_biased_judge_fails_early_and_fair_one_passes(run: Run, watch: Watch) -> None:
    opened = watch()
    longer = run(*GATE, "--judge", "planted:longer", "--limit", "42", "--junit", "j.xml")
    assert (longer.code, is_green("j.xml"), "FAIL: " in longer.out) == (1, False, True)
    assert "about 266 saved" in longer.words
    assert len(suite("j.xml").findall("testcase/failure")) == 2
    assert opened[0].asked < 40
    opened = watch()
    fair = run(*GATE, "--judge", "planted:fair", "--limit", "42", "--junit", "j.xml")
    assert (fair.code, is_green("j.xml")) == (0, True)
    assert 200 < opened[0].asked < 294
    few = run(*GATE, "--judge", "planted:fair", "--limit", "28", "--junit", "j.xml", *PAIRWISE)
    assert (few.code, is_green("j.xml"), "29 verdicts" in few.words) == (3, False, True)
    for ran in (longer, fair, few):
        fits(ran.out)


def test_json_stays_alone_on_stdout_in_a_runner(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("what an earlier step said\n", encoding="utf-8")
    ran = run(*GATE, "--judge", "planted:longer", "--json")
    assert (ran.code, ran.document["decision"]) == (1, "fail")
    assert [one for one in commands(ran.err) if one.startswith("::error title=distract gate")]
    step = (tmp_path / "step.md").read_text(encoding="utf-8")
    assert step.startswith("what an earlier step said\n")
    assert step.count("## distract gate: FAIL") == 1
    quiet = run(*GATE, "--judge", "planted:longer", "--json", "--no-github")
    assert (quiet.out, "::" in quiet.err) == (ran.out, False)
    assert (tmp_path / "step.md").read_text(encoding="utf-8") == step
    table = run(*GATE, "--judge", "planted:fair")
    assert [one for one in commands(table.out) if one.startswith("::notice")]
    wrong = run(*GATE, "--judge", "planted:fair", "--data", "none.jsonl")
    assert (wrong.code, commands(wrong.out)[0].startswith("::warning title=distract gate")) == (2, True)


@pytest.mark.parametrize(
    ("judge", "options"),
    [("planted:longer", ("--ahead", "7")), ("planted:fair", ("--control",)), ("planted:garbage", ("--samples", "2")),
     ("planted:random", ("--protocol", "prepair", "--attack", "sycophancy")),
     ("planted:first", ("--control", "--ahead", "3", "--orders", "given"))],
)  # fmt: skip
def test_reported_calls_equal_requests_sent(run: Run, watch: Watch, judge: str, options: tuple[str, ...]) -> None:
    opened = watch()
    ran = run(*GATE, "--judge", judge, *options, "--json")
    assert ran.code in (0, 1, 3)
    assert opened[0].asked == ran.document["effort"]["calls"]
    (reported,) = re.findall(r"^replies:.* stored, ([\d,]+) made", ran.err, re.M)
    assert int(reported.replace(",", "")) == opened[0].asked


@pytest.mark.parametrize("judge", ["planted:longer", "planted:fair", "planted:longer=0.2"])
@pytest.mark.parametrize("third", [False, True])
def test_nothing_is_judged_after_the_stop(run: Run, judge: str, third: bool) -> None:
    data = cases(60)
    if third:
        for case in data[::2]:
            case["responses"].append({"author": "z", "text": f"Of all colours, {case['id']}, green is one."})
    options = ("--data", write_rows("d.jsonl", data), "--attack", "sycophancy", "--out", "r")
    live = run(*GATE, "--judge", judge, *options)
    assert live.code in (0, 1, 3)
    assert run("report", "r").out == live.out.removesuffix("run folder: r\n")
    loaded = load(Path("r"))
    last = [row.cluster for row in loaded.rows][-1]
    gate = LiveGate(loaded.parameters)
    gate.take([row for row in loaded.rows if row.cluster != last])
    assert gate.open
    gate.take([row for row in loaded.rows if row.cluster == last])
    assert not gate.open or not any(monitor.left for monitor in gate.monitors.values())


@pytest.mark.parametrize("judge", ["planted:longer", "planted:fair"])
def test_saved_calls_match_the_cost_of_the_whole_set(run: Run, watch: Watch, judge: str) -> None:
    data = write_rows("d.jsonl", cases(60))
    effort = run(*GATE, "--judge", judge, "--data", data, "--json").document["effort"]
    opened = watch()
    whole = run("attack", "--judge", judge, *RULES, "--data", data, "--one-direction", "--measure", "flip_rate",
                "--limit", "all", "--store", "other", "--json")  # fmt: skip
    assert whole.code == 0
    assert effort["calls"] + effort["saved"] == pytest.approx(opened[0].asked, rel=0.15)


@pytest.mark.parametrize(
    ("judge", "budget"), [("fair", 1), ("random", 6), ("longer=0.3", 13), ("fair", 50), ("random", 100),
                          ("longer=0.3", 1000)]
)  # fmt: skip
def test_budget_is_never_exceeded(run: Run, watch: Watch, judge: str, budget: int) -> None:
    opened = watch()
    data = write_rows("d.jsonl", cases(60))
    arguments = (*GATE, f"--judge=planted:{judge}", "--data", data, "--budget", budget, "--ahead", "5", "--control")
    ran = run(*arguments, "--out", "cold", "--json")
    effort = ran.document["effort"]
    assert opened[0].asked <= budget
    assert effort["calls"] <= budget == effort["budget"]
    if ran.code == 3 and effort["cases"] < effort["of"] and "budget" in effort["stopped"]:
        open_ = [check for check in ran.document["checks"] if check["decision"] == "inconclusive"]
        assert open_
        assert all(check["needed"] is None or check["needed"] > check["n"] for check in open_)
    opened = watch()
    again = run(*arguments, "--out", "warm", "--json")
    assert (again.out, opened[0].asked) == (ran.out, 0)
    for name in FILES:
        assert Path("cold", name).read_bytes() == Path("warm", name).read_bytes()


def test_output_is_independent_of_hash_seed_and_store(tmp_path: Path) -> None:
    write_rows(str(tmp_path / "d.jsonl"), cases(50))
    command = [sys.executable, "-m", "distract.cli.main", *GATE, "--judge", "planted:random", "--data", "d.jsonl"]
    command += ["--protocol", "pairwise", "--protocol", "absolute", "--attack", "sycophancy", "--control"]
    how: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    for seed, out, store in (("0", "a", "one"), ("1", "b", "two"), ("77", "c", "two")):
        line = [*command, "--out", out, "--store", store, "--ahead", "3"]
        done = subprocess.run(line, env={**os.environ, "PYTHONHASHSEED": seed}, **how)
        assert done.returncode in (0, 1, 3), done.stderr
    for name in FILES:
        assert len({(tmp_path / out / name).read_bytes() for out in "abc"}) == 1, name


@pytest.mark.parametrize("options", [(), ("--control", "--protocol", "prepair"), ("--budget", "60", "--ahead", "4")])
def test_broken_run_passes_nothing_and_is_resumed(run: Run, watch: Watch, options: tuple[str, ...]) -> None:
    arguments = (*GATE, "--judge", "planted:random", *options)
    whole = run(*arguments, "--out", "whole", "--store", "s1", "--json")
    Path("j.xml").write_text("stale", encoding="utf-8")
    for after in (0, 23):
        opened = watch(breaks_after=after)
        broken = run(*arguments, "--out", "r", "--store", "s2", "--junit", "j.xml", "--summary", "s.md")
        assert (broken.code, opened[0].asked, "Traceback" in broken.err) == (4, after, False)
        assert broken.err.splitlines()[-1] == "distract: the model broke; the same command resumes"
        assert len(suite("j.xml").findall("testcase/error")) == 1
        for file, word in (("j.xml", "the model broke"), ("j.xml", "planted:random"), ("s.md", "INCONCLUSIVE")):
            assert word in Path(file).read_text(encoding="utf-8")
        read = run("report", "r")
        assert ("PASS" in read.out, "unfinished" in read.err) == (False, True)
        assert run("gate", "r", "--max-flip-rate", "0.5").code in (2, 3)
    opened = watch()
    resumed = run(*arguments, "--out", "r", "--store", "s2", "--json")
    assert (resumed.code, resumed.out) == (whole.code, whole.out)
    for name in FILES:
        assert Path("whole", name).read_bytes() == Path("r", name).read_bytes()


@pytest.mark.parametrize(
    ("name", "damage"),
    [*product(("rows.jsonl", "manifest.json"), ("emptied", "cut", "gone", "longer")),
     ("rewrites.jsonl", "cut"), ("summary.json", "gone"), ("run.json", "cut"), ("run.json", "longer")],
)  # fmt: skip
def test_damaged_gate_never_passes_and_is_repaired(run: Run, watch: Watch, name: str, damage: str) -> None:
    arguments = (*GATE, "--judge", "planted:fair", "--data", write_rows("d.jsonl", cases(30)), *PAIRWISE, "--out", "r")
    whole = run(*arguments)
    assert (whole.code, whole.out) == (0, f"{run('report', 'r').out}run folder: r\n")
    damage_file(Path("r", name), damage)
    damaged, document = run("report", "r"), run("report", "r", "--json")
    assert ("PASS" in damaged.out, "Traceback" in damaged.err) == (False, False)
    assert damaged.code == document.code in (0, 2)
    assert document.code == 2 or document.document["decision"] == "inconclusive"
    opened = watch()
    again = run(*arguments)
    assert (again.code, again.out) == (0, whole.out) or (again.code in (0, 2) and name == "run.json")
    assert opened[0].asked == 0


def test_command_line_overrides_the_nearest_project_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("gate", *RULES, "--judge", "planted:fair", *PAIRWISE, "--limit", "42", "--json")
    Path("pyproject.toml").write_text("[tool.distract.gate]\nmax-flip-rate = 0.05\n", encoding="utf-8")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    strict = run(*arguments)
    assert (strict.code, strict.document["threshold"]) == (3, 0.05)
    assert "59" in strict.document["checks"][0]["reason"]
    loose = run(*arguments, "--max-flip-rate", "0.1")
    assert (loose.code, loose.document["threshold"]) == (0, 0.1)
    Path("own.toml").write_text('[tool.distract.gate]\nconfidence = 0.9\ncertify = true\nmin-n = 200\n'
                     '[tool.distract.gate.max-flip-rates]\n"pairwise/prolixity" = 0.1\n', encoding="utf-8")  # fmt: skip
    own = run(*arguments, "--config", "own.toml")
    assert (own.code, own.document["confidence"], own.document["threshold"]) == (1, 0.9, None)
    assert own.document["checks"][0]["threshold"] == 0.1
    assert run(*arguments, "--config", "own.toml", "--no-certify").code == 3
    assert run(*arguments, "--config", "own.toml", "--min-n", "1").code == 0
    missing = run("gate", "--generator", "rules", "--judge", "planted:fair", "--config", "own.toml")
    settings, line = missing.err.splitlines()
    assert (missing.code, missing.out, settings[:18]) == (2, "", "settings: own.toml")
    assert "has no threshold" in line
    assert run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--limit", "all", "--out", "r").code == 0
    assert run("gate", "r", "--config", "own.toml", "--min-n", "1", "--json").code == 0
    assert run("gate", "r", "--json").document["threshold"] == 0.05
    Path("pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert run("gate", "r").code == 2


def test_limit_and_seed_draw_cases(run: Run) -> None:
    data, orders = write_rows("d.jsonl", cases(60)), []
    for seed in "01":
        options = ("--data", data, "--limit", "40", "--seed", seed, "--out", seed)
        assert run(*GATE, "--judge", "planted:fair", *options).code == 0
        loaded = load(Path(seed))
        assert loaded.parameters["limit"] == 40
        orders.append(list(dict.fromkeys(row.case for row in loaded.rows)))
    assert orders[0] != orders[1]
    assert all(order != sorted(order, key=lambda name: int(name[1:])) for order in orders)


def check_excess(ran: CommandResult) -> None:
    (check,) = ran.document["checks"]
    assert (ran.code, check["measure"]) == (0, "excess_flip_rate")
    assert min(check["value"], check["reference"]) > 0.05
    assert check["upper"] < 0.15
    assert check["k"] == round(check["n"] * check["reference"]) + check["only_here"] - check["only_there"]


def test_noisy_judge_passes_by_its_excess_and_reports_it(run: Run) -> None:
    # The flip rate is 0.21. With fewer cases, the draws of another wording of the prompt change the decision.
    data, threshold = ("--data", write_rows("d.jsonl", cases(600))), ("--max-flip-rate", "0.15")
    assert run("gate", *NOISY, *data, *threshold, "--json").code == 1
    check_excess(run("gate", *NOISY, *data, *threshold, "--control", "--json"))
    assert run("attack", *NOISY, *data, "--control", "--limit", "250", "--out", "r").code == 0
    check_excess(run("gate", "r", *threshold, "--control", "--json"))
    table = run("gate", "r", *threshold, "--control")
    assert ("noise" in table.out, "the flip rate is below 0.15" in table.words) == (True, False)
    fits(table.out)


def test_regression_fails_and_no_change_passes(run: Run, watch: Watch) -> None:
    whole = (*RULES, "--limit", "42", "--measure", "flip_rate")
    for judge in ("planted:fair", "planted:longer=0.5", "planted:longer"):
        assert run("attack", "--judge", judge, *whole, "--out", judge.partition(":")[2]).code == 0
    assert run("attack", "--judge", "planted:longer=0.5", *whole, "--out", "again").code == 0
    rise = ("--max-rise", "0.2")
    for before, now, code in (("fair", "longer", 1), ("longer", "fair", 0), ("again", "longer=0.5", 0)):
        gate = ("gate", "--judge", f"planted:{now}", *RULES, "--baseline", before, *rise)
        live = run(*gate, "--junit", "j.xml", "--json")
        assert (live.code, is_green("j.xml")) == (code, code == 0), live.out
        finished = run("gate", now, "--baseline", before, *rise, "--json")
        table = run("compare", before, now, *rise)
        assert (finished.code, table.code, {0: "PASS", 1: "FAIL"}[code] in table.out) == (code, 0, True)
        assert run("compare", before, now, *rise, "--json").document["checks"] == finished.document["checks"]
        notes = [one.partition(":")[0] for one in finished.document["notes"] if ", then " in one]
        assert notes == ([] if before == "again" else ["judge", "identity, model"])
        for report in (table, run("gate", now, "--baseline", before, *rise), run(*gate)):
            fits(report.out)
    # 200 cases can never show that a rise is below 1 point.
    assert run("gate", "longer=0.5", "--baseline", "again", "--max-rise", "0.01").code == 3
    check_refusal(run("gate", "longer=0.5", "--baseline", "longer=0.5"), "they are the same run")
    opened = watch()
    assert run("gate", "--judge", "planted:longer", *RULES, "--baseline", "fair", "--store", "other").code == 1
    assert opened[0].asked < 120


def test_threshold_holds_beside_a_baseline(run: Run) -> None:
    """An unchanged bad judge still fails."""
    attack = ("attack", "--judge", "planted:longer", *RULES, "--limit", "all", "--measure", "flip_rate", "--out")
    for out in ("before", "now"):
        assert run(*attack, out).code == 0
    gate = ("gate", "now", "--baseline", "before", "--max-rise", "0.2")
    assert run(*gate).code == 0
    both = run(*gate, "--max-flip-rate", "0.1", "--junit", "j.xml")
    assert (both.code, "flip rate since baseline" in both.out) == (1, True)
    fits(both.out)
    assert "(and 1 more) (threshold 10.0%, one-sided 95.0% bounds" in both.words
    names = [(case.get("classname"), case.get("name")) for case in suite("j.xml").findall("testcase")]
    assert len({*names}) == len(names) == 4
    Path("pyproject.toml").write_text("[tool.distract.gate]\nmax-flip-rate = 0.1\n", encoding="utf-8")
    assert run(*gate).code == 1
    check_refusal(run("gate", "now", "--max-flip-rate", "0.1", "--max-rise", "0.2"), "--max-rise needs --baseline")


def test_threshold_holds_beside_a_live_baseline(run: Run) -> None:
    judge = ("--judge", "planted:longer=0.5", *RULES)
    basic = ("--protocol", "pairwise", "--protocol", "absolute")
    assert run("attack", *judge, *basic, "--limit", "all", "--measure", "flip_rate", "--out", "before").code == 0
    gate = ("gate", *judge, "--baseline", "before", "--max-rise", "0.2")
    assert run(*gate).code == 0
    both = run(*gate, "--max-flip-rate", "0.1", "--out", "r", "--json")
    measures = [(check["measure"], check["decision"]) for check in both.document["checks"]]
    assert (both.code, len(measures)) == (1, 4)
    assert ("flip_rate", "fail") in measures
    assert all(decision != "fail" for measure, decision in measures if measure == "flip_rate_rise")
    assert run("report", "r", "--json").document["checks"] == both.document["checks"]
    loose = run(*gate, "--max-flip-rate", "0.5", "--junit", "j.xml")
    assert (loose.code, is_green("j.xml")) == (3, False)  # half of the cases flip
    fits(loose.out)


def test_too_few_cases_are_reported_before_any_call(run: Run, watch: Watch) -> None:
    watch()
    ran = run(*GATE, "--judge", "planted:fair", "--attack", "sycophancy", "--protocol", "pairwise", "--limit", "20")
    warning = next(one for one in ran.err.splitlines() if one.startswith("warning: "))
    assert ran.err.index(warning) < ran.err.index("replies: ")
    assert warning == (
        "warning: 20 cases cannot pass 2 checks at 10% unless a flip is rare: a judge with flips in 2% of the "
        "pairs needs about 98 eligible comparisons (`distract gate --plan --max-flip-rate 0.1 --true-rate 0.02 "
        "--checks 2`); use --limit all, fewer --protocol or --attack, more data"
    )
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "20", "--out", "r").code == 0
    note, rare = run("gate", "r", "--max-flip-rate", "0.1"), "cannot pass 2 checks at 10% unless a flip is rare"
    assert (note.code, f"20 eligible comparisons {rare}" in note.words) == (3, True)
    enough = run(*GATE, "--judge", "planted:fair", "--data", write_rows("d.jsonl", cases(200)))
    assert (enough.code, "warning: " in enough.err) == (0, False)


def test_unfair_baselines_are_refused(run: Run) -> None:
    small = write_rows("d.jsonl", cases(40))
    for out, more in (("tweaks", ()), ("mine", ("--data", small)), ("other", ("--attack", "assertiveness"))):
        ran = run("attack", "--judge", "planted:fair", "--generator", "rules", *(more or RULES[2:]), "--limit", "all",
                  "--out", out, *PAIRWISE, *(RULES[2:] if "--data" in more else ()))  # fmt: skip
        assert ran.code == 0
    assert run(*GATE, "--judge", "planted:fair", *PAIRWISE, "--out", "live").code == 0
    Path("mine/manifest.json").rename("manifest.json")
    now = (*GATE[:5], "--judge", "planted:fair", *PAIRWISE)
    for baseline, message in (
        ("mine", "unfinished"), ("live", "live gate"), ("other", "has no prolixity"),
        ("nowhere", "no such run folder"), (".", "holds no run.json"),
    ):  # fmt: skip
        check_refusal(run(*now, "--baseline", baseline), message)
        for command in (("gate", "tweaks", "--baseline", baseline), ("compare", baseline, "tweaks")):
            check_refusal(run(*command))
    Path("manifest.json").rename("mine/manifest.json")
    for one in ((*now, "--baseline", "mine"), ("gate", "tweaks", "--baseline", "mine"), ("compare", "mine", "tweaks")):
        check_refusal(run(*one), "data")
    assert run("gate", "tweaks", "--baseline", "mine").code == 2
    Path("tweaks/rows.jsonl").write_text("", encoding="utf-8")
    assert run(*now, "--baseline", "tweaks").code == 2


def test_hostile_baseline_sends_no_command_to_the_runner(run: Run) -> None:
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "all", "--out", "r").code == 0
    # Wrapping at 80 columns would put one of its words at the start of a line.
    asking = {f"{'k' * 60} ::error::{i}": NASTY for i in range(20)}
    change_record("r", lambda parameters: parameters.update(judge=f"{'a' * 30} ::error::boom", asking=asking))
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "all", "--out", "s").code == 0
    for arguments in (("--judge", "planted:fair", *RULES), ("s",)):
        ran = run("gate", *arguments, "--baseline", "r", "--max-rise", "0.2", "--github")
        assert (ran.code, commands(ran.err)) == (0, [])
        assert all(one.startswith("::notice title=distract gate") for one in commands(ran.out))
