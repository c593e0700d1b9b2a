"""What rating systems that go from match to match share: orders of the matches, and matches played again.

An order is asked for from its end, because some systems forget and need no more of it. It knows no rating system: it
says which match is played when, and how often, and not what a match does to a rating.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distract import Draws, Matches, UsageError

COMMON = 4
"""Orders that draws share, at most: what fewer of them add to the spread is taken off again (``combine_orders``)."""

MANY = 50_000
"""Matches from which on draws share two orders only."""

ORDERS = ("shuffled", "file")

CHUNK = 1 << 16
"""Matches that are looked at together."""

Floats = NDArray[np.float64]
Play = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]], None]

# Chances that a Poisson variable of mean 1 is at most 0, 1, 2, …; the last ones are 1 in double precision.
_POISSON = np.cumsum([math.exp(-1) / math.factorial(times) for times in range(18)])


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders in which matches are played: seeded shuffles of them, or the one in which they were given.

    A shuffle depends on the seed, its index and the number of matches alone, so that two boards of the same matches
    with other outcomes have the same ones.

    Attributes:
        matches: how many there are.
        order: ``shuffled`` or ``file``.
        shuffles: how many, at least 1.
        seed: of the shuffles, at least 0.
    """

    matches: int
    order: str
    shuffles: int
    seed: int

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(f"order: expected shuffled or file, found {self.order!r}")
        check_parameter("shuffles", self.shuffles, "a whole number, 1 to 10,000", 1 <= self.shuffles <= 10_000)
        check_parameter("seed", self.seed, "a whole number, 0 or more", self.seed >= 0)

    @property
    def count(self) -> int:
        """How many orders there are."""
        return 1 if self.order == "file" else self.shuffles

    def last(self, index: int, length: int) -> NDArray[np.int32]:
        """Indices of the last matches of an order, as they are played.

        Args:
            index: of the order.
            length: how many, at most all; a longer answer ends with the shorter one.
        """
        if self.order == "file":
            return np.arange(self.matches - length, self.matches, dtype=np.int32)
        return _shuffle((self.seed, index), self.matches, length)[::-1]


def check_parameter(name: str, value: float, expected: str, holds: bool) -> None:
    """Raise the one line that says what a parameter must be, unless it is.

    Raises:
        UsageError: it is not, or it is no number.
    """
    if not holds or not math.isfinite(value):
        raise UsageError(f"{name}: expected {expected}, found {value}")


def cells(matches: Matches) -> NDArray[np.int64]:
    """First model, second one and outcome of each match as one number, in the smallest type that holds it."""
    models = len(matches.models)
    kind = np.int32 if 3 * models**2 < 1 << 31 else np.int64
    found: NDArray[np.int64] = matches.a.astype(kind)
    found *= models
    found += matches.b
    found *= 3
    found += matches.outcome
    return found


def weights(matches: Matches, draws: Draws, purpose: str) -> Callable[[int], NDArray[np.uint8]]:
    """How often a match is played in each draw, shape (1 + draws,), by its index; the first place is always 1.

    Without a table, a prompt's numbers are Poisson with mean 1 and are made anew where they are asked for: they lie at
    a known place of the stream of random numbers.
    """
    cluster = matches.cluster
    if draws.weights is not None:
        table = np.ones((matches.clusters, 1 + draws.count), np.uint8)
        table[:, 1:] = draws.weights.T
        return lambda match: table[match if cluster is None else cluster[match]]
    random = draws.generator(purpose)
    stream = random.bit_generator
    assert isinstance(stream, np.random.PCG64)  # as default_rng has it: it can be moved to any place
    at = 0

    def made(match: int) -> NDArray[np.uint8]:
        nonlocal at
        begin = draws.count * int(match if cluster is None else cluster[match])
        stream.advance((begin - at) % (1 << 128))
        at = begin + draws.count
        row = np.ones(1 + draws.count, np.uint8)
        row[1:] = np.searchsorted(_POISSON, random.random(draws.count), side="right")
        return row

    return made


