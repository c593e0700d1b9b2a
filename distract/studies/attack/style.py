"""What a style is worth to a judge: shift, rate of exchange for requirements, size of flips, indifference margin."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

import numpy as np

from distract.core.records import BASELINE
from distract.stats.figure import CONFIDENCE, LEAST, Figure, UnitValues, contrast, fill_mean
from distract.stats.measures import MEASURES, headline
from distract.stats.trials import Unit
from distract.studies.measures.compact_rows import CompactRow, CompactRows
from distract.studies.measures.run import list_trials, pair_unit

STEPS = 10  # margins to try, from 0 to below the largest lead


@dataclass(frozen=True, slots=True)
class MarginCurve:
    """Flips at rising margins: each point has a margin, the flips beyond it, and the pairs whose winner led by more.

    Margins are in probability, or in points of the score for a protocol with a ``rule``.
    """

    protocol: str
    rule: str | None
    attack: str
    points: tuple[tuple[float, int, int], ...]


def trace_margins(rows: CompactRows, rules: Mapping[str, Sequence[str]], attacks: Sequence[str]) -> list[MarginCurve]:
    """Trace the flips of each protocol, by its headline rule, under each attack."""
    curves = []
    for protocol, names in rules.items():
        # A rating has too few values for a margin.
        if (rule := headline("flip_rate", names)) == "rating":
            continue
        leads = {attack: list(_find_leads(rows.of(protocol, "flip", attack), rule, attack)) for attack in attacks}
        finite = [lead for pairs in leads.values() for lead, _ in pairs if math.isfinite(lead)]
        if not finite or not (most := max(finite)):
            continue
        margins = [round(most * step / STEPS, 4) for step in range(STEPS)]
        for attack, pairs in leads.items():
            if pairs:
                before, after = np.asarray(pairs).T
                points = [(m, int(((before > m) & (after > m)).sum()), int((before > m).sum())) for m in margins]
                curves.append(MarginCurve(protocol, rule, attack, tuple(points)))
    return curves


def _find_leads(rows: Sequence[CompactRow], rule: str | None, attack: str) -> Iterator[tuple[float, float]]:
    """Yield the winner's lead before, and that of the rewritten loser after, 0 if it does not win.

    A verdict without a strength counts at every margin.
    """
    for trial in list_trials(rows, rule, attack):
        if trial.before == "a" and trial.after is not None:
            # A verdict with a lead of 0 counts at margin 0.
            leads = [math.inf if row.margin is None else abs(row.margin) or math.ulp(0) for row in trial.rows]
            yield leads[0], leads[1] if trial.after == "b" else 0.0


def flip_sizes(briefs: CompactRows, protocol: str, rules: Sequence[str], attacks: Sequence[str]) -> Iterator[Figure]:
    """Compute by how much flips flip: the winner's lead after the rewrite, and before it, by attack and over all."""
    rule = headline("flip_size", rules)
    leads = {attack: list(_find_leads(briefs.of(protocol, "flip", attack), rule, attack)) for attack in attacks}
    for attack, pairs in {**leads, BASELINE: [pair for own in leads.values() for pair in own]}.items():
        flips = [pair for pair in pairs if pair[1] and math.isfinite(max(pair))]
        for name, at, take in (
            ("flip_size", 1, np.median),
            ("largest_flip_size", 1, np.max),
            ("lead_before_flip", 0, np.median),
        ):
            if flips:
                value, unit = float(take([pair[at] for pair in flips])), MEASURES[name].name_unit(rule)
                yield Figure(name, protocol, rule, attack, value=value, n=len(flips), unit=unit)


DRAWS = 2000  # bootstrap draws of prompts for an exchange rate

QUANTILE = 0.95

ROUNDING = 1e-9  # slopes up to this are zero: rounding must not make a rate of 1e16
Leads = Sequence[float | None]  # leads of responses over others; None: an invalid verdict
Changes = Sequence[tuple[str, float]]  # prompts, each with a change of its margin


