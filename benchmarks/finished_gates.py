"""How often a finished gate, or one against a baseline, decides wrongly at its limit; called by ``gate_errors.py``.

Cells vary the rate, the number and the sizes of prompts, how alike their pairs are, invalid verdicts, the number of
checks, and the shape of the gains of which a mean is bounded. Beside each error stands the power at another true value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from distract.stats.figure import Counts
from distract.stats.intervals import holm
from distract.studies.gate.exact import HitCounts, RateTest
from distract.studies.gate.finished import RiseTest
from distract.studies.gate.limits import AttackKind, Decision, Limits, Place
from distract.studies.gate.means import MeanTest, PromptLeads

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, float], Sequence[Decision]]
"""Draws one gate whose true values are the given multiple of the limit; returns the decision of each check."""

Cell = tuple[float, float, float, float]
"""Wrong passes and failures, and the power to pass and to fail, in percent."""

LEVEL = 5.5
"""Largest share of wrong decisions in percent, simulation error included."""

WHOLE = "large ones whole"

MIXTURES: Mapping[str, tuple[int, ...]] = {
    "100 x 1 + 5 x 40": (1,) * 100 + (40,) * 5,
    "60 x 1 + 10 x 40": (1,) * 60 + (40,) * 10,
    "30 x 1 + 30 x 10": (1,) * 30 + (10,) * 30,
}


def place(measure: str) -> Place:
    """Return where a check of a measure stands."""
    return Place("p", AttackKind("f"), measure)


def count_hits(hits: NDArray[np.bool_], sizes: Sequence[int], lost: NDArray[np.bool_], measure: str) -> HitCounts:
    """Count hits; the verdicts that are ``lost`` are invalid."""
    prompts = np.repeat(np.arange(len(sizes)), sizes).astype(str).tolist()
    counted = Counts(judged=len(hits), invalid=int(lost.sum()))
    for at, (hit, prompt, is_lost) in enumerate(zip(hits.tolist(), prompts, lost.tolist(), strict=True)):
        if is_lost:
            counted.unread[at,] = prompt
        else:
            counted.values[at,] = (prompt, float(hit))
    return HitCounts(place(measure), None, counted)


def decide_all(tests: Sequence[RateTest | RiseTest | MeanTest]) -> list[Decision]:
    """Decide the checks of one gate."""
    adjusted = holm([test.p_value for test in tests])
    return [test.check(p, len(tests)).decision for test, p in zip(tests, adjusted, strict=True)]


def draw_rates(
    rng: np.random.Generator,
    times: float,
    *,
    sizes: Sequence[int],
    limit: float,
    measure: str,
    invalid: float = 0.0,
    checks: int = 1,
) -> Sequence[Decision]:
    """Draw a gate of rates."""
    limits = Limits({measure: limit}, max_invalid_rate=0.5)
    parts = [
        count_hits(rng.random(sum(sizes)) < times * limit, sizes, rng.random(sum(sizes)) < invalid, measure)
        for _ in range(checks)
    ]
    return decide_all([RateTest(part, limits) for part in parts])


def draw_whole(
    rng: np.random.Generator, times: float, *, sizes: tuple[int, ...], limit: float, measure: str
) -> Sequence[Decision]:
    """Draw a gate where each large prompt is a hit as a whole, or not, and a small one never is."""
    large = [size for size in sizes if size > 1]
    hits = int(rng.binomial(len(large), times * limit * sum(sizes) / sum(large)))
    return decide_whole(sizes, limit, measure, hits)


@cache
def decide_whole(sizes: tuple[int, ...], limit: float, measure: str, hits: int) -> Sequence[Decision]:
    """Decide a gate by the number of its large prompts, all of one size, that are hits."""
    singles, pairs = sum(size == 1 for size in sizes), sum(sizes)
    drawn = np.arange(pairs) - singles < hits * max(sizes)
    drawn[:singles] = False
    counted = count_hits(drawn, sizes, np.zeros(pairs, bool), measure)
    return decide_all([RateTest(counted, Limits({measure: limit}, max_invalid_rate=0.5))])


def draw_rise(
    rng: np.random.Generator, times: float, *, n: int, before: float, invalid: float = 0.0, checks: int = 1
) -> Sequence[Decision]:
    """Draw a gate against a baseline, whose rates rose by a multiple of the largest rise to accept."""
    limits, sizes, tests = Limits(max_rise=0.05, max_invalid_rate=0.5), (1,) * n, list[RiseTest]()
    for _ in range(checks):
        old = rng.random(n) < before
        new = np.where(rng.random(n) < 0.8, old, rng.random(n) < before)  # most verdicts stay
        new = new | (~new & (rng.random(n) < 0.05 * times / (1 - before)))
        now, past = (count_hits(hits, sizes, rng.random(n) < invalid, "flip_rate") for hits in (new, old))
        tests.append(RiseTest(now, past, limits))
    return decide_all(tests)


SKEWED: Mapping[str, Callable[[np.random.Generator, int], Floats]] = {
    "exponential gains": lambda rng, n: np.minimum(rng.exponential(0.5, n), 6),
    "5% gain six points": lambda rng, n: np.where(rng.random(n) < 0.05, 6.0, 0.0),
}
"""Gains on a scale from 1 to 7; those of a mean of one half, and of .3."""

MEANS = {"exponential gains": 0.5 * (1 - np.exp(-12)), "5% gain six points": 0.3}


def draw_means(
    rng: np.random.Generator, times: float, *, n: int, gains: str, is_rate: bool = False, checks: int = 1
) -> Sequence[Decision]:
    """Draw a gate of shifts, or of exchange rates where a broken requirement costs half a point on average."""
    mean, tests = MEANS[gains] / (0.5 if is_rate else 1.0), list[MeanTest]()
    measure = "exchange_rate" if is_rate else "shift"
    limits = Limits({measure: mean / times if times else mean})
    for _ in range(checks):
        drawn = SKEWED[gains](rng, n) if times else np.zeros(n)
        costs = rng.uniform(0, 1, n)
        prompts: list[PromptLeads] = [
            ([gain], {s: [cost * s] for s in (1, 2, 3)} if is_rate else {})
            for gain, cost in zip(drawn.tolist(), costs.tolist(), strict=True)
        ]
        tests.append(MeanTest(place(measure), "score", prompts, 6.0, limits))
    return decide_all(tests)


def cells() -> Iterator[tuple[str, Draw, tuple[float, float]]]:
    """Yield each cell, with the multiples of its limit at which it should pass, and fail."""
    for measure, n, limit in (
        ("flip_rate", 60, 0.1), ("crossing_rate", 66, 0.01), ("crossing_rate", 200, 0.05),
        ("distractor_win_rate", 52, 0.05), ("distractor_win_rate", 400, 0.1),
    ):  # fmt: skip
        for invalid in (0.0, 0.2):
            own = partial(draw_rates, sizes=(1,) * n, limit=limit, measure=measure, invalid=invalid)
            yield f"{measure} {limit}, {n} x 1, {invalid:.0%} invalid", partial(_call, own), (0.1, 3.0)
    for checks in (6, 20, 40):
        own = partial(draw_rates, sizes=(1,) * 100, limit=0.1, measure="flip_rate", checks=checks)
        yield f"flip_rate 0.1, 100 x 1, {checks} checks", partial(_call, own), (0.1, 3.0)
    for name, sizes in MIXTURES.items():
        for limit in (0.05, 0.1):
            for measure in ("flip_rate", "crossing_rate"):
                own = partial(draw_whole, sizes=sizes, limit=limit, measure=measure)
                yield f"{measure} {limit}, {name}, {WHOLE}", partial(_call, own), (0.1, 3.0)
    for n, before, checks, invalid in ((100, 0.1, 1, 0.0), (400, 0.3, 1, 0.0), (200, 0.1, 6, 0.0), (200, 0.1, 1, 0.2)):
        rise = partial(draw_rise, n=n, before=before, checks=checks, invalid=invalid)
        yield (
            f"rise 0.05 from {before}, {n} x 1, {checks} checks, {invalid:.0%} invalid",
            partial(_call, rise),
            (0, 4.0),
        )
    for gains in SKEWED:
        for n, is_rate, checks in ((30, False, 1), (60, False, 1), (200, False, 1), (60, False, 6), (60, True, 1)):
            mean = partial(draw_means, n=n, gains=gains, is_rate=is_rate, checks=checks)
            what = "exchange rate" if is_rate else "shift"
            yield f"{what}, {gains}, {n} prompts, {checks} checks", partial(_call, mean), (0.2, 6.0)


def _call(own: Draw, rng: np.random.Generator, times: float) -> Sequence[Decision]:
    return own(rng, times)


def simulate(seed: tuple[int, int], repetitions: int, name: str, draw: Draw, away: tuple[float, float]) -> Cell:
    """Simulate a cell at its limit, and where it should pass and fail."""
    rng = np.random.default_rng(seed)
    if name.endswith(WHOLE):  # few outcomes, so that many repetitions cost little
        repetitions *= 50
    # A check at the limit of a rise may rightly fail: it did rise.
    own = [draw(rng, 1.0) for _ in range(repetitions)]
    still = [draw(rng, 0.0) for _ in range(repetitions)] if name.startswith("rise") else own
    passes = 100 * float(np.mean([decisions[0] == "pass" for decisions in own]))
    fails = 100 * float(np.mean(["fail" in decisions for decisions in still]))
    few = max(20, repetitions // 20)
    low, high = (
        100 * float(np.mean([draw(rng, times)[0] == decision for _ in range(few)]))
        for times, decision in zip(away, ("pass", "fail"), strict=True)
    )
    return passes, fails, low, high


def finished(seed: int, repetitions: int) -> Iterator[str]:
    """Describe each cell; they run side by side on all cores."""
    yield f"\nfinished gates, {repetitions:,} a cell: wrong at the limit, and right away from it, in %"
    yield f"{'':66}{'passes':>8}{'fails':>8}{'pass at':>16}{'fail at':>16}"
    above, names = list[str](), list(cells())
    with ProcessPoolExecutor() as pool:
        parts = [pool.submit(simulate, (seed, at), repetitions, *cell) for at, cell in enumerate(names)]
        for (name, _, away), part in zip(names, parts, strict=True):
            passes, fails, *right = part.result()
            power = (f"{share:.0f} ({times:g}x)" for share, times in zip(right, away, strict=True))
            yield f"{name:66}{passes:8.1f}{fails:8.1f}" + "".join(f"{one:>16}" for one in power)
            above += [name] if max(passes, fails) > LEVEL else []
    yield f"cells above {LEVEL:g}%: {'; '.join(above) or 'none'}"
