"""The report of ``distract meta``: a row per protocol for each judge, then the judges side by side.

Names are plain ``Text``, because they may hold markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import chop_cells
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import format_exclusions, interval, line, p_value, percent
from distract.report.tables import grid, title
from distract.studies.meta.comparisons import Agreement
from distract.studies.meta.panel import MetaResult
from distract.studies.meta.panel_view import VERSUS, panel_parts
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


def report_parts(result: MetaResult) -> Iterable[RenderableType]:
    """The tables and sentences of a result, top to bottom."""
    for index, source in enumerate(result.sources):
        yield Text(("\n" if index else "") + f"judge {line(source.name)}", style="bold")
        yield from _judge_parts(source, [f for f in result.figures if f.judge == source.name], result.base)
    if result.panel is not None:
        yield from panel_parts(result.panel)
    elif len(result.sources) > 1:
        yield Text(
            "\nthe judges are not put side by side: they have no labelled comparison in common, with a valid verdict "
            "of each, under the protocols that all were asked under",
            style="dim",
        )


def _judge_parts(source: JudgeSource, figures: Sequence[Agreement], base: str | None) -> Iterator[RenderableType]:
    accuracies = [f for f in figures if f.measure == "accuracy" and f.against is None]
    places = list(dict.fromkeys((f.data, f.subset) for f in accuracies))
    whole = places[0] if places else (None, None)
    if any(f.n for f in accuracies):
        yield title("Accuracy: verdicts that match the label, over both orders, in %")
        yield from _accuracy_tables(source, accuracies, places, whole, figures, base)
    yield title("One by one, in % but alpha, kappa, calls and tokens")
    yield _measure_table(source, [f for f in figures if (f.data, f.subset) == whole and f.against is None])
    differences = [f for f in figures if f.against is not None and f.n and (f.data, f.subset) == whole]
    if len(differences) > PAIRS:
        differences = [f for f in differences if base in (f.protocol, f.against)]
    if differences:
        yield title("Accuracy, differences on the same verdicts, in points; exact McNemar, Holm")
        yield _difference_table(differences)
    yield from (Text(f"\n{note}", style="dim") for note in _notes(source, accuracies))


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
    columns = [place for place in places if place != whole]
    against = {
        (f.protocol if f.against == base else f.against): f
        for f in figures
        if f.against is not None and (f.data, f.subset) == whole and base in (f.protocol, f.against)
    }
    if not columns:
        table = grid("", "total", "95% CI", "k/n", "vs base")
    for start in range(0, max(len(columns), 1), WIDE):
        part = columns[start : start + WIDE]
        if part:
            table = grid("", *(_fold_title(subset or data or "") for data, subset in part), "total", "vs base")
        for one in source.judged:
            for rule in one.rules or (None,):
                total = at.get((one.protocol, rule, *whole))
                cells = [_format_percent(at.get((one.protocol, rule, *place))) for place in (*part, whole)]
                if not part and total is not None:
                    cells += [interval(total.low, total.high), f"{total.k}/{total.n}"]
                versus = _format_versus(against.get(one.protocol) if rule == one.headline else None, base)
                table.add_row(Text(protocol_name(one.protocol, rule)), *cells, versus)
        yield table


def _format_versus(against: Agreement | None, base: str | None) -> str:
    """Say whether a protocol is better or worse than the base."""
    if against is None or against.compared is None:
        return ""
    turned = {"better": "worse", "worse": "better"}
    return VERSUS[against.compared if against.against == base else turned.get(against.compared, against.compared)]


def _measure_table(source: JudgeSource, figures: Sequence[Agreement]) -> Table:
    """Every figure of each protocol, a line each, by its headline rule."""
    table = grid("", "value", "95% CI", "k/n", "inv.", "excl.")
    for one in source.judged:
        table.add_row(Text(protocol_name(one.protocol, one.headline), style="bold"))
        for measure, name in NAMES.items():
            for f in figures:
                if (f.measure, f.protocol) == (measure, one.protocol) and f.rule in (one.headline, None):
                    table.add_row(*_figure_cells(f, name))
    return table


def _figure_cells(f: Agreement, name: str) -> list[Text | str]:
    name += f", {f.order}" if f.order else f" {line(f.attack)}" if f.measure == "verdict_change_rate" else ""
    if f.unit == "share":
        value, between = percent(f.value), interval(f.low, f.high)
    else:
        digits = ".3f" if f.unit in ("alpha", "kappa") else ".1f" if f.unit == "calls" else ",.0f"
        value = "–" if f.value is None else format(f.value, digits)
        between = "" if f.low is None or f.high is None else f"{f.low:{digits}} to {f.high:{digits}}"
    total = str(f.n) if f.k is None else f"{f.k}/{f.n}"
    return [Text(f" {name}"), value, between, total, str(f.invalid), str(f.excluded)]


def _difference_table(figures: Sequence[Agreement]) -> Table:
    table = grid("", "points", "95% CI", "n", "p (Holm)")
    for f in figures:
        name = f"{protocol_name(f.protocol or '', f.rule)} – {protocol_name(f.against or '', f.against_rule)}"
        cells = (percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted))
        table.add_row(Text(name), *cells)
    return table


def _notes(source: JudgeSource, accuracies: Sequence[Agreement]) -> Iterator[str]:
    yield from (line(note) for note in source.notes)
    for kind in ("excluded", "invalid"):
        if reasons := source.reasons(kind):
            yield format_exclusions(kind, reasons)
    if accuracies and not any(f.n or f.invalid for f in accuracies):
        yield "no accuracy and no kappa: the data have no labels; name labelled data with --data"
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


def protocol_name(protocol: str, rule: str | None) -> str:
    """Name a protocol with its rule."""
    return line(protocol) + (f" by {rule}" if rule else "")


def _format_percent(figure: Agreement | None) -> str:
    return "" if figure is None else percent(figure.value)


def _fold_title(name: str) -> str:
    """Fold a column title."""
    words = textwrap.wrap(line(name), LONG)
    parts = [part for word in words for part in chop_cells(word, LONG)]
    return "\n".join(parts if len(parts) <= LINES else [*parts[: LINES - 1], "…"]) or " "
