"""What ``distract consistency`` shows: tables of intransitivity and of choice sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import count, format_exclusions, interval, line, percent
from distract.report.tables import grid
from distract.stats.figure import headline
from distract.studies.consistency.document import ConsistencyResult
from distract.studies.consistency.measures import MEASURES, PlacedFigure
from distract.studies.consistency.paper import CRITERIA, PUBLISHED

FEW = 30
"""Below this many units a sentence says so."""


def report_parts(parameters: Mapping[str, Any], measured: ConsistencyResult) -> Iterator[RenderableType]:
    """The tables and sentences of a run, top to bottom."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    found = measured.figures
    yield Text("\n".join(_heading(parameters)), style="bold")
    if triples := _select_figures(found, "intransitivity"):
        yield _title("Intransitive triples: a over b and b over c, yet not a over c (lower is better)")
        yield _table(triples, "chains", _select_figures(found, "chain_rate"))
        yield Text(_describe_published("intransitivity", None))
    if sets := _select_figures(found, "choice_set_sensitivity"):
        yield _title("Choice sets: a over b reverses with another third response (lower is better)")
        yield _table(sets, "tie", _select_figures(found, "choice_set_tie_change"))
        yield Text(
            "tie: the preference changes to or from a tie, which is no reversal. The order of a and b is held fixed: a "
            "judge that goes by order alone reverses nothing."
        )
        yield Text("\n".join(_describe_published("choice_set_sensitivity", place) for place in ("last", "first")))
    for protocol in rules:
        sentence = "; ".join(_describe_protocol(protocol, rules[protocol], found)) or "nothing to sum up"
        yield Text(f"\n{line(protocol)}: {sentence}.")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(parameters, measured))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def _heading(parameters: Mapping[str, Any]) -> Iterator[str]:
    data, most = parameters["data"], parameters["sets"]
    of = f" of {data['cases']}" if data["cases"] != parameters["limit"] else ""
    cases = count(parameters["limit"], "case")
    yield f"judge {line(parameters['judge'])} · data {line(data['name'])}, {cases}{of}, seed {parameters['seed']}"
    yield f"at most {count(most, 'triple')} and {count(most, 'quadruple')} of responses to a prompt"


def _select_figures(found: Sequence[PlacedFigure], measure: str) -> list[PlacedFigure]:
    return [figure for figure in found if figure.measure == measure]


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _figure_name(figure: PlacedFigure) -> str:
    return line(figure.protocol or "") + (f" by {figure.rule}" if figure.rule else "")


def _table(found: Sequence[PlacedFigure], other: str, beside: Sequence[PlacedFigure]) -> Table:
    """Figures with their intervals, and beside each the other figure of the same units."""
    table = grid("", "%", "95% CI", "k/n", f"{other} %", "inv.", "excl.")
    last = None
    for one, more in zip(found, beside, strict=True):
        cells = (percent(one.value), interval(one.low, one.high), f"{one.k}/{one.n}", percent(more.value))
        counts = (str(one.invalid), str(one.excluded))
        name = _figure_name(one)
        if one.third and name != last:
            table.add_row(Text(name, style="bold"))
        table.add_row(Text(f" third shown {one.third}" if one.third else name), *cells, *counts)
        last = name
    return table


def _describe_published(measure: str, place: str | None) -> str:
    """The published figures of a measure in a sentence."""
    values: dict[str, list[str]] = {}
    for one in PUBLISHED:
        if (one.measure, one.place) == (measure, place):
            values.setdefault(one.judge, []).append(percent(one.value))
    where = f" (third shown {place})" if place else ""
    figures = "; ".join(f"{judge} {'/'.join(two)}" for judge, two in values.items())
    return f"published{where}, {' / '.join(CRITERIA)}: {figures}."


def _describe_protocol(protocol: str, rules: Sequence[str], found: Sequence[PlacedFigure]) -> Iterator[str]:
    """What the figures say about one protocol, by its headline rule."""
    rule = headline("intransitivity", rules)
    mine = {(f.measure, f.third): f for f in found if (f.protocol, f.rule) == (protocol, rule)}
    by = f" by {rule}" if rule else ""
    broken, chained = mine.get(("intransitivity", None)), mine.get(("chain_rate", None))
    if broken and chained:
        if not broken.n:
            yield "no intransitivity: no triple with three valid verdicts"
        elif not chained.k:
            yield f"no chain in {count(broken.n, 'triple')}{by}, so that none can be broken: that is no consistency"
        else:
            yield f"{broken.k} of {count(broken.n, 'triple')}{by} are intransitive, {chained.k} hold a chain at all"
    for place in ("last", "first"):
        if reversed_ := mine.get(("choice_set_sensitivity", place)):
            where = f"with the third response {place}"
            if reversed_.n:
                yield f"{reversed_.k} of {count(reversed_.n, 'preference')} reverse {where}"
            else:
                yield f"no choice-set sensitivity {where}: no valid verdict on both sets"
    if 0 < min((f.n for f in mine.values() if f.n), default=0) < FEW:
        yield "too few to be sure"


def _notes(parameters: Mapping[str, Any], measured: ConsistencyResult) -> Iterator[str]:
    absent = {(one.measure, one.protocol): one.reason for one in measured.absent}
    for (measure, protocol), reason in absent.items():
        if measure in (first for first, _ in MEASURES.values()):
            yield f"{measure} does not apply to {line(protocol)}: {line(reason)}"
    if measured.excluded:
        yield format_exclusions("excluded", measured.excluded)
    if measured.invalid:
        yield "invalid: " + "; ".join(f"{line(reason)} ({n})" for reason, n in measured.invalid.most_common(5))
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
    if any(figure.effective_n is not None and figure.effective_n < figure.n for figure in measured.figures):
        yield "some prompts give several triples or quadruples: intervals allow for their dependence"
