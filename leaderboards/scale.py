"""The Elo scale for strengths in logits, and the parameters that all systems on it share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from distract import Matches, Ratings, UnknownName, UsageError

from .logistic import MANY, Floats, parts

INTERVALS = ("sandwich", "bootstrap")

POINTS = np.array([1.0, 0.0, 0.5])  # points for the first model of a match, by the code of the outcome

WIDTHS = 1e-4, 200.0
"""Smallest and largest standard deviation of the prior, in logits, for which every table can be solved exactly."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Conversion of strengths in logits to ratings.

    ``unit`` is points per logit and ``ridge`` the inverse variance of the prior. The model with index ``anchor`` (None:
    the mean of all) has the rating ``offset``.
    """

    unit: float
    ridge: float
    anchor: int | None
    offset: float

    def place(self, strengths: Floats) -> Floats:
        """Ratings from strengths: (models,) gives (models,), and (models, draws) gives (draws, models)."""
        zero = strengths.mean(axis=0) if self.anchor is None else strengths[self.anchor]
        ratings: Floats = self.unit * (strengths - zero) + self.offset
        return ratings.T

    def spread(self, covariance: Floats) -> Floats:
        """Covariance of ratings from the covariance of strengths."""
        size = len(covariance)
        transform = np.eye(size)
        if self.anchor is None:
            transform -= 1 / size
        else:
            transform[:, self.anchor] -= 1
        return self.unit**2 * (transform @ covariance @ transform.T)


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
    """Check the parameters and build their scale."""
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


def on_scale(fit: Callable[[Matches, Scale, Mapping[str, Any]], Ratings]) -> Callable[..., Ratings]:
    """Give a fit the parameters that all systems on the Elo scale share."""

    def rate(
        matches: Matches,
        *,
        prior: float = 1000.0,
        anchor: str | None = None,
        anchor_rating: float = 1000.0,
        scale: float = 400.0,
        base: float = 10.0,
        interval: str = "sandwich",
    ) -> Ratings:
        """Rate by maximum penalised likelihood.

        Args:
            matches: matches in any order.
            prior: standard deviation in points of the Gaussian prior on every coefficient.
            anchor: model with a fixed rating; None fixes the mean of all ratings.
            anchor_rating: the fixed rating, in points.
            scale: points that multiply the odds by ``base``.
            base: base of the odds, above 1.
            interval: ``sandwich`` for a covariance over prompts in closed form, ``bootstrap`` for none.
        """
        parameters: dict[str, Any] = {"prior": prior, "anchor": anchor, "anchor_rating": anchor_rating}
        parameters |= {"scale": scale, "base": base, "interval": interval}
        return fit(matches, make_scale(matches, **parameters), MappingProxyType(parameters))

    rate.__module__, rate.__name__, rate.__qualname__ = fit.__module__, fit.__name__, fit.__qualname__
    return rate


def prior_notes(matches: Matches) -> Iterator[str]:
    """A note for each model whose rating is determined by the prior, because it won or lost all its matches."""
    size = len(matches.models)
    played, won = np.zeros(size), np.zeros(size)
    for part in parts(len(matches), MANY):
        share = POINTS[matches.outcome[part]]
        for side, gained in ((matches.a[part], share), (matches.b[part], 1 - share)):
            played += np.bincount(side, minlength=size)
            won += np.bincount(side, gained, minlength=size)
    for name, total, wins in zip(matches.models, played, won, strict=True):
        if wins in (0, total):
            record = "has no match" if not total else f"{'won' if wins else 'lost'} all of its {total:,.0f} matches"
            yield f"{name} {record}: its rating rests on the prior"
