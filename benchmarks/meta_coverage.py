"""Measure how often the 95% intervals contain the true value, on simulated verdicts with several cases per prompt.

    python benchmarks/meta_coverage.py [--repetitions 2000] [--seed 0]

The output is coverage in percent and mean width for every quantity, accuracy and number of prompts. True values are
computed from the model below, not estimated. Prompts differ in how often the judge is right and in how often its reply
is unreadable. Some cases are decided by their order alone, which makes one of the two orders right and the other wrong.
Rows with a remark in brackets show alternatives that distract does not report. No model runs.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from distract.stats import agreement, intervals as statistics
from distract.stats.intervals import Interval

PROMPTS = (50, 75, 113, 200)
ACCURACIES = (0.55, 0.7, 0.9)
CASES = 5  # maximum per prompt; 1 to 5 are equally likely
PREFERRED = 0.6  # share of cases whose better response is the first one, a
CONVICTION = 0.6  # share of cases where one draw decides both orders
SPREAD = 3.0  # the chance to be right is Beta(mean * SPREAD, (1 - mean) * SPREAD) over prompts
BIASED = 0.1  # share of cases that the order decides
FIRST = 0.8  # share of the biased verdicts that prefer the first slot
INVALID = (0.2, 4.8)  # Beta of the chance, per prompt, that a verdict is unreadable
BETTER = 0.25  # the second protocol is right on this share of what the first gets wrong
COMMON = 0.5  # share of draws that the two protocols have in common
COST = (0.4, 0.5)  # log standard deviations of a comparison's cost, between and within prompts

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
VERDICTS = ("a", "b", None)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Cases of one simulated data set, with the cluster and the verdicts in both orders.

    Attributes:
        cluster: prompt of each case, shape (cases,).
        right: whether the judge preferred the better response, shape (cases, 2).
        second: whether the second protocol did, shape (cases, 2).
        verdict: index in ``VERDICTS``, shape (cases, 2); the first order shows a first.
        cost: cost of each comparison, shape (cases,).
    """

    cluster: NDArray[np.int64]
    right: Flags
    second: Flags
    verdict: NDArray[np.int64]
    cost: Floats


def beta(accuracy: float) -> tuple[float, float]:
    """Return the Beta of the chance to be right over prompts that gives this accuracy over both orders."""
    mean = (accuracy - BIASED / 2) / (1 - BIASED)
    return mean * SPREAD, (1 - mean) * SPREAD


def moments(a: float, b: float) -> tuple[float, float]:
    """Return mean and mean square of a Beta variable."""
    return a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))


def simulate(rng: np.random.Generator, prompts: int, accuracy: float) -> Verdicts:
    """Draw one data set."""
    cluster = np.repeat(np.arange(prompts), rng.integers(1, CASES + 1, prompts))
    n = len(cluster)
    chance = rng.beta(*beta(accuracy), prompts)[cluster][:, None]
    better = chance + BETTER * (1 - chance)
    is_a = rng.random((n, 1)) < PREFERRED
    shown_first = np.hstack([is_a, ~is_a])

    def outcomes(draw: Floats, chance: Floats) -> Flags:
        biased, first = rng.random((n, 1)) < BIASED, rng.random((n, 1)) < FIRST
        return np.where(biased, shown_first == first, draw < chance)

    def draws() -> Floats:
        return np.where(rng.random((n, 1)) < CONVICTION, rng.random((n, 1)), rng.random((n, 2)))

    draw = draws()
    right = outcomes(draw, chance)
    second = outcomes(np.where(rng.random((n, 1)) < COMMON, draw, draws()), better)
    unread = rng.random((n, 2)) < rng.beta(*INVALID, prompts)[cluster][:, None]
    verdict = np.where(unread, 2, np.where(right == is_a, 0, 1))
    between, within = COST
    cost = np.exp(between * rng.standard_normal(prompts)[cluster] + within * rng.standard_normal(n))
    return Verdicts(cluster, right, second, verdict, cost)


