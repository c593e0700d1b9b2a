"""Parts of a report: tables as data, which fit 80 columns and explain their words, and details for ``--verbose``.

Cells are plain ``Text``, so that a name can hold markup and stay a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import table
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from distract.core.printable import count, interval, line, percent
from distract.report.glossary import describe_excluded, empty_reason, explain
from distract.stats.figure import Figure

VERDICTS = {"better": "better", "worse": "worse", "not distinguishable": "n.s."}
"""Wording of the results of a test in tables."""

FEW = 30
"""Number of units below which a sentence calls them too few, and intervals are rough."""

Cell = str | Text
Cells = Sequence[Cell] | str
"""The cells of a row, or in words why it has none."""

_RULE = re.compile(r" (by \w+)")

TableRow = tuple[str, Cell, Cells]
"""Group, label and cells."""


@dataclass(frozen=True)
class Detail:
    """A part of a report that only ``--verbose`` shows."""

    part: RenderableType


@dataclass(frozen=True)
class Table:
    """Rows of group, label and cells; each group has a heading, unless its name is empty.

    ``terms`` are words of its labels to explain below, besides those of headings and cells.
    """

    title: str
    columns: Sequence[str]  # the first is that of the labels
    rows: Sequence[TableRow]
    terms: Sequence[str] = ()

    @property
    def legend(self) -> str:
        """Explain the words that need it."""
        cells = [str(cell) for *_, cells in self.rows if not isinstance(cells, str) for cell in cells]
        rules = [rule for group, label, _ in self.rows for rule in _RULE.findall(f"{group}\n{label}")]
        words = {*self.columns, *self.terms, *rules, *(word for cell in cells for word in cell.split())}
        return explain(words)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Lay out numbers below one another, each row in one cell, so that words may replace them."""
        if self.title:
            yield title(self.title)
        figures = [self.columns[1:], *(cells for *_, cells in self.rows if not isinstance(cells, str))]
        widths = [max(one.cell_len for cell in column for one in _split(cell)) for column in zip(*figures, strict=True)]
        grid = table.Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
        # Long names wrap, so that the figures keep their place.
        grid.add_column(Text(self.columns[0]), overflow="fold", min_width=18)
        grid.add_column(_align(self.columns[1:], widths), overflow="fold", width=sum(widths) + 2 * len(widths) - 2)
        last = ""
        for group, label, cells in self.rows:
            if group != last:
                grid.add_row(Text(group, style="bold"))
            grid.add_row(Text.assemble(label), Text(cells) if isinstance(cells, str) else _align(cells, widths))
            last = group
        yield grid
        if self.legend:
            yield Text(self.legend, style="dim")


def _align(cells: Sequence[Cell], widths: Sequence[int]) -> Text:
    """Set cells, which may have several lines, right-aligned into columns."""
    columns = [_split(cell) for cell in cells]
    lines = []
    for index in range(max(map(len, columns))):
        parts = [column[index] if index < len(column) else Text() for column in columns]
        for part, width in zip(parts, widths, strict=True):
            part.align("right", width)
        lines.append(Text("  ").join(parts))
    return Text("\n").join(lines)


def _split(cell: Cell) -> list[Text]:
    return list(Text.assemble(cell).split("\n", allow_blank=True))


def rate_cells(rate: Any) -> list[Cell]:
    """Format a rate for the columns ``%``, ``95% CI`` and ``k/n``."""
    # A protocol that cannot tie has no number of ties.
    return [percent(rate.value), interval(rate.low, rate.high), f"{'–' if rate.value is None else rate.k}/{rate.n}"]


def describe_rate(rate: Any) -> str:
    """Word a rate with its interval, and whether it rests on too few."""
    few = ": too few to be sure" if rate.n < FEW else ""
    return f"{percent(rate.value)}%, 95% interval {interval(rate.low, rate.high)}%{few}"


def counted_cells(figure: Figure, *more: str) -> Cells:
    """Format a rate for ``%``, ``95% CI``, ``k/n``, ``more``, ``inv.`` and ``excl.``, or say why there is none."""
    if not figure.n:
        return empty_reason(figure)
    return [*rate_cells(figure), *more, str(figure.invalid), describe_excluded(figure)]


def has_colour() -> bool:
    """Whether output is in colour."""
    console = Console()
    return console.color_system is not None and not console.no_color


def show(parts: Iterable[RenderableType | Detail], console: Console | None = None, verbose: bool = True) -> bool:
    """Print the parts one after the other; return whether details were left out."""
    console = console or Console(highlight=False)
    is_cut = False
    for part in parts:
        if not isinstance(part, Detail):
            console.print(part)
        elif verbose:
            console.print(part.part)
        else:
            is_cut = True
    return is_cut


def name_protocol(protocol: str | None, rule: str | None) -> str:
    """Name a protocol with its rule."""
    return line(f"{protocol or ''} by {rule}" if rule else protocol or "")


def title(text: str) -> Text:
    """The heading of a table."""
    return Text(f"\n{text}", style="italic")


def notes(texts: Iterable[str], style: str = "dim") -> Iterator[Text]:
    """Remarks, each after an empty line."""
    return (Text(f"\n{text}", style=style) for text in texts)


def cautions(invalid: Counter[str], self_judging: Iterable[str]) -> Iterator[Text]:
    """What weakens every figure of a run: unreadable verdicts, and models that judge their own text."""
    if invalid:
        yield from notes([f"invalid: {'; '.join(f'{line(reason)} ({n})' for reason, n in invalid.most_common(5))}"])
    yield from notes(map(line, self_judging), "yellow")


def run_line(parameters: Mapping[str, Any]) -> str:
    """The first line of a report: judge, data, cases drawn and seed."""
    data, limit = parameters["data"], parameters["limit"]
    total = f" of {data['cases']}" if data["cases"] != limit else ""
    judge, name = line(parameters["judge"]), line(data["name"])
    return f"judge {judge} · data {name}, {count(limit, 'case')}{total}, seed {parameters['seed']}"
