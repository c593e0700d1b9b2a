"""A run on the terminal: tables of figures and one sentence per protocol.

Cells are plain ``Text``, so that markup in a name stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import bar, count, format_exclusions, interval, line, p_value, percent
from distract.core.records import BASELINE
from distract.report.tables import grid
from distract.stats.figure import Figure, headline
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.ranking_view import ranking_parts
from distract.studies.rewrite_view import rewrite_notes

MANY = 3
"""With more protocols than this, their differences are not shown pair by pair."""

LONGEST = 40
"""Longest row title that leaves room for the columns."""

FEW = 30
"""With fewer verdicts (or prompts that give several), intervals are called wide or rough."""


def run_report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[RenderableType]:
    """Show the tables and sentences of a run."""
    figures = measured.figures
    data = parameters["data"]
    cases = count(parameters["limit"], "case")
    of = f" of {data['cases']}" if data["cases"] != parameters["limit"] else ""
    yield Text(
        f"judge {line(parameters['judge'])} · data {line(data['name'])}, {cases}{of}, seed {parameters['seed']} · "
        f"rewrites: {line(parameters['generator'])}",
        style="bold",
    )
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    if flips := _select_figures(figures, "flip_rate"):
        yield _title("Flip rate: the response that lost wins after its rewrite (lower is better)")
        yield _table(flips, {"softened": _value_formatter(figures, "softened_rate")})
    if wins := _select_figures(figures, "distractor_win_rate"):
        yield _title("Tie rate: a good response against its own rewrite; else which one won, in %")
        measures = {"rewrite": "distractor_win_rate", "original": "original_win_rate"}
        ties = [
            _matching_figure(figures, win, "tie_rate") or replace(win, value=None, low=None, high=None) for win in wins
        ]
        yield _table(ties, {name: _value_formatter(figures, measure) for name, measure in measures.items()})
    if accuracies := _select_figures(figures, "severity_accuracy"):
        yield _title("Accuracy: the good response wins over one that breaks 1, 2 or 3 constraints")
        yield _severity_table(accuracies)
    differences = [f for f in figures if f.against is not None and f.n]
    if len(rules) > MANY:  # there would be hundreds; the ranking shows those with base, the summary all
        differences = [f for f in differences if f.against == f.protocol]
    if differences:
        yield _title("Differences on the same cases, in points; exact McNemar test, p after Holm")
        yield _difference_table(differences)
    yield from ranking_parts(measured.standings)
    if measured.smallest is not None:
        from distract.studies.attack.minimal.view import minimal_parts

        yield from minimal_parts(measured.smallest)
    yield _title("Reading the judge, in %: order inconsistency, mass on the choices, invalid")
    yield _quality_table(figures)
    for protocol in rules:
        yield Text("\n" + _sentence(protocol, figures, rules[protocol], parameters["controls"]))
    if left_out := parameters["left_out"]:
        yield Text(f"\n{format_exclusions('left out before the draw', left_out)}", style="dim")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(measured))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def _select_figures(figures: Sequence[Figure], measure: str) -> list[Figure]:
    return [f for f in figures if f.measure == measure and f.against is None]


def _matching_figure(figures: Sequence[Figure], figure: Figure, measure: str) -> Figure | None:
    place = (figure.protocol, figure.rule, figure.attack, figure.severity)
    matches = (f for f in _select_figures(figures, measure) if (f.protocol, f.rule, f.attack, f.severity) == place)
    return next(matches, None)


def _value_formatter(figures: Sequence[Figure], measure: str) -> Callable[[Figure], str]:
    def value(figure: Figure) -> str:
        match = _matching_figure(figures, figure, measure)
        return percent(match.value if match else None)

    return value


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _add_groups(table: Table, rows: Iterable[Sequence[str]]) -> Table:
    """Fill a table from rows of group, label and cells, each group under a bold heading."""
    last = None
    for group, label, *cells in rows:
        if group != last:
            table.add_row(Text(group, style="bold"))
        table.add_row(Text(label), *cells)
        last = group
    return table


def _table(figures: Sequence[Figure], extra: Mapping[str, Callable[[Figure], str]]) -> Table:
    return _add_groups(
        grid("", "%", "95% CI", "k/n", *extra, "inv.", "excl."),
        (
            (
                *(_protocol_name(f.protocol, f.rule), f" {line(f.attack)}"),
                *(percent(f.value), interval(f.low, f.high), _format_share(f)),
                *(value(f) for value in extra.values()),
                *(str(f.invalid), str(f.excluded)),
            )
            for f in figures
        ),
    )


def _format_share(f: Figure) -> str:
    """Format k/n; a protocol that cannot tie has no number of ties."""
    return f"{f.k}/{f.n}" if f.value is not None or not f.n else f"–/{f.n}"


def _severity_table(figures: Sequence[Figure]) -> Table:
    return _add_groups(
        grid("", "%", "95% CI", "k/n", "", "inv.", "excl."),
        (
            (
                *(_protocol_name(f.protocol, f.rule), _place_name(f)),
                *(percent(f.value), interval(f.low, f.high), f"{f.k}/{f.n}", bar(f.value)),
                *(str(f.invalid), str(f.excluded)),
            )
            for f in sorted(figures, key=_severity_key)
        ),
    )


def _severity_key(f: Figure) -> tuple[Any, ...]:
    """Sort by protocol, without severity first, then each severity before its distractors."""
    names = (f.measure, f.protocol or "", f.rule or "", f.against or "", f.against_attack in (None, f.attack))
    return (*names, f.severity or 0, f.attack != BASELINE, f.attack)


def _place_name(f: Figure) -> str:
    attack = f"+{f.attack}" if f.severity and f.attack != BASELINE else f.attack if not f.severity else ""
    return f" {line(f'severity {f.severity}{attack}' if f.severity else attack)}"


def _difference_table(figures: Sequence[Figure]) -> Table:
    rows = list[Sequence[str]]()
    for f in sorted(figures, key=_severity_key):
        name = f"{f.measure}, {_protocol_name(f.protocol, f.rule)} – {_protocol_name(f.against, f.against_rule)}"
        if f.against_attack != f.attack:
            name = f"{f.measure}, {_protocol_name(f.protocol, f.rule)}: with – without"
        if len(name) > LONGEST:  # a longer name would widen the table
            name = name.replace(", ", "\n", 1)
        cells = percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)
        rows.append((name, _place_name(f), *cells))
    return _add_groups(grid("", "points", "95% CI", "n", "p"), rows)


def _quality_table(figures: Sequence[Figure]) -> Table:
    rows = list[Sequence[str]]()
    for invalid in sorted(_select_figures(figures, "invalid_rate"), key=_severity_key):
        place = (invalid.protocol, invalid.attack, invalid.severity)
        beside = {f.measure: f for f in figures if (f.protocol, f.attack, f.severity) == place and f.against is None}
        orders = beside.get("order_inconsistency")
        order = (percent(orders.value), f"{orders.k}/{orders.n}") if orders else ("", "")
        cells = *order, percent(beside["choice_mass"].value), percent(invalid.value)
        rows.append((line(invalid.protocol or ""), _place_name(invalid), *cells))
    return _add_groups(grid("", "order", "k/n", "mass", "invalid"), rows)


def _sentence(protocol: str, figures: Sequence[Figure], rules: Sequence[str], controls: Collection[str]) -> str:
    """Sum up one protocol in plain words, controls apart from distractors."""
    rule = headline("flip_rate", rules)
    own = [f for f in figures if f.protocol == protocol and f.against is None]
    noise = [f for f in own if f.measure == "flip_rate" and f.rule == rule and f.attack in controls]
    if distracted := [f for f in own if f.measure in ("flip_rate", "tie_rate") and f.attack not in controls]:
        own = [f for f in own if f.measure not in ("flip_rate", "tie_rate")] + distracted
    flips = [f for f in own if f.measure == "flip_rate" and f.rule == rule]
    ties = [f for f in own if f.measure == "tie_rate" and f.rule == headline("tie_rate", rules)]
    parts = []
    if n := sum(f.n for f in flips):
        k = sum(f.k or 0 for f in flips)
        highest = _describe_highest(flips) if k else ""
        parts.append(f"{k} of {n} losing responses won after their rewrite{_format_rule(rule)}{highest}")
    elif flips:
        parts.append("no flip rate: no eligible case with a valid verdict")
    if distracted and any(f.n for f in noise):
        floor = ", ".join(f"{f.k} of {f.n} under {line(f.attack)}" for f in noise if f.n)
        parts.append(f"the noise floor is {floor}")
    if n := sum(f.n for f in ties):
        k = sum(f.k or 0 for f in ties)
        by = _format_rule(headline("tie_rate", rules))
        parts.append(f"it saw {k} of {n} rewrites of a good response as equal to it{by}")
    elif ties:
        parts.append("no tie rate: no valid verdict")
    accuracies = [f for f in own if f.measure == "severity_accuracy" and f.rule == headline(f.measure, rules) and f.n]
    if accuracies:
        k, n = (sum(getattr(f, name) or 0 for f in accuracies) for name in "kn")
        lowest = min(accuracies, key=lambda f: (f.value or 0.0, f.place))
        where = (
            f", least often at{_place_name(lowest)} ({lowest.k} of {lowest.n})" if k < n and len(accuracies) > 1 else ""
        )
        parts.append(
            f"it ranked the good response above the worse one in {k} of {n}{_format_rule(accuracies[0].rule)}{where}"
        )
    parts += [
        f"its verdict changed with the order in {f.k} of {f.n} pairs before any rewrite"
        for f in own
        if f.measure == "order_inconsistency" and f.attack == BASELINE and f.severity is None and f.k
    ]
    return f"{line(protocol)}: {'; '.join(parts) or 'nothing to sum up'}."


def _format_rule(rule: str | None) -> str:
    return f" by {rule}" if rule else ""


def _describe_highest(flips: Sequence[Figure]) -> str:
    """Name the attack with the highest rate, or all that share it."""
    highest = max(f.value for f in flips if f.value is not None)
    at = [f for f in flips if f.value == highest]
    names = ", ".join(line(f.attack) for f in at) + (" alike" if len(at) > 1 else "")
    wide = ", too few to be sure" if at[0].n < FEW else ""
    range_ = interval(at[0].low, at[0].high)
    if len(flips) == 1:
        return f", under {names} (95% interval {range_}%{wide})"
    return f", at the highest rate under {names} ({at[0].k} of {at[0].n}, 95% interval {range_}%{wide})"


def _notes(measured: AttackResult) -> Iterable[str]:
    figures = measured.figures
    if measured.excluded:
        yield format_exclusions("excluded", measured.excluded)
    yield from rewrite_notes(measured.rewrites)
    if measured.invalid:
        yield "invalid: " + "; ".join(f"{line(reason)} ({n})" for reason, n in measured.invalid.most_common(5))
    shown = [f for measure in ("flip_rate", "tie_rate", "severity_accuracy") for f in _select_figures(figures, measure)]
    if any(f.effective_n is not None and f.effective_n < f.n for f in shown):
        rough = f"; {count(measured.prompts, 'prompt')} only: intervals are rough" if measured.prompts < FEW else ""
        yield f"some prompts give several comparisons: intervals allow for their dependence{rough}"


def _protocol_name(name: str | None, rule: str | None) -> str:
    return line(name or "") + (f" by {rule}" if rule else "")