def replay(matches: Matches, orders: Orders, length: int, draws: Draws, purpose: str, play: Play) -> None:
    """Play the last matches of the common orders under all draws, each as often as the draw says, in its place.

    Args:
        matches: what was played.
        orders: their orders; the first ``COMMON`` of them are used.
        length: how many of the last matches of each.
        draws: how prompts are drawn again.
        purpose: tells the random numbers of one use from those of another.
        play: called with indices into a flat table of shape (models, common orders, 1 + draws), of winners and of
            losers, and whether they tied. No place comes twice in one call.
    """
    often = weights(matches, draws, purpose)
    places = np.stack([orders.last(index, length) for index in range(count_common(orders))], axis=1)
    each = 1 + draws.count
    column = np.arange(each * places.shape[1])
    for slot in places:
        outcome = matches.outcome[slot]
        swapped = outcome == Matches.B
        winner = np.where(swapped, matches.b[slot], matches.a[slot]).astype(np.int64)
        loser = np.where(swapped, matches.a[slot], matches.b[slot]).astype(np.int64)
        first = np.repeat(winner * len(column), each) + column
        second = np.repeat(loser * len(column), each) + column
        tied = np.repeat(outcome == Matches.TIE, each)
        times = np.concatenate([often(int(match)) for match in slot])
        now = np.flatnonzero(times)
        left = times.take(now)
        while len(now):
            play(first.take(now), second.take(now), tied.take(now))
            left -= 1
            more = left.nonzero()[0]
            now, left = now.take(more), left.take(more)


def count_common(orders: Orders) -> int:
    """How many orders all draws share."""
    return min(COMMON if orders.matches < MANY else 2, orders.count)


def combine_orders(state: Floats, orders: Orders) -> Floats:
    """What draws do to the rating that is a mean over all orders, from what they do to a few.

    In one order, a draw also moves a rating because it weighs the matches that are late there; over all orders that
    averages out as it does not over a few. What is too much is estimated from how far orders differ within a draw, and
    each model's spread is narrowed by it.

    Args:
        state: ratings at the end, shape (models, common orders, 1 + draws); the first column is that of no redrawing.
        orders: that the rating is the mean of.

    Returns:
        Difference to the rating without redrawing, shape (draws, models).
    """
    moved = state[:, :, 1:] - state[:, :, :1]
    mean: Floats = moved.mean(axis=1)
    few = moved.shape[1]
    if few == orders.count:
        return mean.T
    around = moved - moved.mean(axis=2, keepdims=True)
    late = around.var(axis=1, ddof=1).mean(axis=1)
    found = mean.var(axis=1)
    wanted = np.clip(found - late * (1 / few - 1 / orders.count), late / orders.count, found)
    factor = np.sqrt(np.divide(wanted, found, out=np.ones_like(found), where=found > 0))
    mean *= factor[:, None]
    return mean.T


def _shuffle(seed: tuple[int, int], n: int, length: int) -> NDArray[np.int32]:
    """The first places of a random order, without the cost of the others.

    Of draws with replacement, the first of each number make an order without. After n draws, the numbers that are
    still missing follow in an order of their own.
    """
    likely = n if length == n else int(-n * math.log1p(-length / n) + 6 * math.sqrt(length)) + 6
    for draws in (likely, n):
        random = np.random.default_rng(seed)
        drawn = random.integers(n, size=min(draws, n), dtype=np.int32)
        when = np.arange(len(drawn), dtype=np.int32)
        first = np.full(n, -1, np.int32)
        first[drawn[::-1]] = when[::-1]
        found: NDArray[np.int32] = drawn[first[drawn] == when]
        if len(found) >= length:
            return found[:length]
    missing = np.flatnonzero(first < 0).astype(np.int32)
    return np.concatenate([found, random.permutation(missing)])[:length]
