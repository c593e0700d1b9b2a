"""Test the command line and the Python API: exit codes, JSON, run folders, imports, examples, messages."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file
from command_result import Run
from loops import each
from test_api import SINGULAR, files, format_options
from test_cli import PLANTED, pair, write
from test_examples import EXAMPLES

import distract
from distract.core.runs import load

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
    for result in (one for one in fair.results if "against" not in one):
        if result["measure"] == "flip_rate":
            assert (result["k"], result["n"] > 0) == (0, True)
        if result["measure"] == "tie_rate":
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
    few = ("--data", data, "--generator", "rules", "--limit", "28", "--out", "few")
    assert run("attack", "--judge", "planted:fair", *few).code == 0
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


def interpret(script: str, folder: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in another interpreter."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **options)


OTHERS = {
    *("gate", "gating", "leaderboard", "leaderboards", "ratings", "boards", "tournament", "meta", "consistency"),
    *("explain", "explaining", "making", "replay"),
}
"""Parts of module names that belong to studies other than an attack."""


def test_attack_imports_no_other_study_and_no_torch(tmp_path: Path) -> None:
    script = f"""
import sys; sys.argv = ['distract', 'attack', '--judge', 'planted:longer', '--generator', 'rules']
from distract.cli.main import main
main()
rooms = {{part for name in sys.modules if name.startswith('distract.') for part in name.split('.')}}
assert 'attack' in rooms
heavy = {{'torch', 'transformers', 'gguf'}} & sys.modules.keys()
print(*sorted(rooms & {OTHERS} | heavy), 'end')
"""
    done = interpret(script, tmp_path, timeout=60)
    assert (done.returncode, done.stdout.splitlines()[-1].strip()) == (0, "end"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [[], ["gate"], ["compare"]])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    script = f"""
