"""Agreement between data sets, and the difficulty of cases, over several judges (ReIFE, section 6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from distract.stats import agreement
from distract.stats.figure import CONFIDENCE
from distract.studies.meta.comparisons import Agreement, DataPlace, JudgeRows

BINS = 10
"""Number of bins for the share of verdicts that are right."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of two lists of n accuracies, with its interval."""

    between: str
    first: str
    second: str
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Number of comparisons by the share of verdicts that are right; an invalid verdict is not right."""

    n: int  # number of comparisons that every judge had under every protocol
    bins: tuple[int, ...]  # counts from the hardest tenth (right in less than 10%) to the easiest (at least 90%)
    never: int  # number of comparisons without a right verdict
    always: int  # number of comparisons with right verdicts only


def whole_place(figures: Sequence[Agreement]) -> DataPlace:
    """Find the place that holds everything: the only data set, or all of them together."""
    names = {figure.data for figure in figures}
    return (names.pop() if len(names) == 1 else None), None


def accuracies(
    judged: Sequence[JudgeRows], figures: Sequence[Agreement], place: DataPlace
) -> dict[tuple[str, str], float]:
    """Accuracy by judge and protocol, by the headline rule, at one place."""
    rules = {(one.judge, one.protocol): one.headline for one in judged}
    return {
        (f.judge, f.protocol or ""): f.value
        for f in figures
        if f.measure == "accuracy" and f.against is None and f.value is not None
        if (f.data, f.subset) == place and f.rule == rules[f.judge, f.protocol or ""]
    }


def correlations(
    judged: Sequence[JudgeRows],
    figures: Sequence[Agreement],
    accuracy: Mapping[tuple[str, str], float],
    means: Mapping[str, float],
    base: str | None,
) -> list[Correlation]:
    """Correlate accuracies: between data sets over judges and protocols, of base and mean over judges."""
    sets = sorted({f.data for f in figures if f.data is not None})
    by_set = {name: accuracies(judged, figures, (name, None)) for name in sets}
    results = []
    for one, other in combinations(sets, 2):
        shared = sorted(by_set[one].keys() & by_set[other].keys())
        pair = [by_set[one][s] for s in shared], [by_set[other][s] for s in shared]
        results.append(_correlation("data sets", one, other, *pair))
    based = sorted(name for name in means if (name, base or "") in accuracy)
    if base is not None and based:
        pair = [accuracy[name, base] for name in based], [means[name] for name in based]
        results.append(_correlation("base and mean over protocols", base, "mean", *pair))
    return results


def _correlation(between: str, first: str, second: str, x: Sequence[float], y: Sequence[float]) -> Correlation:
    low, high = agreement.spearman_interval(x, y, CONFIDENCE) or (None, None)
    return Correlation(between, first, second, len(x), agreement.spearman(x, y), low, high)


def difficulty(judged: Sequence[JudgeRows]) -> Difficulty:
    """Count comparisons by the share of right verdicts."""
    right: dict[object, list[float]] = defaultdict(list)
    times: Counter[object] = Counter()
    for judge in judged:
        for pair in judge.comparisons.pairs:
            if pair.label is not None:
                times[pair.unit] += 1
                right[pair.unit] += [float(verdict == pair.label) for verdict in pair.verdicts]
    shares = [fmean(right[unit]) for unit, number in times.items() if number == len(judged) and right[unit]]
    counts = Counter(min(BINS - 1, int(share * BINS + 1e-9)) for share in shares)
    bins = tuple(counts[index] for index in range(BINS))
    return Difficulty(len(shares), bins, sum(share == 0 for share in shares), sum(share == 1 for share in shares))
