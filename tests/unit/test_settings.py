"""Test options from ``distract.toml`` or ``[tool.distract]``: their effect, precedence and limits."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_result import check_refusal
from loops import each

import distract
import distract.data as DATA
from distract.core.errors import UsageError
from distract.studies.project import OWN_FILE, SHARED_FILE

PLANNED = ("attack", "--dry-run", "--json")
GATE = ("gate", "--dry-run")


def settings(text: str, name: str = OWN_FILE) -> None:
    Path(name).write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DISTRACT_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("text", "typed", "judge", "cases", "names"), [
    ("judge = 'planted:bold'\nlimit = 3", (), "planted:bold", 3, "judge, limit"),
        ("judge = 'planted:bold'\nlimit = '3'", ("--limit", "2"), "planted:bold", 2, "judge"),
        ("judge = 'planted:bold'\n[attack]\njudge = 'planted:fair'", (), "planted:fair", 24, "judge"),
        ("judge = 'planted:bold'\n[gate]\nlimit = 3", ("--judge", "planted:fair"), "planted:fair", 24, None),
        ("judge = 'planted:fair'\nmax_tokens = 9\nmin-n = 3", (), "planted:fair", 24, "judge, max-tokens"),
        ("judge = 'planted:fair'\nmodel-option = {timeout = 3, concurrency = 2}", (), "planted:fair", 24,
         "judge, concurrency, timeout"),
        ("judge = 'planted:fair'\nmodel-option = ['timeout=3']", (), "planted:fair", 24, "judge, timeout"),
        ("judge = 'planted:fair'\n[compare]\nmax-flip-rate = 0.1", (), "planted:fair", 24, "judge"),
])  # fmt: skip
def test_file_sets_untyped_options(
    run: Any, text: str, typed: tuple[str, ...], judge: str, cases: int, names: str | None
) -> None:
    settings(text)
    ran = run(*PLANNED, *typed)
    assert (ran.code, ran.err) == (0, "" if names is None else f"settings: distract.toml: {names}\n")
    (plan,) = ran.document["plans"]
    assert (plan["judge"], plan["cases"]) == (judge, cases)


def test_pyproject_nests_the_same_tables_in_tool_distract(run: Any) -> None:
    settings("[tool.distract]\njudge = 'planted:bold'\n[tool.distract.attack]\nattack = ['sycophancy']", SHARED_FILE)
    ran = run(*PLANNED)
    assert ran.document["plans"][0]["judge"] == "planted:bold"
    assert ran.err == "settings: pyproject.toml: judge, attack\n"


def test_nearest_file_counts_and_two_in_one_folder_are_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings("judge = 'planted:bold'")
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert run(*PLANNED).document["plans"][0]["judge"] == "planted:bold"
    settings("judge = 'planted:first'")
    assert run(*PLANNED).document["plans"][0]["judge"] == "planted:first"
    settings("[tool.ruff]", SHARED_FILE)
    assert run(*PLANNED).code == 0
    settings("[tool.distract]\njudge = 'planted:fair'", SHARED_FILE)
    check_refusal(run(*PLANNED), "has [tool.distract] too; keep one of them")


@pytest.mark.parametrize(("text", "command", "message"), [
    ("judge = planted:fair", PLANNED, ":1: not TOML: Invalid value; put texts in quotes"),
        ("[tool.distract]\nlimit = 3", PLANNED, "[tool.distract] belongs in pyproject.toml; here leave the prefix out"),
        ("judge = 3", PLANNED, ":1: judge: expected the name of a judge in quotes, found 3"),
        ("juge = 'x'", PLANNED, ":1: juge: unknown table or setting 'juge'; did you mean 'judge'?"),
        ("\nlimt = 3", PLANNED, ":2: limt: unknown setting 'limt'; did you mean 'limit'?"),
        ("[atack]\nlimit = 3", PLANNED, ":1: atack: unknown setting 'atack'; did you mean 'attack'?"),
        ("[attack]\nlimit = 'many'", PLANNED, ":2: attack.limit: 'many': expected a number of cases from 1, or 'all'"),
        ("[attack]\nmatches = 'x'", PLANNED, ":2: attack.matches: unknown setting 'matches'"),
        ("gate = 3", PLANNED, ":1: gate: expected a table, found 3"),
        ("control = 1", PLANNED, ":1: control: expected true or false, found 1"),
        ("limit = [3]", PLANNED, ":1: limit: expected a number, found a list"),
        ("limit = 0x" + "f" * 9000, PLANNED, ":1: limit: expected a number, found a number that is far too large"),
        ("limit = true", PLANNED, ":1: limit: expected a number, found true"),
        ("limit = 2026-01-01", PLANNED, ":1: limit: expected a number, found datetime.date"),
        ("orders = 'none'", PLANNED, ":1: orders: 'none': expected both, one, given or swapped"),
        ("generator = ' '", PLANNED, ":1: generator: expected a text in quotes, found ' '"),
        ('out = "a\\u0000b"', PLANNED, ":1: out: expected a text in quotes"),
        ("seed = 1\nse_ed = 2", PLANNED, ":2: se-ed: unknown setting"),
        ("max-tokens = 1\nmax_tokens = 2", PLANNED, ":1: max_tokens: is given twice"),
        ("help = true", PLANNED, ":1: help: unknown setting"),
        ("attempts = 3", PLANNED, ":1: attempts: is a setting of an engine: write model-option = {attempts = ...}"),
        ("model-option = {timeout = -1}", PLANNED, ":1: model-option: --timeout -1: expected a number"),
        ("model-option = {timeot = 1}", PLANNED, "unknown model option 'timeot'; did you mean 'timeout'?"),
        ("model-option = 'timeout'", PLANNED, ":1: model-option: expected a table or a list of KEY=VALUE, found"),
        ("model-option = {timeout = 0x" + "f" * 9000 + "}", PLANNED, "holds a number that is far too large"),
        ("model-option = ['timeout=3', 'timeout=4']", PLANNED, "is given twice, as 3.0 and as 4.0"),
        ("concurrency = 3\nmodel-option = {concurrency = 4}", PLANNED, "is set here and in another key"),
        ("[attack]\nengine = 'vllm'", (*PLANNED, "--judge", "planted:fair"), "--engine is for models on"),
        ("[gate]\nmax-flip-rates = {x = 0.1}\njudge = 'planted:fair'", GATE, "unknown protocol or attack 'x'"),
        ("[gates]\nmax-flip-rate = 0.1", GATE, ":1: gates: unknown table or setting 'gates'; did you mean 'gate'?"),
        (f"[{'g' * 1000}]", GATE, "unknown setting 'gggg"),
        ("[gate]\nmax-fliprate = 0.1", GATE, ":2: gate.max-fliprate: unknown setting 'max-fliprate'; did you mean"),
        ("[gate\n", GATE, ":1: not TOML")])  # fmt: skip
def test_wrong_setting_is_one_line_with_its_place(run: Any, text: str, command: tuple[str, ...], message: str) -> None:
    settings(text)
    ran = run(*command)
    *before, last = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert message in last
    assert all(line.startswith("settings: ") for line in before)
    assert not Path(".distract").exists()


def test_help_works_with_a_wrong_file(run: Any) -> None:
    settings("limt = 3")
    for command in (("--help",), ("attack", "--help")):
        assert run(*command).code == 0


@pytest.mark.parametrize(("text", "message"), [
    ("model-option = {trust-remote-code = true}", "trust-remote-code: only on the command line: it runs code"),
        ("model-option = ['trust_remote_code=true']", "trust-remote-code: only on the command line: it runs code"),
        ("trust-remote-code = true", "trust-remote-code: only on the command line: it runs code"),
        ("catalogue = 'c.toml'", "catalogue: only on the command line: it decides which servers get your keys"),
        ("minimal = 3", "minimal: no setting 'minimal' any more; use `distract explain RUN --clearest N`"),
        ("[plan-gate]\npower = 0.9", "plan-gate: no setting 'plan-gate' any more; use `distract gate --plan`"),
        ("foo = 1", "more; see `distract list options`"),
        ("[gate]\nconfig = 'x.toml'", "config: only on the command line: it names a file like this one"),
        ("out = '../x'", "out: leads out of the folder of this file; name it on the command line, with --out"),
        ("out = '/tmp/x'", "out: leads out of the folder"),
        ("out = 'link/x'", "out: leads out of the folder"),
        ("out = '.'", "out: leads out of the folder"),
        ("out = '.git/x'", "out: leads out of the folder"),
        ("store = '../x'", "store: leads out of the folder of this file; name it on the command line, with --store"),
        ("store = 'link/x'", "store: leads out of the folder"),
        ("html = '../../x'", "html: leads out of the folder of this file; name it on the command line, with --html"),
        ("markdown = 'link/README.md'", "markdown: leads out of the folder of this file"),
        ("markdown = '.git/hooks/pre-commit'", "markdown: leads out of the folder of this file"),
        ("[gate]\njunit = '../x.xml'", "gate.junit: leads out of the folder of this file"),
        ("[gate]\nsummary = '/etc/x'", "gate.summary: leads out of the folder of this file"),
        ("[gate]\nbaseline = 'link'", "gate.baseline: leads out of the folder of this project; name it on the command"),
        ("[gate]\nanchors = '/dev/zero'", "gate.anchors: leads out of the folder of this project"),
        ("data = '../cases.jsonl'", "data: leads out of the folder of this project"),
        ("data = 'table:link/cases.csv'", "data: leads out of the folder of this project"),
        ("data = 'csv:///etc/passwd'", "data: names a server on another machine"),
        ("data = 'here'", "data: leads out of the folder of this project"),
        ("data = 'here/link'", "data: leads out of the folder of this project"),
        ("responses = ['a.jsonl', ' ~/secret']", "responses: leads out of the folder of this project"),
        ("judge = '~/model'", "judge: leads out of the folder of this project"),
        ("judge = 'transformers:../model'", "judge: leads out of the folder of this project"),
        ("judge = 'transformers:link@main'", "judge: leads out of the folder of this project"),
        ("protocol = 'link/prompt.txt:name'", "protocol: leads out of the folder of this project"),
        (f"data = '{':' * 1000}'", "data: leads out of the folder of this project"),
        ("revision = 'a/../../..'", "revision: leads out of the folder of this project"),
        ("judge = 'http://evil.example/v1#m'", "judge: names a server on another machine; name it on the command line"),
        ("judge = 'http://127.0.0.1/v1,https://evil.example/v1#m'", "judge: names a server on another machine"),
        ("judge = 'http://localhost.evil.example/v1#m'", "judge: names a server on another machine"),
        ("judge = 'python:evil.py:judge'", "judge: names a file that runs code or decides where your keys go"),
        ("judge = ' python:evil:judge'", "judge: names a file that runs code"),
        ("judge = 'judge.toml'", "judge: names a file that runs code or decides"),
        ("judge = 'http://localhost/judge.toml'", "judge: names a file that runs code"),
        ("[attack]\nattack = ['prolixity', './evil.py']", "attack: names a file that runs code"),
        ("[attack]\nattack = 'evil.py+severity-1'", "attack: names a file that runs code"),
        *((f'[attack]\nattack = ["./evil.py{blank}"]', "attack: names a file that runs code")
          for blank in (" ", "\\t", "\\u00a0", "\\u200b", " +null", "\\n")),
        ("[attack]\nprotocol = './evil.py:x'", "protocol: names a file that runs code"),
        ("[leaderboard]\nsystem = ' evil.py :k=1'", "system: names a file that runs code"),
        ("generator = ' HTTPS://evil.example#m'", "generator: names a server"),
        ("base-url = 'https://evil.example/v1'", "base-url: names a server on another machine; name it on the command"),
        ("base-url = 'http://api.openai.com/v1'", "base-url: names a server on another machine"),
        ("base-url = 'HTTPS://evil.example/://127.0.0.1'", "base-url: names a server on another machine"),
        ("base-url = 'evil'", "base-url: names a server on another machine"),
        ("same-as = 'https://evil.example/v1'", "same-as: names a server"),
        ("model-option = {base_url = 'https://evil.example/v1'}", "base-url: names a server"),
        ("model-option = {ray_address = 'evil:6379'}", "with --model-option ray-address"),
        ("model-option = {ray_address = 'evil://127.0.0.1:1'}", "with --model-option ray-address"),
])  # fmt: skip
def test_foreign_settings_run_no_code_and_reach_no_key_or_file(run: Any, text: str, message: str) -> None:
    Path("link").symlink_to(Path(sys.prefix))
    Path("here").mkdir()
    Path("here/link").symlink_to(Path(sys.prefix))
    settings(text)
    command = ("leaderboard",) if "[leaderboard]" in text else GATE if "[gate]" in text else PLANNED
    check_refusal(run(*command), message)


@each(
    "text, typed",
    ("base-url = 'http://127.0.0.1:9/v1'", ()),
    ("base-url = 'http://[::1]:9/v1,http://localhost/v1'", ()),
    ("base-url = 'https://api.openai.com/v1'", ()),
    ("model-option = {ray_address = 'auto'}", ()),
    ("model-option = {ray_address = 'ray://127.0.0.1:9'}", ()),
    ("judge = 'openai:gpt-4o'\nprice-in = 1\nprice-out = 1", ()),
    ("data = '../cases.jsonl'", ()),
    ("base-url = 'https://evil.example/v1'", ("--base-url", "http://127.0.0.1:9/v1")),
    ("base-url = 'https://evil.example/v1'", ("--model-option", "base_url=http://127.0.0.1:9/v1")),
    ("model-option = {base_url = 'https://evil.example/v1'}", ("--base-url", "http://127.0.0.1:9/v1")),
    ("[attack]\nmodel-option = {trust_remote_code = true}", ("--model-option", "trust-remote-code=false")),
    ("attack = ['./evil.py ']", ("--attack", "prolixity")),
    ("judge = 'python:evil.py:f'", ("--judge", "planted:longer")),
    ("html = '../x'\nstore = '../y'", ("--html", "x", "--store", "y")),
)
def test_harmless_and_repeated_settings_are_accepted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, typed: tuple[str, ...]
) -> None:
    (tmp_path / ".git").touch()
    (tmp_path / "cases.jsonl").write_text((Path(DATA.__file__).parent / "tweakset.jsonl").read_text("utf-8"))
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    settings(text)
    judge = () if "judge" in text else ("--judge", "openai:m" if "http" in str(typed) else "planted:fair")
    assert (ran := run(*PLANNED, *judge, *typed)).code == 0, ran.err


def test_paths_are_relative_to_the_file(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings("judge = 'planted:longer'\nstore = 'kept/s'\nlimit = 1\n[attack]\nout = 'runs/a'")
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert run("attack").code == 0
    assert (tmp_path / "kept" / "s").is_file()
    assert (tmp_path / "runs" / "a" / "run.json").is_file()
    assert list(inner.iterdir()) == []


def test_inapplicable_shared_setting_is_ignored(run: Any) -> None:
    assert run("attack", "--judge", "planted:longer", "--limit", "8", "--out", "r").code == 0
    settings("judge = 'planted:fair'\nbudget = 3\nengine = 'vllm'\nmax-flip-rate = 0.9\nconfidence = 0.5")
    ran = run("gate", "r")
    assert (ran.code, "needs --judge" in ran.err) == (3, False)
    assert "settings: distract.toml: judge, budget, engine, max-flip-rate, confidence" in ran.err
    settings("[gate]\nbudget = 3\nmax-flip-rate = 0.9")
    ran = run("gate", "r")
    assert (ran.code, "--budget needs --judge" in ran.err) == (2, True)


def test_python_gate_reads_the_same_thresholds(run: Any) -> None:
    assert run("attack", "--judge", "planted:longer", "--limit", "8", "--out", "r").code == 0
    settings("judge = 'planted:fair'\nmax-flip-rate = 0.9\n[gate]\nmin-n = 3\nahead = 2")
    assert distract.gate("r").threshold == 0.9
    for text in ("max-fliprate = 0.9", "[gate]\nmax-flip-rate = 0.9\nahed = 2", "[gaet]\nmax-flip-rate = 0.9"):
        settings(text)
        with pytest.raises(UsageError, match="did you mean"):
            distract.gate("r")


def test_settings_and_typed_options_give_the_same_run(run: Any) -> None:
    typed = ("--judge", "planted:longer", "--limit", "2", "--attack", "sycophancy")
    assert run("attack", *typed, "--out", "typed").code == 0
    settings("judge = 'planted:longer'\nlimit = 2\nmodel-option = {timeout = 3}\n[attack]\nattack = 'sycophancy'")
    assert run("attack", "--out", "set").code == 0
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json"):
        assert Path("typed", name).read_bytes() == Path("set", name).read_bytes()
    runs = [json.loads(Path(folder, "run.json").read_text())["parameters"] for folder in ("typed", "set")]
    assert runs[0] == runs[1]
