"""The control of each attack, and the shifts beyond it, in the report; ``truth_view`` ranks what exceeds a control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import line
from distract.report.blocks import Block, Table, TableRow, notes
from distract.report.phrases import name_protocol
from distract.stats.figure import Figure
from distract.studies.attack.controls import describe_controls
from distract.studies.attack.excess import is_excess


def excess_parts(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """State the control of each attack, and the shift of each attack without that of its control."""
    yield from notes(describe_controls(parameters))
    rows: list[TableRow] = []
    for f in [f for f in figures if f.measure == "shift" and is_excess(f) and f.n]:
        name = f" {line(f.attack)} – {line(f.against_attack or '')}"
        ends = "" if f.low is None or f.high is None else f"{f.low:+.3f} to {f.high:+.3f}"
        rows.append((name_protocol(f.protocol, f.rule), name, [f"{f.value:+.3f}", ends, str(f.n)]))
    if rows:
        yield Table("Shift beyond that of the control, on the same responses", ("", "shift", "95% CI", "n"), rows)
