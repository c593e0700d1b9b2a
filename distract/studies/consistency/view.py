"""The report of ``distract consistency``: tables of intransitivity and of choice sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, format_exclusions, line, percent
from distract.report.blocks import Block, Detail, Heading, Note, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import FEW, cautions, counted_cells, name_protocol, run_line
from distract.stats.figure import headline
from distract.studies.consistency.design import describe_sets
from distract.studies.consistency.measures import MEASURES, ConsistencyResult, PlacedFigure
from distract.studies.consistency.paper import CRITERIA, PUBLISHED

_TITLES = {
    "triple": "Intransitive triples: a over b and b over c, yet not a over c (lower is better)",
    "set": "Choice sets: a over b reverses with another third response (lower is better)",
}


def report_parts(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[Block]:
    """The sentences and tables of a run, top to bottom."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    yield Heading(f"{run_line(parameters)}\n{describe_sets(parameters['sets'])}")
    yield from sentences(_describe_protocol(name, rules[name], result.figures) for name in rules)
    yield from cautions(result.invalid, parameters["self_judging"])
    if triples := _table(result.figures, "triple", "chains %"):
        yield triples
        yield Detail(Note(_describe_published("intransitivity", None), "", apart=False))
    if sets := _table(result.figures, "set", "tie %"):
        yield sets
        fixed = "the order of a and b is held fixed: a judge that only follows the order reverses nothing"
        yield Note(fixed, apart=False)
        published = (_describe_published("choice_set_sensitivity", place) for place in ("last", "first"))
        yield Detail(Note("\n".join(published), "", apart=False))
    yield from map(Detail, notes(_details(parameters, result)))


def _table(figures: Sequence[PlacedFigure], design: str, word: str) -> Table | None:
    """Show the measure of a design, each figure beside the other measure of the same units."""
    shares, others = ([f for f in figures if f.measure == measure] for measure in MEASURES[design])
    if not shares:
        return None
    rows: list[TableRow] = []
    for f, other in zip(shares, others, strict=True):
        name, cells = name_protocol(f.protocol, f.rule), counted_cells(f, percent(other.value))
        rows.append((name, f" third shown {f.third}", cells) if f.third else ("", name, cells))
    return Table(_TITLES[design], ("", "%", "95% CI", "k/n", word, "inv.", "excl."), rows)


def _describe_published(measure: str, place: str | None) -> str:
    values: dict[str, list[str]] = {}
    for published in PUBLISHED:
        if (published.measure, published.place) == (measure, place):
            values.setdefault(published.judge, []).append(percent(published.value))
    where = f" (third shown {place})" if place else ""
    figures = "; ".join(f"{judge} {'/'.join(shares)}" for judge, shares in values.items())
    return f"published{where}, {' / '.join(CRITERIA)}: {figures}."


def _describe_protocol(protocol: str, rules: Sequence[str], figures: Sequence[PlacedFigure]) -> str:
    """Sum up one protocol, by its headline rule."""
    rule = headline("intransitivity", rules)
    measured = {(f.measure, f.third): f for f in figures if (f.protocol, f.rule) == (protocol, rule)}
    sentences = []
    broken, chained = measured.get(("intransitivity", None)), measured.get(("chain_rate", None))
    if broken and chained:
        triples = count(broken.n, "triple")
        if not broken.n:
            sentences.append(f"no intransitivity: {empty_reason(broken)}")
        elif not chained.k:
            sentences.append(f"no chain in {triples}, so none can be broken: that does not make it consistent")
        else:
            sentences.append(f"{broken.k} of {triples} are intransitive, {chained.k} hold a chain at all")
    for place in ("last", "first"):
        if reversed_ := measured.get(("choice_set_sensitivity", place)):
            where = f"with the third response {place}"
            if reversed_.n:
                sentences.append(f"{reversed_.k} of {count(reversed_.n, 'preference')} reverse {where}")
            else:
                sentences.append(f"no choice-set sensitivity {where}: {empty_reason(reversed_)}")
    if 0 < min((f.n for f in measured.values() if f.n), default=0) < FEW:
        sentences.append("too few to be sure")
    by = f", by {rule}" if rule else ""
    return f"{line(protocol)}{by}: {'; '.join(sentences) or 'nothing to sum up'}."


def _details(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[str]:
    absent = {(one.measure, one.protocol): one.reason for one in result.absent}
    for (measure, protocol), reason in absent.items():
        if measure in (first for first, _ in MEASURES.values()):
            yield f"{measure} does not apply to {line(protocol)}: {line(reason)}"
    if result.excluded:
        yield format_exclusions("excluded", result.excluded)
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
    if any(figure.effective_n is not None and figure.effective_n < figure.n for figure in result.figures):
        yield "some prompts give several triples or quadruples: intervals allow for their dependence"
