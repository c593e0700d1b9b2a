"""The report of ``distract consistency``: tables of intransitivity and of choice sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import count, format_exclusions, interval, line, percent
from distract.report.tables import grid, run_line, title
from distract.stats.figure import headline
from distract.studies.consistency.design import describe_sets
from distract.studies.consistency.measures import MEASURES, ConsistencyResult, PlacedFigure
from distract.studies.consistency.paper import CRITERIA, PUBLISHED

FEW = 30
"""Number of units below which a sentence says that they are few."""


def report_parts(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[RenderableType]:
    """The tables and sentences of a run, top to bottom."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    figures = result.figures
    yield Text(f"{run_line(parameters)}\n{describe_sets(parameters['sets'])}", style="bold")
    if triples := _select_figures(figures, "intransitivity"):
        yield title("Intransitive triples: a over b and b over c, yet not a over c (lower is better)")
        yield _table(triples, "chains", _select_figures(figures, "chain_rate"))
        yield Text(_describe_published("intransitivity", None))
    if sets := _select_figures(figures, "choice_set_sensitivity"):
        yield title("Choice sets: a over b reverses with another third response (lower is better)")
        yield _table(sets, "tie", _select_figures(figures, "choice_set_tie_change"))
        yield Text(
            "tie: the preference changes to or from a tie, which is no reversal. The order of a and b is held fixed: a "
            "judge that goes by order alone reverses nothing."
        )
        yield Text("\n".join(_describe_published("choice_set_sensitivity", place) for place in ("last", "first")))
    for protocol in rules:
        sentence = "; ".join(_describe_protocol(protocol, rules[protocol], figures)) or "nothing to sum up"
        yield Text(f"\n{line(protocol)}: {sentence}.")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(parameters, result))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def _select_figures(figures: Sequence[PlacedFigure], measure: str) -> list[PlacedFigure]:
    return [figure for figure in figures if figure.measure == measure]


def _figure_name(figure: PlacedFigure) -> str:
    return line(figure.protocol or "") + (f" by {figure.rule}" if figure.rule else "")


def _table(figures: Sequence[PlacedFigure], other: str, others: Sequence[PlacedFigure]) -> Table:
    """Show figures with their intervals, each beside the other figure of the same units."""
    table = grid("", "%", "95% CI", "k/n", f"{other} %", "inv.", "excl.")
    last = None
    for f, beside in zip(figures, others, strict=True):
        cells = (percent(f.value), interval(f.low, f.high), f"{f.k}/{f.n}", percent(beside.value))
        name = _figure_name(f)
        if f.third and name != last:
            table.add_row(Text(name, style="bold"))
        table.add_row(Text(f" third shown {f.third}" if f.third else name), *cells, str(f.invalid), str(f.excluded))
        last = name
    return table


def _describe_published(measure: str, place: str | None) -> str:
    values: dict[str, list[str]] = {}
    for published in PUBLISHED:
        if (published.measure, published.place) == (measure, place):
            values.setdefault(published.judge, []).append(percent(published.value))
    where = f" (third shown {place})" if place else ""
    figures = "; ".join(f"{judge} {'/'.join(shares)}" for judge, shares in values.items())
    return f"published{where}, {' / '.join(CRITERIA)}: {figures}."


def _describe_protocol(protocol: str, rules: Sequence[str], figures: Sequence[PlacedFigure]) -> Iterator[str]:
    """Sum up one protocol, by its headline rule."""
    rule = headline("intransitivity", rules)
    measured = {(f.measure, f.third): f for f in figures if (f.protocol, f.rule) == (protocol, rule)}
    by = f" by {rule}" if rule else ""
    broken, chained = measured.get(("intransitivity", None)), measured.get(("chain_rate", None))
    if broken and chained:
        if not broken.n:
            yield "no intransitivity: no triple with three valid verdicts"
        elif not chained.k:
            yield f"no chain in {count(broken.n, 'triple')}{by}, so that none can be broken: that is no consistency"
        else:
            yield f"{broken.k} of {count(broken.n, 'triple')}{by} are intransitive, {chained.k} hold a chain at all"
    for place in ("last", "first"):
        if reversed_ := measured.get(("choice_set_sensitivity", place)):
            where = f"with the third response {place}"
            if reversed_.n:
                yield f"{reversed_.k} of {count(reversed_.n, 'preference')} reverse {where}"
            else:
                yield f"no choice-set sensitivity {where}: no valid verdict on both sets"
    if 0 < min((f.n for f in measured.values() if f.n), default=0) < FEW:
        yield "too few to be sure"


def _notes(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[str]:
    absent = {(one.measure, one.protocol): one.reason for one in result.absent}
    for (measure, protocol), reason in absent.items():
        if measure in (first for first, _ in MEASURES.values()):
            yield f"{measure} does not apply to {line(protocol)}: {line(reason)}"
    if result.excluded:
        yield format_exclusions("excluded", result.excluded)
    if result.invalid:
        yield "invalid: " + "; ".join(f"{line(reason)} ({n})" for reason, n in result.invalid.most_common(5))
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
    if any(figure.effective_n is not None and figure.effective_n < figure.n for figure in result.figures):
        yield "some prompts give several triples or quadruples: intervals allow for their dependence"
