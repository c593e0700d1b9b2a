"""Measure how often gates decide wrongly and how many comparisons a live gate needs, with known flip rates.

    python benchmarks/gate_errors.py [--repetitions 20000] [--seed 0]

The threshold is .10, alpha .05, and the gate has at most 400 eligible comparisons. The gate's own ``Monitor`` decides.
For independent outcomes the decision depends only on the numbers of comparisons and flips, so the benchmark queries the
monitor once for each reachable pair of them and looks simulated outcomes up in that table. The output also shows the
exact values, computed by recursion, which the pass/fail lines below refer to, and the mean number of comparisons of an
earlier gate, as the reference to beat. Then follow several checks under one gate, and both gates on prompts of several
pairs that depend on each other (``clustered_gates``), and gates beyond an estimated margin. No model runs.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Iterator, Mapping

import numpy as np
from clustered_gates import DECISIONS, Ints, clustered, power, prompt, single as singles
from finished_gates import finished
from noisy_gates import noisy
from numpy.typing import NDArray

from distract.stats.intervals import holm
from distract.studies.gate.checks import build_check
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.monitor import Hypothesis, Monitor, boundary
from distract.studies.gate.power import compute_path

THRESHOLD = 0.10
ALPHA = 0.05
CAP = 400
REFERENCE = {0.02: 65, 0.05: 205, 0.09: 373, 0.10: 378, 0.11: 376, 0.20: 83, 0.35: 18}
"""Mean comparisons to beat, by true rate."""

CHECKS = 5
BAD = 0.30
SLOW = 10  # factor by which to simulate fewer gates if each needs its own monitors

Flags = NDArray[np.bool_]


def independent(alpha_fail: float) -> Hypothesis:
    """Return a check on the maximum number of prompts, with one comparison each."""
    return Hypothesis(THRESHOLD, alpha_fail, ALPHA, (1,) * CAP)


def answers(test: Hypothesis) -> Ints:
    """Return the monitor's decision after n comparisons with k flips: 0 to go on, else 1 + the index in ``DECISIONS``.

    Returns:
        shape (n + 1, n + 1), by n and k; 0 also for pairs that are not reachable.
    """
    most = len(test.pairs)
    found = np.zeros((most + 1, most + 1), np.int64)
    going: Mapping[int, bytes] = {0: pickle.dumps(Monitor(test))}
    for n in range(1, most + 1):
        after: dict[int, bytes] = {}
        for k, before in going.items():
            for flip in (0, 1):
                monitor: Monitor = pickle.loads(before)
                monitor.add(prompt(1, flip))
                if n == most:
                    monitor.end()
                if monitor.decision is None:
                    after[k + flip] = pickle.dumps(monitor)
                else:
                    found[n, k + flip] = 1 + DECISIONS.index(monitor.decision)
        going = after
    return found


def looked_up(table: Ints, flips: Flags) -> tuple[Ints, Ints]:
    """Return each gate's decision, as an index, and its comparisons, from outcomes of shape (gates, most)."""
    most = flips.shape[1]
    said = table[np.arange(1, most + 1), np.cumsum(flips, axis=1)]
    stop = np.argmax(said > 0, axis=1)
    return said[np.arange(len(flips)), stop] - 1, stop + 1


def shares(decisions: Ints) -> list[float]:
    """Return the share of each decision, in the order of ``DECISIONS``."""
    return [float(np.mean(decisions == index)) for index in range(len(DECISIONS))]


def within(what: str, share: float) -> str:
    """Say whether an error rate is at most alpha."""
    return f"{what} {share:.4f}, {'at most' if share <= ALPHA else 'ABOVE'} {ALPHA:g}"


def single(rng: np.random.Generator, table: Ints, repetitions: int) -> Iterator[str]:
    """Simulate one check with one comparison per prompt."""
    limits = boundary(THRESHOLD, ALPHA, ALPHA, CAP)
    yield f"one check, {repetitions:,} gates per rate: simulated, (exact)"
    yield f"{'rate':6}{'comparisons':>20}{'reference':>11}" + "".join(f"{name:>18}" for name in DECISIONS)
    verdicts = []
    for rate, reference in REFERENCE.items():
        decisions, taken = looked_up(table, rng.random((repetitions, CAP)) < rate)
        exact = compute_path(limits, rate)
        mean, told = float(taken.mean()), (exact.passed, exact.failed, exact.inconclusive)
        parts = zip(shares(decisions), told, strict=True)
        yield (
            f"{rate:<6.2f}{f'{mean:.1f} ({exact.mean:.1f})':>20}{reference:>11}"
            + "".join(f"{f'{share:.4f} ({known:.4f})':>18}" for share, known in parts)
        )
        verdicts.append(
            f"at {rate:.2f}: mean comparisons {exact.mean:.1f}, {'at most' if exact.mean <= reference else 'ABOVE'} "
            f"{reference}"
        )
        if rate == THRESHOLD:
            verdicts += [
                f"at {rate:.2f}: {within(name, share)}" for name, share in (("pass", told[0]), ("fail", told[1]))
            ]
    yield from verdicts


