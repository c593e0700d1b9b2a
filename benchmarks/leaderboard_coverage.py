"""Measure how often the 95% intervals of ratings and their shifts contain the true value, on simulated verdicts.

    python benchmarks/leaderboard_coverage.py [--repetitions 1000] [--seed 0] [--system NAME ...]

Six models play all 15 pairs on each of 113 prompts. A model's strength differs by prompt, so the matches of a prompt
are not independent. The attack helps the three lowest models, on some prompts more than on others; only their matches
are judged again, and a new verdict correlates with the old one. The output is coverage in percent over all models, that
of the model with the lowest coverage, and the mean width. The true value is the system's rating for very many prompts.
If a system plays matches one by one, its ratings depend on their number, so the true value is the mean over many data
sets of this size. Rows with a remark in brackets show alternatives that distract does not report. No model runs.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract.stats import ratings
from distract.stats.ratings.matches import TIE, A, B, Matches
from distract.stats.ratings.system import RatingSystem
from distract.studies.leaderboard.boards.board import Board, draw_prompts, quantile
from distract.studies.leaderboard.boards.shift import Shift, measure_shift, merge_prompts

PROMPTS = 113
MANY = 40_000  # prompts that approximate an infinite population
SETS = 100  # data sets of this size that do so if a system plays matches one by one
STRENGTH = (-1.0, -0.6, -0.3, 0.2, 0.6, 1.1)  # of each model on the mean prompt; the noise of a verdict has sd 1
BETWEEN = 0.7  # sd, over prompts, of a model's strength
BOOST = 0.5  # strength that the attack adds to the lowest models on the mean prompt
UNEVEN = 0.8  # sd of the boost over prompts
LOWEST = 3
KEPT = 0.8  # correlation between the noise of the old and the new verdict on a match
LEVEL = 0.25  # a difference below it is a tie

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

FIRST, SECOND = np.array(list(combinations(range(len(STRENGTH)), 2)), np.int32).T


@dataclass(frozen=True, slots=True)
class Tried:
    """A system under test.

    Attributes:
        name: name in the registry.
        label: name in the output.
        parameters: parameters that differ from the defaults.
        share: share of the repetitions to run, for slow systems.
        draws: number of draws of prompts; None for the default.
    """

    name: str
    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    share: float = 1.0
    draws: int | None = None

    @property
    def system(self) -> RatingSystem:
        """Return the rating system."""
        return ratings.get_system(self.name)


TRIED = (
    Tried("bradley-terry", "bradley-terry"),
    Tried("bradley-terry", "bradley-terry, bootstrap", {"interval": "bootstrap"}, share=0.4),
    Tried("win-rate", "win-rate"),
    Tried("elo", "elo", share=0.2, draws=200),
    Tried("trueskill", "trueskill", share=0.2, draws=200),
)


def simulate(rng: np.random.Generator, prompts: int) -> tuple[Matches, Matches]:
    """Simulate a round robin on each prompt before and after the attack."""
    models, pairs = len(STRENGTH), len(FIRST)
    strength = np.array(STRENGTH) + BETWEEN * rng.standard_normal((prompts, models))
    better = strength.copy()
    better[:, :LOWEST] += BOOST + UNEVEN * rng.standard_normal((prompts, LOWEST))
    noise, fresh = rng.standard_normal((2, prompts, pairs))
    again = KEPT * noise + np.sqrt(1 - KEPT**2) * fresh
    # Combinations are ordered, so if a model of a pair is attacked, the first one is.
    noises = noise, np.where(FIRST < LOWEST, again, noise)
    names = tuple("ABCDEF"[:models])
    prompt = np.repeat(np.arange(prompts, dtype=np.int32), pairs)
    a, b = np.tile(FIRST, prompts), np.tile(SECOND, prompts)
    made = []
    for quality, error in zip((strength, better), noises, strict=True):
        gap = (quality[:, FIRST] - quality[:, SECOND] + error).ravel()
        outcome = np.where(np.abs(gap) < LEVEL, TIE, np.where(gap > 0, A, B)).astype(np.int8)
        made.append(Matches(names, a, b, outcome, prompt, tuple(map(str, range(prompts)))))
    return made[0], made[1]


def truths(rng: np.random.Generator, names: Collection[str]) -> dict[str, Ends]:
    """Return each system's ratings before the attack, and their shifts, for very many prompts."""
    boards = simulate(rng, MANY)
    found = {}
    size = PROMPTS * len(FIRST)
    for name in names:
        system = ratings.get_system(name)
        many = [slice(i * size, (i + 1) * size) for i in range(SETS)] if "order" in system.parameters else [slice(None)]
        before, after = (np.mean([system.rate(part(board, here)).rating for here in many], axis=0) for board in boards)
        found[name] = before, after - before
    return found


