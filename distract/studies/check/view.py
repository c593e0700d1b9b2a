"""The report of ``distract check``: facts kept, lost and invented, the difference in colour, error rates.

Without colour the difference is marked as ``[-gone-]`` and ``{+new+}``. The texts are hostile: nothing in them is
markup, and control characters are shown as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich import table as rich_table
from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import clean_text, line, percent
from distract.core.records import Rewrite
from distract.report.glossary import explain
from distract.report.tables import Table, TableRow, rate_cells
from distract.rewriting.fidelity.facts import opcodes
from distract.studies.check.audit import ERRORS, CheckResult, ErrorRate

_TOKENS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


def pair_report(checked: CheckResult, colour: bool) -> Iterator[RenderableType]:
    """A verdict with its reasons, rule by rule, and the difference."""
    yield _format_verdict(checked.reasons)
    table = rich_table.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("fact", "kept", "lost", "invented"):
        table.add_column(name, style="red" if name in ("lost", "invented") and colour else None, overflow="fold")
    for kind, difference in checked.facts.items():
        parts = [", ".join(map(line, part)) for part in (difference.kept, difference.lost, difference.invented)]
        table.add_row(Text(kind), *(Text(part or "–") for part in parts))
    yield table
    yield Text(explain({"kept, lost, invented"}), style="dim")
    yield Text("evidence: " + ", ".join(f"{name} {value}" for name, value in checked.evidence))
    yield Text("")
    yield mark_difference("\n\n".join(checked.pair.original), "\n\n".join(checked.pair.rewrite), colour)


def run_report(rewrites: Sequence[Rewrite], colour: bool) -> Iterator[RenderableType]:
    """Every rewrite of a run: rejected ones first, with the difference."""
    rejected = sum(not rewrite.is_accepted for rewrite in rewrites)
    yield Text(f"{rejected} of {len(rewrites)} rewrites rejected")
    for rewrite in sorted(rewrites, key=lambda rewrite: rewrite.is_accepted):
        r = rewrite.response
        attack = " ".join(part for part in (r.attack, f"severity {r.severity}" if r.severity else "") if part)
        yield Text(
            f"\n{line(rewrite.case)}, {line(r.author)}, {line(attack)} ({line(rewrite.generator)})", style="bold"
        )
        yield _format_verdict(rewrite.reasons)
        if rewrite.original:
            yield mark_difference("\n\n".join(rewrite.original), "\n\n".join(r.turns), colour)


def labelled_report(rates: Sequence[ErrorRate]) -> Iterator[RenderableType]:
    """Both error rates: over all, by style, by kind."""
    tables = list[Table]()
    for measure, name in zip(ERRORS.values(), ("Faithful rewrites rejected", "Changed rewrites accepted"), strict=True):
        part = [rate for rate in rates if rate.measure == measure and None in (rate.kind, rate.style)]
        rows: list[TableRow] = []
        for rate in sorted(part, key=lambda r: (r.kind is not None, r.style is not None)):
            if rate.style is rate.kind is None:
                yield Text(f"{name}: {rate.k} of {rate.n} ({percent(rate.value)}%).")
            rows.append(("", line(rate.style or rate.kind or "all"), rate_cells(rate)))
        tables.append(Table(f"{name} (lower is better)", ("", "%", "95% CI", "k/n"), rows))
    yield from tables


def mark_difference(before: str, after: str, colour: bool) -> Text:
    """Show both texts as one, with the difference marked."""
    old, new = (_TOKENS.findall(text) for text in (before, after))
    text = Text()
    for what, a, b, c, d in opcodes(old, new):
        removed, added = clean_text("".join(old[a:b])), clean_text("".join(new[c:d]))
        if what == "equal":
            text.append(removed)
            continue
        if removed:
            text.append(removed if colour else f"[-{removed}-]", style="red strike")
        if added:
            text.append(added if colour else f"{{+{added}+}}", style="green")
    return text


def _format_verdict(reasons: Sequence[str]) -> Text:
    if not reasons:
        return Text("accepted", style="green")
    return Text("rejected: ", style="red") + Text("; ".join(map(line, reasons)), style="default")
