"""Phrases that reports share: names, rates in words and in cells, the heading of a run, what weakens its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from distract.core.printable import clean_text, count, format_exclusions, interval, line, percent, shorten
from distract.core.records import BASELINE
from distract.report.blocks import Cells, Note, Prose, Sentence, Span, TableRow, Words, notes
from distract.report.glossary import describe_excluded, empty_reason
from distract.stats.figure import Figure, is_withheld

VERDICTS = {"better": "better", "worse": "worse", "not distinguishable": "n.s."}
"""Wording of the results of a test in tables."""

FEW = 30  # number of units below which a sentence calls them too few, and intervals are rough

NOT_MEASURED = "not measured"

LONGEST = 300  # characters of a text to quote, unless all is wanted

UNSAID = "the judge's words are not in the run; the command that made it adds them with --keep-text all"


def quote_text(name: str, text: str, whole: bool) -> Sentence:
    """Quote a text below its name, on one line unless the ``whole`` is wanted."""
    shown = clean_text(text) if whole else shorten(line(text), LONGEST)
    return Sentence(Words((Span(f"{name}: ", "dim"), Span(shown))), apart=False)


def join_names(names: Iterable[str]) -> str:
    """Join one or more names with commas and ``and``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def list_few(names: Collection[str], noun: str, most: int = 4) -> str:
    """List a few names, safe to print, or count more of them."""
    return join_names(map(line, names)) if len(names) <= most else count(len(names), noun)


def rule_lines(attacks: Collection[str]) -> Iterator[str]:
    """Say which attacks a run leaves to the rules, though it reads rewrites from the data."""
    if attacks:
        yield f"written by rule, since the data do not record them: {list_few(sorted(attacks), 'attack')}"


def show_value(figure: Figure) -> str:
    """Format the value of a figure by its unit: percent, broken requirements, or what a verdict gained."""
    if figure.value is None or figure.unit == "share":
        return percent(figure.value)
    return format(figure.value, ".1f" if figure.unit == "requirements" else "+.3f")


def show_interval(figure: Figure) -> str:
    """Format the interval of a figure by its unit; an exchange rate may have no end."""
    low, high = figure.low, figure.high
    if is_withheld(figure):
        return NOT_MEASURED
    if figure.unit == "share":
        return interval(low, high)
    if figure.unit == "requirements" and figure.value is not None:
        return f"{'–∞' if low is None else f'{low:.1f}'} to {'∞' if high is None else f'{high:.1f}'}"
    return "" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def rate_cells(rate: Any) -> list[Prose]:
    """Format a rate for the columns ``%``, ``95% CI`` and ``k/n``."""
    return [percent(rate.value), interval(rate.low, rate.high), describe_count(rate)]


def describe_count(rate: Any) -> str:
    """Format k and n; a protocol that cannot tie has no number of ties."""
    return f"{'–' if rate.value is None else rate.k}/{rate.n}"


def describe_rate(rate: Any) -> str:
    """Word a rate with its interval, and whether it rests on too few."""
    few = ": too few to be sure" if rate.n < FEW else ""
    return f"{percent(rate.value)}%, 95% interval {interval(rate.low, rate.high)}%{few}"


def counted_cells(figure: Figure, *more: str) -> Cells:
    """Format a rate for ``%``, ``95% CI``, ``k/n``, ``more``, ``inv.`` and ``excl.``, or say why there is none."""
    if not figure.n:
        return empty_reason(figure)
    return [*rate_cells(figure), *more, str(figure.invalid), describe_excluded(figure)]


def place_row(figure: Figure, cells: Cells) -> TableRow:
    """Put cells in the row of a figure: its protocol, and its attack or severity."""
    return name_protocol(figure.protocol, figure.rule), f" {name_condition(figure)}", cells


def name_condition(figure: Figure) -> str:
    """Name the attack of a figure, or its severity and what distracts from that, and a criterion."""
    if figure.criterion is not None:
        return line(f"{figure.attack}: {figure.criterion}")
    if not figure.severity:
        return line(figure.attack)
    return line(f"severity {figure.severity}{'' if figure.attack == BASELINE else f'+{figure.attack}'}")


def name_protocol(protocol: str | None, rule: str | None) -> str:
    """Name a protocol with its rule."""
    return line(f"{protocol or ''} by {rule}" if rule else protocol or "")


def cautions(invalid: Counter[str], self_judging: Iterable[str]) -> Iterator[Note]:
    """What weakens every figure of a run: unreadable verdicts, and models that judge their own text."""
    if invalid:
        yield from notes([f"invalid: {'; '.join(f'{line(reason)} ({n})' for reason, n in invalid.most_common(5))}"])
    yield from notes(map(line, self_judging), "doubtful")


def run_line(parameters: Mapping[str, Any]) -> str:
    """The first line of a report: judge, data, cases drawn and seed."""
    data, limit = parameters["data"], parameters["limit"]
    total = f" of {data['cases']}" if data["cases"] != limit else ""
    judge, name = line(parameters["judge"]), line(data["name"])
    return f"judge {judge} · data {name}, {count(limit, 'case')}{total}, seed {parameters['seed']}"


def data_lines(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Say which columns of a table a run read, and which rows it left out."""
    yield from columns_lines([parameters["data"]])
    yield from left_out_lines(parameters)


def columns_lines(sets: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say which columns hold the cases of each data set that is a table."""
    return (f"columns of {line(data['name'])}: {line(data['columns'])}" for data in sets if "columns" in data)


def left_out_lines(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Count what a run left out before its draw, by reason."""
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
