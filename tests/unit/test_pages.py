"""Test that README and docs mention only commands, options and files that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from pages import PAGES, ROOT, blocks

from distract.cli.main import cli

PYTEST = {"--judge", "--distract-store", "--slow-seconds", "--hypothesis-profile"}
"""Options of pytest that pages name."""


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


COMMANDS = {name: options_of(name) for name in cli.list_commands(click.Context(cli))}


def command_lines(path: Path) -> list[list[str]]:
    """Each ``distract COMMAND …`` in the code of a page."""
    page, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    fenced = "\n".join(
        block.text for block in blocks() if block.page == page and block.language in ("", "sh", "console")
    )
    lines = re.findall(r"(?:^|^\$ |&& )(distract [a-z-]+(?: [^\n;]*)?)", fenced, re.MULTILINE)
    lines += re.findall(
        r"`(distract [a-z-]+(?: [^`]*)?)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_and_option_exists(path: Path) -> None:
    for _, name, *arguments in command_lines(path):
        assert name in COMMANDS, name
        unknown = {one.partition("=")[0] for one in arguments if one.startswith("--")} - COMMANDS[name]
        assert not unknown, (name, unknown)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= PYTEST.union(*COMMANDS.values())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_block_that_is_not_run_says_why() -> None:
    for block in blocks("console"):
        assert re.fullmatch(r"|(slow|not run): .+", block.mark), block.name


def test_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180
