"""Chatbot Arena's style control, for length: estimate the value of a longer response, and remove it.

This is Bradley-Terry with the relative difference of lengths, (a - b) / (a + b), as a covariate, in units of its root
mean square. An attack that pads responses changes the covariate, and the controlled ratings show what is left. It is
not AlpacaEval's length-controlled win rate, which compares every model with one baseline and also models the difficulty
of each instruction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from distract import Draws, Matches, Ratings, RatingSystem, UsageError

from .logistic import MANY, Design, Floats, Game, chances, design, fit, parts, refit, sandwich, sum_clusters
from .scale import POINTS, Scale, make_scale, on_scale, prior_notes

PART = 1 << 14  # matches to process at once: a row has up to nine numbers under each draw


class StyleDesign(NamedTuple):
    """Matches as rows of strengths and length.

    ``unit`` is the root mean square of the relative difference of lengths, 0 if all are equal. ``kept`` holds the rows
    if there are few.
    """

    matches: Matches
    unit: float
    kept: Design | None

    @property
    def coefficients(self) -> int:
        """Number of coefficients: the strength of each model, then length."""
        return len(self.matches.models) + 1

    def columns(self, which: Any) -> tuple[NDArray[np.int32], Floats]:
        """Coefficients of the log odds of some matches and their values, both of shape (matches, 3)."""
        a, b = self.matches.a[which], self.matches.b[which]
        length = np.full(len(a), len(self.matches.models), np.int32)
        ones = np.ones(len(a))
        more = _contrast(self.matches, which) / (self.unit or 1.0)
        return np.stack((a, b, length), axis=1), np.stack((ones, -ones, more), axis=1)

    def points(self, part: slice) -> Floats:
        """Points of the first model of some matches, shape (matches, 1)."""
        won: Floats = POINTS[self.matches.outcome[part], None]
        return won

    def game(self, weights: Callable[[slice, Any], Floats] | None = None) -> Game:
        """All rows in parts; ``weights`` returns the counts of matches under draws, shape (matches, draws)."""

        def pieces(which: Any) -> Any:
            for part in parts(len(self.matches), PART):
                won = self.points(part)
                rows = self.kept or design(*self.columns(part), self.coefficients)
                count = np.ones_like(won) if weights is None else weights(part, which)
                yield rows, won * count, (1 - won) * count

        return pieces


def _contrast(matches: Matches, which: Any) -> Floats:
    assert matches.lengths is not None
    a, b = matches.lengths[which].astype(np.float64).T
    relative: Floats = (a - b) / np.maximum(a + b, 1.0)
    return relative


def _make_design(matches: Matches) -> StyleDesign:
    if matches.lengths is None:
        raise UsageError(
            f"{SYSTEM.name} needs the lengths of responses, and these matches have none; give responses or "
            "lengths with the verdicts, or use bradley-terry"
        )
    square = sum(float(np.square(_contrast(matches, part)).sum()) for part in parts(len(matches), MANY))
    rows = StyleDesign(matches, math.sqrt(square / len(matches)), None)
    if len(matches) > PART:
        return rows
    return rows._replace(kept=design(*rows.columns(slice(None)), rows.coefficients))


@on_scale
def rate_style_control(matches: Matches, scale: Scale, parameters: Mapping[str, Any]) -> Ratings:
    """Rate by maximum penalised likelihood at equal length.

    ``extra`` holds ``length``, the points that one root mean square of the relative difference is worth, and its 95%
    interval over prompts, ``length_low`` to ``length_high``, if there are at least two.
    """
    rows = _make_design(matches)
    estimate, hessian = fit(rows.game(), rows.coefficients, scale.ridge)
    covariance = sandwich(hessian, _scores(rows, estimate), scale.ridge)
    extra = {"length": scale.unit * float(estimate[-1])}
    if (clusters := matches.clusters) > 1:
        error = scale.unit * math.sqrt(covariance[-1, -1] * clusters / (clusters - 1))
        half = float(stdtrit(clusters - 1, 0.975)) * error
        extra |= {"length_low": extra["length"] - half, "length_high": extra["length"] + half}
    notes = list(prior_notes(matches))
    if not rows.unit:
        notes.append("responses are equally long in every match: the worth of length rests on the prior")
    spread = scale.spread(covariance[:-1, :-1]) if parameters["interval"] == "sandwich" else None
    rating, more = scale.place(estimate[:-1]), MappingProxyType(extra)
    return Ratings(SYSTEM.name, matches.models, rating, parameters, spread, extra=more, notes=tuple(notes))


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> Floats:
    """Ratings under each draw, shape (draws, models); the unit of length stays that of all matches.

    Like ``bradley_terry.redraw``, this draws the mean of the prior and, without prompt weights, counts of matches.
    """
    scale = make_scale(matches, **{**SYSTEM.parameters, **parameters})
    rows = _make_design(matches)
    estimate, hessian = fit(rows.game(), rows.coefficients, scale.ridge)
    mean = draws.normal((*matches.models, " length")).T / math.sqrt(scale.ridge)
    random = draws.generator("matches")
    redrawn = np.empty_like(mean)
    for part in parts(draws.count, 4 * MANY // len(matches)):
        size = part.stop - part.start
        table = _draw_counts(len(matches), size, random) if draws.weights is None else draws.weights[part]
        game = rows.game(_weights(matches, table))
        redrawn[:, part] = refit(game, estimate, hessian, mean[:, part], scale.ridge)
    return scale.place(redrawn[:-1])


def _draw_counts(total: int, draws: int, random: np.random.Generator) -> NDArray[np.uint8]:
    """Counts of matches, Poisson(1), shape (draws, matches)."""
    table = np.empty((draws, total), np.uint8)
    for row in table:
        for part in parts(total, MANY):
            row[part] = random.poisson(1.0, part.stop - part.start)
    return table


def _weights(matches: Matches, table: NDArray[np.uint8]) -> Callable[[slice, Any], Floats]:
    def weights(part: slice, which: Any) -> Floats:
        chosen = table[which]
        columns = chosen[:, part] if matches.cluster is None else chosen[:, matches.cluster[part]]
        count: Floats = columns.T.astype(np.float64)
        return count

    return weights


def _scores(rows: StyleDesign, estimate: Floats) -> Floats:
    """Sum over prompts of the outer products of their scores, shape (coefficients, coefficients)."""

    def scores(which: Any) -> tuple[NDArray[np.int32], Floats]:
        columns, values = rows.columns(which)
        expected = chances((values * estimate[columns]).sum(axis=1))[0]
        return columns, values * (rows.points(which)[:, 0] - expected)[:, None]

    matches, size = rows.matches, rows.coefficients
    if matches.cluster is not None:
        return sum_clusters(matches.cluster, len(matches.prompts), size, scores)
    total = np.zeros((size, size))
    for part in parts(len(matches), PART):
        total += design(*scores(part), size).squares.T.sum(axis=1).reshape(size, size)
    return total


SYSTEM = RatingSystem(
    name="style-control",
    former="length-controlled",
    summary="Chatbot Arena's style control by length: Bradley-Terry with the relative difference of lengths",
    rate=rate_style_control,
    redraw=redraw,
    lengths=True,
)
