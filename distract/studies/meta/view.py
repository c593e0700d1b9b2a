"""The report of ``distract meta``: a row per protocol for each judge, then the judges side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import chop_cells

from distract.core.printable import count, format_exclusions, interval, line, p_value, percent
from distract.report.blocks import Block, Cells, Detail, Heading, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import VERDICTS, describe_rate, name_protocol
from distract.studies.meta.comparisons import DESIGNS, Agreement
from distract.studies.meta.confusion import Confusion
from distract.studies.meta.confusion_view import DESIGN_TITLES, PASS_NAMES, confusion_tables, pass_sentences
from distract.studies.meta.panel import MetaResult
from distract.studies.meta.panel_view import join_alike, panel_parts, panel_sentences
from distract.studies.meta.published_judges import JudgeSource

WIDE = 5
"""Number of data set columns that fit side by side."""

LONG = 8
"""Maximum width of a column title before it folds."""

KAPPAS = ("kappa_False", "kappa_True")
"""LLMBar's kappas, whose gold labels and verdicts have different names, so that most of them never agree."""

LINES = 4
"""Maximum number of lines of a column title."""

PAIRS = 6
"""Number of protocol pairs above which only those with the base are shown; the document has all."""

NAMES = {
    "accuracy": "accuracy",
    "accuracy_both_orders": "right in both orders",
    **PASS_NAMES,
    "kappa": "kappa",
    "self_agreement": "self-agreement (alpha)",
    "equal_verdicts": "equal verdicts",
    "first_slot_rate": "first slot preferred",
    "invalid_rate": "invalid",
    "verdict_change_rate": "changes under",
    "parser_agreement": "our parser agrees",
    "published_accuracy": "published: accuracy",
    "published_accuracy_both_orders": "published: both orders",
    "published_equal": "published: equal",
    "calls": "calls",
    "tokens": "tokens",
}
"""The figures of one protocol, in display order."""


def report_parts(result: MetaResult) -> Iterable[Block]:
    """The sentences and tables of a result, top to bottom."""
    for panel in result.panels.values():
        yield from panel_sentences(panel)
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
        yield from panel_parts(panel)
    if not result.panels and len(result.sources) > 1:
        yield from notes(
            [
                "the judges are not compared: they have no labelled comparison in common, with a valid verdict "
                "of each, under the protocols that all were asked under"
            ]
        )


def _design_parts(
    source: JudgeSource, figures: Sequence[Agreement], matrices: Sequence[Confusion], base: str | None
) -> Iterator[Block]:
    accuracies = [f for f in figures if f.measure == "accuracy" and f.against is None]
    places = list(dict.fromkeys((f.data, f.subset) for f in accuracies))
    whole = places[0] if places else (None, None)
    total = [f for f in figures if (f.data, f.subset) == whole]
    own = [f for f in total if f.against is None]
    yield from sentences(_sentences(source, total, base), apart=False)
    if any(f.n for f in accuracies):
        yield from _accuracy_tables(source, accuracies, places, whole, figures, base)
        if rates := [f for f in own if f.measure in PASS_NAMES]:
            kappas = [f for f in own if f.measure == "kappa"]
            yield _measure_table(source, [*rates, *kappas], "A pass is positive; in % except kappa")
    yield Detail(_measure_table(source, own, "Each figure, in % except alpha, kappa, calls and tokens"))
    yield from confusion_tables([one for one in matrices if one.data == whole[0]])
    differences = [f for f in total if f.against is not None and f.n]
    if len(differences) > PAIRS:
        differences = [f for f in differences if base in (f.protocol, f.against)]
    if differences:
        yield Detail(_difference_table(differences))


def _sentences(source: JudgeSource, figures: Sequence[Agreement], base: str | None) -> Iterator[str]:
    """The best agreement of a judge, and what speaks against its verdicts."""
    headlines = {one.protocol: one.headline for one in source.judged}
    own = [f for f in figures if f.against is None and f.rule in (None, headlines.get(f.protocol or ""))]
    accuracies = [f for f in own if f.measure == "accuracy"]
    measured = [f for f in accuracies if f.n]
    if best := [f for f in measured if f.value == max(one.value or 0.0 for one in measured)]:
        first = best[0]
        versus = _format_versus(_find_base_difference(figures, first.protocol, base), base)
        than = f"; not significantly different from {line(base or '')}" if versus == "n.s." else ""
        than = f"; significantly {versus} than {line(base or '')}" if versus in ("better", "worse") else than
        yield (
            f"{join_alike([name_protocol(f.protocol, f.rule) for f in best], 'matches', 'match')} the label"
            f"{' most often' if len(measured) > len(best) else ''}: {first.k} of {count(first.n, 'verdict')} "
            f"({describe_rate(first)}){than}."
        )
    elif any(f.invalid for f in accuracies):
        yield f"No accuracy: {empty_reason(accuracies[0])}."
    elif accuracies:
        yield "No accuracy and no kappa: the data have no labels; name labelled data with --data."
    for f in own:
        if f.measure == "equal_verdicts" and f.n and f.k is not None and f.k < f.n / 2:
            yield f"{line(f.protocol or '')}: both orders agree in only {f.k} of {count(f.n, 'comparison')}."
        elif f.measure == "invalid_rate" and f.k:
            yield f"{line(f.protocol or '')}: {f.k} of {count(f.n, 'comparison')} gave no readable verdict."
    yield from pass_sentences(own)


