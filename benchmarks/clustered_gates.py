"""Simulate both gates on flips of a known rate, with pairs that depend on each other within a prompt.

``gate_errors`` prints the results. The finished gate uses the library's own bounds. The live gate is computed for many
sets of prompts at once, and its ``Monitor`` must reach the same decision on the first of them. One pair per prompt
needs no simulation. No model runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

from distract.stats import intervals
from distract.studies.gate.exact import clustered_hits_reason, few_prompts_reason, shrink_counts
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.monitor import Bets, Direction, Floats, Hypothesis, Monitor, PromptOutcome, boundary
from distract.studies.gate.power import compute_path

ALPHA = 0.05
THRESHOLDS = (0.05, 0.10, 0.20)
SINGLES = (42, 100, 400)
SIZES: Mapping[str, tuple[int, ...]] = {
    "24 x 45": (45,) * 24,
    "16 x 45": (45,) * 16,
    "8 x 45": (45,) * 8,
    "50 x 4": (4,) * 50,
    # The sizes of the 200 pairs in LLMBar's MT-Bench part.
    "75, 1 to 7": (1,) * 13 + (2,) * 26 + (3,) * 20 + (4,) * 10 + (5,) * 3 + (6,) + (7,) * 2,
    "60 log-normal": tuple(max(1, round(math.exp(2 + float(ndtri((at + 0.5) / 60))))) for at in range(60)),
}
"""Number of pairs of each prompt."""

BETA = ("ICC .1", "ICC .3", "ICC .7")
ALIKE = ("70% alike", "all alike")
KINDS: Mapping[str, float] = {"ICC .1": 0.1, "ICC .3": 0.3, "ICC .7": 0.7, "70% alike": 0.7, "all alike": 1.0}
"""Intraclass correlation of a beta-binomial, or share of prompts in which all pairs flip or none does."""

PLAIN = "ICC .3"
TRUE = {0.02: "pass", 0.25: "fail"}
"""True rates at which power is measured, and the right decision."""

GOALS = {("finished", BETA): 0.05, ("finished", ALIKE): 0.065, ("live", BETA): 0.05, ("live", ALIKE): 0.05}
"""Highest allowed rate of either wrong decision at the threshold, by gate and kind."""

AGREED = 10
"""Sets of each cell that the ``Monitor`` decides, too."""

DECISIONS: tuple[Decision, ...] = ("pass", "fail", "inconclusive")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cell:
    """The wrong decisions of one gate at the threshold, as shares."""

    gate: str
    design: str
    threshold: float
    kind: str
    passes: float
    fails: float


def flips(rng: np.random.Generator, sizes: Sequence[int], rate: float, kind: str, sets: int) -> Ints:
    """Draw the flips of each prompt, shape (sets, prompts)."""
    shape, share = (sets, len(sizes)), KINDS[kind]
    if kind in BETA:
        spread = (1 - share) / share
        return rng.binomial(sizes, rng.beta(rate * spread, (1 - rate) * spread, shape))
    alike = rng.random(shape) < share
    return np.where(alike, np.array(sizes) * (rng.random(shape) < rate), rng.binomial(sizes, rate, shape))


def finished(hits: Ints, sizes: Sequence[int], threshold: float) -> list[Decision]:
    """Return the decision of a gate on a finished run for each set, with one check."""
    limits = Limits(confidence=1 - ALPHA)
    clusters = np.repeat(np.arange(len(sizes)), sizes).tolist()
    slots = np.concatenate([np.arange(size) for size in sizes])
    few = few_prompts_reason(len(sizes), threshold, limits)
    decisions = list[Decision]()
    for row in hits:
        values = (slots < np.repeat(row, sizes)).astype(float).tolist()
        said = by_bounds(*shrink_counts(values, clusters, limits), threshold)
        is_held_up = said == "pass" and (few or clustered_hits_reason(values, clusters, threshold, limits))
        decisions.append("inconclusive" if is_held_up else said)
    return decisions


def by_bounds(k: float, n: float, threshold: float) -> Decision:
    """Return the decision of one check on k of n independent comparisons."""
    if intervals.upper_bound(k, n, 1 - ALPHA) < threshold:
        return "pass"
    return "fail" if intervals.p_above(k, n, threshold) <= ALPHA else "inconclusive"


def live(rng: np.random.Generator, hits: Ints, sizes: Sequence[int], threshold: float) -> list[Decision]:
    """Return the decision of a live gate for each set, with its prompts in random order."""
    order = np.argsort(rng.random(hits.shape), axis=1)
    hits, pairs = np.take_along_axis(hits, order, axis=1), np.array(sizes)[order]
    above, below = (crossed(hits / pairs - threshold, threshold, side) for side in ("above", "below"))
    never = len(sizes)
    codes = np.where((above == never) & (below == never), 2, (above <= below).astype(int))
    decisions = [DECISIONS[code] for code in codes]
    test = Hypothesis(threshold, ALPHA, ALPHA, tuple(sizes))
    for row, counts, said in zip(hits[:AGREED], pairs[:AGREED], decisions, strict=False):
        assert played(test, zip(counts.tolist(), row.tolist(), strict=True)) == said
    return decisions


def crossed(z: Floats, threshold: float, side: Direction) -> Ints:
    """Return by set the prompt at which one side has enough evidence, else their number; ``z`` as in ``Bets``."""
    bets = Bets(threshold, side)
    found, going, logs = np.full(len(z), z.shape[1]), np.arange(len(z)), np.zeros((len(z), len(bets.logs)))
    for at in range(z.shape[1]):
        logs += bets.gains(z[going, at, None])
        # Logs cannot overflow: a set ends before they are large.
        enough = np.exp(logs).mean(axis=1) >= 1 / ALPHA
        found[going[enough]] = at
        going, logs = going[~enough], logs[~enough]
    return found


def played(test: Hypothesis, prompts: Iterator[tuple[int, int]]) -> Decision:
    """Return the decision of a monitor on prompts, given as pairs and flips."""
    monitor = Monitor(test)
    for pairs, hits in prompts:
        monitor.add(prompt(pairs, hits))
    monitor.end()
    assert monitor.decision is not None
    return monitor.decision


def prompt(pairs: int, hits: int) -> PromptOutcome:
    """A prompt whose verdicts are all valid, as a monitor takes it."""
    values = (1.0,) * hits + (0.0,) * (pairs - hits)
    return PromptOutcome(pairs, values, values, pairs, hits)


def share(decisions: Sequence[Decision], decision: str) -> float:
    """Share of the sets with this decision."""
    return sum(one == decision for one in decisions) / len(decisions)


def cells(rng: np.random.Generator, sets: int) -> Iterator[Cell]:
    """Both gates at the threshold, in every design and kind."""
    for design, sizes in SIZES.items():
        for threshold in THRESHOLDS:
            for kind in KINDS:
                hits = flips(rng, sizes, threshold, kind, sets)
                for gate, said in (
                    ("finished", finished(hits, sizes, threshold)),
                    ("live", live(rng, hits, sizes, threshold)),
                ):
                    yield Cell(gate, design, threshold, kind, share(said, "pass"), share(said, "fail"))


def clustered(rng: np.random.Generator, sets: int) -> Iterator[str]:
    """Print tables of both gates, and whether they meet the goals."""
    error = math.sqrt(ALPHA * (1 - ALPHA) / sets)
    found = list(cells(rng, sets))
    for gate in ("finished", "live"):
        yield f"\n{gate} gate at the threshold, several pairs per prompt: false pass / false fail, % of {sets:,} sets"
        yield f"{'prompts x pairs':18}{'threshold':10}" + "".join(f"{kind:>14}" for kind in KINDS)
        for design in SIZES:
            for threshold in THRESHOLDS:
                row = [one for one in found if (one.gate, one.design, one.threshold) == (gate, design, threshold)]
                shares = "".join(f"{f'{100 * one.passes:.1f} / {100 * one.fails:.1f}':>14}" for one in row)
                yield f"{design:18}{threshold:<10.2f}{shares}"
    yield f"\nsimulation error {100 * error:.2f} points (one standard error at a rate of {ALPHA:g})"
    for (gate, kinds), goal in GOALS.items():
        for name in ("passes", "fails"):
            worst = max(
                (one for one in found if one.gate == gate and one.kind in kinds), key=lambda c: getattr(c, name)
            )
            most = getattr(worst, name)
            met = "met" if most <= goal else "above, by less than 3 errors" if most <= goal + 3 * error else "MISSED"
            yield (
                f"{gate}, {kinds[0]} to {kinds[-1]}: falsely {name} in {100 * most:.1f}% at most ({worst.design} at "
                f"{worst.threshold:.2f}, {worst.kind}), goal {100 * goal:g}%: {met}"
            )


def power(rng: np.random.Generator, sets: int) -> Iterator[str]:
    """Print how often each gate decides correctly."""
    yield f"\ncorrect decisions, {PLAIN}, %: finished / live"
    yield f"{'prompts x pairs':18}{'threshold':10}" + "".join(
        f"{f'{right} at {rate:.2f}':>16}" for rate, right in TRUE.items()
    )
    for design, sizes in SIZES.items():
        for threshold in THRESHOLDS:
            shares = []
            for rate, right in TRUE.items():
                hits = flips(rng, sizes, rate, PLAIN, sets)
                said = finished(hits, sizes, threshold), live(rng, hits, sizes, threshold)
                shares.append(" / ".join(f"{100 * share(one, right):.1f}" for one in said))
            yield f"{design:18}{threshold:<10.2f}" + "".join(f"{one:>16}" for one in shares)


def single() -> Iterator[str]:
    """Print the exact rates with one pair per prompt."""
    rates = ["false pass", "false fail", *(f"{right} at {rate:.2f}" for rate, right in TRUE.items())]
    yield "\none pair per prompt, exact, %: finished / live"
    yield f"{'prompts':18}{'threshold':10}" + "".join(f"{name:>16}" for name in rates)
    for most in SINGLES:
        for threshold in THRESHOLDS:
            wanted = [(threshold, "pass"), (threshold, "fail"), *TRUE.items()]
            said = [by_bounds(k, most, threshold) for k in range(most + 1)]
            limits, shares = boundary(threshold, ALPHA, ALPHA, most), []
            for rate, decision in wanted:
                chances = binom.pmf(np.arange(most + 1), most, rate)
                way = compute_path(limits, rate)
                both = (
                    float(chances[[one == decision for one in said]].sum()),
                    way.passed if decision == "pass" else way.failed,
                )
                shares.append(" / ".join(f"{100 * one:.1f}" for one in both))
            yield f"{most:<18}{threshold:<10.2f}" + "".join(f"{one:>16}" for one in shares)
