"""Compute how many eligible comparisons a gate needs for the right decision, given the expected rate.

All figures come from the binomial distribution, up to ``LONGEST`` comparisons; beyond that there is only an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from distract.core.errors import UsageError
from distract.core.printable import count, percent
from distract.stats.figure import round_values
from distract.studies.gate.boundary import LONGEST, boundary
from distract.studies.gate.limits import Limits, name_option
from distract.studies.gate.measures import RATES, Measure, name_hit, name_measure
from distract.studies.gate.power import StoppingPath, TailTest, compute_path, decision_chances

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
    measure: Measure = "flip_rate"

    def document(self) -> dict[str, Any]:
        """Return JSON values, figures rounded to four decimals."""
        live = None if self.live is None else round_values(asdict(self.live))
        parts = {"finished": round_values(asdict(self.finished)), "live": live, "notes": list(self.notes)}
        return {**round_values(asdict(self)), **parts}


@lru_cache(maxsize=64)  # each check of a gate asks for it, most with the same numbers
def analyse_power(
    threshold: float, true_rate: float, power: float, confidence: float, checks: int = 1, measure: Measure = "flip_rate"
) -> PowerAnalysis:
    """Compute how many eligible comparisons a gate needs."""
    limits: Any = {RATES[measure].limit: threshold, "confidence": confidence}
    Limits(**limits)
    _check_arguments(threshold, true_rate, power, checks)
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
    noun, hits = name_measure(analysis.measure), count(run.limit, name_hit(analysis.measure))
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
    n: int,
    unit: str,
    threshold: float,
    checks: int,
    confidence: float,
    cures: Sequence[str],
    measure: Measure,
    live: bool = False,
) -> str | None:
    """Explain why so little data is unlikely to pass, and suggest remedies; None if it is enough."""
    rate = threshold * RARE
    try:
        analysis = analyse_power(threshold, rate, POWER, confidence, min(checks, CHECKS))
    except UsageError:  # more than can be planned
        analysis = None
    least = None if analysis is None else analysis.live.cap if live and analysis.live else analysis.finished.n
    if n >= (LONGEST if least is None else least):
        return None
    takes = f"{least:,}" if least is not None else f"more than {LONGEST:,}"
    option, hit = name_option(RATES[measure].limit), name_hit(measure)
    command = f"distract plan-gate {option} {threshold:g} --true-rate {rate:g} --checks {checks}"
    name = "the check" if checks == 1 else f"{checks} checks"
    needed = unit if unit == "prompts" else "eligible comparisons"
    return (
        f"{n:,} {unit} cannot pass {name} at {100 * threshold:g}% unless a {hit} is rare: a judge with {hit}s in "
        f"{100 * rate:g}% of the pairs needs about {takes} {needed} (`{command}`); use "
        f"{', '.join(cures)}"
    )


def cures(cases: int, of: int, checks: int) -> list[str]:
    """List what gives a gate more power."""
    every = ["--limit all"] if cases < of else []
    fewer = ["fewer --protocol or --attack"] if checks > 1 else []
    return [*every, *fewer, "more data"]


def _check_arguments(threshold: float, true_rate: float, power: float, checks: int) -> None:
    if not 0 <= true_rate <= 1:
        raise UsageError(f"--true-rate {true_rate:g}: expected a share from 0 to 1, such as 0.05")
    if not 0.5 <= power < 1:
        raise UsageError(f"--power {power:g}: expected a share from 0.5 to below 1, such as 0.9")
    if not 1 <= checks <= CHECKS:
        raise UsageError(f"--checks {checks}: expected a number of checks from 1 to {CHECKS:,}")
    if true_rate == threshold:
        raise UsageError(
            f"--true-rate {true_rate:g} is the threshold itself: no number of comparisons shows that a rate is below "
            "or above it; expected another rate"
        )


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
