"""What a style is worth to a judge: the shift of its scores, its exchange rate, and changes that mean nothing.

A shift is in the unit of the verdict: points of the score, or a difference of probabilities. Gains of style and losses
by broken requirements have the same unit, so that their ratio says how many requirements the style outweighs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from distract.core.records import BASELINE
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Figure
from distract.studies.attack.briefs import CompactRow, CompactRows
from distract.studies.attack.crossings import crossing_figures
from distract.studies.attack.outcomes import Unit, count_flips, pair_unit

DRAWS = 2000
"""Bootstrap draws of prompts for an exchange rate."""

LEAST = 30
"""Fewest changes from which to estimate an indifference margin."""

QUANTILE = 0.95

ROUNDING = 1e-9
"""Slopes up to this are zero: rounding must not make a rate of 1e16."""

Changes = tuple[list[float], list[str]]
"""Changes of a margin, and the prompt of each."""


def style_figures(
    briefs: CompactRows,
    protocol: str,
    rules: Sequence[str],
    attacks: Sequence[str],
    placebos: Collection[str],
    confidence: float = CONFIDENCE,
) -> list[Figure]:
    """Compute shift, exchange rate and crossings of the pass mark by attack, and the indifference margin."""
    rule = "score" if rules else None
    unit = "points" if rules else "probability"
    fixed, flips = briefs.of(protocol, "fixed"), briefs.of(protocol, "flip")
    figures, losses = list[Figure](), _losses(briefs.of(protocol, "severity", BASELINE))
    for attack in attacks:
        gains, invalid = _gains(fixed, attack) if fixed or not briefs.net else _both_gains(flips, attack)
        empty = Figure("shift", protocol, rule, attack, invalid=invalid, unit=unit)
        if gains[0]:
            figures.append(_fill_mean(empty, *gains, confidence))
        if protocol in briefs.marks and attack != BASELINE:
            figures += crossing_figures(empty, fixed, flips, confidence)
        if losses and gains[0] and attack != BASELINE:
            rate = replace(empty, measure="exchange_rate", unit="requirements")
            figures.append(_exchange(rate, gains, losses, confidence))
    if changes := [change for placebo in sorted(placebos) for change in _placebo_changes(flips, rule, placebo)]:
        margin = float(np.quantile(changes, QUANTILE)) if len(changes) >= LEAST else None
        figures.append(Figure("indifference_margin", protocol, rule, BASELINE, value=margin, n=len(changes), unit=unit))
    return figures


def find_margin(figures: Sequence[Figure], protocol: str) -> float | None:
    """Return the indifference margin of a protocol, if there is one."""
    return next((f.value for f in figures if f.measure == "indifference_margin" and f.protocol == protocol), None)


def _fill_mean(figure: Figure, values: Sequence[float], prompts: Sequence[str], confidence: float) -> Figure:
    low, high = intervals.mean_interval(values, prompts, confidence) or (None, None)
    return replace(figure, value=math.fsum(values) / len(values), low=low, high=high, n=len(values))


def _gains(fixed: Sequence[CompactRow], attack: str) -> tuple[Changes, int]:
    """Return how much each rewrite (b) gained on its original (a), and the number of invalid verdicts."""
    rows = [row for row in fixed if row.attack == attack and row.excluded is None]
    valid = [(-margin, row.cluster) for row in rows if (margin := row.margin) is not None]
    return ([gain for gain, _ in valid], [prompt for _, prompt in valid]), len(rows) - len(valid)


def _both_gains(flips: Sequence[CompactRow], attack: str) -> tuple[Changes, int]:
    """Return the mean gain over both responses of each pair, each rewritten in turn.

    A loser alone gains by chance, because it was chosen for its bad luck, and a winner loses as much.
    """
    before = {pair_unit(row): row for row in flips if row.target is None}
    after: dict[Unit, dict[str, CompactRow]] = defaultdict(dict)
    for row in flips:
        if row.attack == attack and row.target is not None:
            after[pair_unit(row)][row.target] = row
    gains, prompts, invalid = list[float](), list[str](), 0
    for unit, rows in after.items():
        if len(rows) < 2 or any(row.excluded is not None for row in rows.values()):
            continue
        start, first, second = before[unit].margin, rows["a"].margin, rows["b"].margin
        if start is None or first is None or second is None:
            invalid += 1
        else:
            gains.append((first - second) / 2)
            prompts.append(before[unit].cluster)
    return (gains, prompts), invalid


def _losses(rows: Sequence[CompactRow]) -> Mapping[str, Mapping[int, list[float]]]:
    """Return the lead of good responses over worse ones by prompt and severity."""
    losses: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.attack == BASELINE and row.excluded is None and row.margin is not None:
            losses[row.cluster][row.b.severity or 0].append(row.margin)
    return losses


def _exchange(
    figure: Figure, gains: Changes, losses: Mapping[str, Mapping[int, list[float]]], confidence: float
) -> Figure:
    """Divide the mean gain by the loss for each broken requirement; its interval is a bootstrap over prompts.

    The slope runs over severities from 0, where a response meets itself and loses nothing. No slope, no rate.
    """
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for gain, prompt in zip(*gains, strict=True):
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
    quantiles = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2], method="nearest")
    ends = [float(end) if math.isfinite(end) else None for end in quantiles]
    n = len(prompts)
    if slope <= ROUNDING or ends == [None, None]:
        return replace(figure, n=n, reasons=(("broken requirements are not shown to cost anything", n),))
    return replace(figure, value=float(value), n=n, low=ends[0], high=ends[1])


def _draw_weights(size: int) -> Iterator[np.ndarray]:
    """Yield how often each draw has each prompt, some draws at a time: all at once would fill the memory."""
    rng, most = np.random.default_rng(0), max(1, 1_000_000 // size)
    for start in range(0, DRAWS, most):
        count = min(most, DRAWS - start)
        places = rng.integers(0, size, (count, size)) + size * np.arange(count)[:, None]
        yield np.bincount(places.ravel(), minlength=count * size).reshape(count, size).astype(float)


def _ratio(sums: np.ndarray, counts: np.ndarray, severities: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of gain and slope, one a row; infinite where broken requirements cost nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    places = np.array([0, *severities], dtype=float)
    losses = np.column_stack([np.zeros(len(means)), means[:, 1:]])
    weights = np.where(np.isnan(losses), 0.0, 1.0)
    centred = places - (weights @ places / weights.sum(1))[:, None]
    slopes = (weights * centred * np.nan_to_num(losses)).sum(1) / (weights * centred**2).sum(1)
    gains = means[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slopes > ROUNDING, gains / slopes, np.sign(gains) * np.inf), slopes


def _placebo_changes(flips: Sequence[CompactRow], rule: str | None, placebo: str) -> list[float]:
    """Return how far each margin moves when the loser gets its placebo."""
    before = {pair_unit(row): row for row in flips if row.target is None}
    counted = count_flips(flips, rule, placebo).outcomes
    moves = [
        (before[pair_unit(row)].margin, row.margin)
        for row in flips
        if row.attack == placebo and row.target is not None and pair_unit(row) in counted
    ]
    return [abs(end - start) for start, end in moves if start is not None and end is not None]