import sys; sys.argv = {["distract", *command, "--help"]}
from distract.cli.main import cli
cli(standalone_mode=False)
assert not {{'numpy', 'scipy', 'rich', 'torch', 'sqlite3'}} & sys.modules.keys(), 'heavy import'
"""
    done = interpret(script, timeout=60)
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
    figures = [result.figure("severity_accuracy", attack=one, protocol="pairwise") for one in ("none", "assertiveness")]
    assert figures[0]["value"] > figures[1]["value"] + 0.2


def test_protocols_are_ranked_for_one_judge(run: Any) -> None:
    choices = [part for name in ("base", "cot", "metric", "prepair", "rank") for part in ("--protocol", name)]
    options = ("--judge", "planted:longer", *PLANTED, *choices, "--attack", "prolixity", "--attack", "sycophancy")
    document = run("attack", *options, "--out", "r", "--json").document
    standings = {one["protocol"]: one for one in document["ranking"]}
    assert (standings["base"]["against_base"], standings["base"]["calls"]) == (None, 2.0)
    assert standings["cot"]["against_base"] == "not distinguishable"
    # Questions are made once per prompt and analyses once per response, so a comparison costs fewer calls.
    assert 2 < standings["metric"]["calls"] < 3
    assert 2 < standings["prepair"]["calls"] < 4
    assert document["ties"] == ["rank"]
    prompts = json.loads(Path("r/run.json").read_text())["parameters"]["prompts"]
    assert {"rubric", "base", "metrics", "metric", "prepair-analysis", "prepair"} <= prompts.keys()
    assert {one["protocol"] for one in document["results"] if one["measure"] == "tie_rate"} == {"rank"}
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
    own = [one for one in ran.results if one["measure"] == "severity_accuracy" and "against" not in one]
    figures = {one["protocol"]: one for one in own}
    assert figures.keys() == set(names)
    assert all(one["value"] == 1.0 and one["n"] == 8 for one in figures.values())


@each(
    "options",
    {},
    {"judge": "planted:bold=0.7", "control": True, "protocols": ["base", "pairwise", "absolute"]},
    {"attacks": ["severity-1", "severity-2+assertiveness"], "limit": 3, "seed": 7, "orders": "given"},
    {"generator": "rules", "measures": ["flip"], "limit": None, "samples": 2, "protocols": ["cot"]},
    {"attacks": ["prolixity"], "retries": 3, "temperature": 0.5, "best_of": 2, "judge_version": "2"},
)
def test_function_and_command_write_the_same_bytes(run: Run, options: dict[str, Any], capsys: Any) -> None:
    options = {"judge": "planted:longer", **options}
    ran = run("attack", *format_options(options, SINGULAR), "--out", "theirs", "--json")
    result = distract.attack(**options, out="mine", store="other.sqlite")
    assert capsys.readouterr() == ("", "")
    assert files(result.path) == files(Path("theirs"))
    assert result.summary == json.loads(ran.out)
    assert result.results == json.loads(ran.out)["results"]
    assert len(result.rows) == len(Path("theirs/rows.jsonl").read_text().splitlines())


def test_flips_match_the_figures(run: Run) -> None:
    attacked = distract.attack(judge="planted:bold=0.7", generator="rules", limit=None, control=True)
    flips = attacked.flips()
    counted = {
        (one["protocol"], one["rule"], one["attack"]): one["k"]
        for one in attacked.results
        if one["measure"] == "flip_rate" and one["k"] is not None and one["attack"] and one["rule"] != "rating"
    }
    result = dict.fromkeys(counted, 0)
    for flip in flips:
        result[flip.protocol, flip.rule, flip.attack] += 1
    assert result == {place: k for place, k in counted.items() if place in result}
    assert sum(result.values()) == len(flips) > 10
    texts = {rewrite.response.text for rewrite in attacked.rewrites}
    assert all(flip.rewrite in texts and flip.original and flip.original != flip.rewrite for flip in flips)


def test_count_one_uses_the_singular(run: Any) -> None:
    """Numbers in messages get their nouns from ``count``."""
    run("attack", "--judge", "planted:longer", "--generator", "rules", "--limit", "1", "--out", "r")
    judge = "--judge planted:longer --limit 1"
    for line in (
        *(f"attack {judge} --generator rules --out q", "report r", "gate r --max-flip-rate 0.5", "check r"),
        *("rewrite --limit 1 --attack prolixity --out w.jsonl", f"consistency {judge}", f"meta {judge}"),
        *(f"leaderboard {judge} --generator rules", "gate --plan --max-flip-rate 0.1 --true-rate 0.02"),
    ):
        ran = run(*line.split())
        odd = re.findall(r"(?<![\d.,/])1 (?!class|pass|less|plus|versus|of)[a-z]{3,}s\b(?!')", ran.out + ran.err)
        assert odd == [], (line, odd)


def test_own_judge_is_tested_in_a_few_lines(pytester: pytest.Pytester) -> None:
    text = (EXAMPLES / "test_my_judge.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    pytester.makepyfile(test_my_judge=text)
    result = pytester.runpytest("--judge", "planted:first", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, passed=1)
    message = "pairwise verdict changes when the two responses are shown in the other order"
    result.stdout.fnmatch_lines([f"*Violation: {message}"])


def test_notebook_runs_as_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "notebook.py"), run_name="__main__")
    output = capsys.readouterr()
    assert "pairwise             prolixity    197 of 200 verdicts flipped" in output.out
    assert "fail: pairwise under prolixity" in output.out
    assert output.err == ""


EVERYTHING = """
import importlib, pkgutil, sys
import distract
# A checkout has its other folders beside the package, this one included.
beside = ("benchmarks", "build", "conftest", "distract", "examples", "tests")
def visit(package):
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if info.name.removeprefix("distract.") in beside or info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if (error.name or "distract").startswith("distract"):
                raise
        else:
            if info.ispkg:
                visit(module)
visit(distract)
public = {name: distract._MODULES[name] for name in distract.__all__}
for name, place in public.items():
    module = sys.modules[place]
    assert getattr(distract, name) is (module if place.endswith(f".{name}") else getattr(module, name)), name
