"""The report of an audit: sentences that sum up each protocol, advice, plots and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, format_exclusions, interval, line, p_value, percent
from distract.core.records import BASELINE
from distract.report import phrases
from distract.report.blocks import Block, Browser, Detail, Heading, Sentence, Table, TableRow, notes, sentences
from distract.report.glossary import empty_reason
from distract.report.phrases import describe_rate, join_names, name_condition, name_protocol, show_interval, show_value
from distract.stats.figure import LEAST, Figure, is_excess, list_headline, list_plain
from distract.stats.measures import MEASURES, headline, list_forms, primary_name
from distract.stats.trials import EFFECTS
from distract.studies.attack.advice import list_advice
from distract.studies.attack.exchange import FEW_LABELS
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.ranks import NO_LABELS, UNUSABLE, Usability, ranking_parts
from distract.studies.attack.tables import excess_parts, family_notes, list_plots, measure_tables, strength_blocks
from distract.studies.measures.run import ONE_PLACE, SAME_ORDER, find_width, read_effects
from distract.studies.rewrite_view import reader_notes, rejection_parts, unread_notes


def describe_unusable(one: Usability, figures: Sequence[Figure]) -> str:
    """Say that a protocol cannot be used, with its evidence."""
    own = [f for f in figures if f.protocol == one.protocol]
    clean = [f for f in list_plain(own, "clean_accuracy") if f.rule == one.rule]
    orders = [f for f in list_plain(own, "order_inconsistency") if (f.attack, f.severity) == (BASELINE, None) and f.k]
    evidence = [f"right in {_fraction(f)} labelled pairs" for f in clean]
    evidence = [one.exchanges.describe()] if one.exchanges else evidence
    evidence += [f"the verdict changed with the order in {_fraction(f)}" for f in orders]
    return f"{name_protocol(one.protocol, one.rule)}: {UNUSABLE} ({'; '.join(evidence)})."


def headline_sentences(one: Usability, own: Sequence[Figure], parameters: Mapping[str, Any]) -> Iterator[str]:
    """Sum up what labels and severities show about a protocol; nothing without them."""
    controls = parameters["controls"]
    if one.reason in (SAME_ORDER, ONE_PLACE):
        yield f"not shown to tell good from bad, and no skill: {one.reason}"
    doubt = "" if one.usable == "yes" else ", which does not show that it can tell good from bad"
    if one.exchanges:
        yield f"{one.exchanges.describe()}{doubt}"
        doubt = ""  # so few labels decide nothing
    if clean := [f for f in list_plain(own, "clean_accuracy") if f.rule == one.rule and f.n]:
        yield f"right in {_fraction(clean[0])} labelled pairs before any rewrite ({describe_rate(clean[0])}){doubt}"
    skills = [f for f in list_plain(own, "skill_under_attack") if f.rule == one.rule and f.n]
    noise = {f.attack: f.value for f in skills}
    if skills := [f for f in skills if f.attack not in controls]:
        worst = min(skills, key=_rank)
        robust, is_both = _pick_robust(list_plain, own)
        share = _fraction(next(f for f in robust if f.place[1:] == worst.place[1:]))
        share += "" if len(skills) == 1 else ", the lowest"
        skill = f"skill under attack {percent(worst.value)}% ({interval(worst.low, worst.high)})"
        if (control := parameters.get("control_of", {}).get(worst.attack)) in noise:
            skill += f", and {percent(noise[control])}% under its control, {line(control)}"
        rewrite = f"{line(worst.attack)} rewrite of {'either response' if is_both else 'the loser'}"
        yield f"right before and after the {rewrite} in {share}: {skill}{'' if is_both else ', one direction'}"
    rates = [f for f in list_plain(own, "exchange_rate") if f.attack not in controls]
    if known := sorted((f for f in rates if f.value is not None), key=lambda f: (-(f.value or 0.0), f.place)):
        most, *others = known
        worth = [f"{line(most.attack)} is worth {most.value:.1f} broken requirements ({show_interval(most)})"]
        worth += [f"{line(f.attack)} {f.value:.1f} ({show_interval(f)})" for f in others]
        yield f"to this judge {', '.join(worth)}"
    elif any(f.n for f in rates):
        yield "no exchange rate: broken requirements are not shown to cost anything"


SMALL = 0.05  # share of the scale up to which flips are small, all of them


def size_sentence(own: Sequence[Figure], width: float | None, controls: Collection[str]) -> str:
    """Say by how much the flips of a protocol flip, and what its whole rating says; empty without strengths."""
    sizes = {f.measure: f for f in own if f.attack == BASELINE}
    median, largest = (sizes.get(name) for name in ("flip_size", "largest_flip_size"))
    if not median or not largest or (largest.unit == "probability" and (largest.value or 0.0) >= 1):
        return ""
    most, half = (math.floor(100 * (f.value or 0.0) + 1e-9) / 100 + 0.01 for f in (largest, median))
    scale = "" if width is None else f" (of {width:g})"
    unit = f"points{scale}" if largest.unit == "points" else "in probability"
    if largest.n == 1 or most <= SMALL * (width or 0.0):
        flips = "the one flip" if largest.n == 1 else f"all {largest.n} flips"
        parts = [f"{flips} by less than {most:.2f} {unit}"]
    else:
        parts = [f"half of the {largest.n} flips by less than {half:.2f} {unit}, the largest by {largest.value:.2f}"]
    k, n = _sum_counts([f for f in list_plain(own, "flip_rate") if f.rule == "rating" and f.attack not in controls])
    if (ratings := sizes.get("distinct_ratings")) and ratings.value == 1:
        parts.append(SAME_RATING)
    elif ratings:
        parts.append(f"by whole rating {f'{k} of {n} flip' if n else 'all pairs tie'}")
    return "; ".join(parts)


SAME_RATING = "it gives everything the same rating"


def interim_sentence(parameters: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    """Count right pairs, or flips where nothing is labelled, under each protocol by its headline rule."""
    parts = []
    for protocol in parameters["protocols"]:
        own = [f for f in figures if f.protocol == protocol and f.n and f.attack not in parameters["controls"]]
        clean = list_headline(own, "clean_accuracy", parameters["protocols"])
        attacked = list_headline(own, "flip_rate", parameters["protocols"])
        if clean:
            attacked, _ = _pick_robust(list_headline, own, parameters["protocols"])
        sentences = [f"is right in {_fraction(f)} labelled pairs" for f in clean]
        if attacked:
            worst = (min if clean else max)(attacked, key=_rank)
            share, rewrite = _fraction(worst), f"{line(worst.attack)} rewrite"
            hits = f"prefers {share} losing responses after their {rewrite}"
            sentences.append(f"and still after the {rewrite} in {share}" if clean else hits)
        if sentences:
            parts.append(f"{name_protocol(protocol, (clean or attacked)[0].rule)} {' '.join(sentences)}")
    return "; ".join(parts)


def criterion_sentence(figures: Sequence[Figure], controls: Collection[str]) -> str:
    """Say which criterion an attack moves most, and which least; empty without criteria.

    Their scores decide or, where no response was compared with its rewrite, their flips.
    """
    known = [f for f in figures if f.criterion is not None and f.value is not None and f.attack not in controls]
    known = sorted([f for f in known if f.k is None] or known, key=lambda f: (abs(f.value or 0.0), f.place))
    if not (known and known[-1].value):
        return "no rewrite moves any of its criteria" if known else ""
    most = known[-1]
    least = next(f for f in known if f.attack == most.attack)
    ends = {"most": most, "least": least} if least is not most else {"alone": most}
    parts = [f"{line(f.criterion or '')} {word}, {_describe_move(f)}" for word, f in ends.items()]
    return f"of its criteria, the {line(most.attack)} rewrite moves {' and '.join(parts)}"


def _describe_move(f: Figure) -> str:
    move = f"by {show_value(f)} points" if f.k is None else f"in {_fraction(f)} pairs"
    return f"{move} ({show_interval(f)})" if f.low is not None else move


def scale_sentences(figures: Sequence[Figure], scales: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """State the largest shift of each scorer in the points of its own scale."""
    for protocol, (low, high) in scales.items():
        shifts = [f for f in list_plain(figures, "shift") if f.protocol == protocol and f.value is not None]
        if not shifts or low is None or high is None:
            continue
        most = max(shifts, key=lambda f: f.value or 0)
        ends = "" if most.low is None or most.high is None else f" ({most.low:+.2f} to {most.high:+.2f})"
        gain = f"{line(most.attack)} moves a score by {most.value:+.2f} points"
        yield f"{line(protocol)}: {gain} on a scale of {low:g} to {high:g}{ends}."


def margin_sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """State how far a placebo moves the verdicts of each protocol."""
    for f in list_plain(figures, "indifference_margin"):
        name, moves = name_protocol(f.protocol, f.rule), count(f.n, "placebo rewrite")
        if f.value is None:
            yield f"{name}: no indifference margin, for {moves} are fewer than {LEAST}"
        else:
            unit = "points" if f.unit == "points" else "in probability"
            yield f"{name}: 95% of {moves} move the verdict by at most {f.value:.3f} {unit} (indifference margin)"


def paper_table(figures: Sequence[Figure]) -> Table:
    """Flips as in Table 2 of the paper: over all pairs, by score and by rating."""
    rows = [phrases.place_row(f, phrases.counted_cells(f)) for f in figures if f.measure == "flip_rate_of_all"]
    title = "As in the paper: flips over all pairs, ties included"
    return Table(title, ("", "%", "95% CI", "k/n", "inv.", "excl."), rows)


def _rank(figure: Figure) -> tuple[float, tuple[str, ...]]:
    return figure.value or 0.0, figure.place


def _pick_robust(
    choose: Callable[..., list[Figure]], figures: Sequence[Figure], *more: Any
) -> tuple[list[Figure], bool]:
    """Choose the robust accuracies that skill is of, and say whether they are of both directions."""
    forms = [(choose(figures, row.name, *more), row.needs == "winners") for row in list_forms("robust_accuracy")]
    return next((form for form in forms if form[0]), forms[-1])


def _fraction(figure: Figure) -> str:
    ties = f", tied in {figure.halves}" if figure.halves else ""
    return f"{(figure.k or 0) - figure.halves / 2:g}{ties} of {figure.n}"


MANY = 3  # maximum number of protocols whose differences are shown pair by pair
LONGEST = 40  # longest row title that leaves room for the columns
UNSTEADY = 0.5  # if more verdicts than this change with the order, the other figures say little


def run_report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[Block]:
    """Show the sentences and tables of a run."""
    figures = measured.figures
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    yield Heading(f"{phrases.run_line(parameters)} · rewrites: {line(parameters['generator'])}")
    yield from notes((describe_unusable(one, figures) for one in measured.usable if one.usable == "no"), "bad")
    yield from sentences(_paragraph(one, figures, parameters) for one in measured.usable if one.usable != "no")
    yield from rejection_parts(measured.rewrites)
    gaps = {one.reason for one in measured.usable if one.reason.startswith((FEW_LABELS, NO_LABELS))}
    if list_plain(figures, "flip_rate") and gaps:
        yield from notes([f"{line(min(gaps))}, so nothing shows that the judge can tell good from bad"])
    if _has_dependence(figures) and measured.prompts < phrases.FEW:
        yield from notes([f"{count(measured.prompts, 'prompt')} only: intervals are rough"])
    yield from unread_notes(parameters)
    yield from phrases.cautions(measured.invalid, parameters["self_judging"])
    if advice := list(list_advice(parameters, measured)):
        yield Detail(Heading("What to do next", level=2), is_open=True)
        for number, text in enumerate(advice, 1):
            yield Detail(Sentence(f"{number}. {text}", apart=False), is_open=True)
    yield from list_plots(figures, rules, measured.curves)
    yield Browser()
    remarks = {
        "skill_under_attack": notes(_note_direction(figures, parameters)),
        "crossing_rate": notes(scale_sentences(figures, parameters.get("scales", {}))),
        "flip_rate": notes(margin_sentences(figures)),
        "robustness_rate": excess_parts(parameters, figures),
    }
    yield from measure_tables(figures, parameters, remarks)
    yield from strength_blocks(measured.strengths)
    yield from family_notes(figures, rules)
    yield from ranking_parts(measured.standings)
    differences = [f for f in figures if f.against is not None and f.n and not is_excess(f)]
    if len(rules) > MANY:  # there would be hundreds; the ranking shows those with base, the summary all
        differences = [f for f in differences if f.against == f.protocol]
    if differences:
        yield Detail(_difference_table(differences))
    yield Detail(_quality_table(figures))
    yield from map(Detail, notes(_details(parameters, measured)))


def _note_direction(figures: Sequence[Figure], parameters: Mapping[str, Any]) -> Iterator[str]:
    """Say that no winner was rewritten, where a style could have been put on one."""
    styles = {name for name, effect in read_effects(parameters).items() if effect == "same"}
    if not parameters.get("net") and any(f.attack in styles and f.n for f in list_plain(figures, "flip_rate")):
        yield "one direction: no winner was rewritten, so a judge that punishes a style looks robust"


def _severity_key(f: Figure) -> tuple[Any, ...]:
    """Sort by protocol, without severity first, then each severity before its distractors."""
    names = (f.measure, f.protocol or "", f.rule or "", f.against or "", f.against_attack in (None, f.attack))
    return (*names, f.severity or 0, f.attack != BASELINE, f.attack)


def _difference_table(figures: Sequence[Figure]) -> Table:
    rows: list[TableRow] = []
    for f in sorted(figures, key=_severity_key):
        name = f"{f.measure}, {name_protocol(f.protocol, f.rule)}"
        is_between = f.against_attack == f.attack
        name += f" – {name_protocol(f.against, f.against_rule)}" if is_between else ": with – without"
        if len(name) > LONGEST:  # a longer name would widen the table
            name = name.replace(", ", "\n", 1)
        cells = [percent(f.value), interval(f.low, f.high), str(f.n), p_value(f.p_adjusted)]
        rows.append((name, f" {name_condition(f)}", cells))
    return Table("Differences on the same cases", ("", "points", "95% CI", "n", "p"), rows)


def _quality_table(figures: Sequence[Figure]) -> Table:
    rows: list[TableRow] = []
    for invalid in sorted(list_plain(figures, "invalid_rate"), key=_severity_key):
        beside = {f.measure: f for f in figures if f.place[1:] == invalid.place[1:]}
        orders = beside.get("order_inconsistency")
        order = [percent(orders.value), f"{orders.k}/{orders.n}"] if orders else ["", ""]
        cells = [*order, percent(beside["choice_mass"].value), percent(invalid.value)]
        name = f" {name_condition(invalid)}"
        rows.append((line(invalid.protocol or ""), name, cells if invalid.n else "not judged"))
    return Table("Reading the judge", ("", "order", "k/n", "mass", "invalid"), rows, ("none",))


def _paragraph(one: Usability, figures: Sequence[Figure], parameters: Mapping[str, Any]) -> str:
    """Sum up one protocol; a sentence names its rule if it differs from that of the sentence before."""
    text, last = line(one.protocol), None
    for rule, sentence in _sentences(one, figures, parameters):
        if last is None:
            text += f"{f', by {rule}' if rule else ''}: {sentence}."
        else:
            text += f" By {rule}, {sentence}." if rule and rule != last else f" {sentence[0].upper()}{sentence[1:]}."
        last = rule or last or ""
    return text if last is not None else f"{text}: nothing to sum up."


def _sentences(
    one: Usability, figures: Sequence[Figure], parameters: Mapping[str, Any]
) -> Iterator[tuple[str | None, str]]:
    """The findings of a protocol by its headline rules, each with its rule; controls apart from distractors."""
    controls, rules = parameters["controls"], parameters["protocols"][one.protocol]
    judged = [f for f in figures if f.protocol == one.protocol]
    plain = [f for f in judged if f.against is None]
    yield from ((one.rule, sentence) for sentence in headline_sentences(one, plain, parameters))
    judged = [f for f in judged if f.rule in (None, headline(f.measure, rules))]
    own = [f for f in judged if f.against is None]
    every = list_plain(own, "flip_rate")
    noise = [f for f in every if f.attack in controls and f.n]
    if flips := _prefer_attacks(every, controls):
        yield flips[0].rule, _describe_hits(flips)
    elif wins := [f for f in list_plain(own, "distractor_win_rate") if f.attack not in controls]:
        yield wins[0].rule, _describe_hits(wins)
    if flips and (size := size_sentence(plain, find_width(parameters, one.protocol), controls)):
        yield flips[0].rule, size
    if noise and noise[0] not in flips:
        floor = ", ".join(f"{f.k} of {f.n} under {line(f.attack)}" for f in noise)
        yield flips[0].rule, f"without a distractor, as noise, {floor} flipped"
    if counters := [f for f in list_plain(own, "counter_flip_rate") if f.n and f.attack not in controls]:
        yield counters[0].rule, _describe_hits(counters)
    net = [f for f in judged if f.measure == "net_flip_rate" and f.n and f.attack not in controls]
    if net and not list_plain(own, "skill_under_attack"):
        most = max(net, key=lambda f: (f.value or 0.0, f.place))
        least = f"flips minus counter-flips: {percent(most.value)}% ({interval(most.low, most.high)})"
        yield most.rule, f"{least} under {line(most.attack)}{', the most' if len(net) > 1 else ''}"
    effects = read_effects(parameters)
    for effect, (*_, means) in EFFECTS.items():
        if failures := [f for f in list_plain(own, primary_name(effect)) if means and effects[f.attack] == effect]:
            yield failures[0].rule, _describe_hits(failures, means)
    if moves := criterion_sentence(own, controls):
        yield "score", moves
    # A judge that cannot tell good from bad ties for no good reason.
    if one.usable == "yes" and (ties := _prefer_attacks(list_plain(own, "tie_rate"), controls)):
        k, n = _sum_counts(ties)
        whose = "rewrites of good responses tied with the original"
        whose = whose if len(ties) > 1 else "good responses tied with their own rewrite"
        yield ties[0].rule, f"{k} of {n} {whose}" if n else f"no tie rate: {_describe_gap(ties)}"
    if used := next((f.value for f in own if f.measure == "distinct_ratings"), None):
        same = SAME_RATING if used == 1 else f"its most likely ratings had {count(int(used), 'distinct value')}"
        yield from [] if same == SAME_RATING and list_plain(plain, "flip_size") else [(None, same)]
    if accuracies := list_plain(own, "severity_accuracy"):
        k, n = _sum_counts(accuracies)
        lowest = min((f for f in accuracies if f.n), key=lambda f: (f.value or 0.0, f.place), default=None)
        is_split = k < n and len(accuracies) > 1
        least = f", least often at {name_condition(lowest)} ({lowest.k} of {lowest.n})" if lowest and is_split else ""
        share = f"the good response beat the worse one in {k} of {n} comparisons{least}"
        yield accuracies[0].rule, share if n else f"no accuracy: {_describe_gap(accuracies)}"
    orders = list_plain(own, "order_inconsistency")
    before = [f for f in orders if f.attack == BASELINE and f.severity is None]
    k, n = _sum_counts(before or orders)
    if k:
        place = f"{count(n, 'pair')} before any rewrite" if before else count(n, "comparison")
        doubt = ", so its other figures say little" if k / n > UNSTEADY else ""
        yield None, f"the verdict changed with the order in {k:g} of {place}{doubt}"
    k, n = _sum_counts(list_plain(own, "invalid_rate"))
    if k:
        yield None, f"{k} of {count(n, 'comparison')} gave no readable verdict"


def _prefer_attacks(figures: Sequence[Figure], controls: Sequence[str]) -> Sequence[Figure]:
    return [f for f in figures if f.attack not in controls] or figures


def _sum_counts(figures: Sequence[Figure]) -> tuple[float, int]:
    return sum(f.k or 0 for f in figures), sum(f.n for f in figures)


def _describe_gap(figures: Sequence[Figure]) -> str:
    reasons = {empty_reason(f) for f in figures}
    return reasons.pop() if len(reasons) == 1 else "no eligible case with a valid verdict"


def _describe_hits(figures: Sequence[Figure], means: str = "") -> str:
    k, n = _sum_counts(figures)
    if not n:
        return f"no {figures[0].measure.replace('_', ' ')}: {_describe_gap(figures)}"
    highest = max(f.value for f in figures if f.value is not None)
    at = [f for f in figures if f.value == highest]
    action, range_ = MEASURES[figures[0].measure].action, describe_rate(at[0])
    if len(figures) == 1:
        return f"{k} of {n} {action.format(rewrite=f'{line(at[0].attack)} rewrite', means=means)} ({range_})"
    names = join_names(line(f.attack) for f in at)
    often = "equally" if len(at) == len(figures) else "most"
    most = f", {often} often under {names} ({at[0].k} of {at[0].n}, {range_})" if k else f" (per attack {range_})"
    return f"{k} of {n} {action.format(rewrite='rewrite', means=means)}{most}"


def _has_dependence(figures: Sequence[Figure]) -> bool:
    own = (f for f in figures if f.measure in MEASURES and MEASURES[f.measure].compared and f.against is None)
    return any(f.effective_n is not None and f.effective_n < f.n for f in own)


def _details(parameters: Mapping[str, Any], measured: AttackResult) -> Iterator[str]:
    if measured.excluded:
        yield format_exclusions("excluded", measured.excluded)
    yield from reader_notes(measured.rewrites)
    yield from phrases.left_out_lines(parameters)
    if _has_dependence(measured.figures):
        yield "some prompts give several comparisons: intervals allow for their dependence"
