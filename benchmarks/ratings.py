"""Compare the speed of rating systems with the libraries that people use for them, in one table.

    OMP_NUM_THREADS=1 python benchmarks/ratings.py [--quick]

distract uses one process. A fit and Elo start from lists of names, so distract's time includes encoding them, the
rating and, for Bradley-Terry, its sandwich covariance; the reference is ``evalica`` as it ships, which has no interval.
A bootstrap starts from encoded columns and has 1,000 rounds. Its reference is FastChat's method, implemented here from
its description because the package on PyPI lacks it: unique battles drawn by a multinomial; each round a task for one
of two processes, fitted by L-BFGS-B to a gradient of 1e-6, gradients summed by ``np.add.at``. Standard deviations are
compared on the same draws, so that chance does not add to the difference. TrueSkill is one pass in the given order,
against a loop of ``rate_1vs1`` of the library ``trueskill``. The benchmark checks that the numbers agree before it
times anything. Each time is the best of several alternating rounds. One match in ten is a tie. ``--quick`` measures the
smallest size with few rounds. No model runs.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import evalica
import numpy as np
import trueskill
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from distract.stats import ratings
from distract.stats.ratings.matches import MAX_WEIGHTS, Matches, draw, encode

SMALL, MIDDLE, LARGE = (6, 1_689), (50, 100_000), (50, 1_000_000)
DRAWS = 1_000
PROCESSES = 2
SPREAD = 200  # points, standard deviation of the models' strengths
TIES = 0.1
WINNERS = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of the table.

    Attributes:
        work: the task.
        theirs: milliseconds of the reference, best of the rounds.
        ours: milliseconds of distract, best of the rounds.
        target: lower bound for the ratio of theirs to ours; None without a target.
        remark: the reference.
    """

    work: str
    theirs: float
    ours: float
    target: float | None
    remark: str