def style_figures(
    briefs: CompactRows, protocol: str, rules: Sequence[str], attacks: Sequence[str], placebos: Collection[str]
) -> list[Figure]:
    """Compute shift, also by criterion, and exchange rate by attack, and the indifference margin."""
    rule = "score" if rules else None
    unit = MEASURES["shift"].name_unit(rule)
    losses = {prompt: known for prompt, own in list_losses(briefs, protocol).items() if (known := drop_invalid(own))}
    figures = list[Figure]()
    for attack, criterion in product(attacks, (None, *briefs.criteria.get(protocol, ()))):
        leads = list_gains(briefs, protocol, attack, criterion)
        gains = [(prompt, lead) for prompt, lead in leads if lead is not None]
        name = "shift" if criterion is None else "criterion_shift"
        empty = Figure(name, protocol, rule, attack, None, criterion, invalid=len(leads) - len(gains), unit=unit)
        if gains:
            prompts, gained = zip(*gains, strict=True)
            figures.append(fill_mean(empty, gained, prompts))
        if losses and gains and attack != BASELINE and criterion is None:
            rate = replace(empty, measure="exchange_rate", unit="requirements")
            figures.append(_exchange(rate, gains, losses))
    if changes := list_placebo_changes(briefs, protocol, rules, placebos):
        margin = estimate_margin(changes)
        figures.append(Figure("indifference_margin", protocol, rule, BASELINE, value=margin, n=len(changes), unit=unit))
    return figures


def list_gains(
    briefs: CompactRows, protocol: str, attack: str, criterion: str | None = None
) -> list[tuple[str, float | None]]:
    """List the leads of rewrites over their originals, over all criteria or by one, with their prompts."""
    fixed = briefs.of(protocol, "fixed")
    if not fixed and briefs.both_directions:
        return _both_gains(briefs.of(protocol, "flip"), attack, criterion)
    return [*_list_leads(fixed, attack, criterion).values()]


def list_losses(briefs: CompactRows, protocol: str) -> dict[str, dict[int, list[float | None]]]:
    """List the leads of good responses over worse ones, by prompt and severity."""
    losses: dict[str, dict[int, list[float | None]]] = {}
    for row in briefs.of(protocol, "severity", BASELINE):
        if row.attack == BASELINE and row.excluded is None:
            losses.setdefault(row.group, {}).setdefault(row.b.severity or 0, []).append(row.margin)
    return losses


def drop_invalid(losses: Mapping[int, Leads]) -> dict[int, list[float]]:
    """Drop invalid verdicts, and severities without a valid one."""
    valid = {severity: [lead for lead in leads if lead is not None] for severity, leads in losses.items()}
    return {severity: leads for severity, leads in valid.items() if leads}


def _both_gains(flips: Sequence[CompactRow], attack: str, criterion: str | None) -> list[tuple[str, float | None]]:
    """Return the mean gain over both responses of each pair, each rewritten in turn.

    A loser alone gains by chance, because it was chosen for its bad luck, and a winner loses as much.
    """
    starts = {pair_unit(row): row for row in flips if row.target is None}
    own = [row for row in flips if row.attack == attack and row.excluded is None]
    first, second = ({pair_unit(row): row.lead(criterion) for row in own if row.target == side} for side in "ab")
    both = [(start, first[unit], second[unit]) for unit, start in starts.items() if unit in first and unit in second]
    return [
        (start.group, None if start.margin is None or a is None or b is None else (a - b) / 2) for start, a, b in both
    ]


def weigh_severities(severities: Collection[int]) -> dict[int, float]:
    """Weigh losses by severity so that their sum is the slope, from 0, where a response meets itself."""
    places = [0, *severities]
    centre = math.fsum(places) / len(places)
    spread = math.fsum((place - centre) ** 2 for place in places)
    return {severity: (severity - centre) / spread for severity in severities}


