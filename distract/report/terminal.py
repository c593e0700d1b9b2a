"""Blocks on the terminal: tables that fit 80 columns, and differences in colour or, without it, in marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import table
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.text import Text

from distract.report import blocks

_STYLES: Mapping[blocks.Tone, str] = {
    "": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "doubtful": "yellow",
    "removed": "red strike",
    "added": "bold green",
}
_LEVELS = {1: "bold", 2: "bold", 3: "italic"}


def show(parts: Iterable[blocks.Block], console: Console | None = None, verbose: bool = True) -> bool:
    """Print blocks one after the other; return whether details were left out."""
    console = console or Console(highlight=False)
    is_cut, is_first = False, True
    for block in parts:
        if isinstance(block, blocks.Detail) and not verbose:
            is_cut = True
            continue
        for part in _render(block, is_first, has_colour(console)):
            console.print(part)
            is_first = False
    return is_cut


def has_colour(console: Console | None = None) -> bool:
    """Whether output is in colour."""
    console = console or Console()
    return console.color_system is not None and not console.no_color


def _render(block: blocks.Block, is_first: bool, colour: bool) -> Iterator[RenderableType]:
    space = "" if is_first else "\n"
    match block:
        case blocks.Heading(text, level):
            yield Text(space + text, style=_LEVELS.get(level, "italic"))
        case blocks.Sentence(text, apart):
            yield Text(space if apart else "") + _style(text)
        case blocks.Note(text, tone, apart):
            yield Text(space if apart else "") + _style(text, tone)
        case blocks.Diff(spans, label, apart):
            before = Text(space if apart else "") + Text(f"{label}\n" if label else "", style="dim")
            yield before + (_style(blocks.Words(spans)) if colour else Text(str(block)))
        case blocks.Plot(characters=characters):
            if characters:
                yield Text(f"{space}{characters}", no_wrap=True, overflow="crop")
        case blocks.Table():
            yield from _lay_out(block, space)
        case blocks.Detail(part):
            yield from _render(part, is_first, colour)


def _style(text: blocks.Prose, tone: blocks.Tone = "") -> Text:
    return Text.assemble(*(Text(span.text, style=_STYLES[span.tone]) for span in blocks.list_spans(text, tone)))


def _lay_out(block: blocks.Table, space: str) -> Iterator[RenderableType]:
    """Lay out numbers below one another, each row in one cell, so that words may replace them."""
    if block.title or space:
        yield Text(f"{space}{block.title}" if block.title else "", style="italic")
    figures = [block.columns[1:], *(cells for *_, cells in block.rows if not isinstance(cells, str))]
    widths = [max(one.cell_len for cell in column for one in _split(cell)) for column in zip(*figures, strict=True)]
    grid = table.Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    # Long names wrap, so that the figures keep their place.
    grid.add_column(Text(block.columns[0]), overflow="fold", min_width=18)
    grid.add_column(_align(block.columns[1:], widths), overflow="fold", width=sum(widths) + 2 * len(widths) - 2)
    last = ""
    for group, label, cells in block.rows:
        if group != last:
            grid.add_row(Text(group, style="bold"))
        grid.add_row(_style(label), Text(cells) if isinstance(cells, str) else _align(cells, widths))
        last = group
    yield grid
    if block.legend:
        yield Text(block.legend, style="dim")


def _align(cells: Sequence[blocks.Prose], widths: Sequence[int]) -> Text:
    """Set cells, which may have several lines, right-aligned into columns."""
    columns = [_split(cell) for cell in cells]
    lines = []
    for index in range(max(map(len, columns))):
        parts = [column[index] if index < len(column) else Text() for column in columns]
        for part, width in zip(parts, widths, strict=True):
            part.align("right", width)
        lines.append(Text("  ").join(parts))
    return Text("\n").join(lines)


def _split(cell: blocks.Prose) -> list[Text]:
    return list(_style(cell).split("\n", allow_blank=True))