print(len([name for name in sys.modules if name.startswith("distract.")]))
"""


def test_no_submodule_shadows_a_public_name() -> None:
    # A submodule becomes an attribute of the package once it is imported.
    done = interpret(EVERYTHING)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


@each(
    "code, absent",
    ("import distract", ("numpy", "click", "rich", "pandas", "importlib.metadata", "distract.core.errors")),
    ("import distract; distract.attack(judge='planted:longer', limit=2)", ("click", "rich", "pandas", "torch")),
    ("import distract; distract.attack, distract.gate", ("click", "rich", "pandas", "torch")),
    ("from distract import *", ("click", "torch", "pandas")),
)
def test_import_distract_loads_little(code: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    done = interpret(f"{code}\nimport sys; print([name for name in {absent} if name in sys.modules])", tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


ROOT = Path(__file__).parents[2]

WRITES = {"write_text", "write_bytes", "touch", "unlink", "rename", "rmdir", "symlink_to", "hardlink_to", "fdopen"}
"""Functions that write, remove or move files, by their last name."""

SYSTEM = {"open", "remove", "renames", "truncate", "copy", "copyfile", "copy2", "move", "rmtree", "mkstemp"}
"""More of them, in the modules of the standard library for it."""

ALLOWED = {
    ("distract/models/transformers/embedded.py", "rename"),  # of whole folders, in a cache that a lock guards
    ("distract/models/transformers/embedded.py", "rmtree"),  # leftovers of a killed conversion
    ("distract/cli/streams.py", "open"),  # the null device, in the place of a closed stream
    ("distract/core/merge.py", "rmdir"),  # the part that a killed merge left, once it is empty
    ("distract/core/replyfile.py", "truncate"),  # back to its size: SQLite has it mapped
}
"""Other writers, with the reason."""


def find_writers(path: Path) -> Iterator[str]:
    """The functions that write files and that a module calls."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        of = owner.id if isinstance(owner, ast.Name) else ""
        arguments = (*call.args, *[k.value for k in call.keywords if k.arg == "mode"])
        modes = [one.value for one in arguments if isinstance(one, ast.Constant)]
        is_mode = any(isinstance(one, str) and set(one) <= set("rwaxbt+") and set(one) & set("wax+") for one in modes)
        # A path is replaced by one other; a text by two, a record by names.
        is_path = name == "replace" and owner is not None and len(call.args) == 1 and not call.keywords
        is_system = name in SYSTEM and of in ("os", "shutil", "tempfile")
        if of != "files" and (name in WRITES or is_path or is_system or (name == "open" and is_mode)):
            yield name


def test_only_one_module_writes_files() -> None:
    folders = ("distract", "judges", "attacks", "leaderboards")
    places = [place for folder in folders for place in (ROOT / folder).rglob("*.py")]
    by_name = {str(place.relative_to(ROOT)): place for place in places}
    by_name.pop("distract/core/files.py")
    assert len(by_name) > 200
    assert {(name, call) for name, place in by_name.items() for call in find_writers(place)} == ALLOWED


@pytest.mark.parametrize("mode", ["pipe", "file"])
def test_standard_output_receives_the_whole_file(tmp_path: Path, mode: str) -> None:
    def write(out: str, stdout: Any = subprocess.PIPE) -> bytes:
        command = ["distract", "rewrite", "--attack", "sycophancy", "--limit", "2", "--json", "--out"]
        command = [sys.executable, "-m", *command, out]
        done = subprocess.run(command, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout or b""

    report = write("plain.jsonl")
    if mode == "pipe":
        whole = write("/dev/stdout")
    else:
        with (tmp_path / "out").open("wb") as out:
            write("/dev/stdout", out)
        whole = (tmp_path / "out").read_bytes()
    assert whole == (tmp_path / "plain.jsonl").read_bytes() + report
