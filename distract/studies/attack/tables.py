"""The measures of an audit as tables, plots and notes; the layout of a table is in the row of its measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distract.core.printable import bar, interval, line, p_value, percent
from distract.core.records import BASELINE
from distract.report.blocks import Axis, Block, Detail, Mark, Plot, Table, TableRow, notes
from distract.report.glossary import describe_excluded, empty_reason
from distract.report.phrases import (
    NOT_MEASURED,
    describe_count,
    join_names,
    name_protocol,
    place_row,
    show_interval,
    show_value,
)
from distract.stats.figure import CONFIDENCE, FEW, Figure, is_difference, is_excess, list_headline, list_plain, withhold
from distract.stats.measures import MEASURES, headline
from distract.stats.trials import EFFECTS, Measure
from distract.studies.attack.measures import Strength
from distract.studies.attack.selection import describe_controls
from distract.studies.attack.style import MarginCurve
from distract.studies.measures.run import FAMILY, read_effects


def list_plots(
    figures: Sequence[Figure], rules: Mapping[str, Sequence[str]], curves: Sequence[MarginCurve]
) -> Iterator[Plot]:
    """Draw the headline rates with their intervals, then what they depend on: margin, way of asking, severity."""
    names = Axis("", "names")
    for row in MEASURES.values():
        title, lines = row.plot
        if title and (own := list_headline(figures, row.name, rules)):
            marks = [_mark(f, f"n = {f.n}" if f.k is None else f"{f.k:g} of {f.n}") for f in own]
            yield Plot("forest", title, _describe(own), Axis("with 95% intervals", lines=lines), names, marks)
    yield from _draw_margins(curves, figures)
    own = list_headline(figures, "flip_rate", rules)
    if len({f.protocol for f in own}) > 1:
        title = "Ways of asking side by side: the same attacks"
        yield Plot("slope", title, _describe(own), Axis("flip rate"), names, [_mark(f) for f in own])
    own = list_headline(figures, "severity_accuracy", rules)
    if len({f.severity for f in own}) > 1:
        names_of = [_name(f) + ("" if f.attack == BASELINE else f", {f.attack}") for f in own]
        marks = [Mark(name, float(f.severity or 0), f.value or 0.0) for name, f in zip(names_of, own, strict=True)]
        title = "Accuracy by severity: the good response wins"
        places = Axis("constraints that the other response breaks", "number")
        yield Plot("line", title, _describe(own), Axis("accuracy"), places, marks)


def _draw_margins(curves: Sequence[MarginCurve], figures: Sequence[Figure]) -> Iterator[Plot]:
    for is_scored, unit in ((False, "probability"), (True, "points of the score")):
        own = [curve for curve in curves if (curve.rule is not None) == is_scored]
        if not any(len({(k, n) for _, k, n in curve.points}) > 1 for curve in own):
            continue  # verdicts without probabilities have the same lead
        marks, words = list[Mark](), list[str]()
        for curve in own:
            # Shares of all pairs with a verdict fall as the margin rises.
            every = max(n for *_, n in curve.points)
            points = [(margin, k / every) for margin, k, _ in curve.points if every]
            name = f"{name_protocol(curve.protocol, curve.rule)}, {curve.attack}"
            marks += [Mark(name, *point) for point in points]
            changes = [point for at, point in enumerate(points) if not at or point[1] != points[at - 1][1]]
            words.append(f"{name}: {', '.join(f'{percent(rate)}% beyond {margin:.3g}' for margin, rate in changes)}")
        margins = [f for f in list_plain(figures, "indifference_margin") if (f.rule is not None) == is_scored]
        placebos = {f"placebo, {_name(f)}": f.value for f in margins if f.value is not None}
        title = "Flips by indifference margin: the winner leads by more than it, before and after the rewrite"
        places = Axis(f"margin in {unit}", "number", lines=placebos)
        yield Plot("line", title, "; ".join(words), Axis("flip rate"), places, marks)


def _name(figure: Figure) -> str:
    return name_protocol(figure.protocol, figure.rule)


def _mark(f: Figure, text: str = "") -> Mark:
    return Mark(f.attack, _name(f), f.value or 0.0, f.low, f.high, text)


def _describe(figures: Sequence[Figure]) -> str:
    """Put the plot into words, for those who do not see it."""
    parts = []
    for f in figures:
        condition = f.attack if f.severity is None else f"severity {f.severity}, {f.attack}"
        ends = f" ({interval(f.low, f.high)})" if f.low is not None else ""
        parts.append(f"{_name(f)}, {condition}: {percent(f.value)}%{ends}")
    return "; ".join(parts)


ALPACA = "length-controlled wins of one optimised constant answer on AlpacaEval 2.0; arXiv 2410.07137, abstract"

AUDIT = "wrong after the attack, of those right before; judge Qwen2.5-0.5B, 6 to 36 cases; decision-model-guard 0.2.0"
_RATES = {"plea": 0.42, "split-claim": 0.25, "forged-block": 0.50, "fake-verdict": 0.42, "look-alike": 0.17}

PUBLISHED = {ALPACA: ("hollow_win_rate", {"null-model": 0.865}), AUDIT: ("gain_rate", _RATES)}
"""By what was counted and where: our measure, and the published share under each attack like one of ours."""


def published_sentences(measure: str, attacks: Collection[str]) -> Iterator[str]:
    """List the published rates of a measure under some attacks, one sentence a source."""
    for meaning, (name, shares) in PUBLISHED.items():
        rates = [f"{attack} {percent(share)}%" for attack, share in shares.items() if attack in attacks]
        if name == measure and rates:
            yield f"published, by a wording of its own: {', '.join(rates)} ({meaning})"


FIRST = 5  # attacks of each effect and protocol to show without --verbose

STRONGER = "●"

_COUNTS: Mapping[str, Callable[[Figure], str]] = {
    "95% CI": show_interval,
    "k/n": describe_count,
    "n": lambda figure: str(figure.n),
    "inv.": lambda figure: str(figure.invalid),
    "excl.": describe_excluded,
    "": lambda figure: bar(figure.value),
}
"""What a column shows beside the value of a figure."""

Column = tuple[Measure, str]  # the measure whose figure a column of a table shows, and its name


def measure_tables(
    figures: Sequence[Figure], parameters: Mapping[str, Any], remarks: Mapping[str, Iterable[Block]]
) -> Iterator[Block]:
    """Show the tables of each measure that has a title, and the remarks on it, in the order of ``MEASURES``."""
    effects, tables = read_effects(parameters), _Tables(figures, parameters)
    for row in MEASURES.values():
        groups = [(row.title, [effect for effect in row.effects if not EFFECTS[effect][1]])]
        # Effects have different denominators, so no table holds two.
        title = row.title[:1].lower() + row.title[1:]
        groups += [
            (f"{name}, {title}", [effect]) for effect, (_, name, _) in EFFECTS.items() if name and effect in row.effects
        ]
        shown = tables.list_shown(row) if row.title else []
        for title, group in groups:
            if own := [f for f in shown if effects.get(f.attack, "same") in group]:
                yield from tables.show(row, title, own)
                yield from map(Detail, notes(published_sentences(row.name, {f.attack for f in own})))
        yield from remarks.get(row.name, ())


class _Tables:
    """The tables of a run's figures, each with the figures of the measures beside its own."""

    def __init__(self, figures: Iterable[Figure], parameters: Mapping[str, Any]) -> None:
        self._places = {f.place[:6]: f for f in figures if not is_difference(f)}
        self._judged = {f.measure for f in self._places.values() if f.n}
        self._replacing = {row.replaces: row.name for row in MEASURES.values() if row.name in self._judged}
        self._rules: Mapping[str, Sequence[str]] = parameters["protocols"]
        self._control_of: Mapping[str, str] = parameters.get("control_of", {})

    def list_shown(self, row: Measure) -> list[Figure]:
        """List the figures of a table; a protocol that cannot tie has no tie rate, but its rewrites win and lose."""
        names = [*(one.name for one in MEASURES.values() if one.beside == row.name and one.effects == row.effects)]
        own = {f.place[1:6]: f for name in (*names, row.name) for f in self._places.values() if f.measure == name}
        empty: dict[str, Any] = {"measure": row.name, "value": None, "low": None, "high": None}
        shown = [f if f.measure == row.name else replace(f, **empty) for f in own.values()]
        if row.brief:
            shown = [f for f in shown if f.rule == headline(row.name, self._rules[f.protocol or ""])]
        # A severity stands before its distractors.
        shown.sort(key=lambda f: (*f.place[1:3], f.severity or 0, bool(f.severity) and f.attack != BASELINE, f.attack))
        return shown

    def show(self, row: Measure, title: str, figures: Sequence[Figure]) -> Iterator[Block]:
        """Show figures with those of the measures beside them, then those that count other comparisons."""
        beside = [one for one in MEASURES.values() if one.beside == row.name]
        unnamed = [one for one in beside if one.name in self._judged and one.column not in row.cells]
        apart = [one for one in unnamed if {"k/n", "n"} & {*one.shows}]
        others = [one for one in unnamed if one not in apart]
        named = {one.column: _list_columns([one]) for one in beside}
        named |= {"%": [(row, row.column or "%")], "…": _list_columns(others)}
        columns = [column for name in row.cells for column in named.get(name, [(row, name)])]
        # Only a table that counts what is missing names what has no comparison.
        is_whole = bool({"inv.", "excl."} & {*row.cells})
        if rows := [self._build_row(f, columns) for f in figures if f.n or is_whole]:
            table = Table(title, ("", *(name for _, name in columns)), rows)
            # Without a control, what should equal it cannot be interpreted.
            yield Detail(table) if "control" in row.cells and not self._control_of else table
        columns = _list_columns(apart)
        if rows := [self._build_row(f, columns) for f in figures if any(self._find(one, f) for one in apart)]:
            yield Table(f"{row.hit.capitalize()}s counted in other ways", ("", *(name for _, name in columns)), rows)

    def _build_row(self, f: Figure, columns: Sequence[Column]) -> TableRow:
        return place_row(f, [self._show(one, name, f) for one, name in columns] if f.n else empty_reason(f))

    def _show(self, one: Measure, name: str, f: Figure) -> str:
        if name == "control":
            return line(self._control_of.get(f.attack, "–"))
        figure = f if one.name == f.measure and name != "noise" else self._find(one, f, name == "noise")
        show = _COUNTS.get(name, show_value)
        return show(figure) if figure else "–" if show is show_value else ""

    def _find(self, one: Measure, f: Figure, is_noise: bool = False) -> Figure | None:
        protocol, rule, attack, *condition = f.place[1:6]
        if is_noise or one.effects == ("control",):
            attack = self._control_of.get(f.attack, "")
        figure = self._places.get((one.name, protocol, rule, attack, *condition))
        if one.sums:  # on the same pairs, so that the columns add up
            figure, *others = (self._places[self._replacing.get(name, name), *f.place[1:6]] for name in one.sums)
            figure = replace(figure, value=math.fsum(part.value or 0 for part in (figure, *others)))
        if figure and one.effects == ("control",):
            figure = withhold(figure)
        return figure if figure and figure.n else None


