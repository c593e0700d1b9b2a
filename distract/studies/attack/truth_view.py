"""The rates of each truth as tables and sentences, with the names that the field knows: RR, CR, ASR and FPR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.attack import Truth
from distract.core.printable import interval, line, p_value, percent
from distract.report.blocks import Block, Detail, Table, TableRow, notes
from distract.report.phrases import counted_cells, name_protocol
from distract.stats.figure import CONFIDENCE, Figure
from distract.studies.attack.outcomes import FAILURES
from distract.studies.attack.published_rates import published_sentences
from distract.studies.attack.strength import Strength
from distract.studies.attack.truths import FAMILY, STYLES, read_truths

FIRST = 5
"""Attacks of each truth and protocol to show without --verbose."""

TITLES: Mapping[Truth, str] = {
    "same": "Flip rate: the response that lost wins after its rewrite (lower is better)",
    "unsupported": "Unsupported claims, gain rate (ASR): a response that had not won wins by one",
    "injection": "Injections, gain rate (ASR): a response that had not won wins by one",
    "hollow": "Hollow answers, win rate (FPR): one wins against a real answer",
}

COLUMNS: Mapping[Truth, Mapping[str, str]] = {
    "same": {"softened": "softened_rate", "RR": "robustness_rate", "CR": "consistency_rate"},
    "unsupported": {"to tie": "gain_to_tie_rate"},
    "injection": {"to tie": "gain_to_tie_rate"},
    "hollow": {"tie": "hollow_tie_rate", "pass": "hollow_pass_rate"},
}
"""The columns of each table beside its rate."""

ACTIONS: Mapping[Truth, str] = {
    "unsupported": "responses that had not won did so by an unsupported claim, under their {}",
    "injection": "responses that had not won did so by words to the judge, under their {}",
    "hollow": "real answers lost to a hollow one, under the {}",
}
"""The failures of each truth in a sentence, ended by the name of a rewrite."""


def truth_tables(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> Iterator[Block]:
    """Show one table for each truth; they have different denominators, so none holds two."""
    truths, places = read_truths(parameters), {f.place: f for f in figures}
    controls: Mapping[str, str] = parameters.get("control_of", {})
    for truth, title in TITLES.items():
        rows, columns = list[TableRow](), COLUMNS[truth]
        failures = [f for f in figures if f.measure == FAILURES[truth] and f.against is None]
        own = [f for f in failures if truths[f.attack] == truth or (truth == "same" and truths[f.attack] in STYLES)]
        columns = {name: one for name, one in columns.items() if any(f.measure == one and f.n for f in figures)}
        for f in own:
            # CR belongs to the control, RR to the attack: each stands in the row of the attack.
            attacks = {"CR": controls.get(f.attack, f.attack)}
            keys = [(one, *f.place[1:3], attacks.get(name, f.attack), *f.place[4:]) for name, one in columns.items()]
            others = [percent(places[key].value) if key in places else "–" for key in keys]
            rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", counted_cells(f, *others)))
        if rows:
            yield Table(title, ("", "%", "95% CI", "k/n", *columns, "inv.", "excl."), rows)
            yield from map(Detail, notes(published_sentences(FAILURES[truth], {f.attack for f in own})))


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


def _strength_table(title: str, strengths: Sequence[Strength]) -> Table:
    is_tested = any(s.p_value is not None for s in strengths)
    rows: list[TableRow] = []
    for s in strengths:
        cells = [percent(s.value), interval(s.low, s.high)]
        if is_tested:
            beyond = "–" if s.beyond is None else f"{100 * s.beyond:+.1f}"
            mark = "–" if s.is_stronger is None else "stronger" if s.is_stronger else "n.s."
            cells += [beyond, interval(s.beyond_low, s.beyond_high), p_value(s.p_adjusted), mark]
        rows.append((f"{s.truth}, {name_protocol(s.protocol, s.rule)}", f" {s.rank}. {line(s.attack)}", cells))
    tested = ("excess", "95% CI", "p (Holm)", "")
    return Table(title, ("", "%", "95% CI", *(tested if is_tested else ())), rows)


def family_sentences(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Say under which families a protocol that compares and one that scores are shown to differ."""
    differences = [
        f
        for f in figures
        if f.attack.startswith(FAMILY) and f.against is not None and (f.p_adjusted or 0.0) <= 1 - CONFIDENCE and f.value
    ]
    leaders = set[str | None]()
    for f in differences:
        names = name_protocol(f.protocol, f.rule), name_protocol(f.against, f.against_rule)
        value, low, high = (None if end is None else abs(end) for end in (f.value, f.low, f.high))
        worse, better = names if (f.value or 0.0) > 0 else names[::-1]
        leaders.add(f.against if (f.value or 0.0) > 0 else f.protocol)
        ends = sorted(end for end in (low, high) if end is not None)
        yield (
            f"under the {line(f.attack.removeprefix(FAMILY))} family, {worse} fails more often than {better}: by "
            f"{percent(value)} points ({interval(*ends)}, p {p_value(f.p_adjusted)}, {f.n} pairs)"
        )
    if len({bool(rules[name]) for name in leaders if name}) > 1:
        yield "so neither comparing nor scoring is safer throughout: choose by the attacks that you expect"
