"""How many eligible comparisons a gate needs before it decides rightly, for a flip rate that one expects.

Everything is computed from the binomial distribution, nothing is simulated. It knows no run, no judge and no data set:
how many cases give an eligible comparison is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from distract.core.errors import UsageError
from distract.stats.figure import round_values
from distract.studies.gate.boundary import LONGEST, boundary
from distract.studies.gate.limits import Limits
from distract.studies.gate.power import CHUNK, TailTest
from distract.studies.gate.stopping_path import StoppingPath, compute_path, decision_chances

LARGEST = 1_000_000
"""Eligible comparisons beyond which nothing is planned."""

RARE = 0.2
"""Of a threshold: the flip rate of a judge that a gate should pass."""

POWER = 0.8
"""The chance to pass that it should have."""

CHECKS = 10_000
"""Checks under one gate that can be planned for."""


@dataclass(frozen=True, slots=True)
class FinishedGate:
    """A gate on a finished run.

    Attributes:
        n: the smallest number of eligible comparisons from which on every number has the power asked for.
        limit: the most flips among n that pass, or the fewest that fail.
        power: the chance of the right decision at n.
        wrong: the chance of the opposite one at n, at most.
    """

    n: int
    limit: int
    power: float
    wrong: float


@dataclass(frozen=True, slots=True)
class PowerAnalysis:
    """What a gate needs to decide rightly.

    Attributes:
        threshold: the largest flip rate to accept.
        true_rate: the flip rate that one expects, 0 to 1.
        decision: the right one.
        power: the chance of it that was asked for.
        confidence: of each one-sided bound.
        checks: how many are judged together.
        each: the chance of the right decision that each of them is planned for.
        finished: one check on a finished run.
        live: one check of a live gate, its cap being the smallest from which on all that were looked at have the power;
            None where that takes too long to compute or no cap has it.
        notes: what a reader must know, one line each.
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

    def document(self) -> dict[str, Any]:
        """As JSON values, figures rounded to four decimals."""
        live = None if self.live is None else round_values(asdict(self.live))
        parts = {"finished": round_values(asdict(self.finished)), "live": live, "notes": list(self.notes)}
        return {**round_values(asdict(self)), **parts}


def analyse_power(
    threshold: float, true_rate: float, power: float, confidence: float, checks: int = 1
) -> PowerAnalysis:
    """Say how many eligible comparisons a gate needs."""
    Limits(max_flip_rate=threshold, confidence=confidence)
    _check_arguments(threshold, true_rate, power, checks)
    passes, alpha = true_rate < threshold, 1 - confidence
    # Only failures are adjusted for their number, by Holm: at worst as Bonferroni does.
    strict = alpha / checks
    # All that have to pass do so together at least this often, however they depend on each other.
    each = 1 - (1 - power) / checks if passes else power
    below, above = TailTest(threshold, alpha), TailTest(1 - threshold, alpha if passes else strict)
    right, rate, wrong, rest = (below, true_rate, above, 1 - true_rate)
    if not passes:
        right, rate, wrong, rest = wrong, rest, right, rate
    n = right.least(rate, each, LARGEST)
    if n is None:
        raise UsageError(
            f"--true-rate {true_rate:g} is too near to the threshold {threshold:g}: more than {LARGEST:,} eligible "
            "comparisons would be needed; expected rates farther apart, or a lower --power or --confidence"
        )
    at = np.array([n])
    limit = int(right.limit(at)[0])
    chances = float(right.power(at, rate)[0]), float(wrong.power(at, rest)[0])
    finished = FinishedGate(n, limit if passes else n - limit, *chances)
    live, why = _analyse_live(threshold, true_rate, each, (strict, alpha), n)
    notes = *_notes(passes, checks, each), *why
    return PowerAnalysis(
        threshold, true_rate, "pass" if passes else "fail", power, confidence, checks, each, finished, live, notes
    )


def too_few_reason(
    n: int, unit: str, threshold: float, checks: int, confidence: float, cures: Sequence[str], live: bool = False
) -> str | None:
    """Why so little data cannot pass as a rule, and what helps; None where it can."""
    rate = threshold * RARE
    try:
        wanted = analyse_power(threshold, rate, POWER, confidence, min(checks, CHECKS))
    except UsageError:  # more than anybody has
        wanted = None
    least = None if wanted is None else wanted.live.cap if live and wanted.live else wanted.finished.n
    if least is not None and n >= least:
        return None
    takes = f"{least:,}" if least is not None else f"more than {LARGEST:,}"
    command = f"distract plan-gate --max-flip-rate {threshold:g} --true-rate {rate:g} --checks {checks}"
    what = "the check" if checks == 1 else f"{checks} checks"
    needed = unit if unit == "prompts" else "eligible comparisons"
    return (
        f"{n:,} {unit} cannot pass {what} at {100 * threshold:g}% unless nearly nothing flips: for a judge that flips "
        f"{100 * rate:g}% of the time it takes about {takes} {needed} (`{command}`); what helps: "
        f"{', '.join(cures)}"
    )


def cures(cases: int, of: int, checks: int) -> list[str]:
    """What gives a gate more power: the rest of the cases, fewer checks where there are several, more data."""
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
            f"--true-rate {true_rate:g} is the threshold itself: no number of comparisons shows a rate to be below or "
            "above what it equals; expected another rate"
        )


def _analyse_live(
    threshold: float, rate: float, power: float, alphas: tuple[float, float], finished: int
) -> tuple[StoppingPath | None, tuple[str, ...]]:
    """How a live gate goes with the smallest cap that has the power, or else why there is none."""
    if finished <= LONGEST:
        for most in (min(2 * finished + CHUNK, LONGEST), LONGEST):
            passes, fails = decision_chances(boundary(threshold, *alphas, most), rate)
            right, wrong = (passes, fails) if rate < threshold else (fails, passes)
            # With none there is no power, so that one at least is short of it.
            cap = int(np.flatnonzero(right < power)[-1]) + 1
            if cap <= most:
                return compute_path(boundary(threshold, *alphas, cap), rate), ()
        if float(wrong[-1]) > 1 - power:
            return None, ("No live gate has that power: it decides wrongly on few comparisons more often than that.",)
    return None, (f"A live gate is not planned for where it needs more than {LONGEST:,} eligible comparisons.",)


def _notes(passes: bool, checks: int, each: float) -> Iterator[str]:
    yield (
        "Ties, invalid verdicts and rejected rewrites are no eligible comparisons: the data set must hold more cases "
        "than that; comparisons that share a prompt count for less."
    )
    yield (
        "Power rises and falls with the number of comparisons, since a limit is a whole number of flips: fewer may "
        "have it where more do not. From the number given on, it stays."
    )
    if checks > 1 and passes:
        yield (
            f"All {checks} checks have to pass: each is planned for {100 * each:.6g}%, so that together they do as "
            "often as asked for, however they depend on each other."
        )
    elif checks > 1:
        yield (
            f"A gate fails with any of its {checks} checks: the numbers are for one of them, at the strictest level "
            "that Holm's adjustment can ask for."
        )
