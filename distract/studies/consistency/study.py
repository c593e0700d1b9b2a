"""``distract consistency``: whether the verdicts on three and four responses to a prompt fit together; its report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from typing import Any, ClassVar

from distract.core.printable import count, format_exclusions, line, percent
from distract.core.records import BASELINE, Row, Side
from distract.core.study import BufferedSums, Study
from distract.judging.verdicts import outcome
from distract.report.blocks import Block, Detail, Heading, Note, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import FEW, cautions, counted_cells, left_out_lines, name_protocol, run_line
from distract.stats import measures as table
from distract.stats.figure import Figure, flatten, measure_trials
from distract.stats.trials import EXCLUDED, Trial
from distract.studies.consistency.options import PROTOCOLS, ConsistencyOptions
from distract.studies.consistency.session import comparison_key, describe_sets, list_beside, prepare
from distract.studies.setup import ROW_FIELDS

_ROWS = table.MEASURES.values()
MEASURES = {design: [row for row in _ROWS if row.per == design] for design in ("triple", "set")}
"""The measures of each design; the first sums it up."""


@dataclass(frozen=True, slots=True)
class PlacedFigure(Figure):
    """A figure for one place of the third response: ``first``, ``last``, or None where none is shown."""

    third: str | None = None

    KEY: ClassVar[tuple[str, ...]] = (*Figure.KEY, "third")


@dataclass(frozen=True, slots=True)
class MissingMeasure:
    """A measure for which a protocol could judge nothing, and why."""

    measure: str
    protocol: str
    reason: str


@dataclass(frozen=True)
class ConsistencyResult:
    """The figures of a run in a total order, the measures it lacks, and counts of exclusions and failures by reason."""

    figures: Sequence[PlacedFigure]
    absent: Sequence[MissingMeasure]
    excluded: Counter[str]
    invalid: Counter[str]


def measure_rows(parameters: Mapping[str, Any], rows: Iterable[Row]) -> ConsistencyResult:
    """Measure a run."""
    rows, rules = [row for row in rows if row.design in MEASURES], parameters["protocols"]
    judged = {(row.design, row.protocol) for row in rows if row.excluded is None}
    # A pair that is judged once has a row in every triple that it is in.
    unique = {comparison_key(row): row for row in rows}.values()
    excluded = Counter(row.excluded for row in rows if row.excluded and (row.design, row.protocol) in judged)
    invalid = Counter(judgment.failure for row in unique for judgment in row.judgments if judgment.failure)
    return ConsistencyResult(figures(rows, rules), missing_measures(rows, rules), excluded, invalid)


def missing_measures(rows: Iterable[Row], rules: Iterable[str]) -> list[MissingMeasure]:
    """Find the measures for which a run judged nothing, unless it was cut short."""
    reasons: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for row in rows:
        reasons[row.design, row.protocol].add(row.excluded)
    return [
        MissingMeasure(measure.name, protocol, "; ".join(sorted(filter(None, why))))
        for measure, protocol in product(chain(*MEASURES.values()), sorted(rules))
        if (why := reasons[str(measure.per), protocol]) and None not in why
    ]


def figures(rows: Sequence[Row], rules: Mapping[str, Sequence[str]]) -> list[PlacedFigure]:
    """Compute every figure that the rows support, in a total order."""
    results = list[PlacedFigure]()
    for protocol, (design, place) in product(rules, (("triple", None), ("set", "last"), ("set", "first"))):
        own = [row for row in rows if (row.protocol, row.design) == (protocol, design)]
        if own and all(row.excluded is not None for row in own):
            continue
        for rule in rules[protocol] or (None,):
            # A case without any quadruple is excluded in either place.
            trials = list(_list_trials((row for row in own if row.extra.get("place") in (None, place)), rule))
            empty = PlacedFigure("", protocol, rule, BASELINE, third=place)
            results += [measure_trials(measure, trials, empty) for measure in MEASURES[design]]
    return sorted(results, key=lambda figure: figure.place)


def _list_trials(rows: Iterable[Row], rule: str | None) -> Iterator[Trial]:
    """List the triples, or the pairs beside two third responses; one with too few rows was cut short."""
    units: dict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    for row in rows:
        fixed = (row.a, row.b) if row.design == "set" else ()  # the order of the pair counts
        beside = list_beside(row)
        rest = beside if row.design == "set" else (row.a, row.b, *beside)
        units[row.case, fixed, frozenset(rest)].append(row)
    for unit, part in units.items():
        results = [outcome(row.judgments, rule) for row in part]
        is_cut = len(part) != (3 if part[0].design == "triple" else 2) or any(row.excluded is not None for row in part)
        before, after = (None, None) if is_cut or None in results else (results[0], results[-1])
        if before is not None and part[0].design == "triple":
            sides = [((row.a, row.b), result) for row, result in zip(part, results, strict=True) if result != "tie"]
            is_broken, has_chain = find_chain(pair if result == "a" else pair[::-1] for pair, result in sides)
            before = "a" if has_chain else "tie"
            after = "b" if is_broken else before
        yield Trial(unit, part[0].group, before, after, missing=EXCLUDED if is_cut else None)


def find_chain(beats: Iterable[tuple[Side, Side]]) -> tuple[bool, bool]:
    """Whether a chain among three responses is broken, and whether there is one at all."""
    won = set(beats)
    ends = [(p, r) for p, q in won for other, r in won if other == q]
    return any(pair not in won for pair in ends), bool(ends)


CRITERIA = ("overall", "instruction following")

PUBLISHED: Sequence[Mapping[str, Any]] = [
    {
        **{"measure": measure, "judge": judge, "place": place, "criterion": criterion, "value": value},
        "source": f"Distracted evaluation, {section}, on UltraFeedback",
    }
    for measure, section, place, judge, values in (
        ("choice_set_sensitivity", "A.5", "first", "Llama-3-70B", (0.135, 0.11)),
        ("choice_set_sensitivity", "A.5", "first", "Llama-3-8B", (0.17, 0.146)),
        ("choice_set_sensitivity", "A.5", "last", "Llama-3-70B", (0.071, 0.06)),
        ("choice_set_sensitivity", "A.5", "last", "Llama-3-8B", (0.105, 0.095)),
        ("intransitivity", "A.4", None, "Llama-3-70B", (0.076, 0.06)),
        ("intransitivity", "A.4", None, "Llama-3-8B", (0.108, 0.085)),
    )
    for criterion, value in zip(CRITERIA, values, strict=True)
]
"""Published shares; ``place`` is that of the third response, None without one."""


def report_parts(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[Block]:
    """The sentences and tables of a run, top to bottom."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    yield Heading(f"{run_line(parameters)}\n{describe_sets(parameters['sets'])}")
    yield from sentences(_describe_protocol(name, rules[name], result.figures) for name in rules)
    yield from cautions(result.invalid, parameters["self_judging"])
    for design, (measure, beside) in MEASURES.items():
        shares, others = ([f for f in result.figures if f.measure == row.name] for row in (measure, beside))
        if not shares:
            continue
        rows: list[TableRow] = []
        for f, other in zip(shares, others, strict=True):
            name, cells = name_protocol(f.protocol, f.rule), counted_cells(f, percent(other.value))
            rows.append((name, f" third shown {f.third}", cells) if f.third else ("", name, cells))
        yield Table(measure.title, ("", "%", "95% CI", "k/n", beside.column, "inv.", "excl."), rows)
        if design == "set":
            fixed = "the order of a and b is held fixed: a judge that only follows the order reverses nothing"
            yield Note(fixed, apart=False)
        places = ("last", "first") if design == "set" else (None,)
        published = "\n".join(_describe_published(measure.name, place) for place in places)
        yield Detail(Note(published, "", apart=False))
    yield from map(Detail, notes(_details(parameters, result)))