def _find_base_difference(figures: Sequence[Agreement], protocol: str | None, base: str | None) -> Agreement | None:
    return next((f for f in figures if f.against is not None and {f.protocol, f.against} == {protocol, base}), None)


def _accuracy_tables(
    source: JudgeSource,
    accuracies: Sequence[Agreement],
    places: Sequence[tuple[str | None, str | None]],
    whole: tuple[str | None, str | None],
    figures: Sequence[Agreement],
    base: str | None,
) -> Iterator[Table]:
    """A row per protocol, a column per data set and subset, and the total with its interval at the end."""
    at = {(f.protocol, f.rule, f.data, f.subset): f for f in accuracies}
    labelled = {(f.data, f.subset) for f in accuracies if f.n or f.invalid}
    columns = [place for place in places if place != whole and place in labelled]
    against = {
        (f.protocol if f.against == base else f.against): f
        for f in figures
        if f.against is not None and (f.data, f.subset) == whole and base in (f.protocol, f.against)
    }
    for start in range(0, max(len(columns), 1), WIDE):
        part = columns[start : start + WIDE]
        rows: list[TableRow] = []
        for one in source.judged:
            for rule in one.rules or (None,):
                total = at.get((one.protocol, rule, *whole))
                cells = [_format_percent(at.get((one.protocol, rule, *place))) for place in (*part, whole)]
                if not part and total is not None:
                    cells += [interval(total.low, total.high), f"{total.k}/{total.n}"]
                versus = _format_versus(against.get(one.protocol) if rule == one.headline else None, base)
                empty = total is not None and not total.n
                rows.append(("", name_protocol(one.protocol, rule), empty_reason(total) if empty else [*cells, versus]))
        names = [_fold_title(subset or data or "") for data, subset in part]
        figure = ["95% CI", "k/n"] if not part else []
        over = ", over both orders" if accuracies[0].design == "people" else ""
        title = "" if start else f"Accuracy: verdicts that match the label{over}, in %"
        yield Table(title, ("", *names, "total", *figure, "vs base"), rows)


def _format_versus(against: Agreement | None, base: str | None) -> str:
    """Say whether a protocol is better or worse than the base."""
    if against is None or against.compared is None:
        return ""
    turned = {"better": "worse", "worse": "better"}
    return VERDICTS[against.compared if against.against == base else turned.get(against.compared, against.compared)]


def _measure_table(source: JudgeSource, figures: Sequence[Agreement], title: str) -> Table:
    """Every figure of each protocol, one line each, by its headline rule."""
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
    if f.unit == "share":
        value, between = percent(f.value), interval(f.low, f.high)
    else:
        digits = ".3f" if f.unit in ("alpha", "kappa") else ".1f" if f.unit == "calls" else ",.0f"
        value = "–" if f.value is None else format(f.value, digits)
        between = "" if f.low is None or f.high is None else f"{f.low:{digits}} to {f.high:{digits}}"
    total = str(f.n) if f.k is None else f"{f.k}/{f.n}"
    return f" {name}", [value, between, total, str(f.invalid), str(f.excluded)]


def _difference_table(figures: Sequence[Agreement]) -> Table:
    rows: list[TableRow] = []
    for f in figures:
        name = f"{name_protocol(f.protocol, f.rule)} – {name_protocol(f.against, f.against_rule)}"
        rows.append(("", name, [percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)]))
    return Table("Accuracy, differences on the same verdicts", ("", "points", "95% CI", "n", "p"), rows)


def _notes(source: JudgeSource) -> Iterator[str]:
    yield from (line(note) for note in source.notes)
    for kind in ("excluded", "invalid"):
        if reasons := source.reasons(kind):
            yield format_exclusions(kind, reasons)
    for one in source.record.get("replayed", ()):
        kappas = [value for name in KAPPAS if isinstance(value := one.get("published", {}).get(name), float)]
        if kappas:
            values = " and ".join(f"{value:.3f}" for value in kappas)
            yield (
                f"{line(one['protocol'])} on {line(one['data'])}: kappa was published as {values} (given, swapped), "
                "which is not Cohen's"
            )
        for rule, counts in one.get("not_reproduced", {}).items():
            where = f"{line(one['protocol'])} on {line(one['data'])}, by {rule}"
            if not counts:
                yield f"{where}: the counts are as published"
            for name, both in counts.items():
                yield f"{where}: {name} is {line(both['ours'])}, published as {line(str(both['published']))}"
    yield from (line(note) for note in source.record.get("self_judging", ()))


def _format_percent(figure: Agreement | None) -> str:
    return "" if figure is None else percent(figure.value)


def _fold_title(name: str) -> str:
    """Fold a column title."""
    words = textwrap.wrap(line(name), LONG)
    parts = [part for word in words for part in chop_cells(word, LONG)]
    return "\n".join(parts if len(parts) <= LINES else [*parts[: LINES - 1], "…"]) or " "
