"""Compute how many eligible comparisons a gate needs for the right decision, given the expected rate.

All figures are exact, from the binomial distribution, up to ``LONGEST`` comparisons; beyond that there is an error.
Power is not monotonic in the number of trials, because a limit is a whole number: one number may reach a power that a
larger one misses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from distract.core.errors import UsageError
from distract.core.printable import count, percent
from distract.stats.figure import round_values
from distract.stats.measures import MEASURES
from distract.stats.special import betainc
from distract.studies.gate.limits import Limits
from distract.studies.gate.monitor import LONGEST, Boundary, Floats, Ints, boundary, extend_chances


@dataclass(frozen=True, slots=True)
class TailTest:
    """The exact (Clopper-Pearson) test that a rate is below a threshold: counts up to a limit show it.

    To test that a rate is above one, count the other outcome: ``TailTest(1 - threshold, level)`` at 1 - rate.
    """

    threshold: float
    level: float

    def limit(self, n: Ints) -> Ints:
        """Return the largest count after n trials whose chance at the threshold is below the level; -1 for none."""
        low, high = np.full_like(n, -1), n.copy()
        while np.any(high - low > 1):
            middle = (low + high) // 2
            rare = binomial_cdf(middle, n, self.threshold) < self.level
            low, high = np.where(rare, middle, low), np.where(rare, high, middle)
        return low

    def power(self, n: Ints, rate: float) -> Floats:
        """Return the chance that the test shows it at a true rate."""
        return binomial_cdf(self.limit(n), n, rate)

    def least(self, rate: float, power: float) -> int | None:
        """Find the number of trials from which on every number reaches the power; None above ``LONGEST``."""
        # Look beyond the largest answer: the power may drop below the target again.
        short = np.flatnonzero(self.power(np.arange(1, 2 * LONGEST), rate) < power)
        least = int(short[-1]) + 2 if len(short) else 1
        return least if least <= LONGEST else None


def binomial_cdf(k: Ints, n: Ints, rate: float) -> NDArray[np.float64]:
    """Return the chance of at most k successes in n independent trials, for arrays of one shape; n is at least 1."""
    inside = np.clip(k, 0, n - 1)
    chances: Floats = np.where(k < 0, 0.0, np.where(k >= n, 1.0, betainc(n - inside, inside + 1, 1 - rate)))
    return chances


@dataclass(frozen=True, slots=True)
class StoppingPath:
    """The course of a live gate with at most ``cap`` eligible comparisons at one true rate.

    ``passed``, ``failed`` and ``inconclusive`` are chances; ``mean`` and ``median`` count comparisons until it stops.
    """

    cap: int
    passed: float
    failed: float
    inconclusive: float
    mean: float
    median: int


def compute_path(limits: Boundary, rate: float) -> StoppingPath:
    """Follow a live gate, one eligible outcome a prompt, whose data end where the limits do."""
    cap = limits.most
    fail, passing = int(limits.fail_end[cap]), int(limits.pass_end[cap])
    passed = failed = inconclusive = mean = 0.0
    median, going = 0, np.ones(1)
    for n in range(1, cap + 1):
        mean += float(going.sum())
        going = extend_chances(going, rate)
        k, left = np.arange(n + 1), cap - n
        fails = k >= min(int(limits.fail_at[n]), fail)
        passes = k <= max(int(limits.pass_at[n]), passing - left)
        # The remaining outcomes can reach neither limit.
        neither = (k > passing) & (k + left < fail) & ~fails & ~passes
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        inconclusive += float(going[neither].sum())
        going = np.where(fails | passes | neither, 0.0, going)
        if not median and float(going.sum()) <= 0.5:
            median = n
    return StoppingPath(cap, passed, failed, inconclusive, mean, median)


def decision_chances(limits: Boundary, rate: float) -> tuple[Floats, Floats]:
    """Return the chances to pass and to fail for data of every size from 0 to ``most``.

    Smaller data have the same limits as larger, so one walk serves all sizes.
    """
    passes, fails = np.array(list(_walk_sizes(limits, rate))).T
    return passes, fails


def _walk_sizes(limits: Boundary, rate: float) -> Iterator[tuple[float, float]]:
    passed = failed = 0.0
    going = np.ones(1)
    for n in range(limits.most + 1):
        going = extend_chances(going, rate) if n else going
        k = np.arange(n + 1)
        fails, passes = k >= limits.fail_at[n], k <= limits.pass_at[n]
        failed += float(going[fails].sum())
        passed += float(going[passes].sum())
        going = np.where(fails | passes, 0.0, going)
        at_end = going[k <= limits.pass_end[n]], going[k >= limits.fail_end[n]]
        yield passed + float(at_end[0].sum()), failed + float(at_end[1].sum())


RARE = 0.2
"""Share of the threshold that a judge reaches which a gate should pass."""

POWER = 0.8
"""Chance with which it should pass that judge."""

CHECKS = 10_000
"""Maximum number of checks of one gate."""

_HEADROOM = 256
"""Comparisons beyond twice the size of a finished run among which to look first for the cap of a live gate."""

_UNIT = "eligible comparison"


@dataclass(frozen=True, slots=True)
class FinishedGate:
    """A gate on a finished run.

    From ``n`` eligible comparisons on, every number reaches the requested power. ``limit`` is the largest number of
    hits among n that passes, or the smallest that fails; ``wrong`` bounds the chance of the opposite decision.
    """

    n: int
    limit: int
    power: float
    wrong: float


@dataclass(frozen=True, slots=True)
class PowerAnalysis:
    """The comparisons that a gate needs to decide rightly.

    ``each`` is the power that every single check is planned for. ``live`` is None if no cap reaches the power.
    """

    threshold: float
    true_rate: float
    decision: Literal["pass", "fail"]
    power: float
    confidence: float
    checks: int
    each: float
    finished: FinishedGate
    live: StoppingPath | None
    notes: tuple[str, ...]
    measure: str = "flip_rate"

    def document(self) -> dict[str, Any]:
        """Return JSON values, figures rounded to four decimals."""
        live = None if self.live is None else round_values(asdict(self.live))
        parts = {"finished": round_values(asdict(self.finished)), "live": live, "notes": list(self.notes)}
        return {**round_values(asdict(self)), **parts}


def analyse_power(
    threshold: float, true_rate: float, power: float, confidence: float, checks: int = 1, measure: str = "flip_rate"
) -> PowerAnalysis:
    """Compute how many eligible comparisons a gate needs."""
    Limits({measure: threshold}, confidence=confidence)
    if true_rate == threshold:
        raise UsageError(
            f"--true-rate {true_rate:g} is the threshold itself: no number of comparisons shows that a rate is below "
            "or above it; expected another rate"
        )
    passes, alpha = true_rate < threshold, 1 - confidence
    # Holm's adjustment concerns failures only; at worst it is Bonferroni's.
    strict = alpha / checks
    # Planned like this, all checks pass together often enough, however they depend on each other.
    each = 1 - (1 - power) / checks if passes else power
    below, above = TailTest(threshold, alpha), TailTest(1 - threshold, alpha if passes else strict)
    right, rate, wrong, rest = (below, true_rate, above, 1 - true_rate)
    if not passes:
        right, rate, wrong, rest = wrong, rest, right, rate
    n = right.least(rate, each)
    if n is None:
        raise UsageError(
            f"--true-rate {true_rate:g} is too near to the threshold {threshold:g}: the gate needs more than "
            f"{LONGEST:,} eligible comparisons; expected rates farther apart, or a lower --power or --confidence"
        )
    at = np.array([n])
    limit = int(right.limit(at)[0])
    chances = float(right.power(at, rate)[0]), float(wrong.power(at, rest)[0])
    finished = FinishedGate(n, limit if passes else n - limit, *chances)
    live, obstacles = _analyse_live(threshold, true_rate, each, (strict, alpha), n)
    notes = *_notes(passes, checks, each), *obstacles
    shared = power, confidence, checks, each, finished, live, notes, measure
    return PowerAnalysis(threshold, true_rate, "pass" if passes else "fail", *shared)


def power_report(analysis: PowerAnalysis) -> Iterator[str]:
    """Describe an analysis, one sentence a line."""
    passes, run, live = analysis.decision == "pass", analysis.finished, analysis.live
    noun, hits = MEASURES[analysis.measure].failure, count(run.limit, MEASURES[analysis.measure].hit)
    yield (
        f"A judge whose true {noun} is {analysis.true_rate:g} should {analysis.decision} at a threshold of "
        f"{analysis.threshold:g} with a chance of {100 * analysis.power:.6g}%, at {100 * analysis.confidence:.6g}% "
        "confidence."
    )
    yield (
        f"A finished run: {count(run.n, _UNIT)} or more. With {run.n:,}, {'at most' if passes else 'at least'} "
        f"{hits} {analysis.decision}: a chance of {percent(run.power)}%, and at most "
        f"{percent(run.wrong)}% to {'fail' if passes else 'pass'}."
    )
    if live is not None:
        yield (
            f"A live gate: {count(live.cap, _UNIT)} at most, {live.mean:,.0f} on average, and no more than "
            f"{live.median:,} half the time. It passes {percent(live.passed)}% of the time, fails "
            f"{percent(live.failed)}%, is inconclusive {percent(live.inconclusive)}%."
        )
    yield from analysis.notes


def too_few_reason(
    n: int, unit: str, threshold: float, checks: int, confidence: float, cures: Sequence[str], measure: str
) -> str | None:
    """Explain why so little data is unlikely to pass, and suggest remedies; None if it is enough.

    A live gate counts ``prompts`` or ``cases``, a finished run ``eligible comparisons``.
    """
    rate, comparisons = threshold * RARE, "eligible comparisons"
    try:
        analysis = analyse_power(threshold, rate, POWER, confidence, min(checks, CHECKS))
    except UsageError:  # more than can be planned
        analysis = None
    least = None if analysis is None else analysis.finished.n
    if unit != comparisons and analysis is not None and analysis.live is not None:
        least = analysis.live.cap
    if n >= (LONGEST if least is None else least):
        return None
    takes = f"{least:,}" if least is not None else f"more than {LONGEST:,}"
    row, hit = MEASURES[measure], MEASURES[measure].hit
    ends = (threshold, rate) if row.better == "low" else (1 - threshold, 1 - rate)
    command = f"distract gate --plan --{row.limit} {ends[0]:g} --true-rate {ends[1]:g} --checks {checks}"
    name = "the check" if checks == 1 else f"{checks} checks"
    needed = unit if unit == "prompts" else comparisons
    return (
        f"{n:,} {unit} cannot pass {name} at {100 * threshold:g}% unless a {hit} is rare: a judge with {hit}s in "
        f"{100 * rate:g}% of the pairs needs about {takes} {needed} (`{command}`); use {', '.join(cures)}"
    )


def cures(cases: int, of: int, checks: int) -> list[str]:
    """List what gives a gate more power."""
    every = ["--limit all"] if cases < of else []
    fewer = ["fewer --protocol or --attack"] if checks > 1 else []
    return [*every, *fewer, "more data"]


def _analyse_live(
    threshold: float, rate: float, power: float, alphas: tuple[float, float], finished: int
) -> tuple[StoppingPath | None, tuple[str, ...]]:
    """Follow a live gate with the smallest cap that reaches the power, or explain why there is none."""
    for most in (min(2 * finished + _HEADROOM, LONGEST), LONGEST):
        passes, fails = decision_chances(boundary(threshold, *alphas, most), rate)
        right, wrong = (passes, fails) if rate < threshold else (fails, passes)
        # Without data there is no power, so at least one size falls short.
        cap = int(np.flatnonzero(right < power)[-1]) + 1
        if cap <= most:
            return compute_path(boundary(threshold, *alphas, cap), rate), ()
    if float(wrong[-1]) > 1 - power:
        return None, ("No live gate reaches that power: it stops early with the wrong decision too often.",)
    return None, (f"No live gate of up to {LONGEST:,} eligible comparisons reaches that power.",)


def _notes(passes: bool, checks: int, each: float) -> Iterator[str]:
    yield (
        "Ties, invalid verdicts and rejected rewrites are not eligible comparisons: the data set must hold more "
        "cases than that; comparisons that share a prompt count for less."
    )
    yield (
        "Power does not grow steadily with the number of comparisons, because the limit is a whole number: a "
        "smaller number may happen to reach it. Every number from the given one on reaches it."
    )
    if checks > 1 and passes:
        yield (
            f"All {checks} checks have to pass: each is planned for {100 * each:.6g}%, so that together they reach the "
            "requested power, however they depend on each other."
        )
    elif checks > 1:
        yield (
            f"A gate fails with any of its {checks} checks: the numbers are for one of them, at the strictest level "
            "that Holm's adjustment can ask for."
        )
