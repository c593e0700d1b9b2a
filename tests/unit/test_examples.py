"""Test that the examples work as described."""

import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from loops import each
from pages import text_of
from test_page_numbers import options_of

from distract.cli import main
from distract.core import registry
from distract.data.datasets import load

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_own_data_load_with_labels_constraints_and_turns() -> None:
    cases = load(str(EXAMPLES / "own_data" / "cases.jsonl")).cases
    assert [case.id for case in cases] == ["tea", "list", "chat"]
    assert [len(case.prompt) for case in cases] == [1, 1, 2]
    assert cases[1].constraints


def test_own_attack_is_discovered_by_entry_point_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "own_attack"))
    monkeypatch.chdir(tmp_path)
    entry = importlib.metadata.EntryPoint("shouting", "shouting:shouting", "distract.attacks")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: importlib.metadata.EntryPoints([entry]).select(group=group)
    )
    registry._load.cache_clear()
    data = str(EXAMPLES / "own_data" / "cases.jsonl")
    arguments = ["attack", "--judge", "planted:bold", "--attack", "shouting", "--data", data, "--generator", "rules"]
    monkeypatch.setattr(sys, "argv", ["distract", *arguments])
    main.main()
    registry._load.cache_clear()
    assert "rejected: 1 of 6 rewrites: unchanged (1)" in " ".join(capsys.readouterr().out.split())


def test_documented_protocol_runs_verbatim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = text_of("docs/add-your-own.md")
    blocks = dict(
        re.findall(r"^`(my_judges/\S+|pyproject\.toml)`[^\n]*\n\n```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    assert set(blocks) == {"my_judges/flaws_first.py", "my_judges/prompts/flaws-first.txt", "pyproject.toml"}
    for name, text in blocks.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert "an empty `my_judges/__init__.py`" in page
    (tmp_path / "my_judges" / "__init__.py").touch()
    entry_points = tomllib.loads(blocks["pyproject.toml"])["project"]["entry-points"]["distract.judges"]
    entries = [importlib.metadata.EntryPoint(name, value, "distract.judges") for name, value in entry_points.items()]
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: importlib.metadata.EntryPoints(entries).select(group=group)
    )
    registry._load.cache_clear()
    options = "--judge planted:longer --generator rules --protocol flaws-first --protocol base --limit 8 --json"
    monkeypatch.setattr(sys, "argv", ["distract", "attack", *options.split()])
    try:
        assert registry.problems() == ()
        main.main()
    finally:
        registry._load.cache_clear()
    standings = {one["protocol"]: one for one in json.loads(capsys.readouterr().out)["ranking"]}
    assert standings["flaws-first"]["n"] > 10
    assert standings["flaws-first"]["invalid"] == 0


@each("page", "README.md", "docs/quickstart.md")
def test_documented_python_prints_the_quoted_output(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ((code, printed),) = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr() == (printed, "")


@each(
    "message, problem",
    ('raise ValueError("oops")', "protocol 'mine' failed on case 'tea': ValueError: oops"),
    ("return None", "protocol 'mine' on case 'tea': returned None, expected a Judgment"),
    ('return Judgment("equal")', "protocol 'mine' on case 'tea': prefers 'equal', expected a, b or tie"),
    ('return Judgment("a", failure="no")', "protocol 'mine' on case 'tea': a judgment has either a prefer"),
)
def test_failing_protocol_is_named_in_one_line(
    message: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def installed(text: str) -> str:
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
        sys.modules.pop("mine", None)
        importlib.invalidate_caches()
        registry._load.cache_clear()
        return registry.code_checksum(registry.get_protocol("mine"))

    head = "from distract.core.plugin import *\nfrom distract.core.records import *\ndef ask(one):\n    yield []\n"
    tail = "mine = Protocol(name='mine', summary='', ask=ask, calls=Calls(1))\n"
    entry = importlib.metadata.EntryPoint("mine", "mine", "distract.judges")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: importlib.metadata.EntryPoints([entry]).select(group=group)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    data = str(EXAMPLES / "own_data" / "cases.jsonl")
    try:
        other = installed(f"{head}    return Judgment('a')\n{tail}")
        # Changed code gives another run.
        assert installed(f"{head}    {message}\n{tail}") != other
        arguments = ["attack", "--judge", "planted:fair", "--protocol", "mine", "--data", data, "--generator", "rules"]
        monkeypatch.setattr(sys, "argv", ["distract", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main.main()
    finally:
        sys.modules.pop("mine", None)
        registry._load.cache_clear()
    last = capsys.readouterr().err.splitlines()[-1]
    assert (stopped.value.code, last.startswith("distract: " + problem)) == (4, True), last


@each("name", "shard.sh", "slurm.sh", "ssh.sh", "skypilot.yaml")
def test_cluster_examples_use_options_that_exist(name: str) -> None:
    text = (EXAMPLES / "cluster" / name).read_text(encoding="utf-8")
    commands = "\n".join(line for line in text.splitlines() if not re.match(r"#SBATCH|#   (id|sbatch)|ssh|  ssh", line))
    options = set(re.findall(r"(?<=\s)--[a-z-]+", commands))
    known = {option for command in ("attack", "merge") for option in options_of(command)}
    assert options
    assert options <= known
    if name.endswith(".yaml"):
        task = yaml.safe_load(text)
        assert task["num_nodes"] > 1
        assert "shard.sh" in task["run"]