def part(matches: Matches, here: slice) -> Matches:
    """Return these matches without their prompts."""
    a, b, outcome = matches.a[here], matches.b[here], matches.outcome[here]
    return replace(matches, a=a, b=b, outcome=outcome, cluster=None, prompts=())


def intervals(tried: Tried, before: Matches, after: Matches, seed: int) -> Iterator[tuple[str, str, Ends]]:
    """Yield figure (rating or shift), method, and the interval for each model."""
    ours = shifted(tried, before, after, seed)
    yield "rating", "", intervals_of(ours.before)
    yield "shift", "", changes(ours)
    t = float(quantile(np.array([PROMPTS]))[0])
    one, two = (np.array([s.error for s in by_name(board)], float) for board in (ours.before, ours.after))
    change = np.array([c.change for c in sorted(ours.changes, key=lambda c: c.model)])
    yield "shift", "(independent boards)", (change - t * np.hypot(one, two), change + t * np.hypot(one, two))
    naive = shifted(tried, part(before, slice(None)), part(after, slice(None)), seed)
    yield "rating", "(matches as prompts)", intervals_of(naive.before)
    yield "shift", "(paired by match)", changes(naive)


def shifted(tried: Tried, before: Matches, after: Matches, seed: int) -> Shift:
    """Return both boards and the shift between them, as a command computes them."""
    before, after = merge_prompts(before, after)
    return measure_shift(
        before, after, tried.system, tried.parameters, draw_prompts(before, tried.system, seed, tried.draws)
    )


def by_name(board: Board) -> list[Any]:
    """Return standings in the order of the models."""
    return sorted(board.standings, key=lambda standing: standing.model)


def intervals_of(board: Board) -> Ends:
    """Return the intervals of a board's ratings, NaN if one is missing."""
    return ends(by_name(board))


def changes(found: Shift) -> Ends:
    """Return the intervals of the changes."""
    return ends(sorted(found.changes, key=lambda change: change.model))


def ends(rows: list[Any]) -> Ends:
    """Return lower and upper ends."""
    return np.array([row.low for row in rows], float), np.array([row.high for row in rows], float)


def measure(tried: Tried, truth: Ends, seed: int, repetitions: int) -> dict[tuple[str, str], tuple[Floats, float]]:
    """Return coverage by model, in percent, and mean width; a missing interval counts as not covering."""
    held: dict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(len(STRENGTH)))
    width: dict[tuple[str, str], float] = defaultdict(float)
    for repetition in range(repetitions):
        # Use the same data sets for every system.
        before, after = simulate(np.random.default_rng((seed, 1, repetition)), PROMPTS)
        for figure, how, (low, high) in intervals(tried, before, after, repetition):
            known = truth[figure == "shift"]
            held[figure, how] += (low <= known) & (known <= high)
            width[figure, how] += float(np.mean(high - low)) / repetitions
    return {key: (100 * held[key] / repetitions, width[key]) for key in held}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--system", action="append", choices=sorted({tried.name for tried in TRIED}))
    options = parser.parse_args()
    wanted = [tried for tried in TRIED if tried.name in (options.system or (tried.name,))]
    truth = truths(np.random.default_rng((options.seed, 0)), {tried.name for tried in wanted})
    print(f"{'':56}{'coverage':>9}{'lowest':>8}{'width':>9}{'repetitions':>13}")
    for tried in wanted:
        repetitions = max(2, round(tried.share * options.repetitions))
        found = measure(tried, truth[tried.name], options.seed, repetitions)
        for (figure, how), (coverage, width) in sorted(found.items()):
            label = f"{tried.label}: {figure} {how}"
            print(f"{label:56}{coverage.mean():>9.1f}{coverage.min():>8.1f}{width:>9.4g}{repetitions:>13}", flush=True)
        print()


if __name__ == "__main__":
    main()