def _exchange(figure: Figure, gains: Changes, losses: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """Divide the mean gain by the loss for each broken requirement; its interval is a bootstrap over prompts.

    The slope runs over severities from 0, where a response meets itself and loses nothing. No slope, no rate.
    """
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for prompt, gain in gains:
        by_prompt[prompt].append(gain)
    prompts = [prompt for prompt in by_prompt if prompt in losses]
    severities = sorted({severity for prompt in prompts for severity in losses[prompt]})
    if len(prompts) < 2 or not severities:
        return replace(figure, reasons=(("no severity was judged", 1),))
    # Sums and counts by prompt: column 0 is the gain, the others are the losses by severity.
    groups = [[by_prompt[prompt], *(losses[prompt].get(s, []) for s in severities)] for prompt in prompts]
    sums = np.array([[math.fsum(values) for values in row] for row in groups])
    counts = np.array([[len(values) for values in row] for row in groups], dtype=float)
    (value,), (slope,) = _ratio(sums.sum(0)[None], counts.sum(0)[None], severities)
    drawn = [_ratio(weights @ sums, weights @ counts, severities)[0] for weights in _draw_weights(len(prompts))]
    rates = np.concatenate(drawn)
    quantiles = np.quantile(rates, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    ends = [float(end) if math.isfinite(end) else None for end in quantiles]
    figure = replace(figure, n=len(prompts))
    if slope <= ROUNDING or ends == [None, None]:
        return replace(figure, reasons=(("broken requirements are not shown to cost anything", figure.n),))
    return replace(figure, value=float(value), low=ends[0], high=ends[1])


def _draw_weights(size: int) -> Iterator[np.ndarray]:
    """Yield how often each draw has each prompt, some draws at a time: all at once would fill the memory."""
    rng, most = np.random.default_rng(0), max(1, 1_000_000 // size)
    for start in range(0, DRAWS, most):
        count = min(most, DRAWS - start)
        places = rng.integers(0, size, (count, size)) + size * np.arange(count)[:, None]
        yield np.bincount(places.ravel(), minlength=count * size).reshape(count, size).astype(float)


def _ratio(sums: np.ndarray, counts: np.ndarray, severities: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of gain and slope, one a row; infinite where broken requirements cost nothing."""
    places = np.array([0, *severities], dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
        losses = np.column_stack([np.zeros(len(means)), means[:, 1:]])
        weights = np.where(np.isnan(losses), 0.0, 1.0)
        centred = places - (weights @ places / weights.sum(1))[:, None]
        slopes = (weights * centred * np.nan_to_num(losses)).sum(1) / (weights * centred**2).sum(1)
        gains = means[:, 0]
        return np.where(slopes > ROUNDING, gains / slopes, np.sign(gains) * np.inf), slopes


def list_placebo_changes(
    briefs: CompactRows, protocol: str, rules: Sequence[str], placebos: Collection[str]
) -> list[tuple[str, float]]:
    """List how far each lead moves when the loser gets a placebo, with its prompt."""
    flips, rule = briefs.of(protocol, "flip"), headline("flip_rate", rules)
    trials = [trial for placebo in sorted(placebos) for trial in list_trials(flips, rule, placebo)]
    moved = [(trial.cluster, *trial.rows) for trial in trials if trial.before == "a" and trial.after is not None]
    moves = [(prompt, before.margin, after.margin) for prompt, before, after in moved]
    return [(prompt, abs(end - start)) for prompt, start, end in moves if start is not None and end is not None]


def estimate_margin(changes: Changes) -> float | None:
    """Estimate the indifference margin; None with too few changes."""
    return float(np.quantile([change for _, change in changes], QUANTILE)) if len(changes) >= LEAST else None


def shift_excesses(
    briefs: CompactRows, protocol: str, rule: str | None, control_of: Mapping[str, str], effects: Mapping[str, str]
) -> Iterator[Figure]:
    """Compute the shift of each attack beyond that of its control; a response against its own rewrite shows it best."""
    unit = MEASURES["shift"].name_unit(rule)
    rows = briefs.of(protocol, "fixed") or briefs.of(protocol, "flip")
    for attack, control in control_of.items():
        if effects.get(attack, "same") == "same":
            figure = Figure("shift", protocol, rule, attack, unit=unit, against=protocol, against_rule=rule)
            both = [_drop_unread(_list_leads(rows, name)) for name in (attack, control)]
            shared = both[0].keys() & both[1].keys()
            leads, others = (_average_pairs(leads, shared) for leads in both)
            yield contrast(leads, others, replace(figure, against_attack=control))


def _drop_unread(leads: Mapping[Unit, tuple[str, float | None]]) -> UnitValues:
    return {unit: (prompt, lead) for unit, (prompt, lead) in leads.items() if lead is not None}


def _average_pairs(leads: UnitValues, shared: Collection[Unit]) -> UnitValues:
    """Average the leads of the shared responses of each pair: two directions of a pair are one pair, not two."""
    pairs = defaultdict[Unit, list[tuple[str, float]]](list)
    for unit, lead in leads.items():
        # A response that has no partner stays apart, so that it counts as left out.
        pairs[unit[:-1] if unit in shared else unit].append(lead)
    return {pair: (own[0][0], fmean(lead for _, lead in own)) for pair, own in pairs.items()}


def _list_leads(
    rows: Sequence[CompactRow], attack: str, criterion: str | None = None
) -> dict[Unit, tuple[str, float | None]]:
    return {
        (*pair_unit(row), row.target): (row.group, lead if lead is None or row.target == "a" else -lead)
        for row in rows
        if row.attack == attack and row.target is not None
        if (lead := row.lead(criterion)) is not None or row.excluded is None
    }
