"""The ranking of protocols on the terminal: a table, and a plot in characters.

Names are plain ``Text``, so that markup in them stays text.
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import count, p_value, percent
from distract.judging import BASE
from distract.report.glossary import empty_reason
from distract.report.tables import VERDICTS, Detail, Table, TableRow, name_protocol, rate_cells
from distract.stats.intervals import wilson
from distract.studies.attack.protocol_ranks import ProtocolRank

WIDTH, HEIGHT = 56, 12
"""Characters of the plot inside its axes."""

FEWEST = 3
"""Protocols that deserve a plot, and a hint if base is missing."""

MARKS = string.ascii_uppercase + string.digits
"""Marks for protocols in the plot, in the order of the table."""

_FRONT = "◆"
_STEP = "·"

PlotCell = tuple[int, int]
"""Column and row, counted from the lower left."""


def ranking_parts(standings: Sequence[ProtocolRank]) -> Iterable[RenderableType | Detail]:
    """Show a table and a plot; nothing for a single protocol."""
    if len(standings) < 2:
        return
    drawn = [s for s in standings if s.value is not None]
    marked = dict(zip(MARKS, drawn, strict=False)) if len(drawn) >= FEWEST else {}
    marks = {s.protocol: mark if s.pareto else mark.lower() for mark, s in marked.items()}
    yield _table(standings, marks)
    if marks:
        yield from map(Detail, _plot(drawn, marks))
    if len(standings) >= FEWEST and all(s.protocol != BASE for s in standings):
        yield Text(f"{BASE} was not run: add --protocol {BASE} to compare with it", style="dim")


def _table(standings: Sequence[ProtocolRank], marks: Mapping[str, str]) -> Table:
    against = any(s.protocol == BASE for s in standings)
    is_widened = any((s.low, s.high) != wilson(s.k, s.n) for s in standings if s.n)
    rows: list[TableRow] = []
    for s in standings:
        label = Text(f"{marks.get(s.protocol, ' ' if marks else '')}{_FRONT if s.pareto else ' '} ")
        label.append(name_protocol(s.protocol, s.rule), style="bold" if s.pareto else "")
        versus = f"{VERDICTS[s.against_base]} {p_value(s.p_adjusted)}" if s.against_base else ""
        cells = [*rate_cells(s), f"{s.calls:,.1f}", f"{s.tokens:,.0f}", *([versus] if against else [])]
        rows.append(("", label, cells if s.n else f"{empty_reason(s)}; {cells[3]} calls, {cells[4]} tokens"))
    return Table(
        "Protocols, most robust first: flip rate over all attacks, cost per comparison",
        ("", "%", "95% CI", "k/n", "calls", "tokens", *(["vs base"] if against else [])),
        rows,
        (
            *(["over all attacks"] if is_widened else []),
            *(["letters"] if marks else []),
            *([_FRONT] if any(s.pareto for s in standings) else []),
        ),
    )


def _plot(standings: Sequence[ProtocolRank], marks: Mapping[str, str]) -> Iterable[Text]:
    """Plot flip rate over cost, with the Pareto front as a staircase, and say what it leaves out."""
    drawn = [s for s in standings if s.protocol in marks]
    unit = drawn[0].cost_unit
    # A cost of 0 has no logarithm; draw it at the lower end.
    low, high = min((s.cost for s in drawn if s.cost), default=1.0), max(s.cost for s in drawn)
    rates = [s.value or 0.0 for s in drawn]
    exact = {
        s.protocol: (
            _cell_index(math.log(max(s.cost, low)), math.log(low), math.log(max(high, low)), WIDTH),
            _cell_index(s.value or 0.0, min(rates), max(rates), HEIGHT),
        )
        for s in drawn
    }
    cells: dict[PlotCell, str] = {}
    placed: dict[str, PlotCell] = {}
    # Place the front first, so that no other mark displaces it.
    for s in sorted(drawn, key=lambda s: not s.pareto):
        placed[s.protocol] = cell = _nearest_free(exact[s.protocol], cells)
        cells[cell] = marks[s.protocol]
    # At equal cost the upper mark comes first, so that the next step starts from the lowest.
    front = sorted((placed[s.protocol] for s in drawn if s.pareto), key=lambda cell: (cell[0], -cell[1]))
    for cell in _stairs(front):
        cells.setdefault(cell, _STEP)
    # A range of one value has one end.
    ends = {HEIGHT - 1: max(rates), 0: min(rates)} if max(rates) > min(rates) else {0: min(rates)}
    text = Text("\n", no_wrap=True, overflow="crop")
    for y in reversed(range(HEIGHT)):
        label = f"{percent(ends[y])}%" if y in ends else ""
        inside = "".join(cells.get((x, y), " ") for x in range(WIDTH))
        text.append(f"{label:>6} │{inside.rstrip()}\n")
    left, right = (
        f"{cost:,.0f}" if unit == "tokens" else f"{cost:,.1f}" for cost in (min(s.cost for s in drawn), high)
    )
    right = "" if left == right else right
    under = f"{left}{right:>{WIDTH - len(left)}}".rstrip()
    text.append(f"       └{'─' * WIDTH}\n        {under}\n")
    text.append(f"        {f'{unit} for a comparison (log scale)':^{WIDTH}}".rstrip())
    yield text
    yield Text("capital letters and the staircase: the Pareto front", style="dim")
    if exact != placed:
        yield Text("marks that would overlap are drawn side by side", style="dim")
    if missing := len(standings) - len(drawn):
        yield Text(f"not drawn: {count(missing, 'protocol')} below the first {len(drawn)}", style="dim")


def _cell_index(value: float, low: float, high: float, size: int) -> int:
    return round((value - low) / (high - low) * (size - 1)) if high > low else 0


def _nearest_free(target: PlotCell, taken: Collection[PlotCell]) -> PlotCell:
    free = ((x, y) for x in range(WIDTH) for y in range(HEIGHT) if (x, y) not in taken)
    # A character is about twice as high as it is wide.
    return min(free, key=lambda cell: ((cell[0] - target[0]) ** 2 + 4 * (cell[1] - target[1]) ** 2, cell))


def _stairs(front: Sequence[PlotCell]) -> Iterable[PlotCell]:
    """Join the front from left to right: along at the flip rate reached, then down to the next."""
    for (x, y), (to_x, to_y) in pairwise(front):
        yield from ((between, y) for between in range(x, to_x + 1))
        yield from ((to_x, between) for between in range(min(y, to_y), max(y, to_y) + 1))
