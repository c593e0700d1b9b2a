"""Options of the command line: settings of engines, panels of ``--help``, lists that fit, and dry runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest
from builders import write_rows
from command_result import check_refusal, fits

import distract
from distract import studies
from distract.cli.command import PANELS
from distract.cli.main import COMMANDS, SECTIONS, cli
from distract.cli.parameters import Option
from distract.core import registry
from distract.core.errors import UsageError
from distract.models import hardware
from distract.models.options import COMMON, OptionGroup, Options, flag, record, setting
from distract.models.provider import known_settings, uses
from distract.models.ranges import COUNT
from distract.studies.options import find_moved

DRY = (
    *(name for name in COMMANDS if name in registry.list_studies()),
    *("explain", "anchors make", "anchors check", "rewrite", "make-pairs", "make-tweakset", "try", "check"),
)
"""The commands that ask a model."""

PLANTED = ("--judge", "planted:longer", "--limit", "2")

PLANNED: Mapping[str, tuple[str, ...]] = {
    "attack": ("--judge", "planted:longer"),
    "gate": ("--judge", "planted:longer", "--max-flip-rate", "0.1", "--junit", "j.xml", "--summary", "s.md"),
    "leaderboard": ("--judge", "planted:longer", "--attack", "assertiveness"),
    "consistency": ("--judge", "planted:longer"),
    "meta": ("--judge", "planted:longer", "--judge", "planted:bold"),
    "rewrite": ("--out", "deep/f.jsonl"),
    "make-pairs": ("--generator", "smollm2-135m", "--out", "deep/f.jsonl"),
}
"""Commands that can plan with the cases of a file."""


def command(name: str) -> click.Command:
    """The command of a name, or of a group and a name."""
    result: click.Command | None = cli
    for part in name.split():
        assert isinstance(result, click.Group)
        result = result.get_command(click.Context(result), part)
    assert result is not None
    return result


class TestEngineSettings:
    def test_every_setting_has_help_engines_and_a_default(self) -> None:
        for name, setting in known_settings().items():
            assert (setting.key, bool(setting.help), bool(uses()[name])) == (name.replace("_", "-"), True, True)
            assert isinstance(setting.default, bool) or setting.read(setting.default) == setting.default
        own = {"model_options", "catalogue", "revision", "price_in", "price_out", "judge_version", "dry_run", "lenient"}
        assert {each.name for each in fields(Options)} - known_settings().keys() == own

    def test_commands_offer_common_settings_and_model_option(self) -> None:
        for name in DRY:
            names = {option for parameter in command(name).params for option in parameter.opts}
            assert {"--model-option", *map(flag, COMMON)} <= names
            assert not {f"--{setting.key}" for setting in known_settings().values()} - {*map(flag, COMMON)} & names

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--model-option", "timeot=3"), "unknown model option 'timeot'; did you mean 'timeout'? (known: "),
            (("--model-option", "timeout"), "--model-option 'timeout': expected KEY=VALUE, such as timeout=30"),
            (("--model-option", "timeout="), "--timeout '': expected a number from 0.001 to 86400"),
            (("--model-option", "max-length=1"), "--model-option max-length '1': expected a whole number from 16"),
            (("--model-option", "trust-remote-code=yes"), "trust-remote-code 'yes': expected true or false"),
            (("--model-option", "price-in=1"), "unknown model option 'price-in'"),
            (("--model-option", "timeout=3", "--model-option", "timeout=4"), "timeout is given twice, as 3.0 and"),
            (("--engine", "vllm", "--model-option", "engine=transformers"), "--engine is given twice, as vllm"),
            (("--concurrency", "16", "--model-option", "concurrency=4"), "--concurrency is given twice, as 16"),
            (
                ("--model-option", "tensor-parallel=2"),
                "--model-option tensor-parallel is for models on Ray workers or vLLM; planted",
            ),
            (("--model-option", "timeout=3"), "--timeout is for models on inspect_ai or an OpenAI-compatible server"),
            (("--tensor-parallel", "2"), "no option --tensor-parallel: use --model-option tensor-parallel=2"),
            (("--tensor-parallel=2",), "no option --tensor-parallel: use --model-option tensor-parallel=2"),
            (("--trust-remote-code",), "no option --trust-remote-code: use --model-option trust-remote-code=true"),
            (("--attempts",), "no option --attempts: use --model-option attempts=VALUE"),
            (("--attemps", "3"), "no option --attemps: use --model-option attempts=3"),
            (("--plan",), "no option --plan: use --dry-run"),
            (("--device-map", "\x1b[2J"), "use --model-option device-map=\\x1b[2J"),
        ],
    )
    def test_wrong_setting_is_one_line(self, run: Any, arguments: tuple[str, ...], message: str) -> None:
        check_refusal(run("attack", "--judge", "planted:fair", *arguments), message)

    @pytest.mark.parametrize("name", ["report", "list", "flips", "compare"])
    def test_command_without_models_suggests_no_setting(self, run: Any, name: str) -> None:
        assert (
            "no option --timeout: it is an option of attack, check, consistency and others"
            in run(name, "--timeout", "3").err
        )

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--model-option", "timeout=120", "--model-option", "timeout=120.0"),
            ("--model-option", "trust_remote_code=false"),
            ("--dtype", "auto", "--model-option", "dtype=auto"),
        ],
    )
    def test_notation_of_a_setting_does_not_change_the_run(self, run: Any, arguments: tuple[str, ...]) -> None:
        for folder, more in (("a", ()), ("b", arguments)):
            assert run("attack", *PLANTED, "--out", folder, *more).code == 0
        runs = [json.loads(Path(folder, "run.json").read_text())["parameters"] for folder in "ab"]
        assert runs[0] == runs[1]

    def test_python_accepts_keywords_and_a_dict(self, run: Any) -> None:
        planted: dict[str, Any] = {"judge": "planted:fair", "limit": 1}
        for more in ({"tensor_parallel": 2}, {"model_options": {"tensor-parallel": 2}}):
            with pytest.raises(UsageError, match="tensor-parallel is for models on Ray workers or vLLM"):
                distract.attack(**planted, **more)
        for wrong in ({"timeout": 3, "model_options": {"timeout": 4}}, {"model_options": {"timeot": 3}}):
            with pytest.raises(UsageError, match=r"given twice|did you mean 'timeout'"):
                distract.attack(**planted, **wrong)
        same: dict[str, Any] = {"timeout": 120, "model_options": {"timeout": 120.0, "device_map": None}}
        assert distract.attack(**planted, **same).rows

    def test_every_setting_is_listed(self, run: Any) -> None:
        ran = run("list", "options")
        for setting in known_settings().values():
            assert f"\n  {setting.key} " in ran.out
            assert setting.help in ran.words
        assert (
            "seconds to wait for a reply (inspect_ai or an OpenAI-compatible server or a Python function; "
            "default: 120.0)" in ran.words
        )


@dataclass(frozen=True, kw_only=True)
class Rated(OptionGroup):
    rounds: int = setting(3, "rounds", COUNT, recorded="changed")
    names: tuple[str, ...] = setting((), "names", recorded="always")
    draws: int = setting(9, "draws", COUNT)


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ({}, {"names": ()}),
        ({"rounds": 3, "draws": 2}, {"names": ()}),
        ({"rounds": 4, "names": "a"}, {"names": ("a",), "rounds": 4}),
    ],
)
def test_run_records_options_that_determine_it(options: dict[str, Any], recorded: dict[str, Any]) -> None:
    assert record(Rated(**options)) == recorded


def test_hint_at_another_option_needs_that_option() -> None:
    assert find_moved("plan", ["--dry-run"]) == "use --dry-run"
    assert find_moved("plan", ["--json"]) == ""
    assert "`distract explain RUN --clearest N`" in find_moved("minimal", [])


def test_module_with_a_study_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(tmp_path, "trial.py").write_bytes(b"# \xff\nSTUDY: object = object()\n")
    Path(tmp_path, "shared.py").write_text("import os\n_STUDY = object()\n")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(tmp_path)])
    modules = registry.list_studies.__wrapped__()
    assert (modules["trial"], modules["attack"]) == ("distract.studies.trial", "distract.studies.attack.study")
    assert not {"shared", "setup", "options"} & modules.keys()


class TestHelp:
    def test_commands_are_grouped_with_whole_summaries(self, run: Any) -> None:
        ran = run("--help")
        fits(ran.out)
        assert ran.out.count("...") == 1  # of the usage
        for title, names in SECTIONS.items():
            assert f"\n{title}:\n" in ran.out
            for name in names:
                summary = (command(name).help or "").partition(".\n")[0].removesuffix(".")
                assert summary in ran.words
        assert [name for section in SECTIONS.values() for name in section] == [*COMMANDS]

    @pytest.mark.parametrize("name", sorted({*COMMANDS, *DRY}))
    def test_options_have_panels_that_fit(self, run: Any, name: str) -> None:
        ran = run(*name.split(), "--help")
        fits(ran.out)
        titles = [line[:-1] for line in ran.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
        options = [option for option in command(name).params if isinstance(option, click.Option)]
        assert all(isinstance(option, Option) and option.panel in PANELS for option in options)
        if name in DRY:
            assert (titles, titles[0]) == ([panel for panel in PANELS if panel in titles], "Basics")
        else:
            assert titles == ["Options", *(["Commands"] if isinstance(command(name), click.Group) else [])]
        assert all(f"  {option.opts[0]}" in ran.out for option in options)

    def test_most_used_options_come_first(self) -> None:
        basics = {
            option.opts[0]
            for option in command("attack").params
            if isinstance(option, Option) and option.panel == "Basics"
        }
        assert {"--judge", "--attack", "--protocol", "--data", "--limit", "--seed", "--out", "--dry-run"} <= basics


@pytest.mark.parametrize("what", [(), ("judges",), ("protocols",), ("options",)])
def test_lists_fit_eighty_columns(run: Any, monkeypatch: pytest.MonkeyPatch, what: tuple[str, ...]) -> None:
    fits(run("list", *what).out)
    narrow = run("list", *what).words
    monkeypatch.setenv("COLUMNS", "200")
    wide = run("list", *what)
    assert wide.words == narrow
    assert max(map(len, wide.out.splitlines())) > 80


class TestDryRun:
    @pytest.fixture
    def data(self, run: Any) -> str:
        prompts = [f"Name a colour, number {number}." for number in range(4)]
        cases = [
            {
                "id": f"c{number}",
                "prompt": prompt,
                "responses": [{"author": name, "text": f"I think {name} is one of {number}."} for name in "abcd"],
                "preferred": "a",
            }
            for number, prompt in enumerate(prompts)
        ]
        return write_rows("d.jsonl", cases)

    @pytest.mark.parametrize("name", [*PLANNED])
    def test_dry_run_shows_the_plan_and_writes_nothing(self, run: Any, data: str, name: str) -> None:
        base = (name, "--data", data, *PLANNED[name], "--dry-run")
        ran = run(*base)
        assert (ran.code, ran.err) == (0, "")
        assert "plan: " in ran.out
        assert ran.out.endswith("dry run: nothing was asked, and nothing was written\n")
        plans = run(*base, "--json").document["plans"]
        assert len(plans) == (2 if name == "meta" else 1)
        for plan in plans:
            assert (plan["command"], plan["stored"]) == (name, {})
            assert plan["cases"] == 4 or name == "gate"
            assert {"requests", "prompt_tokens", "answer_tokens", "most_dollars"} <= plan.keys()
        assert [path.name for path in Path().iterdir()] == [data]

    def test_plan_counts_the_requests_of_the_run(self, run: Any, data: str) -> None:
        options = ("consistency", "--data", data, "--judge", "planted:longer")
        (plan,) = run(*options, "--dry-run", "--json").document["plans"]
        assert f", {sum(plan['requests'].values())} made" in run(*options).err

    def test_stored_replies_and_finished_runs_are_reported(self, run: Any, data: str) -> None:
        base = ("attack", "--data", data, *PLANTED, "--out", "r")
        assert run(*base).code == 0
        before = {path: path.stat().st_mtime_ns for path in Path("r").iterdir()}
        ran = run(*base, "--dry-run")
        assert "replies of this judge; this run reuses those it needs" in ran.out
        assert "this run is complete in r: no call is needed" in ran.out
        plan = run(*base, "--dry-run", "--json").document["plans"][0]
        assert (plan["complete"], plan["stored"]["judge"] > 0) == (True, True)
        assert not run(*base, "--dry-run", "--fresh", "--json").document["plans"][0]["complete"]
        assert before == {path: path.stat().st_mtime_ns for path in Path("r").iterdir()}

    def test_plan_states_the_cost(self, run: Any, data: str) -> None:
        base = ("attack", "--data", data, *PLANTED, "--price-in", "3", "--price-out", "15", "--dry-run")
        assert "cost of the judge: at most about $" in run(*base).out
        assert run(*base, "--json").document["plans"][0]["most_dollars"] > 0

    def test_plan_states_whether_a_model_fits(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("transformers")
        monkeypatch.setattr(hardware, "gpus", lambda: ())
        monkeypatch.setattr(hardware, "free_memory", lambda: 8 * 2**30)
        ran = run("attack", "--judge", "llama-3.3-70b", "--dry-run")
        assert (ran.code, ran.err) == (0, "")
        assert "llama-3.3-70b does not fit: it needs about 140 GB" in ran.out
        assert "requests: " in ran.out
        assert "smollm2-135m fits this machine" in run("attack", "--dry-run").out

    def test_explain_plan_is_an_upper_bound(self, run: Any, data: str) -> None:
        assert run("attack", "--data", data, *PLANTED, "--attack", "prolixity", "--out", "r").code == 0
        case = distract.Run.read("r").flips()[0].case
        Path(".distract/replies.sqlite").unlink()
        ran = run("explain", "r", case, "--dry-run")
        assert (ran.code, "plan: at most these requests: " in ran.out) == (0, True)
        plan = run("explain", "r", case, "--dry-run", "--json").document["plans"][0]
        assert (plan["command"], plan["judge"]) == ("explain", "planted:longer")
        assert sum(plan["requests"].values()) > 0
        assert not Path(".distract/replies.sqlite").exists()

    @pytest.mark.parametrize("name", [name for name in COMMANDS if name not in DRY])
    def test_commands_without_a_model_refuse_dry_run(self, run: Any, name: str) -> None:
        assert run(name, "--dry-run").code == 2

    def test_dry_run_is_refused_for_existing_results(self, run: Any, data: str) -> None:
        assert run("attack", "--data", data, *PLANTED, "--out", "r").code == 0
        check_refusal(
            run("gate", "r", "--max-flip-rate", "0.1", "--dry-run"),
            "--dry-run needs --judge; it cannot change a finished run",
        )
        check_refusal(
            run("leaderboard", "--matches", "run:r", "--dry-run"), "--dry-run applies only when a judge is asked"
        )