def several(rng: np.random.Generator, repetitions: int) -> Iterator[str]:
    """Simulate several checks under one gate, which stops as soon as any of them fails."""
    yield f"\n{CHECKS} checks under one gate; each fails on its own evidence at alpha / {CHECKS}"
    yield f"{'rates':40}{'gates':>8}{'comparisons per check':>23}{'fail':>9}{'a check at .10 fails':>22}"
    verdicts = []
    for name, gates, seen, fails, errors in (
        all_good(rng, repetitions),
        one_bad(rng, repetitions // SLOW, alike=False),
        one_bad(rng, repetitions // SLOW, alike=True),
    ):
        yield f"{name:40}{gates:>8,}{seen:>23.1f}{fails:>9.4f}{errors:>22.4f}"
        verdicts.append(f"{name}: {within('a check at the threshold fails', errors)}")
    yield from verdicts


def all_good(rng: np.random.Generator, repetitions: int) -> tuple[str, int, float, float, float]:
    """Simulate independent checks at the threshold: name, gates, comparisons per check, failures, wrong failures."""
    table = answers(independent(ALPHA / CHECKS))
    tried = [looked_up(table, rng.random((repetitions, CAP)) < THRESHOLD) for _ in range(CHECKS)]
    decisions, taken = (np.array(part) for part in zip(*tried, strict=True))
    failed = decisions == DECISIONS.index("fail")
    # The gate stops at the first failure, so later outcomes of the other checks do not count.
    seen = np.minimum(taken, np.where(failed, taken, CAP).min(axis=0))
    fails = float(failed.any(axis=0).mean())
    return f"{CHECKS} x {THRESHOLD:.2f}", repetitions, float(seen.mean()), fails, fails


def one_bad(rng: np.random.Generator, repetitions: int, *, alike: bool) -> tuple[str, int, float, float, float]:
    """Simulate one check that should fail; with ``alike``, the others flip only if it does, else independently."""
    gates, test = max(1, repetitions), independent(ALPHA / CHECKS)
    seen, fails, errors = 0.0, 0, 0
    for _ in range(gates):
        draws = rng.random((CAP, CHECKS))
        flips = draws < ([BAD] + [THRESHOLD / BAD if alike else THRESHOLD] * (CHECKS - 1))
        if alike:
            flips[:, 1:] &= flips[:, :1]
        monitors = [Monitor(test) for _ in range(CHECKS)]
        for row in flips.tolist():
            for monitor, flip in zip(monitors, row, strict=True):
                monitor.add(prompt(1, int(flip)))
            if all(m.decision for m in monitors) or any(m.decision == "fail" for m in monitors):
                break
        else:
            for monitor in monitors:
                monitor.end()
        decided = concluded(monitors)
        seen += sum(monitor.n for monitor in monitors) / CHECKS
        fails += "fail" in decided
        errors += "fail" in decided[1:]
    name = f"{BAD:.2f}, {CHECKS - 1} x {THRESHOLD:.2f}" + (" among its flips" if alike else " independent")
    return name, gates, seen / gates, fails / gates, errors / gates


def concluded(monitors: list[Monitor]) -> list[Decision]:
    """Return the decision of each check of a stopped gate, by Holm if another check has failed."""
    limits = Limits.of(max_flip_rate=THRESHOLD, confidence=1 - ALPHA)
    adjusted = holm([1.0 if monitor.p_value is None else monitor.p_value for monitor in monitors])
    return [
        build_check(("", None, ""), monitor, "flip_rate", THRESHOLD, p, limits, CHECKS).decision
        if p <= ALPHA
        else "inconclusive"
        for monitor, p in zip(monitors, adjusted, strict=True)
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    repetitions, began = max(1, options.repetitions), time.perf_counter()
    one, two, three, four = (np.random.default_rng((options.seed, part)) for part in range(4))
    sets = max(1, repetitions // SLOW)
    table = answers(independent(ALPHA))
    for part in (
        single(one, table, repetitions),
        several(two, repetitions),
        singles(),
        clustered(three, sets),
        power(four, sets),
        finished(options.seed, sets),
        noisy(options.seed, sets),
    ):
        for line in part:
            print(line, flush=True)
    print(f"\n{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
