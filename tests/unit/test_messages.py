"""Test messages that once misled: each states the meaning and the correction within one line."""

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
    ("judge", "message", "unsaid"),
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
def test_foreign_model_name_is_translated(run: Any, judge: str, message: str, unsaid: str) -> None:
    ran = run("attack", "--judge", judge)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert message in ran.err
    assert unsaid not in ran.err
    assert len(ran.err) < 250


def test_own_and_hub_names_are_left_alone() -> None:
    ours = ("openai/gpt-oss-20b", "gpt2", "openai-community/gpt2", "google/gemma-2-2b-it", "anthropic/hh", "a/claude")
    for name in (*ours, *(model.name for model in catalogue().values() if model.engine == "local")):
        assert translate_name(name) == "", name
    assert {entry.base_url.rstrip("/") for entry in catalogue().values() if entry.base_url} <= {*_SERVERS.values()}


def test_own_server_accepts_any_name(run: Any) -> None:
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
    ("arguments", "message"),
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
def test_several_model_names_in_one_are_split(run: Any, arguments: tuple[str, ...], message: str) -> None:
    ran = run(*arguments)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert ran.err.endswith(f"; {message}\n")


@pytest.mark.parametrize("text", ['{"foo": 1}\n', '[{"foo": 1}]', "words\n"])
@pytest.mark.parametrize("command", [("attack", "--data"), ("leaderboard", "--matches")])
def test_unknown_format_message_is_short_and_names_the_page(run: Any, command: tuple[str, ...], text: str) -> None:
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
def test_sections_can_be_listed_by_any_of_their_words(run: Any, what: str, titles: list[str]) -> None:
    ran = run("list", what)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if not line.startswith(" ")] == titles


def test_unknown_section_is_one_line(run: Any) -> None:
    assert run("list", "prompts").code == 2
    assert "unknown section 'prompts'" in run("list", "prompts").err


def test_replies_name_the_store_and_the_run_apart(run: Any) -> None:
    command = ("attack", "--judge", "planted:fair", "--generator", "rules", "--limit", "1", "--store", "s")
    run(*command, "--attack", "prolixity", "--protocol", "pairwise")
    other = run(*command, "--attack", "prolixity", "--protocol", "absolute")
    assert re.search(r"the store holds \d+ replies of this judge; this run reuses those it needs", other.err)
    assert "replies: 0 were stored" in other.err


def test_install_hints_match_the_pages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    commands = set[str]()
    for path in (
        *(ROOT / "distract").rglob("*.py"),
        *(ROOT / "judges").rglob("*.py"),
        *(ROOT / "attacks").rglob("*.py"),
    ):
        text = path.read_text(encoding="utf-8")
        assert "distract[" not in text.replace("tool.distract[", ""), path
        commands.update(re.findall(r"install_command\([\"'](\w+)[\"']\)", text))
    assert commands >= {"openai", "vllm", "local", "hub", "parquet", "language", "pytest"}
    assert commands <= {*extras}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for extra in commands - {"pytest"}:
        command = errors.install_command(extra).partition(" in ")[0]
        assert re.search(rf'pip install (-c constraints.txt )?"\.\[{extra}[\],]', pages), command
    assert errors.install_command("hub") == 'pip install ".[hub]" in the source folder of distract'


def test_counts_and_shares_are_formatted() -> None:
    assert [count(n, "reply", "replies") for n in (0, 1, 1000)] == ["0 replies", "1 reply", "1,000 replies"]
    assert [share_hint(n) for n in (0.5, 1, 101, float("nan"), float("inf"))] == [""] * 5
    assert share_hint(0.5, is_percent=True) == "; write 0.005 for 0.5%"