def _list_columns(measures: Iterable[Measure]) -> list[Column]:
    return [(one, name) for one in measures for name in (one.column, *one.shows)]


def excess_parts(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """State the control of each attack, and the shift of each attack without that of its control."""
    yield from notes(describe_controls(parameters))
    rows = list[TableRow]()
    for f in figures:
        if f.measure == "shift" and is_excess(f):
            pair = f" {line(f.attack)} – {line(f.against_attack or '')}"
            rows.append((_name(f), pair, [show_value(f), show_interval(f), str(f.n)]))
    if rows:
        yield Table("Shift beyond that of the control, on the same responses", ("", "shift", "95% CI", "n"), rows)


def strength_blocks(strengths: Sequence[Strength]) -> Iterator[Block]:
    """Rank the attacks of each effect: the strongest of each in a table, all of them in its details."""
    if len({s.attack for s in strengths}) < 2:
        return
    top = [s for s in strengths if s.rank <= FIRST]
    table = _strength_table("Attacks by strength, within their effect", top)
    is_new = len(top) < len(strengths) or any(s.p_value is not None for s in strengths)
    yield table if is_new else Detail(table)  # few rates without a test stand in the tables above
    if len(top) < len(strengths):
        yield Detail(_strength_table("All attacks by strength, within their effect", strengths))
    yield from notes(_list_stronger(strengths))


def _list_stronger(strengths: Sequence[Strength]) -> Iterator[str]:
    """Name the attacks on each protocol that are shown to be stronger than their control; nothing without a test."""
    for place in dict.fromkeys((s.protocol, s.rule) for s in strengths):
        # Hollow answers have no control, and the table marks them.
        tested = [s for s in strengths if (s.protocol, s.rule) == place and s.beyond is not None]
        names = [line(s.attack) for s in tested if s.is_stronger]
        shown = f"{join_names(names)} {'is' if len(names) == 1 else 'are'}" if names else "no attack is"
        whose = "its" if len(names) < 2 else "their"
        if few := [line(s.attack) for s in strengths if (s.protocol, s.rule) == place and s.beyond_reason]:
            cure = "judge more cases (`--limit`)"
            yield f"{name_protocol(*place)}: the excess of {join_names(few)} is not measured, for {FEW} count; {cure}"
        if tested:
            yield f"{name_protocol(*place)}: {shown} shown to be stronger than {whose} control"


def _strength_table(title: str, strengths: Sequence[Strength]) -> Table:
    is_tested = any(s.p_value is not None for s in strengths)
    rows: list[TableRow] = []
    for s in strengths:
        cells = [percent(s.value), interval(s.low, s.high)]
        if is_tested:
            beyond = "–" if s.beyond is None else f"{100 * s.beyond:+.1f}"
            ends = interval(s.beyond_low, s.beyond_high) if s.beyond_reason is None else NOT_MEASURED
            cells += [beyond, ends, "" if s.beyond_n is None else str(s.beyond_n), p_value(s.p_adjusted)]
        label = f"{STRONGER if s.is_stronger else ' '}{s.rank}. {line(s.attack)}"
        rows.append((f"{s.effect}, {name_protocol(s.protocol, s.rule)}", label, cells))
    columns = ("", "%", "95% CI", *(("excess", "95% CI", "n", "p (Holm)") if is_tested else ()))
    return Table(title, columns, rows, [STRONGER] if any(s.is_stronger for s in strengths) else [])


def family_notes(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    """Say under which families a protocol that compares and one that scores are shown to differ."""
    differences = [f for f in figures if f.attack.startswith(FAMILY) and f.against is not None and f.value]
    shown = [f for f in differences if f.p_adjusted is not None and f.p_adjusted <= 1 - CONFIDENCE]
    yield from notes(map(_describe_difference, shown))
    safer = {f.against if (f.value or 0.0) > 0 else f.protocol for f in shown}
    if len({bool(rules[name]) for name in safer if name}) > 1:
        yield from notes(["neither comparing nor scoring is safer throughout: choose by the attacks that you expect"])


def _describe_difference(f: Figure) -> str:
    names, low, high = (name_protocol(f.protocol, f.rule), name_protocol(f.against, f.against_rule)), f.low, f.high
    if (f.value or 0.0) < 0:
        names, low, high = names[::-1], None if high is None else -high, None if low is None else -low
    return (
        f"under the {line(f.attack.removeprefix(FAMILY))} family, {names[0]} fails more often than {names[1]}: by "
        f"{percent(abs(f.value or 0.0))} points ({interval(low, high)}, p {p_value(f.p_adjusted)}, {f.n} pairs)"
    )
