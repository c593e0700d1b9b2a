"""A measured figure: a value with its denominator and interval, and what it was measured on."""

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
    """A measured figure.

    Attributes:
        measure: name of the measure.
        protocol: None for figures of no single protocol.
        rule: ``score`` or ``rating`` for a scoring protocol.
        attack: ``none`` before any rewrite.
        severity: for severity measures only.
        value: a share or mean, 0 to 1, or a difference of shares, -1 to 1; None if n is 0.
        low, high: ends of the 95% interval.
        k: count out of n; None for a mean.
        n: valid and eligible comparisons.
        invalid: comparisons without a valid verdict.
        excluded: comparisons not made, or not eligible.
        unit: ``share``.
        against, against_rule, against_attack: protocol, rule and attack of the figure that a difference subtracts.
        p_value: exact two-sided McNemar test of a difference.
        p_adjusted: p_value after Holm, over all differences shown together.
        effective_n: n shrunk by the dependence of cases that share a prompt.
        reasons: why comparisons were excluded, with counts, if known; for people, in no document.
    """

    measure: str
    protocol: str | None
    rule: str | None
    attack: str
    severity: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    k: int | None = None
    n: int = 0
    invalid: int = 0
    excluded: int = 0
    unit: str = "share"
    against: str | None = None
    against_rule: str | None = None
    against_attack: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    effective_n: float | None = None
    reasons: tuple[tuple[str, int], ...] = ()

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one run."""
        return field_texts(self, PLACE_FIELDS)


PLACE_FIELDS = ("measure", "protocol", "rule", "attack", "severity", "against", "against_rule", "against_attack")
"""The fields that identify a figure within a run."""


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
    """A figure as rounded JSON values; ``more`` names further fields that only differences have."""
    values = round_values(asdict(figure))
    del values["reasons"]
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


def fill_rate(figure: F, values: Sequence[float], clusters: Sequence[str], capped: bool = True) -> F:
    """Fill in a share and its interval; ``capped`` as in ``intervals.effective_n``."""
    n, k = len(values), int(math.fsum(values))
    if not n:
        return replace(figure, k=0)
    low, high = intervals.rate_interval(values, clusters, CONFIDENCE, capped)
    effective = intervals.effective_n(values, clusters, (1 - CONFIDENCE) / 2, capped)
    return replace(figure, value=k / n, low=low, high=high, k=k, n=n, effective_n=effective)


HEADLINE = {"flip_rate": "score", "softened_rate": "score", "severity_accuracy": "score"}
"""The rule that summarises a scoring protocol for a measure; the default is ``rating``, as in the paper."""


def headline(measure: str, rules: Sequence[str]) -> str | None:
    """The rule that summarises a measure for a protocol with these rules; None without rules."""
    return HEADLINE.get(measure, "rating") if rules else None
