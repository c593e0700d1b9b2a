"""Orders of matches, and redrawn matches, for rating systems that process one match after the other.

An order is read from its end, because some systems forget early matches and need only the last ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distract import Draws, Matches, UsageError

COMMON = 4  # limit on the orders that draws share; ``combine_orders`` corrects for the variance that so few of them add
MANY = 50_000  # number of matches from which draws share only two orders

ORDERS = ("shuffled", "file")

CHUNK = 1 << 16  # matches to convert to Python numbers at once

Floats = NDArray[np.float64]
Play = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]], None]

# Chances that a Poisson variable of mean 1 is at most 0, 1, 2, …; the last ones are 1 in double precision.
_POISSON = np.cumsum([math.exp(-1) / math.factorial(times) for times in range(18)])


@dataclass(frozen=True, slots=True)
class Orders:
    """Seeded shuffles of the matches, or the order in which they were given (``file``).

    A shuffle depends only on the seed, its index and the number of matches, so boards with the same matches but other
    outcomes share their shuffles.
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
        """Number of orders."""
        return 1 if self.order == "file" else self.shuffles

    def last(self, index: int, length: int) -> NDArray[np.int32]:
        """Indices of the last matches of an order; for a larger ``length``, the result ends with the shorter one."""
        if self.order == "file":
            return np.arange(self.matches - length, self.matches, dtype=np.int32)
        return _shuffle((self.seed, index), self.matches, length)[::-1]


def check_parameter(name: str, value: float, expected: str, holds: bool) -> None:
    """Raise a usage error unless the parameter is finite and the condition holds."""
    if not holds or not math.isfinite(value):
        raise UsageError(f"{name}: expected {expected}, found {value}")


def cells(matches: Matches) -> NDArray[np.int64]:
    """First model, second model and outcome of each match as one number, in the smallest type that fits."""
    models = len(matches.models)
    kind = np.int32 if 3 * models**2 < 1 << 31 else np.int64
    codes: NDArray[np.int64] = matches.a.astype(kind)
    # Compute in place, since there may be millions.
    codes *= models
    codes += matches.b
    codes *= 3
    codes += matches.outcome
    return codes


def weights(matches: Matches, draws: Draws, purpose: str) -> Callable[[int], NDArray[np.uint8]]:
    """Return the number of times that each draw plays a match, shape (1 + draws,), by index; the first is always 1.

    Without a table, the numbers of a prompt are Poisson(1). Their place in the random stream is known, so they are
    computed on demand.
    """
    cluster = matches.cluster
    if draws.weights is not None:
        table = np.ones((matches.clusters, 1 + draws.count), np.uint8)
        table[:, 1:] = draws.weights.T
        return lambda match: table[match if cluster is None else cluster[match]]
    random = draws.generator(purpose)
    stream = random.bit_generator
    assert isinstance(stream, np.random.PCG64)  # the generator of default_rng, which can jump
    at = 0

    def draw_counts(match: int) -> NDArray[np.uint8]:
        nonlocal at
        begin = draws.count * int(match if cluster is None else cluster[match])
        stream.advance((begin - at) % (1 << 128))
        at = begin + draws.count
        row = np.ones(1 + draws.count, np.uint8)
        row[1:] = np.searchsorted(_POISSON, random.random(draws.count), side="right")
        return row

    return draw_counts


def replay(matches: Matches, orders: Orders, length: int, draws: Draws, purpose: str, play: Play) -> None:
    """Play the last matches of the common orders under all draws, each as often as it was drawn.

    ``play`` takes the winners and losers as indices of a flat table of shape (models, common orders, 1 + draws), and
    whether they tied; no index occurs twice in one call. ``purpose`` separates the random numbers of different uses.
    """
    often = weights(matches, draws, purpose)
    places = np.stack([orders.last(index, length) for index in range(count_common(orders))], axis=1)
    each = 1 + draws.count
    column = np.arange(each * places.shape[1])
    for slot in places:
        winner, loser, is_tie = read_results(matches, slot)
        first, second = (np.repeat(side.astype(np.int64) * len(column), each) + column for side in (winner, loser))
        tied = np.repeat(is_tie, each)
        times = np.concatenate([often(int(match)) for match in slot])
        now = np.flatnonzero(times)
        left = times.take(now)
        while len(now):
            play(first.take(now), second.take(now), tied.take(now))
            left -= 1
            more = left.nonzero()[0]
            now, left = now.take(more), left.take(more)


def read_results(
    matches: Matches, places: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Winners and losers of some matches, and whether they tied, where the first model stands for the winner."""
    a, b, outcome = matches.a[places], matches.b[places], matches.outcome[places]
    is_second = outcome == Matches.B
    return np.where(is_second, b, a), np.where(is_second, a, b), outcome == Matches.TIE


def count_common(orders: Orders) -> int:
    """Number of orders that all draws share."""
    return min(COMMON if orders.matches < MANY else 2, orders.count)


def combine_orders(state: Floats, orders: Orders) -> Floats:
    """Change of the mean over all orders by each draw, shape (draws, models), from a few orders.

    ``state`` holds final ratings, shape (models, common orders, 1 + draws); the first column has no redrawing. In one
    order, a draw also moves a rating because it weighs the late matches; this averages out over all orders, but not
    over a few. The excess variance is estimated from the differences between orders within a draw, and each
    model's spread is shrunk by it.
    """
    moved = state[:, :, 1:] - state[:, :, :1]
    mean: Floats = moved.mean(axis=1)
    few = moved.shape[1]
    if few == orders.count:
        return mean.T
    around = moved - moved.mean(axis=2, keepdims=True)
    late = around.var(axis=1, ddof=1).mean(axis=1)
    observed = mean.var(axis=1)
    target = np.clip(observed - late * (1 / few - 1 / orders.count), late / orders.count, observed)
    factor = np.sqrt(np.divide(target, observed, out=np.ones_like(observed), where=observed > 0))
    mean *= factor[:, None]
    return mean.T


def _shuffle(seed: tuple[int, int], n: int, length: int) -> NDArray[np.int32]:
    """The first places of a random order, without generating the rest.

    The first occurrences in draws with replacement form a draw without. After n draws, the missing numbers are appended
    in random order.
    """
    likely = n if length == n else int(-n * math.log1p(-length / n) + 6 * math.sqrt(length)) + 6
    for draws in (likely, n):
        random = np.random.default_rng(seed)
        drawn = random.integers(n, size=min(draws, n), dtype=np.int32)
        when = np.arange(len(drawn), dtype=np.int32)
        first = np.full(n, -1, np.int32)
        first[drawn[::-1]] = when[::-1]
        order: NDArray[np.int32] = drawn[first[drawn] == when]
        if len(order) >= length:
            return order[:length]
    missing = np.flatnonzero(first < 0).astype(np.int32)
    return np.concatenate([order, random.permutation(missing)])[:length]
