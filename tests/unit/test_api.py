"""Test the Python API: the same bytes as the command, flips and tables, errors as exceptions, no output."""

import ast
import builtins
import contextlib
import copy
import importlib
import inspect
import itertools
import json
import pickle
import runpy
import shutil
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from command_result import Run
from loops import each

import distract
from distract.cli.keywords import read_keywords
from distract.cli.main import cli
from distract.core.errors import InUseError
from distract.data.formats import native
from distract.models import scripted
from distract.models.options import OptionGroup, describe
from distract.studies.attack.options import AttackOptions
from distract.studies.gate.options import GateOptions

OF_COMMANDS = {
    *("as_json", "dry_run", "profile", "junit", "github", "html", "markdown", "paper", "summary", "verbose"),
    *("plan", "true_rate", "power", "checks"),
}
"""Options about the output of a command."""

TEXT: Any = "A text, of the wrong type."

PLANTED: Mapping[str, Any] = {"judge": "planted:bold=0.7", "attacks": ["sycophancy"], "limit": 6}


def files(folder: Path) -> dict[str, bytes]:
    """The files of a run that contain no time."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("manifest.json", "lock")}


def format_options(options: Mapping[str, Any], singular: Mapping[str, str]) -> list[str]:
    """Format keyword arguments as a command line."""
    line = []
    for name, value in options.items():
        option = f"--{singular.get(name, name).replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            line += [option] if one is True else [] if one is False else [option, "all" if one is None else str(one)]
    return line


SINGULAR = {"attacks": "attack", "protocols": "protocol", "measures": "measure"}


@each("name, kind", ("attack", AttackOptions), ("gate", GateOptions))
def test_keywords_are_the_options_of_the_command(name: str, kind: type[OptionGroup]) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command
    options = {option.name for option in command.params}
    signature = inspect.signature(getattr(distract, name)).parameters
    assert signature.keys() - {"settings"} == options - OF_COMMANDS
    document = inspect.getdoc(getattr(distract, name)) or ""
    assert not [key for key in signature.keys() - {"run", "settings"} if f"\n    {key}: " not in document]
    defaults = {one.name: one.default for one in describe(kind).values()}
    assert all(signature[key].default == defaults[key] for key in signature.keys() - {"run", "settings"})
    assert read_keywords(kind, {}) == kind()


def test_signatures_for_type_checkers_are_those_of_the_functions() -> None:
    tables = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "tables.py"))
    assert tables["SIGNATURES"].read_text() == tables["signatures"](), "run `python benchmarks/tables.py`"


def test_run_is_loaded_and_not_repeated(run: Run) -> None:
    result = distract.attack(**PLANTED, out="mine")
    again = distract.attack(**PLANTED, out="mine")
    assert again.notes == ("this run is complete in mine: no call is made",)
    read = distract.Run.read("mine")
    assert read.notes == ()
    assert (read.results, read.flips(), list(read.rows)) == (result.results, result.flips(), list(result.rows))
    assert (read.flaw, result.flaw, repr(read)) == (None, None, f"<run of planted:bold=0.7 on 6 cases: {result.path}>")
    Path("mine/manifest.json").unlink()
    assert "unfinished" in str(distract.Run.read("mine").flaw)
    assert distract.Run.read("mine").notes == (distract.Run.read("mine").flaw,)


def test_fresh_repeats_the_requests(run: Run) -> None:
    def epoch(**more: Any) -> int:
        assert distract.attack(**PLANTED, out="mine", **more).notes == ()
        number: int = json.loads(Path("mine/manifest.json").read_text())["epoch"]
        return number

    assert epoch() < epoch(fresh=True)


def test_table_has_one_row_per_record(run: Run) -> None:
    pytest.importorskip("pandas")
    result = distract.attack(**PLANTED)
    table = result.to_frame()
    assert not any(isinstance(value, dict | list | tuple) for column in table for value in table[column])
    paired = table[table["protocol"] == "pairwise"]
    assert list(paired["case"]) == [row.case for row in result.rows if row.protocol == "pairwise"]
    assert paired["calls"].sum() == sum(len(row.keys) for row in result.rows if row.protocol == "pairwise")
    assert set(table["rule"].dropna()) == {"score", "rating"}
    assert set(table["before"].dropna()) <= {"response", "rival", "tie"}
    assert table["rewrite_line"][table["attack"] == "sycophancy"].notna().any()


def test_missing_pandas_names_the_install_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    result = distract.attack(**PLANTED)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(distract.UsageError, match=r"^to_frame needs pandas, which is not installed: pip install"):
        result.to_frame()


def test_data_may_be_a_list_of_cases(run: Run) -> None:
    cases = distract.load("tweakset")[:9]
    Path("cases.jsonl").write_text("".join(f"{native.format_line(case)}\n" for case in cases), encoding="utf-8")
    result = distract.attack(**PLANTED, data=cases, out="mine")
    file_result = distract.attack(**PLANTED, data=Path("cases.jsonl"), out="theirs")
    assert [row.case for row in result.rows] == [row.case for row in file_result.rows]
    assert files(result.path)["rows.jsonl"] == files(file_result.path)["rows.jsonl"]
    data = result.parameters["data"], file_result.parameters["data"]
    assert data[0] == {**data[1], "name": "cases"}


@pytest.mark.usefixtures("run")
def test_run_outlives_a_folder_change_and_reports_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = distract.attack(**PLANTED, out="mine")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert distract.gate(result, max_flip_rate=0.1).checks
    shutil.rmtree(result.path)
    assert "planted:bold" in repr(result)
    for look in (lambda: result.rows, lambda: result.rewrites, result.flips):
        with pytest.raises(distract.DataError, match="the run folder no longer exists"):
            look()


def test_judge_without_valid_verdicts_is_noted(run: Run) -> None:
    silent = distract.attack(judge="planted:garbage", limit=3)
    assert silent.notes[-1] == "no verdict was valid: nothing can be said about this judge"


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no signal is held back on Windows")
def test_interrupted_call_keeps_replies_under_way(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reply, numbers = scripted.ScriptedBackend.reply, itertools.count()

    def interrupted(self: scripted.ScriptedBackend, *request: Any) -> Any:
        for batch in reply(self, *request):
            if next(numbers) == 0:
                signal.raise_signal(signal.SIGINT)
            yield batch

    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(scripted.ScriptedBackend, "reply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            distract.attack(**PLANTED, out="mine")
    assert signal.getsignal(signal.SIGINT) is handler
    with contextlib.closing(sqlite3.connect(".distract/replies.sqlite")) as db:
        assert db.execute("select count(*) from replies").fetchone()[0] > 0
    assert distract.attack(**PLANTED, out="mine").flaw is None


@each(
    "error",
    distract.UsageError("x"),
    distract.UnknownName("attack", "x", ["y"]),
    distract.DataError("x", path="p", line=3),
    InUseError("folder", "process 3"),
)
def test_errors_survive_pickling(error: distract.DistractError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(again), str(again)) == (type(error), str(error))


@pytest.mark.parametrize("certify", [False, True])
def test_gate_returns_the_verdict_of_the_command(run: Run, certify: bool, capsys: Any) -> None:
    result = distract.attack(judge="planted:longer", generator="rules", limit=12, out="mine")
    rates: Any = {"max_flip_rate": 0.1, "certify": certify}
    ran = run("gate", "mine", *format_options(rates, {}), "--json")
    verdicts = [distract.gate(place, **rates, judge=None) for place in ("mine", Path("mine"), result)]
    assert capsys.readouterr() == ("", "")
    for verdict in verdicts:
        assert verdict.document() == json.loads(ran.out)
        assert (verdict.decision, verdict.exit_code, verdict.certify) == ("fail", ran.code, certify)
        assert {check.decision for check in verdict.checks} >= {"fail"}


def test_live_gate_writes_the_same_run(run: Run, capsys: Any) -> None:
    options: Any = {"judge": "planted:bold=0.7", "attacks": ["sycophancy"], "protocols": ["pairwise"], "budget": 40}
    ran = run("gate", *format_options(options, SINGULAR), "--max-flip-rate", "0.1", "--out", "theirs", "--json")
    verdict = distract.gate(**options, max_flip_rate=0.1, out="mine", store="other.sqlite")
    assert capsys.readouterr() == ("", "")
    assert (verdict.decision, verdict.exit_code, ran.code) == ("inconclusive", 3, 3)
    assert files(Path("mine")) == files(Path("theirs"))
    assert distract.Run.read("mine").results == verdict.document()["checks"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judge": "planted:nope"}, "unknown"),
        ({"judge": 3}, "judge 3: expected a name or a function"),
        ({"attacks": ["nope"]}, "unknown attack 'nope'; did you mean 'none'?"),
        ({"attacks": "nope"}, "unknown attack 'nope'"),
        ({"attacks": [3]}, "attacks 3: expected a text"),
        ({"protocols": 3}, "protocols 3: expected a text"),
        ({"limit": 0}, "limit 0: expected a number of cases from 1, or 'all'"),
        ({"limit": True}, "limit True: expected a number of cases"),
        ({"seed": None}, "seed None: expected a whole number"),
        ({"temperature": float("nan")}, "temperature nan: expected a number from 0 to 10"),
        ({"control": "yes"}, "control 'yes': expected true or false"),
        ({"fail_fast": "false"}, "fail_fast 'false': expected true or false"),
        ({"plan": True}, "no argument 'plan'; they are the options of the command"),
        ({"data": "a\0b"}, "data 'a\\x00b': a path cannot contain a NUL character"),
        ({"dtype": 16}, "dtype 16: expected a text"),
        ({"orders": "some"}, "orders 'some': expected both, one, given or swapped"),
        ({"out": 3}, "out 3: expected a path"),
        ({"atacks": []}, "no argument 'atacks'; did you mean 'attacks'?"),
        ({"data": "nope.jsonl"}, "nope.jsonl: no such file"),
        ({"data": 3}, "data: expected a name, a path, a data frame, or a list of cases or dicts, found 3"),
        ({"data": distract.Case("x", ("p",), ())}, "or a list of cases or dicts, found a Case"),
        ({"out": "a\0"}, "out 'a\\x00': a path cannot contain a NUL character"),
        ({"data": [distract.Case("x", TEXT, ())]}, "cases:1: field 'prompt': expected a tuple of turns"),
        (
            {"data": [distract.Case("x", ("p",), (distract.Response("a", TEXT),))]},
            "cases:1: field 'responses[0].turns': expected a tuple of turns, found a string",
        ),
        ({"data": [distract.Case("x", ("p",), (TEXT, TEXT))]}, "cases: a case cannot be written to a file"),
        ({"data": []}, "cases: holds no cases"),
        ({"data": ["one"]}, "cases: expected cases, found 'one'"),
        ({"data": [distract.Case("x", ("p",), ())]}, "cases:1: field 'responses': expected"),
        ({"data": [distract.Case("x", ("p",), (distract.Response("a", ("\ud800",)),))]}, "cannot be written to a file"),
        ({"data": distract.load("tweakset"), "responses": ["r.jsonl"]}, "responses and columns need data with a name"),
    ],
)
def test_wrong_arguments_raise_one_line(run: Run, options: dict[str, Any], message: str, capsys: Any) -> None:
    with pytest.raises(distract.UsageError) as error:
        distract.attack(**{"judge": "planted:longer", **options})
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no threshold: give"),
        ({"max_flip_rate": 0.1}, "name a finished run"),
        ({"max_flip_rate": 10}, "write 0.10 for 10%"),
        ({"run": "nope", "max_flip_rate": 0.1}, "no such run folder"),
        ({"run": 3, "max_flip_rate": 0.1}, "run 3: expected a path"),
        ({"run": "mine", "judge": "planted:longer", "max_flip_rate": 0.1}, "not both"),
        ({"run": "mine", "limit": 3, "max_flip_rate": 0.1}, "limit needs --judge"),
        ({"max_rise": 0.1}, "--max-rise needs --baseline"),
    ],
)
def test_wrong_gate_arguments_raise_one_line(run: Run, options: dict[str, Any], message: str) -> None:
    with pytest.raises(distract.UsageError) as error:
        distract.gate(**options)
    assert message in str(error.value)


def test_load_reads_cases_and_locates_errors(tmp_path: Path) -> None:
    cases = distract.load("tweakset")
    assert (len(cases), type(cases[0])) == (200, distract.Case)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "x"}\n', encoding="utf-8")
    with pytest.raises(distract.DataError, match=r"bad\.jsonl:1"):
        distract.load(bad)


def test_notes_say_which_columns_of_a_table_were_read(run: Run) -> None:
    rows = [{"q": f"What is {n}?", "response": "It is four."} for n in range(3)] + [{"q": None, "response": "x"}]
    result = distract.attack(judge="planted:fair", data=rows, columns={"prompt": "q"}, generator="rules")
    assert result.notes[:2] == (
        "columns of data: prompt from 'q', response from 'response'",
        "left out before the draw: no prompt (1)",
    )


NAMES = [
    *("Attack", "BackendError", "Calls", "Case", "Comparison", "Constraint", "DataError", "DistractError"),
    *("Draws", "Judge", "Judgment", "Matches", "Outcome", "Plan", "PluginError", "Protocol", "Provider"),
    *("RatingSystem", "Ratings", "Request", "Response", "Run", "Slots", "UnknownName", "UsageError"),
    *("Verdict", "WritingTask", "attack", "constraints", "facts", "fidelity", "gate", "instructions"),
    *("invariants", "judge", "load", "orders", "parsers", "prompts", "sent", "setting", "strategies", "verdicts"),
]


MODULES = {name for name in NAMES if isinstance(getattr(distract, name), ModuleType)}


def test_public_names_are_pinned() -> None:
    assert distract.__all__ == NAMES == sorted(NAMES)
    assert {*NAMES, "__version__"} <= {*dir(distract)}


@each("name", *NAMES)
def test_each_public_name_is_the_object_of_its_module(name: str) -> None:
    module = importlib.import_module(distract._MODULES[name])
    value = getattr(distract, name)
    assert value is (module if isinstance(value, ModuleType) else vars(module)[name])


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'distract' has no attribute 'nope'"):
        _ = distract.nope  # type: ignore[attr-defined]


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(distract.__file__).read_text(encoding="utf-8"))
    (first,) = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    imports = [one for one in first.body if isinstance(one, ast.ImportFrom)]
    seen = {
        alias.name: f"{one.module}.{alias.name}" if alias.name in MODULES else one.module
        for one in imports
        for alias in one.names
    }
    declared = dict.fromkeys(("attack", "gate"), "distract.cli.signatures")  # by the options of their commands
    assert seen == distract._MODULES | declared
    assert distract._MODULES.keys() == {*NAMES}
