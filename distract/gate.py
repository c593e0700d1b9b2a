"""Decide whether a finished run's flip rates are below a threshold.

Pass when the one-sided exact upper bound of every check is below the threshold; fail when a lower bound is above it
after Holm's adjustment; else inconclusive. Fails closed: no data, no valid verdict, an unfinished or damaged run
never passes. It knows no protocol or attack by name and nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from distract import statistics
from distract.errors import UsageError
from distract.figure import Figure, rounded
from distract.metrics import headline

Decision = Literal["pass", "fail", "inconclusive"]
EXIT: Mapping[Decision, int] = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True, slots=True)
class Check:
    """One flip rate against the threshold; bounds are one-sided, ``p_value`` is for "at most the threshold"."""

    protocol: str
    rule: str | None
    attack: str
    decision: Decision
    reason: str
    k: int
    n: int
    invalid: int
    excluded: int
    value: float | None
    lower: float | None
    upper: float | None
    p_value: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's document."""

    decision: Decision
    reason: str
    threshold: float
    confidence: float
    checks: tuple[Check, ...]

    def document(self) -> dict[str, Any]:
        """As JSON values, figures rounded to four decimals."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "threshold": self.threshold,
            "confidence": self.confidence,
            "checks": [rounded(asdict(check)) for check in self.checks],
        }


def decide(
    figures: Sequence[Figure],
    rules: Mapping[str, Sequence[str]],
    controls: frozenset[str],
    threshold: float,
    confidence: float = 0.95,
    flaw: str | None = None,
) -> Verdict:
    """Decide by the flip rates of a run.

    Args:
        figures: of the run.
        rules: of each protocol, by its name; a scoring protocol is decided by its headline rule.
        controls: attacks that measure noise and are not checked.
        threshold: the largest flip rate to accept, 0 < threshold < 1.
        confidence: of each one-sided bound.
        flaw: why the run must not be relied on.

    Raises:
        UsageError: the threshold or the confidence is out of range.
    """
    if not 1e-6 <= threshold < 1:
        raise UsageError(f"--max-flip-rate {threshold:g}: expected a share between 0.000001 and 1, such as 0.10")
    if not 0.5 <= confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: expected a share from 0.5 to below 1, such as 0.95")
    wanted = [
        f
        for f in figures
        if f.measure == "flip_rate"
        and f.against is None
        and f.attack not in controls
        and f.protocol is not None
        and f.rule == headline("flip_rate", rules[f.protocol])
    ]
    p_values = [1.0 if f.effective_n is None else _p(f, threshold) for f in wanted]
    adjusted = statistics.holm(p_values)
    checks = tuple(_check(f, p, q, threshold, confidence) for f, p, q in zip(wanted, p_values, adjusted, strict=True))
    decision, reason = _together(checks, threshold, flaw)
    return Verdict(decision, reason, threshold, confidence, checks)


def least_n(threshold: float, confidence: float) -> int:
    """The smallest number of verdicts that can pass, all of them unflipped."""
    n = 1
    while statistics.upper_bound(0, n, confidence) >= threshold:
        n = 2 * n
    low = n // 2
    while low + 1 < n:
        middle = (low + n) // 2
        low, n = (low, middle) if statistics.upper_bound(0, middle, confidence) < threshold else (middle, n)
    return n


def _effective(figure: Figure) -> tuple[float, float]:
    """Flips and verdicts, shrunk by the dependence of cases that share a prompt."""
    n = figure.effective_n or 0.0
    return (figure.value or 0.0) * n, n


def _p(figure: Figure, threshold: float) -> float:
    return statistics.p_above(*_effective(figure), threshold)


def _check(f: Figure, p: float, adjusted: float, threshold: float, confidence: float) -> Check:
    lower = upper = None
    decision: Decision = "inconclusive"
    needed = least_n(threshold, confidence)
    if not f.n:
        reason = "no valid verdict on an eligible case"
    else:
        k, n = _effective(f)
        lower, upper = statistics.lower_bound(k, n, confidence), statistics.upper_bound(k, n, confidence)
        if upper < threshold:
            decision, reason = "pass", f"upper bound {upper:.3f} is below {threshold:g}"
        elif adjusted <= 1 - confidence and lower > threshold:
            decision, reason = "fail", f"lower bound {lower:.3f} is above {threshold:g}"
        elif n < needed:
            reason = f"{f.n} verdicts are too few: no n below {needed} can pass at {threshold:g}"
        else:
            reason = f"the bounds {lower:.3f} to {upper:.3f} do not settle {threshold:g}"
    return Check(
        protocol=f.protocol or "",
        rule=f.rule,
        attack=f.attack,
        decision=decision,
        reason=reason,
        k=f.k or 0,
        n=f.n,
        invalid=f.invalid,
        excluded=f.excluded,
        value=f.value,
        lower=lower,
        upper=upper,
        p_value=p if f.n else None,
        p_adjusted=adjusted if f.n else None,
    )


def _together(checks: Sequence[Check], threshold: float, flaw: str | None) -> tuple[Decision, str]:
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "the run measured no flip rate of an attack (controls are not checked)"
    for decision in ("fail", "inconclusive"):
        bad = [check for check in checks if check.decision == decision]
        if bad:
            first = bad[0]
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    return "pass", f"all {len(checks)} flip rates are below {threshold:g}"