def _describe_published(measure: str, place: str | None) -> str:
    values: dict[str, list[str]] = defaultdict(list)
    for published in PUBLISHED:
        if (published["measure"], published["place"]) == (measure, place):
            values[published["judge"]].append(percent(published["value"]))
    where = f" (third shown {place})" if place else ""
    figures = "; ".join(f"{judge} {'/'.join(shares)}" for judge, shares in values.items())
    return f"published{where}, {' / '.join(CRITERIA)}: {figures}."


def _describe_protocol(protocol: str, rules: Sequence[str], figures: Sequence[PlacedFigure]) -> str:
    rule = table.headline("intransitivity", rules)
    measured = {(f.measure, f.third): f for f in figures if (f.protocol, f.rule) == (protocol, rule)}
    by = f", by {rule}" if rule else ""
    return f"{line(protocol)}{by}: {'; '.join(_sum_up(measured)) or 'nothing to sum up'}."


def _sum_up(measured: Mapping[tuple[str, str | None], PlacedFigure]) -> Iterator[str]:
    broken, chained = measured.get(("intransitivity", None)), measured.get(("chain_rate", None))
    if broken and chained:
        triples = count(broken.n, "triple")
        if not broken.n:
            yield f"no intransitivity: {empty_reason(broken)}"
        elif not chained.k:
            yield f"no chain in {triples}, so none can be broken: that does not make it consistent"
        else:
            yield f"{broken.k} of {triples} are intransitive, {chained.k} hold a chain at all"
    for place in ("last", "first"):
        if f := measured.get(("choice_set_sensitivity", place)):
            where = f"with the third response {place}"
            reversals = f"{f.k} of {count(f.n, 'preference')} reverse {where}"
            yield reversals if f.n else f"no choice-set sensitivity {where}: {empty_reason(f)}"
    if any(0 < f.n < FEW for f in measured.values()):
        yield "too few to be sure"


