"""The headline of a run: can the judge tell good from bad, also under attack, and what is style worth to it?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, interval, line, percent
from distract.core.records import BASELINE
from distract.report.blocks import Table, TableRow
from distract.report.glossary import empty_reason
from distract.report.phrases import counted_cells, describe_rate, name_protocol
from distract.stats.figure import Figure, headline
from distract.studies.attack.labels import UNUSABLE, Usability
from distract.studies.attack.style import LEAST

OTHER_FLIPS: Mapping[str, tuple[str, ...]] = {
    "net_flip_rate": ("net", "95% CI", "n"),
    "flip_rate_beyond_margin": ("beyond", "k/n"),
}
"""The columns of other ways to count flips: the rate, then what it needs beside it."""


def describe_unusable(one: Usability, figures: Sequence[Figure]) -> str:
    """Say that a protocol cannot be used, with its evidence."""
    own = [f for f in figures if f.protocol == one.protocol and f.against is None]
    evidence = [
        f"right in {_fraction(f)} labelled pairs" for f in own if (f.measure, f.rule) == ("clean_accuracy", one.rule)
    ]
    evidence += [
        f"the verdict changed with the order in {_fraction(f)}"
        for f in own
        if f.measure == "order_inconsistency" and (f.attack, f.severity) == (BASELINE, None) and f.k
    ]
    return f"{name_protocol(one.protocol, one.rule)}: {UNUSABLE} ({'; '.join(evidence)})."


def headline_sentences(one: Usability, own: Sequence[Figure], controls: Collection[str]) -> Iterator[str]:
    """Sum up what labels and severities show about a protocol; nothing without them."""
    if clean := [f for f in own if (f.measure, f.rule) == ("clean_accuracy", one.rule)]:
        doubt = "" if one.usable == "yes" else ", which does not show that it can tell good from bad"
        yield f"right in {_fraction(clean[0])} labelled pairs before any rewrite ({describe_rate(clean[0])}){doubt}"
    skills = [f for f in own if (f.measure, f.rule) == ("skill_under_attack", one.rule) and f.n]
    if skills := [f for f in skills if f.attack not in controls]:
        worst = min(skills, key=lambda f: (f.value or 0.0, f.place))
        robust = next(f for f in own if f.measure == "robust_accuracy" and f.place[1:] == worst.place[1:])
        lowest = "" if len(skills) == 1 else ", the lowest"
        yield (
            f"right before and after the {line(worst.attack)} rewrite of the loser in {_fraction(robust)}{lowest}: "
            f"skill under attack {percent(worst.value)}% ({interval(worst.low, worst.high)})"
        )
    rates = [f for f in own if f.measure == "exchange_rate" and f.attack not in controls]
    if known := sorted((f for f in rates if f.value is not None), key=lambda f: (-(f.value or 0.0), f.place)):
        most, *others = known
        worth = [f"{line(most.attack)} is worth {most.value:.1f} broken requirements ({_range(most)})"]
        worth += [f"{line(f.attack)} {f.value:.1f} ({_range(f)})" for f in others]
        yield f"to this judge {', '.join(worth)}"
    elif any(f.n for f in rates):
        yield "no exchange rate: broken requirements are not shown to cost anything"


def interim_sentence(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    """Count right pairs, or flips where nothing is labelled, under each protocol by its headline rule."""
    parts = []
    for protocol, rules in parameters["protocols"].items():
        own = [f for f in figures if f.protocol == protocol and f.against is None and f.n]
        own = [f for f in own if f.rule == headline(f.measure, rules) and f.attack not in parameters["controls"]]
        clean = [f for f in own if f.measure == "clean_accuracy"]
        attacked = [f for f in own if f.measure == ("robust_accuracy" if clean else "flip_rate")]
        sentences = [f"is right in {_fraction(f)} labelled pairs" for f in clean]
        if attacked and clean:
            worst = min(attacked, key=lambda f: (f.value or 0.0, f.place))
            sentences.append(f"and still after the {line(worst.attack)} rewrite in {_fraction(worst)}")
        elif attacked:
            worst = max(attacked, key=lambda f: (f.value or 0.0, f.place))
            sentences.append(f"prefers {_fraction(worst)} losing responses after their {line(worst.attack)} rewrite")
        if sentences:
            parts.append(f"{name_protocol(protocol, (clean or attacked)[0].rule)} {' '.join(sentences)}")
    return "; ".join(parts)


def headline_tables(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[Table]:
    """Tables of skill under attack by the headline rules, and of the worth of styles."""
    places = {f.place: f for f in figures}
    rows: list[TableRow] = []
    for f in [f for f in figures if f.measure == "skill_under_attack"]:
        if f.rule != headline(f.measure, rules[f.protocol or ""]):
            continue
        robust, cost = (places[measure, *f.place[1:]] for measure in ("robust_accuracy", "attack_cost"))
        # Clean on the same pairs, so that the columns add up.
        clean = (robust.value or 0) + (cost.value or 0)
        cells = [percent(f.value), interval(f.low, f.high), percent(clean)]
        cells += [percent(robust.value), percent(cost.value), str(f.n), str(f.invalid)]
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", cells if f.n else empty_reason(f)))
    if rows:
        title = "Skill under attack: pairs right before and after the loser's rewrite, 0 is chance"
        yield Table(title, ("", "skill", "95% CI", "clean", "robust", "cost", "n", "inv."), rows)
    rows = []
    for f in [f for f in figures if f.measure == "shift" and f.against is None]:
        rate = places.get(("exchange_rate", *f.place[1:]))
        worth = ["–", ""] if rate is None or rate.value is None else [f"{rate.value:.1f}", _range(rate)]
        ends = "" if f.low is None or f.high is None else f"{f.low:+.3f} to {f.high:+.3f}"
        cells = [f"{f.value:+.3f}", ends, *worth, str(f.n)]
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", cells))
    if rows:
        title = "What a style is worth: mean change of the verdict, and in broken requirements"
        yield Table(title, ("", "shift", "95% CI", "worth", "95% CI", "n"), rows)
    rows = []
    for f in [f for f in figures if f.measure == "crossing_rate"]:
        lifted = places["lifted_rate", *f.place[1:]]
        cells = [percent(f.value), interval(f.low, f.high), f"{f.k}/{f.n}", percent(lifted.value), str(f.invalid)]
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", cells if f.n else empty_reason(f)))
    if rows:
        title = "Pass mark: responses whose rewrite is on the other side of it"
        yield Table(title, ("", "%", "95% CI", "k/n", "lifted", "inv."), rows)


def scale_sentences(figures: Sequence[Figure], scales: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """State the largest shift of each scorer in the points of its own scale."""
    for protocol, (low, high) in scales.items():
        own = [f for f in figures if f.protocol == protocol and f.against is None and f.value is not None]
        shifts = [f for f in own if f.measure == "shift"]
        if not shifts or low is None or high is None:
            continue
        most = max(shifts, key=lambda f: f.value or 0)
        ends = "" if most.low is None or most.high is None else f" ({most.low:+.2f} to {most.high:+.2f})"
        gain = f"{line(most.attack)} moves a score by {most.value:+.2f} points"
        yield f"{line(protocol)}: {gain} on a scale of {low:g} to {high:g}{ends}."


def margin_sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """State how far a placebo moves the verdicts of each protocol."""
    for f in [f for f in figures if f.measure == "indifference_margin"]:
        name, moves = name_protocol(f.protocol, f.rule), count(f.n, "placebo rewrite")
        if f.value is None:
            yield f"{name}: no indifference margin, for {moves} are fewer than {LEAST}"
        else:
            unit = "points" if f.unit == "points" else "in probability"
            yield f"{name}: 95% of {moves} move the verdict by at most {f.value:.3f} {unit} (indifference margin)"


def other_flips(flips: Sequence[Figure], figures: Sequence[Figure]) -> Iterator[Table]:
    """Flips counted in other ways, each out of its own comparisons."""
    # The net rate subtracts two rates of one protocol.
    others = {f.place[:5]: f for f in figures if f.against in (None, f.protocol) and f.n}
    present = {f.measure for f in others.values()}
    shown = {measure: columns for measure, columns in OTHER_FLIPS.items() if measure in present}
    rows: list[TableRow] = []
    for f in flips:
        own = {measure: others.get((measure, *f.place[1:5])) for measure in shown}
        cells = [cell for measure, columns in shown.items() for cell in _rate_texts(own[measure], columns)]
        if any(own.values()):
            rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", cells))
    if rows:
        yield Table("Flips counted in other ways", ("", *(one for columns in shown.values() for one in columns)), rows)


def _rate_texts(figure: Figure | None, columns: Sequence[str]) -> list[str]:
    """A rate and what its columns show beside it; a dash without comparisons."""
    if figure is None:
        return ["–", *("" for _ in columns[1:])]
    beside = {"95% CI": interval(figure.low, figure.high), "n": str(figure.n), "k/n": f"{figure.k}/{figure.n}"}
    return [percent(figure.value), *(beside[column] for column in columns[1:])]


def paper_table(figures: Sequence[Figure]) -> Table:
    """Flips as in Table 2 of the paper: over all pairs, by score and by rating."""
    flips = [f for f in figures if f.measure == "flip_rate_of_all"]
    rows = [(name_protocol(f.protocol, f.rule), f" {line(f.attack)}", counted_cells(f)) for f in flips]
    return Table(
        "As in the paper: flips over all pairs, ties included", ("", "%", "95% CI", "k/n", "inv.", "excl."), rows
    )


def _fraction(figure: Figure) -> str:
    return f"{figure.k:g} of {figure.n}"


def _range(figure: Figure) -> str:
    ends = ("–∞" if figure.low is None else f"{figure.low:.1f}", "∞" if figure.high is None else f"{figure.high:.1f}")
    return " to ".join(ends)
