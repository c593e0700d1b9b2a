"""Messages that led astray: each says what is meant, what to write instead, and no more than fits a line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES

from distract.core import errors
from distract.core.printable import count, share_hint
from distract.models.catalogue import catalogue
from distract.models.names import _SERVERS, translate_name

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("judge", "said", "unsaid"),
    [
        (
            "ollama:llama3",
            "write openai:llama3 --base-url http://127.0.0.1:11434/v1 for a model of that server",
            "mean",
        ),
        ("ollama/llama3:8b", "write openai:llama3:8b --base-url http://127.0.0.1:11434/v1", "mean"),
        ("lm-studio:qwen", "write openai:qwen --base-url http://127.0.0.1:1234/v1", "mean"),
        ("hf:org/model", "write org/model, or transformers:org/model, for a model of the hub", "mean"),
        ("huggingface/org/model", "write org/model, or transformers:org/model", "mean"),
        (
            "anthropic/claude-3-5-sonnet",
            "write openai:claude-3-5-sonnet --base-url https://api.anthropic.com/v1",
            "huggi",
        ),
        ("anthropic:claude-x", "write openai:claude-x --base-url https://api.anthropic.com/v1", "mean"),
        ("claude-3-5-sonnet", "write openai:claude-3-5-sonnet --base-url https://api.anthropic.com/v1", "gpt"),
        ("openai/gpt-4o-2030", "write openai:gpt-4o-2030 for a model of its maker's server", "huggingface"),
        ("gpt-4o-latest", "did you mean 'gpt-4o'?; write openai:gpt-4o-latest for a model of its", "base-url"),
        ("chatgpt-4o-latest", "write openai:chatgpt-4o-latest", "base-url"),
        ("gemini-pro", "write openai:gemini-pro --base-url https://generativelanguage.googleapis.com", "gpt"),
        ("groq/llama-x", "write openai:llama-x --base-url https://api.groq.com/openai/v1", "mean"),
    ],
)
def test_a_name_of_another_tool_is_translated(run: Any, judge: str, said: str, unsaid: str) -> None:
    ran = run("attack", "--judge", judge)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert said in ran.err
    assert unsaid not in ran.err
    assert len(ran.err) < 250


def test_names_of_ours_and_of_the_hub_are_left_alone() -> None:
    ours = ("openai/gpt-oss-20b", "gpt2", "openai-community/gpt2", "google/gemma-2-2b-it", "anthropic/hh", "a/claude")
    for name in (*ours, *(model.name for model in catalogue().values() if model.engine == "local")):
        assert translate_name(name) == "", name
    assert {entry.base_url.rstrip("/") for entry in catalogue().values() if entry.base_url} <= {*_SERVERS.values()}


def test_a_server_of_ones_own_takes_any_name(run: Any) -> None:
    ran = run(
        "attack",
        "--judge",
        "ollama/llama3",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model-option",
        "attempts=1",
        "--limit",
        "1",
    )
    assert (ran.code, "does not answer" in ran.err) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attack", "--judge", "planted:fair", "--attack", "prolixity,sycophancy"), "for several, repeat --attack"),
        (("attack", "--judge", "planted:fair", "--protocol", "pairwise,base"), "for several, repeat --protocol"),
        (("attack", "--judge", "planted:fair", "--measure", "flip, fixed"), "for several, repeat --measure"),
        (("attack", "--judge", "planted:fair,planted:longer"), "--judge takes one"),
        (("meta", "--judge", "planted:fair,planted:longer"), "for several, repeat --judge"),
        (
            ("gate", "--judge", "planted:fair", "--max-flip-rate", "0.1", "--attack", "a,b"),
            "for several, repeat --attack",
        ),
        (("leaderboard", "--judge", "planted:fair", "--system", "elo,trueskill"), "for several, repeat --system"),
        (("meta", "--judge", "planted:fair", "--data", "a.json,b.json"), "for several, repeat --data"),
    ],
)
def test_several_names_in_one_are_told_apart(run: Any, arguments: tuple[str, ...], said: str) -> None:
    ran = run(*arguments)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert ran.err.endswith(f"; {said}\n")


@pytest.mark.parametrize("text", ['{"foo": 1}\n', '[{"foo": 1}]', "words\n"])
@pytest.mark.parametrize("command", [("attack", "--data"), ("leaderboard", "--matches")])
def test_an_unknown_format_is_short_and_says_where_to_look(run: Any, command: tuple[str, ...], text: str) -> None:
    Path("d.json").write_text(text, encoding="utf-8")
    ran = run(*command, "d.json", "--judge", "planted:fair") if command[0] == "attack" else run(*command, "d.json")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert len(ran.err) < 320
    for section in re.findall(r"`distract (list \w+)`", ran.err):
        assert run(*section.split()).code == 0


@pytest.mark.parametrize(
    ("what", "titles"),
    [
        ("data", ["data sets:", "data formats:"]),
        ("formats", ["data formats:"]),
        ("judge", ["judges:"]),
        ("Data-Sets", ["data sets:"]),
        ("rating_systems", ["rating systems:"]),
        ("systems", ["rating systems:"]),
        ("matches", ["matches:"]),
    ],
)
def test_sections_are_listed_by_a_word_of_theirs(run: Any, what: str, titles: list[str]) -> None:
    ran = run("list", what)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if not line.startswith(" ")] == titles


def test_no_section_is_one_line(run: Any) -> None:
    assert run("list", "prompts").code == 2
    assert "unknown section 'prompts'" in run("list", "prompts").err


def test_the_store_is_told_apart_from_what_a_run_takes_from_it(run: Any) -> None:
    command = ("attack", "--judge", "planted:fair", "--generator", "rules", "--limit", "1", "--store", "s")
    run(*command, "--attack", "prolixity", "--protocol", "pairwise")
    other = run(*command, "--attack", "prolixity", "--protocol", "absolute")
    assert re.search(r"the store holds \d+ replies of this judge; this run reuses those it needs", other.err)
    assert "replies: 0 were stored" in other.err


def test_installing_is_told_as_the_pages_do() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = set[str]()
    for path in (
        *(ROOT / "distract").rglob("*.py"),
        *(ROOT / "judges").rglob("*.py"),
        *(ROOT / "attacks").rglob("*.py"),
    ):
        text = path.read_text(encoding="utf-8")
        assert "distract[" not in text.replace("tool.distract[", ""), path
        named.update(re.findall(r"install_command\([\"'](\w+)[\"']\)", text))
    assert named >= {"openai", "vllm", "local", "hub", "parquet", "language", "pytest"}
    assert named <= {*extras}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for extra in named - {"pytest"}:
        command = errors.install_command(extra).partition(" in ")[0]
        assert re.search(rf'pip install (-c constraints.txt )?"\.\[{extra}[\],]', pages), command
    assert errors.install_command("hub") == 'pip install ".[hub]" in the source folder of distract'


def test_counts_and_shares() -> None:
    assert [count(n, "reply", "replies") for n in (0, 1, 1000)] == ["0 replies", "1 reply", "1,000 replies"]
    assert [share_hint(n) for n in (0.5, 1, 101, float("nan"), float("inf"))] == [""] * 5
    assert share_hint(0.5, is_percent=True) == "; write 0.005 for 0.5%"
