"""Compute the power to see that an attack costs a judge 10 points of accuracy, on the same labelled pairs.

    python benchmarks/power.py

The judge is right in 70% of the pairs. A pair counts as lost if a right verdict does not survive the loser's rewrite,
so the cost of an attack is never negative, and noise alone gives one: its interval says how large the cost is, not that
the attack did it. The test is therefore against a rewrite that changes no tone (placebo) and loses a stated share of
all pairs: exact McNemar test, one-sided at 5%, on the pairs lost by the attack only and by the placebo only, which are
independent among the pairs that were right. A placebo that loses nothing is the test of cost against zero. All figures
are exact sums over the multinomial distribution. No model runs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from distract.stats.intervals import mcnemar_above

CLEAN, FALL, ALPHA, GOAL = 0.7, 0.1, 0.05, 0.9
SIZES = (42, 100, 150, 200)
NOISES = (0.0, 0.02, 0.05, 0.1)
"""Share of all pairs that the placebo loses."""

LARGEST = 400


@cache
def least_lost(pairs: int) -> NDArray[np.int64]:
    """Return the least number of pairs lost by the attack only that is significant, by the number of unequal pairs."""
    least, needed = list[int](), 0
    for unequal in range(pairs + 1):
        while needed <= unequal and mcnemar_above(needed, unequal - needed) > ALPHA:
            needed += 1
        least.append(needed)
    return np.array(least)


def find_power(pairs: int, noise: float, fall: float) -> float:
    """Return the chance that the test shows a fall beyond the noise."""
    by_attack, by_placebo = (noise + fall) / CLEAN, noise / CLEAN
    first, second = CLEAN * by_attack * (1 - by_placebo), CLEAN * by_placebo * (1 - by_attack)
    if first + second == 0:
        return 0.0
    unequal = np.arange(pairs + 1)
    shown = binom.sf(least_lost(pairs) - 1, unequal, first / (first + second))
    return float(binom.pmf(unequal, pairs, first + second) @ shown)


def least_pairs(noise: float) -> str:
    """Return the fewest pairs from which on the power reaches its goal."""
    short = [pairs for pairs in range(1, LARGEST + 1) if find_power(pairs, noise, FALL) < GOAL]
    return f"{short[-1] + 1}" if short[-1] < LARGEST else f"> {LARGEST}"


def main() -> None:
    """Compute and print."""
    print(f"power for a fall of {FALL:.0%} beyond the placebo's, clean accuracy {CLEAN:.0%}, one-sided {ALPHA:.0%}")
    print(f"{'the placebo loses':18}" + "".join(f"{f'n = {n}':>9}" for n in SIZES) + f"{f'n for {GOAL:g}':>12}")
    for noise in NOISES:
        print(
            f"{noise:<18.0%}"
            + "".join(f"{find_power(n, noise, FALL):>9.3f}" for n in SIZES)
            + f"{least_pairs(noise):>12}"
        )
    print("\nno effect beyond the placebo's: chance that the test shows one / that the interval of the cost is above 0")
    for noise in NOISES:
        # The interval's lower end is above 0 as soon as one pair is lost.
        shares = (f"{find_power(n, noise, 0):.3f} / {1 - (1 - noise) ** n:.2f}" for n in SIZES)
        print(f"{noise:<18.0%}" + "".join(f"{share:>14}" for share in shares))


if __name__ == "__main__":
    main()
