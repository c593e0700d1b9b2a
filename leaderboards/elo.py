"""Elo: each match moves two ratings by how surprising its outcome is, one match after the other.

The order moves ratings more than sampling does, so the rating is the mean over seeded shuffles, or follows the given
order on request. Elo forgets early matches, so only the end of a long order is played, from two different starts that
must lead to the same ratings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract import Draws, Matches, Ratings, RatingSystem

from .shuffles import CHUNK, Orders, cells, check_parameter, combine_orders, count_common, replay

SAME = 1e-6
"""Maximum difference in points between two final ratings that count as equal, so that the start does not matter."""

CLOSE = 1e-4  # ``SAME`` for shuffled orders, whose mean is tens of thousands of times less certain
NEAR = 1e-2  # ``SAME`` for drawn matches, whose ratings vary by points
FAR = 1000.0  # maximum distance in points between starts, for a first guess of the number of matches to play


def rate(
    matches: Matches,
    *,
    k: float = 4.0,
    base: float = 10.0,
    initial: float = 1000.0,
    scale: float = 400.0,
    shuffles: int = 20,
    order: str = "shuffled",
    seed: int = 0,
) -> Ratings:
    """Rate by Elo; a tie is half a win for each.

    ``k`` is the largest change of a rating by one match, ``scale`` the difference that makes the odds ``base`` to 1,
    and ``initial`` the first and the mean rating. ``order`` is ``shuffled`` for a mean over that many seeded
    ``shuffles``, or ``file`` for one pass in the given order.
    """
    parameters: dict[str, Any] = {"k": k, "base": base, "initial": initial, "scale": scale}
    parameters |= {"shuffles": shuffles, "order": order, "seed": seed}
    game, orders = _make_game(matches, parameters)
    reach, begin = _find_tail(game, orders)
    ends = [game.play(orders.last(index, reach), begin) for index in range(orders.count)]
    return Ratings("elo", matches.models, initial + game.point * np.mean(ends, axis=0), parameters)


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> NDArray[np.float64]:
    """Ratings under each draw, shape (draws, models); a match is played as often as its prompt is drawn.

    All draws share the first few orders. The change there is added to the rating over all orders (``combine_orders``).
    """
    rated = rate(matches, **parameters)
    rating, initial = rated.rating, rated.parameters["initial"]
    game, orders = _make_game(matches, rated.parameters)
    gain, point = game.gain, game.point
    reach = game.reach(math.log(FAR / NEAR))
    # A full order starts from the initial ratings, a part of one from the final ratings.
    begin = (rating - initial) / point if reach < len(matches) else np.zeros(len(rating))
    state = np.repeat(begin, count_common(orders) * (1 + draws.count))

    def play(winner: NDArray[np.int64], loser: NDArray[np.int64], tied: NDArray[np.bool_]) -> None:
        ahead, behind = state[winner], state[loser]
        change = gain * (~tied - np.tanh(ahead - behind))
        state[winner] = ahead + change
        state[loser] = behind - change

    replay(matches, orders, reach, draws, "elo", play)
    return rating + point * combine_orders(state.reshape(len(rating), count_common(orders), -1), orders)


@dataclass(frozen=True, slots=True, eq=False)
class _EloGame:
    """Matches and the update rule, in units of half a logit (``point`` points each).

    In these units the win probability minus the loss probability is the hyperbolic tangent of the difference, which
    never overflows. ``cells`` encodes first model, second model and outcome of each match as one number; ``table``
    decodes it to both models and the first one's gain above expectation between equals; ``counts`` has the shape
    (models, models, outcomes). ``gain`` is the change of a rating by a match between equals.
    """

    cells: NDArray[np.int64]
    table: NDArray[np.object_]
    counts: NDArray[np.int64]
    gain: float
    point: float

    @property
    def level(self) -> list[float]:
        """Equal ratings for all models."""
        return [0.0] * len(self.counts)

    def play(self, places: NDArray[np.int32], begin: list[float]) -> list[float]:
        """Ratings after these matches, one by one in Python floats, because numpy is slower with single numbers."""
        rating, gain, tanh = list(begin), self.gain, math.tanh
        for start in range(0, len(places), CHUNK):
            for a, b, won in self.table[self.cells[places[start : start + CHUNK]]].tolist():
                first, second = rating[a], rating[b]
                change = won - gain * tanh(first - second)
                rating[a] = first + change
                rating[b] = second - change
        return rating

    def reach(self, fading: float) -> int:
        """Estimate the number of matches that shrink a difference at their start by ``exp(fading)``.

        A match pulls two ratings together by the slope of the tangent, which follows from how often one beats the
        other. The slowest combination of ratings decides, except sums over connected models, which never change.
        """
        matches = len(self.cells)
        if self.gain >= 1:
            return matches  # a match may push ratings further apart
        points = self.counts[:, :, Matches.A] + self.counts[:, :, Matches.TIE] / 2
        points += (self.counts[:, :, Matches.B] + self.counts[:, :, Matches.TIE] / 2).T
        met = points + points.T
        share = (points + 0.5) / (met + 1)
        pull = 4 * self.gain * share * (1 - share) * met / matches
        rates = np.linalg.eigvalsh(np.diag(pull.sum(axis=1)) - pull)
        slowest = float(rates[rates >= 1e-9 * rates[-1]][0])
        return matches if slowest * matches <= fading else math.ceil(fading / slowest)


def _make_game(matches: Matches, p: Mapping[str, Any]) -> tuple[_EloGame, Orders]:
    orders = Orders(len(matches), p["order"], p["shuffles"], p["seed"])
    check_parameter("k", p["k"], "a number above 0", p["k"] > 0)
    check_parameter("base", p["base"], "a number above 1", p["base"] > 1)
    check_parameter("initial", p["initial"], "a number", True)
    check_parameter("scale", p["scale"], "a number above 0", p["scale"] > 0)
    point = 2 * p["scale"] / math.log(p["base"])
    gain = p["k"] / 2 / point
    codes = cells(matches)
    models = len(matches.models)
    counts = np.bincount(codes, minlength=models * models * 3)
    table = np.empty(len(counts), object)
    gains = {Matches.A: gain, Matches.B: -gain, Matches.TIE: 0.0}
    for cell in np.flatnonzero(counts).tolist():
        pair, outcome = divmod(cell, 3)
        table[cell] = (*divmod(pair, models), gains[outcome])
    return _EloGame(codes, table, counts.reshape(models, models, 3), gain, point), orders


def _find_tail(game: _EloGame, orders: Orders) -> tuple[int, list[float]]:
    """Find the number of last matches that give the same result as a whole order, and the ratings to start them from.

    It is measured on the first order: two starts (equal ratings, and those after such matches) must agree at the end,
    ten times closer than needed, as a reserve for the other orders. These start where the first one ended.
    """
    same = SAME if orders.order == "file" else CLOSE
    reach = game.reach(math.log(FAR / same))
    while (orders.count + 1) * reach < orders.count * orders.matches:
        last = orders.last(0, reach)
        first = game.play(last, game.level)
        second = game.play(last, first)
        if max(abs(x - y) for x, y in zip(first, second, strict=True)) * game.point <= same / 10:
            return reach, first
        reach += reach // 4 + 1
    return orders.matches, game.level


elo = RatingSystem("elo", "online Elo, averaged over shuffled orders of the matches", rate, redraw)
