"""The report of a run: its findings in sentences, then tables; tables for a few readers are details."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distract.core.attack import Truth
from distract.core.printable import bar, count, format_exclusions, interval, line, p_value, percent
from distract.core.records import BASELINE
from distract.report.blocks import Block, Browser, Detail, Heading, Sentence, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import (
    FEW,
    cautions,
    counted_cells,
    describe_rate,
    join_names,
    name_protocol,
    run_line,
)
from distract.stats.figure import Figure, headline
from distract.studies.attack.advice import list_advice
from distract.studies.attack.excess import is_excess
from distract.studies.attack.headline_view import (
    describe_unusable,
    headline_sentences,
    headline_tables,
    margin_sentences,
    other_flips,
    scale_sentences,
)
from distract.studies.attack.labels import Usability
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.outcomes import FAILURES
from distract.studies.attack.plots import comparison_plots, margin_plots, rate_plots, severity_plots
from distract.studies.attack.rank_view import ranking_parts
from distract.studies.attack.truth_view import (
    ACTIONS,
    excess_parts,
    family_notes,
    robustness_blocks,
    strength_blocks,
    truth_blocks,
)
from distract.studies.attack.truths import read_truths
from distract.studies.rewrite_view import agreement_notes, rejection_parts

MANY = 3
"""Maximum number of protocols whose differences are shown pair by pair."""

LONGEST = 40
"""Longest row title that leaves room for the columns."""

UNSTEADY = 0.5
"""If more verdicts than this change with the order, the other figures say little."""


def run_report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[Block]:
    """Show the sentences and tables of a run."""
    figures = measured.figures
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    yield Heading(f"{run_line(parameters)} · rewrites: {line(parameters['generator'])}")
    yield from notes((describe_unusable(one, figures) for one in measured.usable if one.usable == "no"), "bad")
    controls, truths = parameters["controls"], read_truths(parameters)
    useful = [one for one in measured.usable if one.usable != "no"]
    yield from sentences(_paragraph(one, figures, rules[one.protocol], controls, truths) for one in useful)
    yield from _cautions(parameters, measured)
    if advice := list(list_advice(parameters, measured)):
        yield Detail(Heading("What to do next", level=2), is_open=True)
        for number, text in enumerate(advice, 1):
            yield Detail(Sentence(f"{number}. {text}", apart=False), is_open=True)
    yield from rate_plots(figures, rules)
    yield from margin_plots(measured.curves, figures)
    yield from comparison_plots(figures, rules)
    yield from severity_plots(figures, rules)
    yield Browser()
    yield from headline_tables(figures, rules)
    yield from notes(scale_sentences(figures, parameters.get("scales", {})))
    yield from truth_blocks("same", parameters, figures)
    if flips := _select_figures(figures, "flip_rate"):
        yield from other_flips(flips, figures)
        yield from notes(margin_sentences(figures))
    yield from robustness_blocks(parameters, figures)
    yield from excess_parts(parameters, figures)
    for truth in ACTIONS:
        yield from truth_blocks(truth, parameters, figures)
    if wins := _select_figures(figures, "distractor_win_rate"):
        title = "Tie rate: a good response against its own rewrite; else which one won"
        ties = {f.place[1:]: f for f in _select_figures(figures, "tie_rate")}
        rates = [ties.get(win.place[1:], replace(win, value=None, low=None, high=None)) for win in wins]
        yield _rates(title, rates, figures, {"rewrite": "distractor_win_rate", "original": "original_win_rate"})
    if accuracies := _select_figures(figures, "severity_accuracy"):
        yield _severity_table(accuracies)
    yield from strength_blocks(measured.strengths)
    yield from family_notes(figures, rules)
    yield from ranking_parts(measured.standings)
    if measured.smallest is not None:
        from distract.studies.attack.minimal.view import minimal_parts

        yield from minimal_parts(measured.smallest)
    differences = [f for f in figures if f.against is not None and f.n and not is_excess(f)]
    if len(rules) > MANY:  # there would be hundreds; the ranking shows those with base, the summary all
        differences = [f for f in differences if f.against == f.protocol]
    if differences:
        yield Detail(_difference_table(differences))
    yield Detail(_quality_table(figures))
    yield from map(Detail, notes(_details(parameters, measured)))


def _select_figures(figures: Sequence[Figure], measure: str) -> list[Figure]:
    return [f for f in figures if f.measure == measure and f.against is None]


def _rates(title: str, rates: Sequence[Figure], figures: Sequence[Figure], beside: Mapping[str, str]) -> Table:
    """Each rate with its interval, and other measures of the same comparisons beside it."""
    values = {f.place: f.value for f in figures}
    rows: list[TableRow] = []
    for f in rates:
        others = (percent(values.get((measure, *f.place[1:]))) for measure in beside.values())
        rows.append((name_protocol(f.protocol, f.rule), f" {line(f.attack)}", counted_cells(f, *others)))
    return Table(title, ("", "%", "95% CI", "k/n", *beside, "inv.", "excl."), rows)


def _severity_table(figures: Sequence[Figure]) -> Table:
    return Table(
        "Accuracy: the good response wins over one that breaks 1, 2 or 3 constraints",
        ("", "%", "95% CI", "k/n", "", "inv.", "excl."),
        [
            (name_protocol(f.protocol, f.rule), f" {_place_name(f)}", counted_cells(f, bar(f.value)))
            for f in sorted(figures, key=_severity_key)
        ],
    )


def _severity_key(f: Figure) -> tuple[Any, ...]:
    """Sort by protocol, without severity first, then each severity before its distractors."""
    names = (f.measure, f.protocol or "", f.rule or "", f.against or "", f.against_attack in (None, f.attack))
    return (*names, f.severity or 0, f.attack != BASELINE, f.attack)


def _place_name(f: Figure) -> str:
    if not f.severity:
        return line(f.attack)
    return line(f"severity {f.severity}" + (f"+{f.attack}" if f.attack != BASELINE else ""))


def _difference_table(figures: Sequence[Figure]) -> Table:
    rows: list[TableRow] = []
    for f in sorted(figures, key=_severity_key):
        name = f"{f.measure}, {name_protocol(f.protocol, f.rule)} – {name_protocol(f.against, f.against_rule)}"
        if f.against_attack != f.attack:
            name = f"{f.measure}, {name_protocol(f.protocol, f.rule)}: with – without"
        if len(name) > LONGEST:  # a longer name would widen the table
            name = name.replace(", ", "\n", 1)
        cells = [percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)]
        rows.append((name, f" {_place_name(f)}", cells))
    return Table("Differences on the same cases", ("", "points", "95% CI", "n", "p"), rows)


def _quality_table(figures: Sequence[Figure]) -> Table:
    rows: list[TableRow] = []
    for invalid in sorted(_select_figures(figures, "invalid_rate"), key=_severity_key):
        beside = {f.measure: f for f in figures if f.place[1:] == invalid.place[1:]}
        orders = beside.get("order_inconsistency")
        order = [percent(orders.value), f"{orders.k}/{orders.n}"] if orders else ["", ""]
        cells = [*order, percent(beside["choice_mass"].value), percent(invalid.value)]
        rows.append((line(invalid.protocol or ""), f" {_place_name(invalid)}", cells if invalid.n else "not judged"))
    return Table("Reading the judge", ("", "order", "k/n", "mass", "invalid"), rows, ("none",))


def _paragraph(
    usability: Usability,
    figures: Sequence[Figure],
    rules: Sequence[str],
    controls: Collection[str],
    truths: Mapping[str, Truth],
) -> str:
    """Sum up one protocol; a sentence names its rule if it differs from that of the sentence before."""
    text, last = line(usability.protocol), None
    for rule, sentence in _sentences(usability, figures, rules, controls, truths):
        if last is None:
            text += f"{f', by {rule}' if rule else ''}: {sentence}."
        else:
            text += f" By {rule}, {sentence}." if rule and rule != last else f" {sentence[0].upper()}{sentence[1:]}."
        last = rule or last or ""
    return text if last is not None else f"{text}: nothing to sum up."


def _sentences(
    usability: Usability,
    figures: Sequence[Figure],
    rules: Sequence[str],
    controls: Collection[str],
    truths: Mapping[str, Truth],
) -> Iterator[tuple[str | None, str]]:
    """The findings of a protocol by its headline rules, each with its rule; controls apart from distractors."""
    protocol, is_usable = usability.protocol, usability.usable == "yes"
    own = [f for f in figures if f.protocol == protocol and f.against is None]
    for sentence in headline_sentences(usability, own, controls):
        yield usability.rule, sentence
    own = [f for f in own if f.rule in (None, headline(f.measure, rules))]
    flips, ties, accuracies = (
        [f for f in own if f.measure == measure] for measure in ("flip_rate", "tie_rate", "severity_accuracy")
    )
    noise = [f for f in flips if f.attack in controls and f.n]
    if flips := [f for f in flips if f.attack not in controls] or flips:
        yield flips[0].rule, _describe_flips(flips)
    elif wins := [f for f in own if f.measure == "distractor_win_rate" and f.attack not in controls]:
        yield wins[0].rule, _describe_flips(wins, "{}s won against their original")
    if noise and noise[0] not in flips:
        floor = ", ".join(f"{f.k} of {f.n} under {line(f.attack)}" for f in noise)
        yield flips[0].rule, f"without a distractor, as noise, {floor} flipped"
    net = [f for f in figures if f.measure == "net_flip_rate" and f.protocol == protocol and f.n]
    if net := [f for f in net if f.rule in (None, headline(f.measure, rules)) and f.attack not in controls]:
        most = max(net, key=lambda f: (f.value or 0.0, f.place))
        least = f"minus winners that lost after theirs: {percent(most.value)}% ({interval(most.low, most.high)})"
        yield most.rule, f"{least} under {line(most.attack)}{', the most' if len(net) > 1 else ''}"
    for truth, action in ACTIONS.items():
        if failures := [f for f in own if f.measure == FAILURES[truth] and truths[f.attack] == truth]:
            yield failures[0].rule, _describe_flips(failures, action)
    # A judge that cannot tell good from bad ties for no good reason.
    if is_usable and (ties := [f for f in ties if f.attack not in controls] or ties):
        whose = "good responses tied with their own rewrite"
        k, n = _sum_counts(ties)
        if len(ties) > 1:
            whose = "rewrites of good responses tied with the original"
        yield ties[0].rule, f"{k} of {n} {whose}" if n else f"no tie rate: {_describe_gap(ties)}"
    if used := next((f.value for f in own if f.measure == "distinct_ratings"), None):
        yield None, f"its most likely ratings had {count(int(used), 'distinct value')}"
    if accuracies:
        k, n = _sum_counts(accuracies)
        lowest = min((f for f in accuracies if f.n), key=lambda f: (f.value or 0.0, f.place), default=None)
        least = ""
        if lowest and k < n and len(accuracies) > 1:
            least = f", least often at {_place_name(lowest)} ({lowest.k} of {lowest.n})"
        share = f"the good response beat the worse one in {k} of {n} comparisons{least}"
        yield accuracies[0].rule, share if n else f"no accuracy: {_describe_gap(accuracies)}"
    orders = [f for f in own if f.measure == "order_inconsistency"]
    before = [f for f in orders if f.attack == BASELINE and f.severity is None]
    k, n = _sum_counts(before or orders)
    if k:
        place = f"{count(n, 'pair')} before any rewrite" if before else count(n, "comparison")
        doubt = ", so its other figures say little" if k / n > UNSTEADY else ""
        yield None, f"the verdict changed with the order in {k:g} of {place}{doubt}"
    k, n = _sum_counts([f for f in own if f.measure == "invalid_rate"])
    if k:
        yield None, f"{k} of {count(n, 'comparison')} gave no readable verdict"


def _sum_counts(figures: Sequence[Figure]) -> tuple[float, int]:
    return sum(f.k or 0 for f in figures), sum(f.n for f in figures)


def _describe_gap(figures: Sequence[Figure]) -> str:
    """Say why none of the figures has a comparison."""
    reasons = {empty_reason(f) for f in figures}
    return reasons.pop() if len(reasons) == 1 else "no eligible case with a valid verdict"


def _describe_flips(flips: Sequence[Figure], action: str = "losing responses won after their {}") -> str:
    """Count the flips, or the wins of rewrites, and name the attack with the highest rate, or all that share it."""
    k, n = _sum_counts(flips)
    if not n:
        return f"no {flips[0].measure.replace('_', ' ')}: {_describe_gap(flips)}"
    highest = max(f.value for f in flips if f.value is not None)
    at = [f for f in flips if f.value == highest]
    range_ = describe_rate(at[0])
    if len(flips) == 1:
        return f"{k} of {n} {action.format(f'{line(at[0].attack)} rewrite')} ({range_})"
    names = join_names(line(f.attack) for f in at)
    often = "equally" if len(at) == len(flips) else "most"
    most = f", {often} often under {names} ({at[0].k} of {at[0].n}, {range_})" if k else f" (per attack {range_})"
    return f"{k} of {n} {action.format('rewrite')}{most}"


def _cautions(parameters: Mapping[str, Any], measured: AttackResult) -> Iterator[Block]:
    """Notes on what makes the figures less certain."""
    yield from rejection_parts(measured.rewrites)
    figures = measured.figures
    if _select_figures(figures, "flip_rate") and not _select_figures(figures, "clean_accuracy"):
        yield from notes(["no response is labelled better, so nothing shows that the judge can tell good from bad"])
    if _has_dependence(figures) and measured.prompts < FEW:
        yield from notes([f"{count(measured.prompts, 'prompt')} only: intervals are rough"])
    yield from cautions(measured.invalid, parameters["self_judging"])


def _has_dependence(figures: Sequence[Figure]) -> bool:
    measures = ("flip_rate", "tie_rate", "severity_accuracy")
    return any(f.effective_n is not None and f.effective_n < f.n for m in measures for f in _select_figures(figures, m))


def _details(parameters: Mapping[str, Any], measured: AttackResult) -> Iterator[str]:
    if measured.excluded:
        yield format_exclusions("excluded", measured.excluded)
    yield from agreement_notes(measured.rewrites)
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
    if _has_dependence(measured.figures):
        yield "some prompts give several comparisons: intervals allow for their dependence"
