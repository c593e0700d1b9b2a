"""``distract meta``: how far a judge agrees with people and with itself; its document and its report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.cells import chop_cells

from distract.core.printable import count, format_exclusions, interval, line, p_value, percent
from distract.core.study import BufferedSums, Study
from distract.report.blocks import Block, Cells, Detail, Heading, Note, Prose, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import VERDICTS, describe_rate, name_protocol, rate_cells
from distract.stats.figure import flatten, round_values
from distract.stats.measures import MEASURES
from distract.studies.meta.measures import DESIGNS, Agreement, DataPlace, MetaDesign, gains_over
from distract.studies.meta.panel import WORDS, Confusion, MetaResult, measure_judges, name_best, show_panel, sum_up
from distract.studies.meta.session import JudgeSource, from_run
from distract.studies.setup import ROW_FIELDS

if TYPE_CHECKING:
    from distract.core.runs import LoadedRun

DESIGN_TITLES: Mapping[MetaDesign, str] = {"people": "Pairs", "pass": "Pass or fail"}

_SHOWN = [row for row in MEASURES.values() if {*DESIGNS} & {*row.designs} or row.name == "invalid_rate"]
NAMES = {row.name: row.column or row.words for row in _SHOWN}  # the figures of one protocol, in display order
PASS_NAMES = {row.name: row.words for row in _SHOWN if row.designs == ("pass",)}
"""The rates of pass-or-fail verdicts, in display order."""

DIGITS = {"alpha": ".3f", "kappa": ".3f", "calls": ".1f", "tokens": ",.0f"}
SHORT = 6  # most rows of a confusion matrix outside of the details
WIDE = 5  # data set columns that fit side by side
LONG = 8  # most characters of a line of a column title
LINES = 4  # most lines of a column title
PAIRS = 6  # pairs of protocols above which only those with the base are shown; the document has all
# LLMBar's kappas, whose gold labels and verdicts have different names, so that most of them never agree.
KAPPAS = ("kappa_False", "kappa_True")


def _describe(figure: Agreement, says: str, say: str) -> str:
    if not figure.n:
        return f"is not measured on responses that people {say} ({empty_reason(figure)})"
    rate = f"{percent(figure.value)}%, {interval(figure.low, figure.high)}%"
    return f"{says} {figure.k} of {count(figure.n, 'response')} that people {say} ({rate})"


def confusion_tables(matrices: Sequence[Confusion]) -> Iterator[Table | Detail]:
    """Show matrices of one design: a row for each label, a column for each verdict."""
    if not matrices:
        return
    is_alone, words = matrices[0].design == "pass", WORDS[matrices[0].design].values()
    whose, over = ("people", "") if is_alone else ("label", ", over all orders; a is the first response")
    rows: list[TableRow] = [
        (name_protocol(one.protocol, one.rule), f" {whose} {label}", list(map(str, verdicts.values())))
        for one in matrices
        for label, verdicts in one.counts.items()
        if is_alone or any(verdicts.values())
    ]
    table = Table(f"Labels by verdicts{over}", ("", *words, "inv."), rows)
    yield table if is_alone and len(rows) <= SHORT else Detail(table)


def report_parts(result: MetaResult) -> Iterable[Block]:
    """The sentences and tables of a result, top to bottom."""
    for panel in result.panels.values():
        yield from sum_up(panel)
    for source in result.sources:
        yield Heading(f"judge {line(source.name)}", level=2)
        own = [f for f in result.figures if f.judge == source.name]
        designs = [design for design in DESIGNS if any(f.design == design for f in own)]
        for design in designs:
            if len(designs) > 1:
                yield Heading(DESIGN_TITLES[design], level=3)
            matrices = [one for one in result.confusions if (one.judge, one.design) == (source.name, design)]
            yield from _design_parts(source, [f for f in own if f.design == design], matrices, result.base)
        yield from notes(_notes(source))
    for design, panel in result.panels.items():
        if len(result.panels) > 1:
            yield Heading(f"{DESIGN_TITLES[design]}: judges side by side", level=2)
        yield from show_panel(panel)
    if not result.panels and len(result.sources) > 1:
        yield Note(
            "the judges are not compared: they have no labelled comparison in common, with a valid verdict of each, "
            "under the protocols that all were asked under"
        )


def _design_parts(
    source: JudgeSource, figures: Sequence[Agreement], matrices: Sequence[Confusion], base: str | None
) -> Iterator[Block]:
    accuracies = [f for f in figures if f.measure == "accuracy" and f.against is None]
    places = list(dict.fromkeys((f.data, f.subset) for f in accuracies))
    whole: DataPlace = places[0] if places else (None, None)
    total = [f for f in figures if (f.data, f.subset) == whole]
    own = [f for f in total if f.against is None]
    gains = gains_over(base, total)
    versus = {name: VERDICTS[gain.compared] for name, gain in gains.items() if gain.compared}
    yield from sentences(_sentences(source, own, versus, base), apart=False)
    if any(f.n for f in accuracies):
        yield from _accuracy_tables(source, accuracies, places, versus)
        if rates := [f for f in own if f.measure in PASS_NAMES]:
            kappas = [f for f in own if f.measure == "kappa"]
            yield _measure_table(source, [*rates, *kappas], "A pass is positive; in % except kappa")
    yield Detail(_measure_table(source, own, "Each figure, in % except alpha, kappa, calls and tokens"))
    yield from confusion_tables([one for one in matrices if one.data == whole[0]])
    differences = [f for f in total if f.against is not None and f.n]
    if len(differences) > PAIRS:
        differences = [f for f in differences if base in (f.protocol, f.against)]
    rows: list[TableRow] = []
    for f in differences:
        name = f"{name_protocol(f.protocol, f.rule)} – {name_protocol(f.against, f.against_rule)}"
        rows.append(("", name, [percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)]))
    if rows:
        yield Detail(Table("Accuracy, differences on the same verdicts", ("", "points", "95% CI", "n", "p"), rows))


def _sentences(
    source: JudgeSource, figures: Sequence[Agreement], versus: Mapping[str, str], base: str | None
) -> Iterator[str]:
    headlines = {one.protocol: one.headline for one in source.judged}
    own = [f for f in figures if f.rule in (None, headlines.get(f.protocol or ""))]
    accuracies = [f for f in own if f.measure == "accuracy"]
    measured = [f for f in accuracies if f.n]
    if best := [f for f in measured if f.value == max(one.value or 0.0 for one in measured)]:
        first, most = best[0], " most often" if len(measured) > len(best) else ""
        gain = versus.get(first.protocol or "")
        than = "not significantly different from" if gain == "n.s." else f"significantly {gain} than"
        than = f"; {than} {line(base or '')}" if gain else ""
        who = name_best([name_protocol(f.protocol, f.rule) for f in best])
        right = f"{first.k} of {count(first.n, 'verdict')} ({describe_rate(first)})"
        yield f"{who}{most}: {right}{than}."
    elif any(f.invalid for f in accuracies):
        yield f"No accuracy: {empty_reason(accuracies[0])}."
    elif accuracies:
        yield "No accuracy and no kappa: the data have no labels; name labelled data with --data."
    for f in own:
        if f.measure == "equal_verdicts" and f.n and f.k is not None and f.k < f.n / 2:
            yield f"{line(f.protocol or '')}: both orders agree in only {f.k} of {count(f.n, 'comparison')}."
        elif f.measure == "invalid_rate" and f.k:
            yield f"{line(f.protocol or '')}: {f.k} of {count(f.n, 'comparison')} gave no readable verdict."
    rates = {(f.protocol, f.rule, f.measure): f for f in own}
    for f in own:
        wrong = rates.get((f.protocol, f.rule, "true_negative_rate"))
        if f.measure == "true_positive_rate" and wrong and (f.n or wrong.n):
            parts = f"{_describe(f, 'passes', 'pass')} and {_describe(wrong, 'fails', 'fail')}"
            yield f"{name_protocol(f.protocol, f.rule)} {parts}."


def _accuracy_tables(
    source: JudgeSource, accuracies: Sequence[Agreement], places: Sequence[DataPlace], versus: Mapping[str, str]
) -> Iterator[Table]:
    """A row per protocol, a column per data set and subset, and the total with its interval at the end."""
    whole, *parts = places
    at = {(f.protocol, f.rule, f.data, f.subset): f for f in accuracies}
    labelled = {(f.data, f.subset) for f in accuracies if f.n or f.invalid}
    columns = [place for place in parts if place in labelled]
    for start in range(0, max(len(columns), 1), WIDE):
        part = columns[start : start + WIDE]
        rows: list[TableRow] = []
        for judge, rule in [(one, rule) for one in source.judged for rule in one.rules or (None,)]:
            if total := at.get((judge.protocol, rule, *whole)):  # else it judged nothing of this design
                cells: list[Prose] = [percent(at[judge.protocol, rule, *place].value) for place in part]
                cells += [percent(total.value)] if part else rate_cells(total)
                cells.append(versus.get(judge.protocol, "") if rule == judge.headline else "")
                rows.append(("", name_protocol(judge.protocol, rule), cells if total.n else empty_reason(total)))
        names = [_fold_title(subset or data or "") for data, subset in part]
        figure = ["95% CI", "k/n"] if not part else []
        over = ", over both orders" if accuracies[0].design == "people" else ""
        title = "" if start else f"Accuracy: verdicts that match the label{over}, in %"
        yield Table(title, ("", *names, "total", *figure, "vs base"), rows)


def _measure_table(source: JudgeSource, figures: Sequence[Agreement], title: str) -> Table:
    rows: list[TableRow] = [
        (name_protocol(one.protocol, one.headline), *_figure_row(f, name))
        for one in source.judged
        for measure, name in NAMES.items()
        for f in figures
        if (f.measure, f.protocol) == (measure, one.protocol) and f.rule in (one.headline, None)
    ]
    terms = ("alpha", "kappa", *PASS_NAMES.values())
    names = [name for name in terms if any(name in str(label) for _, label, _ in rows)]
    return Table(title, ("", "value", "95% CI", "k/n", "inv.", "excl."), rows, names)


def _figure_row(f: Agreement, name: str) -> tuple[str, Cells]:
    name += f", {f.order}" if f.order else f" {line(f.attack)}" if f.measure == "verdict_change_rate" else ""
    if not f.n:
        return f" {name}", empty_reason(f)
    value, between, total = percent(f.value), interval(f.low, f.high), str(f.n) if f.k is None else f"{f.k}/{f.n}"
    if f.unit != "share":
        digits = DIGITS[f.unit]
        value = "–" if f.value is None else format(f.value, digits)
        between = "" if f.low is None or f.high is None else f"{f.low:{digits}} to {f.high:{digits}}"
    return f" {name}", [value, between, total, str(f.invalid), str(f.excluded)]


def _notes(source: JudgeSource) -> Iterator[str]:
    yield from (line(note) for note in source.notes)
    for kind in ("excluded", "invalid"):
        if reasons := source.reasons(kind):
            yield format_exclusions(kind, reasons)
    for one in source.record.get("replayed", ()):
        where, published = f"{line(one['protocol'])} on {line(one['data'])}", one.get("published", {})
        if kappas := [f"{value:.3f}" for name in KAPPAS if isinstance(value := published.get(name), float)]:
            yield f"{where}: kappa was published as {' and '.join(kappas)} (given, swapped), which is not Cohen's"
        for rule, counts in one.get("not_reproduced", {}).items():
            if not counts:
                yield f"{where}, by {rule}: the counts are as published"
            for name, both in counts.items():
                yield f"{where}, by {rule}: {name} is {line(both['ours'])}, published as {line(str(both['published']))}"
    yield from (line(note) for note in source.record.get("self_judging", ()))


def _fold_title(name: str) -> str:
    words = textwrap.wrap(line(name), LONG)
    parts = [part for word in words for part in chop_cells(word, LONG)]
    return "\n".join(parts if len(parts) <= LINES else [*parts[: LINES - 1], "…"]) or " "


def document(result: MetaResult) -> dict[str, Any]:
    """Build the JSON document of a result."""
    judges = [
        {
            "judge": source.name,
            "protocols": {one.protocol: list(one.rules) for one in source.judged},
            "ties": [one.protocol for one in source.judged if one.ties],
            "notes": list(source.notes),
            "excluded": dict(sorted(source.reasons("excluded").items())),
            "invalid": dict(sorted(source.reasons("invalid").items())),
            **source.record,
        }
        for source in result.sources
    ]
    panels = {
        design: asdict(panel, dict_factory=lambda items: round_values(dict(items)))
        for design, panel in result.panels.items()
    }
    return {
        "command": "meta",
        "base": result.base,
        "controls": list(result.controls),
        "judges": judges,
        "panel": panels.get("people"),
        "confusion": [asdict(one) for one in result.confusions],
        "results": [flatten(figure, "compared") for figure in result.figures],
        **({"pass_panel": panels["pass"]} if "pass" in panels else {}),
    }


def _show_disagreements(run: LoadedRun) -> Iterator[Block]:
    """Show where the judge of a run disagrees with people."""
    from distract.studies.meta.disagreements import browser_block, read_source

    yield browser_block([read_source(run)])


def _browse_disagreements(run: LoadedRun) -> dict[str, Any] | None:
    from distract.studies.meta.disagreements import build_disagreement_data, read_source

    return build_disagreement_data([read_source(run)])


STUDY = Study(
    name="meta",
    designs={
        "people": "a pair that people have compared",
        "pass": "a response against the pass mark, which people have passed or failed",
    },
    row_fields=ROW_FIELDS,
    details=_show_disagreements,
    page=_browse_disagreements,
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    measures=lambda p: BufferedSums(lambda rows, _rewrites, _flaw: measure_judges([from_run(p, rows)], p["base"])),
    document=lambda _, result: document(result),
    sections=lambda _, result: report_parts(result),
)