def truths(accuracy: float) -> dict[str, float]:
    """Compute every quantity in an infinite population from the joint distribution of a case's two verdicts."""
    p, pp = moments(*beta(accuracy))
    both, either = CONVICTION * p + (1 - CONVICTION) * pp, (1 - CONVICTION) * (p - pp)
    joint: dict[tuple[int, int], float] = defaultdict(float)
    for better, share in ((0, PREFERRED), (1, 1 - PREFERRED)):
        # Both orders right, both wrong, and either one right.
        joint[better, better] += share * (1 - BIASED) * both
        joint[1 - better, 1 - better] += share * (1 - BIASED) * (1 - both - 2 * either)
        joint[0, 1] += share * (1 - BIASED) * either
        joint[1, 0] += share * (1 - BIASED) * either
    joint[0, 1] += BIASED * FIRST
    joint[1, 0] += BIASED * (1 - FIRST)
    lost, lost_both = moments(*INVALID)
    # Add the category of unreadable verdicts.
    table = np.zeros((3, 3))
    for (x, y), share in joint.items():
        table[x, y] = share * (1 - 2 * lost + lost_both)
        table[x, 2] += share * (lost - lost_both)
        table[2, y] += share * (lost - lost_both)
    table[2, 2] = lost_both
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    equal = joint[0, 0] + joint[1, 1]
    a = joint[0, 0] + (joint[0, 1] + joint[1, 0]) / 2
    return {
        "accuracy": accuracy,
        "both orders": (1 - BIASED) * both,
        "self-agreement": 1 - (1 - equal) / (2 * a * (1 - a)),
        "equal verdicts": equal,
        "kappa": 1 - (1 - float(np.trace(table))) / (1 - float(rows @ columns)),
        "first slot": joint[0, 1] + equal / 2,
        "invalid": lost,
        "mean cost": math.exp((COST[0] ** 2 + COST[1] ** 2) / 2),
        "difference": (1 - BIASED) * BETTER * (1 - p),
    }


def intervals(data: Verdicts) -> Iterator[tuple[str, Callable[[], Interval | None]]]:
    """Yield label and interval of every row of the table; a label starts with the name of the quantity."""
    cluster, valid = data.cluster, data.verdict < 2
    twice = np.repeat(cluster, 2).reshape(-1, 2)
    complete = valid.all(axis=1)
    pairs = [(VERDICTS[x], VERDICTS[y]) for x, y in data.verdict.tolist()]
    units = [[verdict for verdict in pair if verdict is not None] for pair in pairs]
    right, names = floats(data.right[valid]), twice[valid].tolist()
    both, cases = floats(data.right[complete, 0] & data.right[complete, 1]), cluster[complete].tolist()
    equal = floats(np.equal(*data.verdict[complete].T))
    first = floats((data.verdict == [0, 1])[valid])
    second, invalid = floats(data.second[valid]), floats(~valid)
    yield "accuracy", lambda: statistics.rate_interval(right, names)
    yield "accuracy (naive Wilson)", lambda: statistics.wilson(sum(right), len(right))
    yield "both orders", lambda: statistics.rate_interval(both, cases)
    yield "self-agreement", lambda: agreement.alpha_interval(units, cluster.tolist())
    yield "equal verdicts", lambda: statistics.rate_interval(equal, cases)
    yield (
        "kappa",
        lambda: agreement.kappa_interval([x for x, _ in pairs], [y for _, y in pairs], cluster.tolist()),
    )
    yield "first slot", lambda: statistics.rate_interval(first, names, capped=False)
    yield "first slot (n capped)", lambda: statistics.rate_interval(first, names)
    yield "invalid", lambda: statistics.rate_interval(invalid, twice.ravel().tolist())
    yield "mean cost", lambda: statistics.mean_interval(data.cost.tolist(), cluster.tolist())
    yield "difference", lambda: statistics.difference_interval(second, right, names)


def floats(flags: Flags) -> list[float]:
    """Return outcomes as 0 or 1."""
    return [float(flag) for flag in flags.ravel().tolist()]


def measure(seed: Sequence[int], prompts: int, accuracy: float, repetitions: int) -> dict[str, tuple[float, float]]:
    """Return coverage in percent and mean width by label; a missing interval counts as not covering."""
    rng, truth = np.random.default_rng(seed), truths(accuracy)
    held: dict[str, int] = defaultdict(int)
    width: dict[str, float] = defaultdict(float)
    for _ in range(repetitions):
        for label, interval in intervals(simulate(rng, prompts, accuracy)):
            low, high = interval() or (math.nan, math.nan)
            held[label] += low <= truth[label.split(" (")[0]] <= high
            width[label] += high - low
    return {label: (100 * held[label] / repetitions, width[label] / repetitions) for label in width}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cells = {
        (accuracy, prompts): measure((options.seed, index), prompts, accuracy, options.repetitions)
        for index, (accuracy, prompts) in enumerate(product(ACCURACIES, PROMPTS))
    }
    for accuracy in ACCURACIES:
        truth = truths(accuracy)
        print(f"{f'accuracy {accuracy}':25}{'truth':>7}" + "".join(f"{n:>8} prompts" for n in PROMPTS))
        for label in cells[accuracy, PROMPTS[0]]:
            shown = (cells[accuracy, prompts][label] for prompts in PROMPTS)
            text = "".join(f"{coverage:>9.1f} {width:.4f}" for coverage, width in shown)
            print(f"{label:25}{truth[label.split(' (')[0]]:>7.4f}{text}")
        print()


if __name__ == "__main__":
    main()
