"""Measure how often the 95% interval of a rate, or of a mean, contains the true value, if pairs of a prompt are alike.

    python benchmarks/coverage.py [--repetitions 1000] [--seed 0]

Chances differ between prompts by a beta distribution with the stated intraclass correlation (ICC). Means are of normal
and of exponential values, of one pair a prompt, and of three that share half of their variance. The intervals are the
library's own. The exit code is 1 if a cell lies below its goal: 93%, or 92% with one pair a prompt, where Wilson's
interval has known teeth. A rate of .02 and cells above 97% are only reported. No model runs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from clustered_gates import SIZES, flips
from scipy.special import ndtr

from distract.stats.intervals import mean_interval, rate_interval

DESIGNS: Mapping[str, Sequence[int]] = {
    "24 x 45": SIZES["24 x 45"],
    "8 x 45": SIZES["8 x 45"],
    "80 x 15": (15,) * 80,
    "42 x 1": (1,) * 42,
    "60 log-normal": SIZES["60 log-normal"],
}
"""Number of pairs of each prompt."""

KINDS = ("ICC .1", "ICC .3", "ICC .7")
RATES = (0.05, 0.1, 0.3, 0.5, 0.85)
RARE = 0.02
"""A rate that is reported without a goal."""

LEAST, LEAST_SINGLE, MANY = 93.0, 92.0, 97.0
"""Goals in percent, and from where on an interval is called wide."""


def coverage(
    seed: Sequence[int], sizes: Sequence[int], kind: str, rate: float, repetitions: int
) -> tuple[float, float]:
    """Return in percent how often the interval contains the true rate, and how often it lies below it."""
    hits = flips(np.random.default_rng(seed), sizes, rate, kind, repetitions)
    clusters = np.repeat(np.arange(len(sizes)), sizes).tolist()
    slots = np.concatenate([np.arange(size) for size in sizes])
    ends = np.array([rate_interval((slots < np.repeat(row, sizes)).astype(float).tolist(), clusters) for row in hits])
    held = (ends[:, 0] <= rate) & (rate <= ends[:, 1])
    return 100 * float(held.mean()), 100 * float((ends[:, 1] < rate).mean())


FEW = (8, 15, 24, 60)
"""Prompts of a mean."""


def mean_coverage(seed: Sequence[int], prompts: int, pairs: int, is_skewed: bool, repetitions: int) -> float:
    """Return in percent how often the interval of a mean contains the true one, which is 1."""
    rng, held = np.random.default_rng(seed), 0
    clusters = np.repeat(np.arange(prompts), pairs).tolist()
    for _ in range(repetitions):
        shared, own = rng.normal(size=(prompts, 1)), rng.normal(size=(prompts, pairs))
        values = np.sqrt(0.5) * (shared + own) if pairs > 1 else own
        values = -np.log(ndtr(values)) if is_skewed else values + 1  # exponential, with the same dependence
        ends = mean_interval(values.ravel().tolist(), clusters)
        held += ends is not None and ends[0] <= 1 <= ends[1]
    return 100 * held / repetitions


def cover_means(seed: int, repetitions: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each row of the table of means."""
    for at, (pairs, is_skewed) in enumerate(product((1, 3), (False, True))):
        name = f"{pairs} a prompt, {'exponential' if is_skewed else 'normal'}"
        yield name, [mean_coverage((seed, 99, at, n), n, pairs, is_skewed, repetitions) for n in FEW]


def cells() -> Iterator[tuple[str, str]]:
    """Yield each row of the table; with one pair a prompt there is no correlation."""
    for design, kind in product(DESIGNS, KINDS):
        if max(DESIGNS[design]) > 1 or kind == KINDS[0]:
            yield design, kind


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"coverage of 95% intervals in % of {options.repetitions:,} data sets; in brackets: the interval lies below")
    print(f"{'prompts x pairs':16}{'':8}" + "".join(f"{f'p = {rate:g}':>14}" for rate in (RARE, *RATES)))
    low, high = list[str](), 0
    for at, (design, kind) in enumerate(cells()):
        single = max(DESIGNS[design]) == 1
        print(f"{design:16}{'' if single else kind:8}", end="")
        for place, rate in enumerate((RARE, *RATES)):
            seed = (options.seed, at, place)
            share, below = coverage(seed, DESIGNS[design], kind, rate, options.repetitions)
            print(f"{f'{share:.1f} ({below:.1f})':>14}", end="", flush=True)
            if rate != RARE:
                high += share > MANY
                if share < (LEAST_SINGLE if single else LEAST):
                    low.append(f"{design}{'' if single else f', {kind}'}, p = {rate:g}: {share:.1f}%")
        print()
    print(f"\n{'mean of':24}" + "".join(f"{f'{prompts} prompts':>14}" for prompts in FEW))
    for name, shares in cover_means(options.seed, options.repetitions):
        print(f"{name:24}" + "".join(f"{share:14.1f}" for share in shares))
        low += [f"mean of {name}: {share:.1f}%" for share in shares if share < LEAST]
    error = 100 * math.sqrt(0.95 * 0.05 / options.repetitions)
    print(f"simulation error {error:.1f} points; {high} cells above {MANY:g}%, {len(low)} below their goal")
    if low:
        sys.exit("below the goal: " + "; ".join(low))


if __name__ == "__main__":
    main()
