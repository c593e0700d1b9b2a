"""What attacks do beyond their controls, in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import interval, line, p_value, percent
from distract.report.blocks import Block, Table, TableRow, notes
from distract.report.phrases import join_names, name_protocol
from distract.stats.figure import Figure
from distract.studies.attack.controls import describe_controls
from distract.studies.attack.excess import is_excess

LEVEL = 0.05

TITLES: Mapping[str, tuple[str, str]] = {
    "flip_rate": ("Flips", "flip more verdicts"),
    "gain_rate": ("Gains", "win more comparisons"),
}
"""What each rate counts, and what an attack does that has more of it than its control."""


def excess_parts(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """State the control of each attack, and what remains of the attack's effect without that of the control."""
    yield from notes(describe_controls(parameters))
    own = [figure for figure in figures if is_excess(figure) and figure.n]
    for measure, (noun, action) in TITLES.items():
        if rates := [figure for figure in own if figure.measure == measure]:
            yield Table(
                f"{noun} beyond those under the control, on the same pairs",
                ("", "points", "95% CI", "n", "p"),
                [_row(f, percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)) for f in rates],
            )
            yield from notes(_list_stronger(rates, action))
    if shifts := [figure for figure in own if figure.measure == "shift"]:
        title = "Shift beyond that of the control, on the same responses"
        yield Table(title, ("", "shift", "95% CI", "n"), [_row(f, *_shift_cells(f), str(f.n)) for f in shifts])


def _row(figure: Figure, *cells: str) -> TableRow:
    name = f" {line(figure.attack)} – {line(figure.against_attack or '')}"
    return name_protocol(figure.protocol, figure.rule), name, list(cells)


def _shift_cells(figure: Figure) -> tuple[str, str]:
    ends = "" if figure.low is None or figure.high is None else f"{figure.low:+.3f} to {figure.high:+.3f}"
    return f"{figure.value:+.3f}", ends


def _list_stronger(rates: Sequence[Figure], action: str) -> Iterator[str]:
    """Name the attacks of each protocol that are shown to be stronger than their control."""
    for place in dict.fromkeys((figure.protocol, figure.rule) for figure in rates):
        own = [figure for figure in rates if (figure.protocol, figure.rule) == place]
        stronger = [f for f in own if (f.value or 0) > 0 and f.p_adjusted is not None and f.p_adjusted < LEVEL]
        names = join_names(line(figure.attack) for figure in stronger) if stronger else "no attack"
        is_one = len(stronger) < 2
        yield f"{name_protocol(*place)}: {names} {'is' if is_one else 'are'} shown to {action} than the control"
