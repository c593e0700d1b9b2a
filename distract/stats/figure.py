"""A measured figure: a value with its denominator and interval, and the data and conditions it describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from distract.stats import intervals

CONFIDENCE = 0.95

Condition = tuple[str, int | None]
"""An attack (``none`` before any rewrite) and a severity."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure; ``against``, ``p_value`` and their like belong to a difference of two."""

    measure: str
    protocol: str | None  # None for a figure across protocols
    rule: str | None  # ``score`` or ``rating`` for a scoring protocol
    attack: str  # ``none`` before any rewrite
    severity: int | None = None  # for severity measures only
    value: float | None = None  # a share or mean, 0 to 1, or a difference of shares, -1 to 1; None if n is 0
    low: float | None = None  # ends of the 95% interval
    high: float | None = None
    k: float | None = None  # sum out of n, whole unless a tie counts half; None for a mean
    n: int = 0  # valid and eligible comparisons
    invalid: int = 0  # comparisons without a valid verdict
    excluded: int = 0  # comparisons not made, or not eligible
    unit: str = "share"
    against: str | None = None  # protocol, rule and attack of the figure that a difference subtracts
    against_rule: str | None = None
    against_attack: str | None = None
    p_value: float | None = None  # exact two-sided McNemar test
    p_adjusted: float | None = None  # p_value after Holm, over all differences shown together
    effective_n: float | None = None  # n, reduced for the dependence of cases that share a prompt
    reasons: tuple[tuple[str, int], ...] = ()  # reasons for exclusions, with counts, if known; not in documents

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one run."""
        return field_texts(self, PLACE_FIELDS)


PLACE_FIELDS = ("measure", "protocol", "rule", "attack", "severity", "against", "against_rule", "against_attack")
"""The fields that identify a figure within a run."""

DIFFERENCES = ("net_flip_rate", "distractor_lead")
"""The measures that are differences by themselves."""

_ONLY_DIFFERENCES = ("against", "against_rule", "against_attack", "p_value", "p_adjusted")


def field_texts(figure: Figure, names: Sequence[str]) -> tuple[str, ...]:
    """The values of these fields as text; None is empty."""
    values = (getattr(figure, name) for name in names)
    return tuple("" if value is None else str(value) for value in values)


F = TypeVar("F", bound=Figure)


def round_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for documents, with floats rounded to four decimals."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


def flatten(figure: Figure, *more: str) -> dict[str, Any]:
    """A figure as rounded JSON values; ``more`` names further fields that only differences have.

    A difference of two figures has a measure of its own, so that nobody takes it for a rate.
    """
    values = round_values(asdict(figure))
    del values["reasons"]
    if figure.against is not None and figure.measure not in DIFFERENCES:
        values["measure"] = f"{figure.measure}_difference"
    if figure.against is None:
        for name in (*_ONLY_DIFFERENCES, *more):
            del values[name]
    return values


def adjust_p_values(figures: Sequence[F]) -> list[F]:
    """The figures with the p-values of differences adjusted by Holm."""
    tested = [at for at, figure in enumerate(figures) if figure.p_value is not None]
    adjusted = list(figures)
    for at, p in zip(tested, intervals.holm([figures[at].p_value or 0.0 for at in tested]), strict=True):
        adjusted[at] = replace(adjusted[at], p_adjusted=p)
    return adjusted


def fill_rate(
    figure: F, values: Sequence[float], clusters: Sequence[str], capped: bool = True, confidence: float = CONFIDENCE
) -> F:
    """Fill in a share and its interval; ``capped`` as in ``intervals.effective_n``."""
    n, k = len(values), math.fsum(values)
    k = int(k) if k.is_integer() else k
    if not n:
        return replace(figure, k=0)
    low, high = intervals.rate_interval(values, clusters, confidence, capped)
    effective = intervals.effective_n(values, clusters, (1 - confidence) / 2, capped)
    return replace(figure, value=k / n, low=low, high=high, k=k, n=n, effective_n=effective)


@dataclass(frozen=True, slots=True)
class PairedValues:
    """Values from 0 to 1 of the units that two conditions share, such as 1 if a measure counts it, else 0.

    ``alone`` counts the further units of each condition.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    clusters: tuple[str, ...]
    alone: tuple[int, int]

    @property
    def difference(self) -> float:
        """The first rate minus the second."""
        return (math.fsum(self.first) - math.fsum(self.second)) / len(self.clusters)

    @property
    def p_value(self) -> float:
        """Exact two-sided McNemar test of the difference."""
        return intervals.paired_p(self.first, self.second, self.clusters)

    def fill(self, figure: F) -> F:
        """Fill in the difference, its interval and its test."""
        figure = replace(figure, n=len(self.clusters), excluded=sum(self.alone))
        if not self.clusters:
            return figure
        interval: intervals.Interval | None = None
        if {*self.first, *self.second} <= {0.0, 1.0}:
            interval = intervals.difference_interval(self.first, self.second, self.clusters, CONFIDENCE)
        else:
            differences = [a - b for a, b in zip(self.first, self.second, strict=True)]
            interval = intervals.mean_interval(differences, self.clusters, CONFIDENCE)
        low, high = interval or (None, None)
        return replace(figure, value=self.difference, low=low, high=high, p_value=self.p_value)


HEADLINE = dict.fromkeys(
    ("flip_rate", "softened_rate", "severity_accuracy", "clean_accuracy", "robust_accuracy", "attack_cost",
     "skill_under_attack", "net_flip_rate", "flip_rate_of_all", "flip_rate_beyond_margin", "distractor_lead",
     "distractor_win_rate", "robustness_rate", "consistency_rate", "gain_rate", "gain_to_tie_rate", "hollow_win_rate",
     "hollow_tie_rate", "hollow_pass_rate"),
    "score",
)  # fmt: skip
"""The rule that summarises a scoring protocol for a measure; the default is ``rating``, as in the paper."""


def headline(measure: str, rules: Sequence[str]) -> str | None:
    """The rule that summarises a measure for a protocol with these rules; None without rules."""
    return HEADLINE.get(measure, "rating") if rules else None
