"""Blocks, of which every report is built: what to say, and nothing about how it is shown.

A study writes its report once, as blocks; ``terminal``, ``markdown`` and ``html`` each show all of them. Every text is
plain: markup in a name, a response or an answer of the judge is part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from distract.report.glossary import explain

Tone = Literal["", "strong", "dim", "good", "bad", "doubtful", "removed", "added"]
"""How a text is meant; a renderer chooses colour, weight or marks."""


@dataclass(frozen=True, slots=True)
class Span:
    """A text in one tone."""

    text: str
    tone: Tone = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Words:
    """A text in several tones."""

    spans: tuple[Span, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.spans))


Prose = str | Span | Words


def list_spans(text: Prose, tone: Tone = "") -> tuple[Span, ...]:
    """Return the spans of a text; ``tone`` is that of a bare string."""
    return (Span(text, tone),) if isinstance(text, str) else (text,) if isinstance(text, Span) else text.spans


@dataclass(frozen=True, slots=True)
class Heading:
    """A title: of the report (level 1) or of one of its parts."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finding in words; ``apart``: with space above it."""

    text: Prose
    apart: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """A remark that limits or explains; ``apart``: with space above it, else it belongs to the block before."""

    text: Prose
    tone: Tone = "dim"
    apart: bool = True


Cells = Sequence[Prose] | str  # the cells of a row, or in words why it has none
TableRow = tuple[str, Prose, Cells]  # group, label and cells

_RULE = re.compile(r" (by \w+)")


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


@dataclass(frozen=True, slots=True)
class Diff:
    """Two texts as one: spans that are the same, ``removed`` or ``added``; ``apart``: with space above."""

    spans: tuple[Span, ...]
    label: str = ""
    apart: bool = True

    def __str__(self) -> str:
        """Mark what was removed as ``[-…-]`` and what was added as ``{+…+}``."""
        signs = {"removed": ("[-", "-]"), "added": ("{+", "+}")}
        parts = ((*signs.get(span.tone, ("", "")), span.text) for span in self.spans)
        return "".join(f"{begin}{text}{end}" for begin, end, text in parts)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot: its title, what its numbers are, and lines that have a meaning, each with its name."""

    title: str
    unit: Literal["share", "number", "names"] = "share"  # a share shows in %
    is_log: bool = False
    lines: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a plot, with the interval of its value.

    ``at`` is the place along the other axis: a number, or a name where that axis has names.
    """

    series: str  # points of one series share a colour, and a line if the plot joins them
    at: float | str
    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""  # more to say about it


@dataclass(frozen=True, slots=True)
class Plot:
    """Values with intervals.

    ``forest``: a row for each name, its values along x. ``line``: values up y over numbers along x. ``slope``: values
    up y over two or more names along x, joined. ``scatter``: as ``line``, each point named by its series.
    """

    kind: Literal["forest", "line", "slope", "scatter"]
    title: str
    description: str  # the text alternative: what the plot shows, in words
    values: Axis
    places: Axis
    marks: Sequence[Mark]
    characters: str = ""  # the same plot in characters, for a terminal


@dataclass(frozen=True)
class Detail:
    """A block that few readers need: only ``--verbose`` shows it on a terminal; pages fold it, unless ``is_open``."""

    block: Block
    is_open: bool = False


@dataclass(frozen=True)
class Browser:
    """The place of a run's verdicts on its page, which shows them side by side; Markdown shows some ``instead``."""

    instead: tuple[Heading | Sentence | Note | Diff, ...] = ()


Block = Heading | Sentence | Note | Table | Diff | Plot | Detail | Browser


def sentences(texts: Iterable[Prose], apart: bool = True) -> Iterator[Sentence]:
    """Findings in words."""
    return (Sentence(text, apart) for text in texts)


def notes(texts: Iterable[Prose], tone: Tone = "dim", apart: bool = True) -> Iterator[Note]:
    """Remarks."""
    return (Note(text, tone, apart) for text in texts)
