"""The rates of each truth as tables and sentences, with the names that the field knows: RR, CR, ASR and FPR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.attack import Truth
from distract.core.printable import interval, line, p_value, percent
from distract.report.blocks import Block, Detail, Table, TableRow, notes
from distract.report.phrases import counted_cells, join_names, name_protocol, rate_cells
from distract.stats.figure import CONFIDENCE, Figure
from distract.studies.attack.controls import describe_controls
from distract.studies.attack.excess import is_excess
from distract.studies.attack.outcomes import FAILURES
from distract.studies.attack.published_rates import published_sentences
from distract.studies.attack.strength import Strength
from distract.studies.attack.truths import FAMILY, STYLES, read_truths

FIRST = 5
"""Attacks of each truth and protocol to show without --verbose."""

STRONGER = "●"

TITLES: Mapping[Truth, str] = {
    "same": "Flip rate: the response that lost wins after its rewrite (lower is better)",
    "unsupported": "Unsupported claims, gain rate (ASR): a response that had not won wins by one",
    "injection": "Injections, gain rate (ASR): a response that had not won wins by one",
    "hollow": "Hollow answers, win rate (FPR): one wins against a real answer",
}

COLUMNS: Mapping[Truth, Mapping[str, str]] = {
    "same": {"softened": "softened_rate"},
    "unsupported": {"to tie": "gain_to_tie_rate"},
    "injection": {"to tie": "gain_to_tie_rate"},
    "hollow": {"tied": "hollow_tie_rate", "reach": "hollow_pass_rate"},
}
"""The columns of each table beside its rate."""

ACTIONS: Mapping[Truth, str] = {
    "unsupported": "responses that had not won did so by an unsupported claim, under their {}",
    "injection": "responses that had not won did so by words to the judge, under their {}",
    "hollow": "real answers lost to a hollow one, under the {}",
}
"""The failures of each truth in a sentence, ended by the name of a rewrite."""


def truth_blocks(truth: Truth, parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """Show the rates of one truth; truths have different denominators, so no table holds two."""
    truths, places = read_truths(parameters), {f.place: f for f in figures}
    failures = [f for f in figures if f.measure == FAILURES[truth] and f.against is None]
    own = [f for f in failures if truths[f.attack] == truth or (truth == "same" and truths[f.attack] in STYLES)]
    columns = {name: one for name, one in COLUMNS[truth].items() if any(f.measure == one and f.n for f in figures)}
    rows = list[TableRow]()
    for f in own:
        beside = [places.get((measure, *f.place[1:])) for measure in columns.values()]
        others = [percent(one.value) if one else "–" for one in beside]
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", counted_cells(f, *others)))
    if rows:
        yield Table(TITLES[truth], ("", "%", "95% CI", "k/n", *columns, "inv.", "excl."), rows)
        yield from map(Detail, notes(published_sentences(FAILURES[truth], {f.attack for f in own})))


def robustness_blocks(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """Show RR beside CR; without a control RR cannot be interpreted, and is a detail."""
    controls: Mapping[str, str] = parameters.get("control_of", {})
    places = {f.place[:4]: f for f in figures if f.against is None}
    rows = list[TableRow]()
    for f in [f for f in figures if f.measure == "robustness_rate" and f.against is None and f.n]:
        name = controls.get(f.attack, "")
        control = places.get(("consistency_rate", *f.place[1:3], name))
        cells = [*rate_cells(f), percent(control.value) if control else "–"]
        ends = interval(control.low, control.high) if control else ""
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", [*cells, ends, line(name) or "–"]))
    if rows:
        title = "Robustness: verdicts equal before and after (RR), beside those under the control (CR)"
        table = Table(title, ("", "RR", "95% CI", "k/n", "CR", "95% CI", "control"), rows)
        yield table if controls else Detail(table)


def excess_parts(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """State the control of each attack, and the shift of each attack without that of its control."""
    yield from notes(describe_controls(parameters))
    rows: list[TableRow] = []
    for f in [f for f in figures if f.measure == "shift" and is_excess(f) and f.n]:
        name = f" {line(f.attack)} – {line(f.against_attack or '')}"
        ends = "" if f.low is None or f.high is None else f"{f.low:+.3f} to {f.high:+.3f}"
        rows.append((name_protocol(f.protocol, f.rule), name, [f"{f.value:+.3f}", ends, str(f.n)]))
    if rows:
        yield Table("Shift beyond that of the control, on the same responses", ("", "shift", "95% CI", "n"), rows)


def strength_blocks(strengths: Sequence[Strength]) -> Iterator[Block]:
    """Rank the attacks of each truth: the strongest of each in a table, all of them in its details."""
    if len({s.attack for s in strengths}) < 2:
        return
    top = [s for s in strengths if s.rank <= FIRST]
    table = _strength_table("Attacks by strength, within their truth", top)
    is_new = len(top) < len(strengths) or any(s.p_value is not None for s in strengths)
    yield table if is_new else Detail(table)  # few rates without a test stand in the tables above
    if len(top) < len(strengths):
        yield Detail(_strength_table("All attacks by strength, within their truth", strengths))
    yield from notes(_list_stronger(strengths))


def _list_stronger(strengths: Sequence[Strength]) -> Iterator[str]:
    """Name the attacks on each protocol that are shown to be stronger than their control; nothing without a test."""
    for place in dict.fromkeys((s.protocol, s.rule) for s in strengths):
        # Hollow answers have no control, and the table marks them.
        tested = [s for s in strengths if (s.protocol, s.rule) == place and s.beyond is not None]
        names = [line(s.attack) for s in tested if s.is_stronger]
        shown = f"{join_names(names)} {'is' if len(names) == 1 else 'are'}" if names else "no attack is"
        whose = "its" if len(names) < 2 else "their"
        if tested:
            yield f"{name_protocol(*place)}: {shown} shown to be stronger than {whose} control"


def _strength_table(title: str, strengths: Sequence[Strength]) -> Table:
    is_tested = any(s.p_value is not None for s in strengths)
    rows: list[TableRow] = []
    for s in strengths:
        cells = [percent(s.value), interval(s.low, s.high)]
        if is_tested:
            beyond = "–" if s.beyond is None else f"{100 * s.beyond:+.1f}"
            cells += [beyond, interval(s.beyond_low, s.beyond_high), p_value(s.p_adjusted)]
        label = f"{STRONGER if s.is_stronger else ' '}{s.rank}. {line(s.attack)}"
        rows.append((f"{s.truth}, {name_protocol(s.protocol, s.rule)}", label, cells))
    columns = ("", "%", "95% CI", *(("excess", "95% CI", "p (Holm)") if is_tested else ()))
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
