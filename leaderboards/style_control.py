"""Style control as Chatbot Arena does it, for length: what a longer response is worth is estimated and taken out.

Bradley-Terry with the relative difference of lengths, (a - b) / (a + b), as a covariate, in units of its root mean
square: an attack that pads responses changes it, and a board that is controlled for it shows what is left. It is not
the length-controlled win rate of AlpacaEval, which compares every model with one baseline and also knows how hard each
instruction is. Everything else is as in ``bradley_terry``. It does not know what a response says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from distract import Draws, Matches, Ratings, RatingSystem, UsageError

from .logistic import MANY, Design, Floats, Game, chances, derivatives, design, newton, parts, refit
from .sandwich import sandwich, sum_clusters
from .scale import POINTS, make_scale, remarks

PART = 1 << 14
"""Matches at once: a row has up to nine numbers, under each draw."""


class StyleDesign(NamedTuple):
    """Matches as rows of strengths and length.

    Attributes:
        matches: what was played.
        unit: root mean square of the relative difference of lengths; 0 where all are equal.
        kept: the rows, where there are few enough to keep.
    """

    matches: Matches
    unit: float
    kept: Design | None

    @property
    def coefficients(self) -> int:
        """The strength of each model, then length."""
        return len(self.matches.models) + 1

    def columns(self, which: Any) -> tuple[NDArray[np.int32], Floats]:
        """Coefficients of the log odds of some matches, and what each counts; both of shape (matches, 3)."""
        a, b = self.matches.a[which], self.matches.b[which]
        length = np.full(len(a), len(self.matches.models), np.int32)
        one = np.ones(len(a))
        more = _contrast(self.matches, which) / (self.unit or 1.0)
        return np.stack((a, b, length), axis=1), np.stack((one, -one, more), axis=1)

    def points(self, part: slice) -> Floats:
        """What the first model of some matches won, shape (matches, 1)."""
        won: Floats = POINTS[self.matches.outcome[part], None]
        return won

    def game(self, weights: Callable[[slice, Any], Floats] | None = None) -> Game:
        """All rows, in parts; ``weights`` tells how often some of them count under some draws: (matches, draws)."""

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
            f"{SYSTEM.name} needs the lengths of responses, and these matches have none; expected responses, "
            "or lengths, beside the verdicts, else use bradley-terry"
        )
    square = sum(float(np.square(_contrast(matches, part)).sum()) for part in parts(len(matches), MANY))
    field = StyleDesign(matches, math.sqrt(square / len(matches)), None)
    if len(matches) > PART:
        return field
    return field._replace(kept=design(*field.columns(slice(None)), field.coefficients))


def rate_style_control(
    matches: Matches,
    *,
    prior: float = 1000.0,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
    scale: float = 400.0,
    base: float = 10.0,
    interval: str = "sandwich",
) -> Ratings:
    """Rate by maximum penalised likelihood at equal length.

    ``extra`` tells what length is worth: ``length``, points for one root mean square of the relative difference, and
    ``length_low`` and ``length_high``, its 95% interval over prompts, where there are at least two.

    Args:
        matches: in any order, with lengths.
        prior: standard deviation of the Gaussian prior on every rating, and on what length is worth, in points.
        anchor: the model whose rating is given; None: the mean of all is.
        anchor_rating: that rating, in points.
        scale: points that multiply the odds by ``base``.
        base: above 1.
        interval: ``sandwich`` for a covariance over prompts in closed form, ``bootstrap`` for none.

    Raises:
        UsageError: lengths are not known, a parameter is out of its range, or the anchor is no model.
    """
    asked: dict[str, Any] = {"prior": prior, "anchor": anchor, "anchor_rating": anchor_rating}
    asked |= {"scale": scale, "base": base, "interval": interval}
    to = make_scale(matches, **asked)
    field = _make_design(matches)
    found, hessian = _fit(field, to.ridge)
    covariance = sandwich(hessian, _scores(field, found), to.ridge)
    extra = {"length": to.unit * float(found[-1])}
    if (clusters := matches.clusters) > 1:
        error = to.unit * math.sqrt(covariance[-1, -1] * clusters / (clusters - 1))
        half = float(stdtrit(clusters - 1, 0.975)) * error
        extra |= {"length_low": extra["length"] - half, "length_high": extra["length"] + half}
    notes = list(remarks(matches))
    if not field.unit:
        notes.append("responses are equally long in every match: what length is worth rests on the prior")
    return Ratings(
        SYSTEM.name,
        matches.models,
        to.place(found[:-1]),
        MappingProxyType(asked),
        to.spread(covariance[:-1, :-1]) if interval == "sandwich" else None,
        extra=MappingProxyType(extra),
        notes=tuple(notes),
    )


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> Floats:
    """Ratings under each draw, shape (draws, models); the unit of length stays that of all matches.

    The mean of the prior is drawn as well, as in ``bradley_terry``.

    Args:
        matches: in any order, with lengths.
        draws: of prompts; without weights, each match counts a random number of times, Poisson(1).
        **parameters: as for ``rate_style_control``.

    Raises:
        UsageError: as there.
    """
    to = make_scale(matches, **{**SYSTEM.parameters, **parameters})
    field = _make_design(matches)
    estimate, hessian = _fit(field, to.ridge)
    mean = draws.normal((*matches.models, " length")).T / math.sqrt(to.ridge)
    random = draws.generator("matches")
    found = np.empty_like(mean)
    for some in parts(draws.count, 4 * MANY // len(matches)):
        table = (
            _draw_counts(len(matches), some.stop - some.start, random) if draws.weights is None else draws.weights[some]
        )
        game = field.game(_weights(matches, table))
        found[:, some] = refit(game, estimate, hessian, mean[:, some], to.ridge)
    return to.place(found[:-1])


def _draw_counts(total: int, draws: int, random: np.random.Generator) -> NDArray[np.uint8]:
    """How often each match counts, Poisson(1), shape (draws, matches)."""
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


def _fit(field: StyleDesign, ridge: float) -> tuple[Floats, Floats]:
    """Strengths and what length is worth, in logits, and minus the second derivative there."""
    game = field.game()
    none = np.zeros((field.coefficients, 1))
    found = newton(game, none, none, ridge)
    return found[:, 0], derivatives(game, slice(None), found, none, ridge)[1][0]


def _scores(field: StyleDesign, found: Floats) -> Floats:
    """Sum over prompts of the outer products of their scores, shape (coefficients, coefficients)."""

    def scores(which: Any) -> tuple[NDArray[np.int32], Floats]:
        columns, values = field.columns(which)
        expected = chances((values * found[columns]).sum(axis=1))[0]
        return columns, values * (field.points(which)[:, 0] - expected)[:, None]

    matches, size = field.matches, field.coefficients
    if matches.cluster is not None:
        return sum_clusters(matches.cluster, len(matches.prompts), size, scores)
    total = np.zeros((size, size))
    for part in parts(len(matches), PART):
        columns, values = scores(part)
        total += design(columns, values, size).squares.T.sum(axis=1).reshape(size, size)
    return total


SYSTEM = RatingSystem(
    name="style-control",
    former="length-controlled",
    summary="Chatbot Arena's style control by length: Bradley-Terry with the relative difference of lengths",
    rate=rate_style_control,
    redraw=redraw,
    lengths=True,
)
