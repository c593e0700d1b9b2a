"""Test that README and docs mention only commands, options and files that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from command_result import tables
from loops import each
from pages import PAGES, ROOT, blocks, text_of

from distract.cli.main import cli
from distract.report.glossary import GLOSSARY

PYTEST = {"--judge", "--distract-store", "--slow-seconds", "--hypothesis-profile"}
"""Options of pytest that pages name."""


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    return {option for one in (command, *inner) for parameter in one.params for option in parameter.opts} | {"--help"}


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


@each("path", *PAGES)
def test_every_command_and_option_exists(path: Path) -> None:
    for _, name, *arguments in command_lines(path):
        assert name in COMMANDS, name
        unknown = {one.partition("=")[0] for one in arguments if one.startswith("--")} - COMMANDS[name]
        assert not unknown, (name, unknown)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= PYTEST.union(*COMMANDS.values())


@each("path", *PAGES)
def test_every_link_leads_to_a_file(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_skipped_block_states_the_reason() -> None:
    for block in blocks("console"):
        assert re.fullmatch(r"|(slow|not run): .+", block.mark), block.name


def test_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


PLAIN = {
    *("%", "decision", "before", "after", "now", "against", "this", "change", "rank", "rating", "share %", "half"),
    *("won", "lost", "tied", "matches", "comparisons", "value", "word", "fact", "kept", "invented", "rejected"),
    *("flip rate", "flip rate above noise", "flip rate since baseline"),
}
"""Headings of columns that need no explanation under the table."""


def glossary() -> dict[str, str]:
    """Each word of the glossary with its meaning."""
    text = text_of("docs/reading-results.md").partition("\n## Glossary\n")[2]
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE))


def shown_tables() -> list[tuple[str, list[str], str]]:
    """The tables on the pages: their place, column headings and text below."""
    return [
        (block.name, *table)
        for block in blocks("console")
        for _, output in block.commands()
        for table in tables(output)
    ]


def test_glossary_and_tables_explain_words_alike() -> None:
    known = glossary()
    assert [word for word, meaning in GLOSSARY.items() if not known.get(word, "").startswith(meaning)] == []
    words = {word for words in known for word in (words, *words.split(", "))}
    assert {heading for _, headings, _ in shown_tables() for heading in headings} <= words


def test_abbreviations_are_explained_below_their_table() -> None:
    for place, headings, below in shown_tables():
        unexplained = [heading for heading in headings if heading not in PLAIN and f"{heading}: " not in below]
        assert unexplained == [] or below.endswith("…"), place
