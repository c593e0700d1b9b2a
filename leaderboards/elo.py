"""Elo: each match moves two ratings by what its outcome surprises, one match after the other.

The order moves ratings more than sampling does (ANCHORS, section 3), so the rating is the mean over seeded shuffles, or
follows the given order on request. Elo forgets: of a long order only the end is played, from two different beginnings
that must come to the same end. It knows no prompts but through the weights of draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract import Draws, Matches, Ratings, RatingSystem

from .orders import CHUNK, Orders, cells, check_parameter, combine_orders, count_common, replay

SAME = 1e-6
"""Points by which two ends may differ that are called one: the beginning does not matter then."""

CLOSE = 1e-4
"""The same for shuffled orders, whose mean is tens of thousands of times less certain than that."""

NEAR = 1e-2
"""The same where matches are drawn again: draws spread by points."""

FAR = 1000.0
"""Points: as far as beginnings may be apart when the number of matches to look back at is guessed."""


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
    """Rate by Elo, a tie being half a win each way.

    Args:
        matches: what was played.
        k: points that one match can move a rating, above 0.
        base: of the odds, above 1.
        initial: rating before the first match; the mean of all ratings stays there.
        scale: points that make the odds ``base`` to 1, above 0.
        shuffles: orders over which the rating is a mean, at least 1.
        order: ``shuffled``, or ``file`` for one pass in the given order.
        seed: of the shuffles.

    Raises:
        UsageError: a parameter is out of its range.
    """
    parameters = {
        "k": k,
        "base": base,
        "initial": initial,
        "scale": scale,
        "shuffles": shuffles,
        "order": order,
        "seed": seed,
    }
    game, orders = _make_game(matches, parameters)
    reach, begin = _find_tail(game, orders)
    ends = [game.played(orders.last(index, reach), begin) for index in range(orders.count)]
    return Ratings("elo", matches.models, initial + game.point * np.mean(ends, axis=0), parameters)


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> NDArray[np.float64]:
    """Ratings under each draw, shape (draws, models): a match is played as often in its place as its prompt is drawn.

    All draws share the first few orders; what they move there is added to the rating over all orders (``settled``).

    Raises:
        UsageError: a parameter is out of its range.
    """
    rated = rate(matches, **parameters)
    found, p = rated.rating, rated.parameters
    game, orders = _make_game(matches, p)
    initial, gain, point = p["initial"], game.gain, game.point
    reach = game.reach(math.log(FAR / NEAR))
    # All is played from the very beginning; a part from where ratings end up.
    begin = (found - initial) / point if reach < len(matches) else np.zeros(len(found))
    state = np.repeat(begin, count_common(orders) * (1 + draws.count))

    def play(winner: NDArray[np.int64], loser: NDArray[np.int64], tied: NDArray[np.bool_]) -> None:
        ahead, behind = state[winner], state[loser]
        change = gain * (~tied - np.tanh(ahead - behind))
        state[winner] = ahead + change
        state[loser] = behind - change

    replay(matches, orders, reach, draws, "elo", play)
    return found + point * combine_orders(state.reshape(len(found), count_common(orders), -1), orders)


@dataclass(frozen=True, slots=True, eq=False)
class _EloGame:
    """What is played and by which rule, in units of half a logit.

    There the chance to win less that to lose is the hyperbolic tangent of the difference, which never overflows.

    Attributes:
        cells: of each match: first model, second one and outcome as one number.
        table: what a cell stands for: first model, second one, how much the first wins beyond what it was expected to.
        counts: of cells, shape (models, models, outcomes).
        gain: how much a match between equals moves a rating.
        point: points in one unit.
    """

    cells: NDArray[np.int64]
    table: NDArray[np.object_]
    counts: NDArray[np.int64]
    gain: float
    point: float

    @property
    def level(self) -> list[float]:
        """All models alike."""
        return [0.0] * len(self.counts)

    def played(self, places: NDArray[np.int32], begin: list[float]) -> list[float]:
        """Ratings after these matches, one by one and in Python's own numbers: numpy is slower with single ones."""
        rating, gain, tanh = list(begin), self.gain, math.tanh
        for start in range(0, len(places), CHUNK):
            for a, b, won in self.table[self.cells[places[start : start + CHUNK]]].tolist():
                first, second = rating[a], rating[b]
                change = won - gain * tanh(first - second)
                rating[a] = first + change
                rating[b] = second - change
        return rating

    def reach(self, fading: float) -> int:
        """About how many matches it takes until a difference at their beginning has shrunk by ``exp(fading)``.

        A match pulls two ratings together by the slope of the tangent there, taken from how often one beats the other.
        The slowest combination of ratings counts, but for sums over models that are connected, which never change.
        """
        matches = len(self.cells)
        if self.gain >= 1:
            return matches  # a match may throw ratings further apart
        points = self.counts[:, :, Matches.A] + self.counts[:, :, Matches.TIE] / 2
        points += (self.counts[:, :, Matches.B] + self.counts[:, :, Matches.TIE] / 2).T
        met = points + points.T
        share = (points + 0.5) / (met + 1)
        pull = 4 * self.gain * share * (1 - share) * met / matches
        rates = np.linalg.eigvalsh(np.diag(pull.sum(axis=1)) - pull)
        slowest = float(rates[rates >= 1e-9 * rates[-1]][0])
        return matches if slowest * matches <= fading else math.ceil(fading / slowest)


def _make_game(matches: Matches, p: Mapping[str, Any]) -> tuple[_EloGame, Orders]:
    """The rule and the orders that parameters stand for."""
    orders = Orders(len(matches), p["order"], p["shuffles"], p["seed"])
    check_parameter("k", p["k"], "a number above 0", p["k"] > 0)
    check_parameter("base", p["base"], "a number above 1", p["base"] > 1)
    check_parameter("initial", p["initial"], "a number", True)
    check_parameter("scale", p["scale"], "a number above 0", p["scale"] > 0)
    point = 2 * p["scale"] / math.log(p["base"])
    gain = p["k"] / 2 / point
    found = cells(matches)
    models = len(matches.models)
    often = np.bincount(found, minlength=models * models * 3)
    table = np.empty(len(often), object)
    won = {Matches.A: gain, Matches.B: -gain, Matches.TIE: 0.0}
    for cell in np.flatnonzero(often).tolist():
        pair, outcome = divmod(cell, 3)
        table[cell] = (*divmod(pair, models), won[outcome])
    return _EloGame(found, table, often.reshape(models, models, 3), gain, point), orders


def _find_tail(game: _EloGame, orders: Orders) -> tuple[int, list[float]]:
    """How many of the last matches of an order give what all of it gives, seen in the first order, and from where.

    Two beginnings, equal ratings and those after such matches, must come to the same end, with a decade in hand for the
    other orders. These begin where the first one ended: nearer to where their own matches have led by then.
    """
    same = SAME if orders.order == "file" else CLOSE
    reach = game.reach(math.log(FAR / same))
    while (orders.count + 1) * reach < orders.count * orders.matches:
        last = orders.last(0, reach)
        one = game.played(last, game.level)
        two = game.played(last, one)
        if max(abs(x - y) for x, y in zip(one, two, strict=True)) * game.point <= same / 10:
            return reach, one
        reach += reach // 4 + 1
    return orders.matches, game.level


elo = RatingSystem("elo", "online Elo, a mean over shuffled orders of the matches", rate, redraw)
