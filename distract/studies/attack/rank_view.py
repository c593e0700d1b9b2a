"""The ranking of protocols on the terminal: a table, and a plot in characters."""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from distract.core.printable import count, interval, p_value, percent
from distract.judging import BASE
from distract.report.blocks import Axis, Block, Detail, Mark, Note, Plot, Span, Table, TableRow, Words
from distract.report.glossary import empty_reason
from distract.report.phrases import VERDICTS, name_protocol
from distract.stats.intervals import wilson
from distract.studies.attack.protocol_ranks import ProtocolRank, RankMeasure

WIDTH, HEIGHT = 56, 12
"""Characters of the plot inside its axes."""

FEWEST = 3
"""Protocols that deserve a plot, and a hint if base is missing."""

MARKS = string.ascii_uppercase + string.digits
"""Marks for protocols in the plot, in the order of the table."""

_FRONT = "◆"
_STEP = "·"

UNRANKED = "Protocols side by side, not ranked: none is shown to tell good from bad"

_MEASURES: Mapping[RankMeasure, tuple[str, str]] = {
    "robust_accuracy": ("robust", "most often right before and after an attack"),
    "flip_rate": ("flips %", "fewest flips"),
}
"""The heading of each measure, and which protocol comes first."""

PlotCell = tuple[int, int]
"""Column and row, counted from the lower left."""


def ranking_parts(standings: Sequence[ProtocolRank]) -> Iterable[Block]:
    """Show a table, and a plot of the ranked protocols; nothing for a single protocol."""
    if len(standings) < 2:
        return
    ranked = [s for s in standings if s.rank is not None]
    drawn = ranked[: len(MARKS)] if len(ranked) >= FEWEST else []
    marks = {s.protocol: mark if s.pareto else mark.lower() for mark, s in zip(MARKS, drawn, strict=False)}
    yield _table(standings, marks)
    if shared := max(s.n for s in standings):
        yield Note(f"n = {shared:,}: the comparisons that all protocols share", apart=False)
    if drawn:
        yield Detail(_plot(drawn, marks, len(standings) - len(drawn)))
    if len(standings) >= FEWEST and all(s.protocol != BASE for s in standings):
        yield Note(f"{BASE} was not run: add --protocol {BASE} to compare with it", apart=False)


def _table(standings: Sequence[ProtocolRank], marks: Mapping[str, str]) -> Table:
    against = any(s.protocol == BASE for s in standings)
    is_widened = any((s.low, s.high) != wilson(s.k, s.n) for s in standings if s.n)
    heading, first = _MEASURES[standings[0].measure]
    is_ranked = any(s.rank for s in standings)
    rows: list[TableRow] = []
    for s in standings:
        mark = Span(f"{marks.get(s.protocol, ' ' if marks else '')}{_FRONT if s.pareto else ' '} ")
        label = Words((mark, Span(name_protocol(s.protocol, s.rule), "strong" if s.pareto else "")))
        costs = [f"{s.calls:,.1f}", f"{s.tokens:,.0f}"]
        if not s.n:
            gap = "shares no comparison with the others" if s.own else empty_reason(s)
            rows.append(("", label, f"{gap}; {costs[0]} calls, {costs[1]} tokens"))
            continue
        rank = str(s.rank or ("– unusable" if s.usable == "no" else "– unclear"))
        cells = [rank, percent(s.value), interval(s.low, s.high), *costs]
        rows.append(("", label, [*cells, *([_describe_comparison(s)] if against else [])]))
    return Table(
        f"Protocols, {first} first" if is_ranked else UNRANKED,
        ("", "rank", heading, "95% CI", "calls", "tokens", *(["vs base"] if against else [])),
        rows,
        (
            *(["over all attacks"] if is_widened else []),
            *(["letters"] if marks else []),
            *([_FRONT] if any(s.pareto for s in standings) else []),
        ),
    )


def _describe_comparison(s: ProtocolRank) -> str:
    """Word the comparison with the base protocol; a protocol without a rank is not praised."""
    if s.against_base is None:
        return ""
    is_praise = s.against_base == "better" and s.rank is None
    return f"{'differs' if is_praise else VERDICTS[s.against_base]} {p_value(s.p_adjusted)}"


def _plot(drawn: Sequence[ProtocolRank], marks: Mapping[str, str], missing: int) -> Plot:
    """Plot the measure over cost, with the best of the Pareto front as a staircase, and say what it leaves out."""
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
    # Each step leads to a protocol that costs more and is better, whichever direction is better.
    steps = list[ProtocolRank]()
    for s in sorted((s for s in drawn if s.pareto), key=lambda s: (s.cost, s.loss)):
        if not steps or s.loss < steps[-1].loss:
            steps.append(s)
    for cell in _stairs([placed[s.protocol] for s in steps]):
        cells.setdefault(cell, _STEP)
    # A range of one value has one end.
    ends = {HEIGHT - 1: max(rates), 0: min(rates)} if max(rates) > min(rates) else {0: min(rates)}
    lines = list[str]()
    for y in reversed(range(HEIGHT)):
        label = f"{percent(ends[y])}%" if y in ends else ""
        inside = "".join(cells.get((x, y), " ") for x in range(WIDTH))
        lines.append(f"{label:>6} │{inside.rstrip()}")
    left, right = (
        f"{cost:,.0f}" if unit == "tokens" else f"{cost:,.1f}" for cost in (min(s.cost for s in drawn), high)
    )
    right = "" if left == right else right
    under = f"{left}{right:>{WIDTH - len(left)}}".rstrip()
    cost_title = f"{unit} for a comparison (log scale)"
    lines += [f"       └{'─' * WIDTH}", f"        {under}", f"        {cost_title:^{WIDTH}}".rstrip()]
    if steps:
        lines.append("capital letters: the Pareto front; staircase: the best of it up to each cost")
    if exact != placed:
        lines.append("marks that would overlap are drawn side by side")
    if missing:
        lines.append(f"not drawn: {count(missing, 'protocol')}, not ranked or after the first {len(MARKS)}")
    _, first = _MEASURES[drawn[0].measure]
    return Plot(
        "scatter",
        f"Protocols by cost: {first}",
        "; ".join(f"{name_protocol(s.protocol, s.rule)} {percent(s.value)}% at {s.cost:,.1f} {unit}" for s in drawn),
        values=Axis(first),
        places=Axis(cost_title, "number", is_log=True),
        marks=[Mark(name_protocol(s.protocol, s.rule), max(s.cost, low), s.value or 0.0, s.low, s.high) for s in drawn],
        characters="\n".join(lines),
    )


def _cell_index(value: float, low: float, high: float, size: int) -> int:
    return round((value - low) / (high - low) * (size - 1)) if high > low else 0


def _nearest_free(target: PlotCell, taken: Collection[PlotCell]) -> PlotCell:
    free = ((x, y) for x in range(WIDTH) for y in range(HEIGHT) if (x, y) not in taken)
    # A character is about twice as high as it is wide.
    return min(free, key=lambda cell: ((cell[0] - target[0]) ** 2 + 4 * (cell[1] - target[1]) ** 2, cell))


def _stairs(steps: Sequence[PlotCell]) -> Iterable[PlotCell]:
    """Join steps from left to right: along at the value reached, then up or down to the next."""
    for (x, y), (to_x, to_y) in pairwise(steps):
        yield from ((between, y) for between in range(min(x, to_x), max(x, to_x) + 1))
        yield from ((to_x, between) for between in range(min(y, to_y), max(y, to_y) + 1))
