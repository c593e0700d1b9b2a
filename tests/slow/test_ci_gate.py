"""The example of a gate in CI: its workflow and its action, step by step as a runner takes them, and the hook."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from command_result import Run

from distract.data.datasets import load
from distract.studies.gate.limits import AttackKind, load_settings as settings, merge_limits

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ci-gate"
WORKFLOW = ".github/workflows/judge-gate.yml"
ACTION = "action/action.yml"

KNOWN: Mapping[str, tuple[set[str], dict[str, str]]] = {
    "actions/checkout@v4": ({"persist-credentials"}, {}),
    "actions/setup-python@v5": ({"python-version", "update-environment"}, {"python-path": sys.executable}),
    "actions/cache/restore@v4": ({"path", "key", "restore-keys"}, {"cache-hit": "false"}),
    "actions/cache/save@v4": ({"path", "key"}, {}),
    "actions/upload-artifact@v4": ({"name", "path", "if-no-files-found"}, {}),
}
"""Third-party actions: their inputs here and their outputs. They are not executed."""

BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
ONCE = "Install distract"
"""The slow step; the same script with the same inputs has already run."""


@dataclass(frozen=True)
class Step:
    name: str
    outcome: str
    code: int = 0
    out: str = ""


@dataclass
class Runner:
    """Executes the steps of one job, as far as this example needs."""

    workspace: Path
    temp: Path
    context: dict[str, Any]
    installed: set[str]
    env: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    summary: str = ""
    ran: list[Step] = field(default_factory=list)

    def job(self, workflow: Path) -> bool:
        """Whether all steps of the only job succeed."""
        (job,) = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
        return self.steps(job["steps"], {**self.context, "steps": {}}, {})

    def steps(self, steps: list[dict[str, Any]], context: dict[str, Any], env: Mapping[str, str]) -> bool:
        good = True
        for step in steps:
            name = step.get("name") or step["uses"]
            if not {"": good, "always()": True, "failure()": not good}[step.get("if", "")]:
                self.ran.append(Step(name, "skipped"))
                continue
            own = {**env, **{key: fill(value, context) for key, value in step.get("env", {}).items()}}
            if "run" in step:
                done, outputs = self.script(name, step, own)
            elif step["uses"].startswith("./"):
                done, outputs = self.composite(name, step, context, own)
            else:
                inputs, outputs = KNOWN[step["uses"]]
                arguments = step.get("with", {})
                assert set(arguments) <= inputs
                done = Step(name, "success", out=" ".join(fill(value, context) for value in arguments.values()))
            self.ran.append(done)
            if "id" in step:
                context["steps"][step["id"]] = {"outputs": outputs, "outcome": done.outcome}
            good = good and done.outcome == "success"
        return good

    def composite(
        self, name: str, step: dict[str, Any], context: dict[str, Any], env: Mapping[str, str]
    ) -> tuple[Step, dict[str, str]]:
        action = yaml.safe_load((self.workspace / step["uses"] / "action.yml").read_text(encoding="utf-8"))
        arguments = {key: fill(value, context) for key, value in step.get("with", {}).items()}
        assert set(arguments) <= set(action["inputs"])
        assert {key for key, one in action["inputs"].items() if one.get("required")} <= set(arguments)
        inputs = {key: one.get("default", "") for key, one in action["inputs"].items()} | arguments
        inner = {"inputs": inputs, "steps": {}, "github": context["github"], "runner": context["runner"]}
        assert all("shell" in one for one in action["runs"]["steps"] if "run" in one)
        good = self.steps(action["runs"]["steps"], inner, env)
        outputs = {key: fill(one["value"], inner) for key, one in action["outputs"].items()}
        return Step(name, "success" if good else "failure"), outputs

    def script(self, name: str, step: dict[str, Any], env: Mapping[str, str]) -> tuple[Step, dict[str, str]]:
        same = f"{step['run']}{sorted(env.items())}"
        if name == ONCE and same in self.installed:
            return Step(name, "success"), {}
        files = {kind: self.temp / f"{kind}-{len(self.ran)}" for kind in ("OUTPUT", "ENV", "PATH", "STEP_SUMMARY")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        script = self.temp / f"script-{len(self.ran)}.sh"
        script.write_text(step["run"], encoding="utf-8")
        variables = machine() | self.env | dict(env) | {f"GITHUB_{kind}": str(file) for kind, file in files.items()}
        variables["PATH"] = os.pathsep.join([*self.path, os.environ["PATH"]])
        variables |= {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_WORKSPACE": str(self.workspace)}
        variables |= {"RUNNER_TEMP": str(self.temp), "GITHUB_REPOSITORY": "team/help-desk"}
        shell = BASH if step.get("shell") == "bash" else ("bash", "-e")
        done = subprocess.run(
            [*shell, str(script)], cwd=self.workspace, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=300, check=False,
        )  # fmt: skip
        self.env |= assignments(files["ENV"])
        self.path[:0] = reversed(files["PATH"].read_text(encoding="utf-8").split())
        self.summary += files["STEP_SUMMARY"].read_text(encoding="utf-8")
        if name == ONCE and done.returncode == 0:
            self.installed.add(same)
        outcome = "failure" if done.returncode else "success"
        return Step(name, outcome, done.returncode, done.stdout), assignments(files["OUTPUT"])

    def __getitem__(self, name: str) -> Step:
        (result,) = (step for step in self.ran if step.name == name)
        return result


def machine() -> dict[str, str]:
    """The variables that a runner's machine has by itself."""
    ours = ("GITHUB_", "RUNNER_", "PYTHON", "VIRTUAL_ENV", "DISTRACT_", "COV_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def fill(value: object, context: Mapping[str, Any]) -> str:
    """A value with its expressions replaced: names, texts and ``||`` between them."""

    def term(text: str) -> str:
        if text.startswith("'"):
            return text.strip("'")
        result: Any = context
        for name in text.split("."):
            assert re.fullmatch(r"[\w-]+", name), text
            result = result.get(name, "") if isinstance(result, Mapping) else ""
        return str(result)

    def replaced(match: re.Match[str]) -> str:
        return next(filter(None, (term(part.strip()) for part in match[1].split("||"))), "")

    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return re.sub(r"\$\{\{(.*?)\}\}", replaced, text)


def assignments(file: Path) -> dict[str, str]:
    """The lines that a step has appended to ``GITHUB_ENV`` or ``GITHUB_OUTPUT``."""
    return dict(line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, because a build in the working tree would leave a folder there."""
    copy = tmp_path_factory.mktemp("package")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)
    for folder in set(project["tool"]["setuptools"]["package-dir"].values()):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]):
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """The runner's temporary folder with the virtual environment, and the record of its installations."""
    return tmp_path_factory.mktemp("runner"), set()


def check_out(folder: Path) -> None:
    """The example in a folder, without the results of an earlier gate."""
    left = (EXAMPLE / ".gitignore").read_text(encoding="utf-8").replace("/", "").split()
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(*left), dirs_exist_ok=True)


@pytest.fixture
def runner(tmp_path: Path, package: Path, home: tuple[Path, set[str]]) -> Runner:
    check_out(tmp_path / "work")
    temp, installed = home
    context = {
        "github": {"run_id": "7", "run_attempt": "1", "action_path": str(tmp_path / "work" / "action")},
        "runner": {"temp": str(temp), "os": "Linux"},
        "vars": {"DISTRACT_PACKAGE": str(package)},
    }
    return Runner(tmp_path / "work", temp, context, installed)


def dispatch(runner: Runner, **inputs: str) -> bool:
    """The workflow with the inputs of a manual start; without inputs, as for a pull request."""
    runner.context["inputs"] = inputs
    good = runner.job(runner.workspace / WORKFLOW)
    if "connection broken by" in runner[ONCE].out:
        pytest.skip("the package index cannot be reached")
    assert runner[ONCE].outcome == "success", runner[ONCE].out
    return good


def cases_of(junit: Path) -> tuple[int, int, int]:
    """Test cases, failures and errors of a JUnit file."""
    root = ElementTree.parse(junit).getroot()
    return tuple(len(root.findall(f".//{kind}")) for kind in ("testcase", "failure", "error"))  # type: ignore[return-value]


AFTER = ("Keep the replies", "Upload the JUnit file", "Explain the exit code")


def test_fair_judge_passes_every_step(runner: Runner) -> None:
    assert dispatch(runner), runner["Gate"].out
    assert ({step.outcome for step in runner.ran}, runner["Gate"].code) == ({"success"}, 0)
    assert cases_of(runner.workspace / "distract-gate.xml") == (1, 0, 0)
    assert runner.summary.startswith("## distract gate: PASS\n")
    assert "::error" not in runner["Gate"].out
    assert "below every threshold" in runner["Explain the exit code"].out
    assert (runner.workspace / ".distract" / "replies.sqlite").is_file()
    assert runner["Keep the replies"].out == ".distract/replies.sqlite* distract-distract-gate-7-1"
    assert runner["Fetch the replies of earlier runs"].out.startswith(runner["Keep the replies"].out)


def test_unchanged_judge_costs_nothing_on_the_next_push(runner: Runner) -> None:
    assert dispatch(runner)
    key = runner["Keep the replies"].out.split()[0]
    replies = {file.relative_to(runner.workspace): file.read_bytes() for file in runner.workspace.glob(key)}
    shutil.rmtree(runner.workspace)
    check_out(runner.workspace)
    for path, content in replies.items():
        (runner.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (runner.workspace / path).write_bytes(content)
    first = runner["Gate"].out
    runner.ran.clear()
    assert dispatch(runner)
    assert re.search(r"replies: 0 were stored, [1-9]\d* made", first)
    assert re.search(r"replies: [1-9]\d* were stored, 0 made", runner["Gate"].out)


def test_biased_judge_fails_the_gate_and_later_steps_run(runner: Runner) -> None:
    assert not dispatch(runner, judge="planted:longer", attack="prolixity")
    assert (runner["Gate"].code, runner["Gate the judge"].outcome) == (1, "failure")
    assert [runner[name].outcome for name in AFTER] == ["success"] * 3
    assert cases_of(runner.workspace / "distract-gate.xml") == (1, 1, 0)
    assert runner.summary.startswith("## distract gate: FAIL\n")
    assert any(line.startswith("::error") for line in runner["Gate"].out.splitlines())
    assert "too easy to distract" in runner["Explain the exit code"].out


def test_missing_file_fails_the_step_and_removes_old_results(runner: Runner) -> None:
    (runner.workspace / "cases.jsonl").unlink()
    (runner.workspace / "distract-gate.xml").write_text("<testsuites/>", encoding="utf-8")
    assert not dispatch(runner)
    assert runner["Gate"].code == 2
    assert ("cases.jsonl" in runner["Gate"].out, "Traceback" in runner["Gate"].out) == (True, False)
    assert cases_of(runner.workspace / "distract-gate.xml") == (1, 0, 1)
    assert [runner[name].outcome for name in AFTER] == ["success"] * 3
    assert "did not start" in runner["Explain the exit code"].out


def test_empty_data_fail_the_step(runner: Runner) -> None:
    (runner.workspace / "cases.jsonl").write_text("", encoding="utf-8")
    assert (dispatch(runner), runner["Gate"].code) == (False, 2)
    assert cases_of(runner.workspace / "distract-gate.xml") == (1, 0, 1)


@pytest.mark.parametrize("text", ['"; touch caught; "', "$(touch caught)", "`touch caught`", "x\ntouch caught\n", "*"])
def test_inputs_never_become_commands(runner: Runner, text: str) -> None:
    for name in ("judge", "attack"):
        runner.ran.clear()
        assert not dispatch(runner, **{name: text})
        assert (runner["Gate"].code, "Traceback" in runner["Gate"].out) == (2, False)
    assert not (runner.workspace / "caught").exists()


def test_exported_values_reach_later_steps(runner: Runner) -> None:
    command = runner.workspace / "bin" / "greet"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho hello\n", encoding="utf-8")
    command.chmod(0o755)
    steps: list[dict[str, Any]] = [
        {"name": "a", "run": 'echo "X=1 2" >>"$GITHUB_ENV"; echo "$PWD/bin" >>"$GITHUB_PATH"'},
        {"name": "b", "id": "b", "run": 'echo "$X $(greet)"; echo "y=3" >>"$GITHUB_OUTPUT"'},
        {"name": "c", "run": "false | true", "shell": "bash"},
        {"name": "d", "run": "true"},
        {"name": "e", "run": 'echo "$Y"', "env": {"Y": "${{ steps.b.outputs.y || 'none' }}"}, "if": "failure()"},
    ]
    assert not runner.steps(steps, {"steps": {}}, {})
    assert [step.outcome for step in runner.ran] == ["success", "success", "failure", "skipped", "success"]
    assert (runner["b"].out, runner["e"].out) == ("1 2 hello\n", "3\n")


@pytest.mark.parametrize("name", [WORKFLOW, ACTION])
def test_scripts_hold_no_expressions_and_actions_are_known(name: str) -> None:
    document = yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))
    steps = document["runs"]["steps"] if "runs" in document else document["jobs"]["gate"]["steps"]
    assert not [step for step in steps if "${{" in step.get("run", "")]
    assert {step["uses"] for step in steps if "uses" in step} <= {*KNOWN, "./action"}


def test_workflow_has_minimal_permissions() -> None:
    document = yaml.safe_load((EXAMPLE / WORKFLOW).read_text(encoding="utf-8"))
    assert document["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true. The event pull_request_target would give secrets to foreign code.
    assert "pull_request" in document[True]
    assert "pull_request_target" not in document[True]


def test_project_files_are_read() -> None:
    cases = load(str(EXAMPLE / "cases.jsonl")).cases
    assert (len(cases), {len(case.responses) for case in cases}) == (48, {2})
    limits = merge_limits(settings(EXAMPLE / "pyproject.toml"), {})
    assert limits.threshold("pairwise", AttackKind("prolixity"), "flip_rate") == 0.15


def test_hook_gates_before_a_push(run: Run) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] == "distract-gate"
    assert (hook["language"], hook["entry"], hook["pass_filenames"]) == ("python", "distract gate", False)
    (block,) = re.findall(r"```yaml\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (used,) = yaml.safe_load(block)["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    check_out(Path.cwd())
    ran = run(*hook["entry"].split()[1:], *used["args"])
    assert ran.code == 0, ran.err
