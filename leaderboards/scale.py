"""Points: how strengths in logits are told as ratings, and which of them rest on the prior.

What systems share that put Bradley-Terry strengths on the Elo scale. It does not know how strengths are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from distract import Matches, UnknownName, UsageError

from .logistic import MANY, Floats, parts

INTERVALS = ("sandwich", "bootstrap")

POINTS = np.array([1.0, 0.0, 0.5])
"""What the first model of a match wins, by the code of the outcome."""

WIDTHS = 1e-4, 200.0
"""Standard deviations of the prior, in logits, with which a table of any shape is solved exactly."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How strengths in logits are told as ratings.

    Attributes:
        unit: points a logit.
        ridge: inverse variance of the prior, in logits.
        anchor: index of the model that all others are told against; None: their mean.
        at: its rating.
    """

    unit: float
    ridge: float
    anchor: int | None
    at: float

    def place(self, strengths: Floats) -> Floats:
        """Ratings from strengths of shape (models,) or (models, draws); of shape (models,) or (draws, models)."""
        zero = strengths.mean(axis=0) if self.anchor is None else strengths[self.anchor]
        ratings: Floats = self.unit * (strengths - zero) + self.at
        return ratings.T

    def spread(self, covariance: Floats) -> Floats:
        """Covariance of ratings from that of strengths, shape (models, models)."""
        size = len(covariance)
        turn = np.eye(size)
        if self.anchor is None:
            turn -= 1 / size
        else:
            turn[:, self.anchor] -= 1
        return self.unit**2 * (turn @ covariance @ turn.T)


def make_scale(
    matches: Matches,
    *,
    prior: float,
    anchor: str | None,
    anchor_rating: float,
    scale: float,
    base: float,
    interval: str,
) -> Scale:
    """The scale that parameters ask for.

    Raises:
        UsageError: a parameter is out of its range, or the anchor is no model (``UnknownName``).
    """
    if not (_is_finite(scale) and scale > 0):
        raise UsageError(f"scale is {scale!r}; expected points above 0, such as 400")
    if not (_is_finite(base) and base > 1 and math.log(base) > 0):
        raise UsageError(f"base is {base!r}; expected a number above 1, such as 10")
    unit = scale / math.log(base)
    low, high = (unit * width for width in WIDTHS)
    if not (_is_finite(prior) and low <= prior <= high):
        raise UsageError(f"prior is {prior!r}; expected a standard deviation of {low:.3g} to {high:.3g} points")
    if not _is_finite(anchor_rating):
        raise UsageError(f"anchor_rating is {anchor_rating!r}; expected points, such as 1000")
    if interval not in INTERVALS:
        raise UsageError(f"interval is {interval!r}; expected {' or '.join(INTERVALS)}")
    if anchor is not None and anchor not in matches.models:
        raise UnknownName("model", str(anchor), matches.models)
    place = None if anchor is None else matches.models.index(anchor)
    return Scale(unit, (unit / prior) ** 2, place, float(anchor_rating))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def remarks(matches: Matches) -> Iterator[str]:
    """A line for each model whose rating rests on the prior because it won, or lost, whatever it played."""
    size = len(matches.models)
    played, points = np.zeros(size), np.zeros(size)
    for part in parts(len(matches), MANY):
        share = POINTS[matches.outcome[part]]
        for side, gained in ((matches.a[part], share), (matches.b[part], 1 - share)):
            played += np.bincount(side, minlength=size)
            points += np.bincount(side, gained, minlength=size)
    for name, n, won in zip(matches.models, played, points, strict=True):
        if won in (0, n):
            did = "has no match" if not n else f"{'won' if won else 'lost'} all of its {n:,.0f} matches"
            yield f"{name} {did}: its rating rests on the prior"
