"""What data sets agree on and how hard their cases are, over several judges (ReIFE, section 6).

It knows no judge, protocol or data set by name.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from distract.stats import agreement
from distract.stats.figure import CONFIDENCE
from distract.studies.meta.comparisons import Agreement, DataPlace, JudgeRows, collect_comparisons

BINS = 10
"""Of the share of verdicts that are right."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of two lists of accuracies, with its interval; n is how many things were ranked."""

    between: str
    first: str
    second: str
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How many comparisons how large a share of all verdicts got right; an invalid verdict is not right.

    Attributes:
        n: comparisons that every judge had under every protocol.
        bins: from the hardest tenth (right in less than 10%) to the easiest (at least 90%).
        never: nobody was right.
        always: everybody was.
    """

    n: int
    bins: tuple[int, ...]
    never: int
    always: int


def whole_place(figures: Sequence[Agreement]) -> DataPlace:
    """The place that holds everything: the only data set, or all of them together."""
    found = {figure.data for figure in figures}
    return (found.pop() if len(found) == 1 else None), None


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
    """Rank correlations of accuracies: between data sets over judges and protocols, of base and mean over judges."""
    sets = sorted({f.data for f in figures if f.data is not None})
    by_set = {name: accuracies(judged, figures, (name, None)) for name in sets}
    made = []
    for one, other in combinations(sets, 2):
        shared = sorted(by_set[one].keys() & by_set[other].keys())
        pair = [by_set[one][s] for s in shared], [by_set[other][s] for s in shared]
        made.append(_correlation("data sets", one, other, *pair))
    based = sorted(name for name in means if (name, base or "") in accuracy)
    if base is not None and based:
        pair = [accuracy[name, base] for name in based], [means[name] for name in based]
        made.append(_correlation("base and mean over protocols", base, "mean", *pair))
    return made


def _correlation(between: str, first: str, second: str, x: Sequence[float], y: Sequence[float]) -> Correlation:
    low, high = agreement.spearman_interval(x, y, CONFIDENCE) or (None, None)
    return Correlation(between, first, second, len(x), agreement.spearman(x, y), low, high)


def difficulty(judged: Sequence[JudgeRows]) -> Difficulty:
    """How large a share of all verdicts is right, comparison by comparison."""
    right: dict[object, list[float]] = defaultdict(list)
    asked: Counter[object] = Counter()
    for one in judged:
        for made in collect_comparisons(one.by(one.headline), one.headline).made:
            if made.label is not None:
                asked[made.unit] += 1
                right[made.unit] += [float(verdict == made.label) for verdict in made.verdicts]
    shares = [mean(right[unit]) for unit, times in asked.items() if times == len(judged) and right[unit]]
    counts = Counter(min(BINS - 1, int(share * BINS + 1e-9)) for share in shares)
    bins = tuple(counts[index] for index in range(BINS))
    return Difficulty(len(shares), bins, sum(share == 0 for share in shares), sum(share == 1 for share in shares))


def mean(values: Sequence[float]) -> float:
    """Of at least one value."""
    return math.fsum(values) / len(values)