def _details(parameters: Mapping[str, Any], result: ConsistencyResult) -> Iterator[str]:
    for one in result.absent:
        if one.measure in (first.name for first, _ in MEASURES.values()):
            yield f"{one.measure} does not apply to {line(one.protocol)}: {line(one.reason)}"
    if result.excluded:
        yield format_exclusions("excluded", result.excluded)
    yield from left_out_lines(parameters)
    if any(figure.effective_n is not None and figure.effective_n < figure.n for figure in result.figures):
        yield "some prompts give several triples or quadruples: intervals allow for their dependence"


_SHARED = ("judge", "data", "left_out", "limit", "seed", "sets", "protocols", "self_judging")


def document(parameters: Mapping[str, Any], result: ConsistencyResult) -> dict[str, Any]:
    """Build the summary of a run from the parameters in ``run.json`` and the result."""
    return {
        **{name: parameters[name] for name in _SHARED},
        "manner": parameters.get("manner"),
        # A figure's own ``place`` is its place among the others.
        "results": [
            {"place" if name == "third" else name: value for name, value in flatten(figure).items()}
            for figure in result.figures
        ],
        "does_not_apply": [asdict(one) for one in result.absent],
        "published": PUBLISHED,
    }


STUDY = Study(
    name="consistency",
    options=ConsistencyOptions,
    protocols=PROTOCOLS,
    plan=prepare,
    designs={
        "triple": "a pair of three responses; beside has the third",
        "set": "a pair shown with a third response in the first or last place; beside has it, and the one in its place "
        "in the other set",
    },
    row_fields=ROW_FIELDS,
    schema={"data": {"name": str, "cases": int}, "limit": int, "sets": int},
    measures=lambda parameters: BufferedSums(lambda rows, _rewrites, _flaw: measure_rows(parameters, rows)),
    document=document,
    sections=report_parts,
)
