"""Tables for the terminal that fit 80 columns.

Cells are plain ``Text``, so that a name can hold markup and stay a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import count, line


def has_colour() -> bool:
    """Whether output is in colour."""
    console = Console()
    return console.color_system is not None and not console.no_color


def show(parts: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print the parts one after the other."""
    console = console or Console(highlight=False)
    for part in parts:
        console.print(part)


def grid(first: str, *others: str) -> Table:
    """Make an empty table that fits 80 columns: a left-aligned label and right-aligned numbers."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    # Long names wrap, so that the figures keep their place.
    table.add_column(Text(first), overflow="fold", min_width=18)
    for name in others:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def title(text: str) -> Text:
    """The heading of a table."""
    return Text(f"\n{text}", style="italic")


def run_line(parameters: Mapping[str, Any]) -> str:
    """The first line of a report: judge, data, cases drawn and seed."""
    data, limit = parameters["data"], parameters["limit"]
    total = f" of {data['cases']}" if data["cases"] != limit else ""
    judge, name = line(parameters["judge"]), line(data["name"])
    return f"judge {judge} · data {name}, {count(limit, 'case')}{total}, seed {parameters['seed']}"
