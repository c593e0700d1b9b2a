"""Write what the docs list from the records of the code: `python benchmarks/tables.py`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING
from pathlib import Path

import click

import distract
from distract.cli.command import list_options
from distract.cli.main import cli
from distract.core.registry import get_study
from distract.report.glossary import list_measures

DOCS = Path(__file__).parents[1] / "docs"
SIGNATURES = Path(distract.__file__).parent / "cli" / "signatures.pyi"
KEYWORDS = {name: inspect.signature(getattr(distract, name)).parameters for name in ("attack", "gate")}
STUDIES = ("attack", "leaderboard", "consistency", "meta")


def table(headings: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Format a table of Markdown."""
    first, *others = (
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (headings, *rows)
    )
    return "\n".join((first, "|" + "---|" * len(headings), *others))


def measures() -> str:
    """List the measures."""
    return table(("word", "meaning"), iter(list_measures().items()))


def designs() -> str:
    """List the designs of rows."""
    rows = ((name, text, study) for study in STUDIES for name, text in get_study(study).designs.items())
    return table(("design", "what a row compares", "command"), rows)


def options() -> str:
    """List the options of all commands."""
    rows = []
    for one, commands in list_options(click.Context(cli)):
        empty = one.default in (None, (), False, MISSING)
        default = "" if empty else "on" if one.default is True else str(one.default)
        setting = "" if one.typed else f"`{one.key}`"
        keyword = f"`{one.name}`" if any(one.name in KEYWORDS.get(name, ()) for name in commands) else ""
        rows.append((f"`{one.flag}`", one.sentence, default, setting, keyword, ", ".join(commands)))
    return table(("option", "meaning", "default", "in `distract.toml`", "in Python", "commands"), iter(rows))


def _spell(default: object) -> str:
    """Spell a default in a signature, if it is short."""
    if isinstance(default, str):
        return json.dumps(default)
    return repr(default) if isinstance(default, bool | int | float | None) else "..."


def signatures() -> str:
    """Declare the functions of Python with their keywords, for type checkers and editors."""
    parts = [
        '"""What the functions take, for type checkers and editors: written by ``python benchmarks/tables.py``."""\n',
        "from collections.abc import Callable, Mapping, Sequence\nfrom os import PathLike",
        "from typing import Any, Literal\n",
        "from distract.cli.api import AnyPath, Run\nfrom distract.studies.gate.verdict import Verdict",
    ]
    for name in KEYWORDS:
        function = getattr(distract, name)
        *before, last = inspect.signature(function).parameters.values()
        defaults = [_spell(one.default) for one in before]
        names = [f"{one.name}: {one.annotation} = {default}" for one, default in zip(before, defaults, strict=True)]
        names.insert(sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in before), "*")
        lines = "".join(f"    {one},\n" for one in (*names, f"**{last.name}: Any"))
        result = inspect.signature(function).return_annotation
        parts.append(f'\ndef {name}(\n{lines}) -> {result}:\n    """{function.__doc__}"""')
    return "\n".join(parts) + "\n"


TABLES = {
    "measures": ("reading-results.md", measures),
    "designs": ("servers-and-replies.md", designs),
    "options": ("options.md", options),
}
"""Each table by its mark, with the page that has it and the function that writes it."""


def main() -> None:
    """Write each table into its page."""
    for mark, (name, write) in TABLES.items():
        page, block = DOCS / name, f"<!-- {mark} -->\n{write()}\n<!-- end -->"
        text = page.read_text(encoding="utf-8")
        text = re.sub(rf"<!-- {mark} -->.*?<!-- end -->", lambda _, block=block: block, text, flags=re.DOTALL)  # type: ignore[misc]
        page.write_text(text, encoding="utf-8")
    SIGNATURES.write_text(signatures(), encoding="utf-8")


if __name__ == "__main__":
    main()