def votes(models: int, matches: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Return the names of both models and the outcome of each match, in the form that ``encode`` takes."""
    random = np.random.default_rng(seed)
    strength = random.normal(0, SPREAD, models)
    a = random.integers(models, size=matches)
    b = (a + 1 + random.integers(models - 1, size=matches)) % models
    won = np.where(random.random(matches) < 1 / (1 + 10 ** ((strength[b] - strength[a]) / 400)), "a", "b")
    outcome = np.where(random.random(matches) < TIES, "tie", won)
    names = [f"model-{i:02d}" for i in range(models)]
    return [names[i] for i in a], [names[i] for i in b], outcome.tolist()


def best(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each call, best of alternating rounds."""
    times = [math.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            times[i] = min(times[i], 1e3 * (time.perf_counter() - begin))
    return times


def loss(theta: Floats, a: NDArray[Any], b: NDArray[Any], won: Floats, weight: Floats) -> tuple[float, Floats]:
    """Return the weighted logistic loss of battles and its gradient; a tie is half a win."""
    gap = theta[a] - theta[b]
    value = -(weight * (won * log_expit(gap) + (1 - won) * log_expit(-gap))).sum()
    slope = np.zeros(len(theta))
    pull = weight * (expit(gap) - won)
    np.add.at(slope, a, pull)
    np.add.at(slope, b, -pull)
    return float(value), slope


def fitted(weight: Floats, models: int, a: NDArray[Any], b: NDArray[Any], won: Floats) -> Floats:
    """Return the ratings of one bootstrap round, in points."""
    found = minimize(loss, np.zeros(models), (a, b, won, weight), method="L-BFGS-B", jac=True, options={"gtol": 1e-6})
    ratings: Floats = 1000 + 400 / math.log(10) * found.x
    return ratings


def reference_bootstrap(models: int, columns: NDArray[np.int64], draws: int, weights: Any = None) -> Floats:
    """Return the ratings of each round by FastChat's method, shape (draws, models).

    Args:
        models: number of models.
        columns: a, b and outcome of each match.
        draws: number of rounds.
        weights: count of each match in each round, shape (draws, matches); None draws them from a multinomial.
    """
    battles, place, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
    a, b, outcome = battles.T
    if weights is None:
        drawn = np.random.default_rng(0).multinomial(len(columns), counts / len(columns), size=draws)
    else:
        drawn = np.array([np.bincount(place.ravel(), one, len(counts)) for one in weights])
    fit = partial(fitted, models=models, a=a, b=b, won=np.array([1.0, 0.0, 0.5])[outcome])
    with multiprocessing.Pool(PROCESSES) as pool:
        return np.array(list(pool.imap_unordered(fit, drawn / len(columns))))


def fits(quick: bool = False) -> Iterator[Compared]:
    """Time Bradley-Terry from names, for each size."""
    rate = ratings.get_system("bradley-terry").rate
    for (models, count), target in ((SMALL, 1.0), *(() if quick else ((MIDDLE, 2.0), (LARGE, 2.0)))):
        a, b, outcome = votes(models, count)
        winners = [WINNERS[one] for one in outcome]

        def theirs(a: list[str] = a, b: list[str] = b, winners: list[Any] = winners) -> object:
            return evalica.bradley_terry(a, b, winners)

        def ours(a: list[str] = a, b: list[str] = b, outcome: list[str] = outcome) -> object:
            return rate(encode(a, b, outcome))

        them, us = best(3 if quick else max(5, min(100, 2_000_000 // count)), theirs, ours)
        yield Compared(f"bradley-terry, interval, {models} x {count:,}", them, us, target, "evalica, no interval")


def bootstraps(quick: bool = False) -> Iterator[Compared]:
    """Time bootstraps of Bradley-Terry from encoded columns, for each size."""
    redraw = ratings.get_system("bradley-terry").redraw
    for (models, count), target in ((SMALL, 50.0), *(() if quick else ((MIDDLE, 10.0),))):
        draws = 200 if quick else DRAWS
        matches = encode(*votes(models, count))
        columns = np.stack((matches.a, matches.b, matches.outcome), axis=1).astype(np.int64)
        theirs = partial(reference_bootstrap, models, columns, draws)
        ours = partial(redraw, matches, draw(0, draws, count, table=False))
        them, us = best(1 if quick else 3, theirs, ours)
        same = draw(0, min(draws, MAX_WEIGHTS // count), count)
        expected = reference_bootstrap(models, columns, same.count, same.weights).std(axis=0)
        apart = 100 * np.abs(redraw(matches, same).std(axis=0) / expected - 1).max()
        remark = f"FastChat's method; standard deviations differ by at most {apart:.2f}%"
        yield Compared(
            f"bootstrap of {draws:,} rounds, {models} x {count:,}", them, us, None if quick else target, remark
        )


def rated_by_trueskill(matches: Matches) -> list[float]:
    """Return the library's ratings after one pass in the given order."""
    rating = [trueskill.Rating() for _ in matches.models]
    for a, b, outcome in zip(matches.a.tolist(), matches.b.tolist(), matches.outcome.tolist(), strict=True):
        winner, loser = (b, a) if outcome == 1 else (a, b)
        rating[winner], rating[loser] = trueskill.rate_1vs1(rating[winner], rating[loser], drawn=outcome == 2)
    return [one.mu for one in rating]


def skills(quick: bool = False) -> Iterator[Compared]:
    """Time TrueSkill from encoded matches."""
    models, count = SMALL
    matches = encode(*votes(models, count))
    rate = partial(ratings.get_system("trueskill").rate, draw_probability=trueskill.DRAW_PROBABILITY)
    np.testing.assert_allclose(rate(matches, order="file").rating, rated_by_trueskill(matches), atol=1e-4)
    sides = (partial(rated_by_trueskill, matches), partial(rate, matches, order="file"), partial(rate, matches))
    theirs, once, shuffled = best(1 if quick else 5, *sides)
    remark = "trueskill, one pass"
    yield Compared(f"trueskill, one pass, {models} x {count:,}", theirs, once, 100.0, remark)
    yield Compared(f"trueskill, 20 shuffles, {models} x {count:,}", theirs, shuffled, None, remark)


def elos(quick: bool = False) -> Iterator[Compared]:
    """Time Elo from names, for each size."""
    rate = ratings.get_system("elo").rate
    for (models, count), target in ((SMALL, None), *(() if quick else ((MIDDLE, None), (LARGE, 1 / 3)))):
        a, b, outcome = votes(models, count)
        winners = [WINNERS[one] for one in outcome]
        found, scores = rate(encode(a, b, outcome), order="file"), evalica.elo(a, b, winners).scores
        np.testing.assert_allclose(found.rating, [scores[name] for name in found.models], atol=1e-5)

        def theirs(a: list[str] = a, b: list[str] = b, winners: list[Any] = winners) -> object:
            return evalica.elo(a, b, winners)

        def ours(a: list[str] = a, b: list[str] = b, outcome: list[str] = outcome) -> object:
            return rate(encode(a, b, outcome))

        them, us = best(1 if quick else 4, theirs, ours)
        yield Compared(f"elo, 20 shuffles, {models} x {count:,}", them, us, target, "evalica, one pass")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure only the smallest size, with few rounds")
    quick = parser.parse_args().quick
    print(f"{'task':42} {'reference ms':>12} {'distract ms':>11} {'ratio':>7} {'target':>7}  reference")
    for measure in (fits, bootstraps, skills, elos):
        for line in measure(quick):
            target = "" if line.target is None else f"{line.target:.2f}"
            ratio = line.theirs / line.ours
            print(f"{line.work:42} {line.theirs:12.2f} {line.ours:11.2f} {ratio:7.2f} {target:>7}  {line.remark}")


if __name__ == "__main__":
    main()
