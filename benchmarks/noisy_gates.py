"""How often a gate with ``--beyond-noise`` decides wrongly, its margin estimated; called by ``gate_errors.py``.

The better response leads by a standard normal number of points, on a scale of 6; each verdict adds noise of its own.
*bonus*: every rewrite gains so much that 48% flip without noise. *threshold*: few rewrites win, clearly or not, so that
exactly 10% of the pairs that lead by more than the true margin flip by more than it: any decision is wrong. *steady*:
no rewrite gains anything, so that a pass is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from statistics import NormalDist

import numpy as np
from finished_gates import LEVEL, Floats, count_hits

from distract.studies.gate.exact import HitCounts
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.noise import NoiseMargin, NoiseTest

NOISES, SIZES, JUDGES = (0.0, 0.1, 0.3, 0.5), (60, 200), ("bonus", "threshold", "steady")
LIMIT, WIDTH, FLIPS = 0.10, 6.0, 0.48
BONUS = NormalDist().inv_cdf((1 + FLIPS) / 2)
LARGE = 4_000_000  # pairs from which to compute a true rate

Cell = tuple[str, float, int]
"""A judge, its noise, and the number of pairs."""


def draw_pairs(
    rng: np.random.Generator, judge: str, noise: float, n: int, share: float
) -> tuple[Floats, Floats, Floats]:
    """Draw the winner's leads before, the rewritten loser's after, and how far placebos move the lead."""
    lead, first, second, third = rng.normal(size=n), *(noise * rng.normal(size=(3, n)))
    side = np.where(lead + first > 0, 1.0, -1.0)
    winner = side * lead
    wins = np.where(rng.random(n) < share, np.abs(rng.normal(size=n)), -winner)
    after = BONUS - winner if judge == "bonus" else wins
    return winner + side * first, after + second, np.abs(third - first)


@cache
def find_share(noise: float) -> float:
    """Return the share of rewrites that win at which the true rate beyond the true margin is the limit."""
    margin = noise * 2**0.5 * NormalDist().inv_cdf(0.975)
    rng = np.random.default_rng(0)
    rates = []
    for share in (0.0, 1.0):
        before, after, _ = draw_pairs(rng, "threshold", noise, LARGE, share)
        rates.append(float(((before > margin) & (after > margin)).sum() / (before > margin).sum()))
    return (LIMIT - rates[0]) / (rates[1] - rates[0])


def decide(rng: np.random.Generator, cell: Cell, max_margin: float = 0.05) -> Decision:
    """Draw a gate and decide it."""
    judge, noise, n = cell
    before, after, changes = draw_pairs(rng, judge, noise, n, find_share(noise) if judge == "threshold" else 0.0)
    limits = Limits.of(max_flip_rate=LIMIT, beyond_noise=True, max_margin=max_margin)
    margin = NoiseMargin.of([(str(at), change) for at, change in enumerate(changes.tolist())], limits.alpha)

    def count(lead: float) -> HitCounts:
        led = before > lead
        counted = count_hits(after[led] > lead, (1,) * int(led.sum()), np.zeros(led.sum(), bool), "flip_rate")
        counted.counted.judged = n
        return counted

    test = NoiseTest([count(lead) for lead in margin.places], count(0.0), margin, WIDTH, limits)
    return test.check(test.p_value, 1).decision


def measure(cell: Cell, sets: int, seed: int) -> tuple[float, float]:
    """Return the shares of passes and failures of a cell, in percent."""
    rng = np.random.default_rng((seed, JUDGES.index(cell[0]), NOISES.index(cell[1]), cell[2]))
    drawn = [decide(rng, cell) for _ in range(sets)]
    return 100 * drawn.count("pass") / sets, 100 * drawn.count("fail") / sets


def noisy(seed: int, sets: int) -> Iterator[str]:
    """Simulate gates beyond noise; a pass of the judge with a bonus is wrong, both decisions at the threshold are."""
    cells = [(judge, noise, n) for judge in JUDGES for n in SIZES for noise in NOISES]
    with ProcessPoolExecutor() as pool:
        results = [*pool.map(measure, cells, [sets] * len(cells), [seed] * len(cells))]
    yield f"\n--beyond-noise, an estimated margin, {sets:,} gates each; scale of 6, limit 10%: pass %, fail %"
    yield f"{'judge':12}{'pairs':>6}" + "".join(f"{f'noise {noise:g}':>16}" for noise in NOISES)
    for at in range(0, len(cells), len(NOISES)):
        shown = [f"{passed:.1f}, {failed:.1f}" for passed, failed in results[at : at + len(NOISES)]]
        yield f"{cells[at][0]:12}{cells[at][2]:>6}" + "".join(f"{text:>16}" for text in shown)
    errors = {"bonus": (1, 0), "threshold": (1, 1), "steady": (0, 1)}  # which decisions are wrong
    weighed = [(*errors[cell[0]], *result) for cell, result in zip(cells, results, strict=True)]
    worst = max(max(is_pass * passed, is_fail * failed) for is_pass, is_fail, passed, failed in weighed)
    yield f"most wrong decisions: {worst:.1f}%, {'at most' if worst <= LEVEL else 'ABOVE'} {LEVEL:g}%"
