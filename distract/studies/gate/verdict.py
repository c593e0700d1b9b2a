"""What a gate says: one check for each protocol and attack, and what they come to together.

It decides nothing and knows no protocol or attack by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from distract.core.printable import line
from distract.stats.figure import round_values

Decision = Literal["pass", "fail", "inconclusive"]
Measure = Literal["flip_rate", "excess_flip_rate", "flip_rate_rise"]

EXIT_CODES: Mapping[Decision, int] = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True, slots=True)
class Check:
    """One protocol under one attack.

    Attributes:
        protocol: its name.
        rule: by which a scoring protocol is decided; None for others.
        attack: its name.
        measure: what is bounded: the flip rate, how far it exceeds the judge's own noise (``--control``), or how far
            it rose since the baseline (``--baseline``).
        decision: of this check.
        reason: in a few words.
        threshold: the largest value of the measure to accept; None in a record that has none.
        k: flips.
        n: eligible comparisons with a valid verdict.
        invalid: eligible comparisons without one.
        excluded: comparisons that were not made or not eligible.
        value: the flip rate, whatever the measure: k / n, or the mean of that over ``prompts``; None when n is 0.
        reference: the flip rate on the same comparisons under the control, or in the baseline; else None.
        only_here: flips that the control, or the baseline, does not have; None without one.
        only_there: flips that only the control, or the baseline, has.
        lower: one-sided lower bound of the measure, invalid verdicts after a rewrite taken for no flips; None where
            there is none.
        upper: one-sided upper bound, the same verdicts taken for flips.
        p_value: of "the measure is at most the threshold" (of "it did not rise").
        p_adjusted: the same after Holm's adjustment for the number of checks.
        needed: about how many eligible comparisons would settle it, where it is inconclusive and that can be said.
        skipped: whether it was left undecided because another check had failed already.
        eligible_share: eligible comparisons, of those judged before any rewrite; None without one.
        prompts: how many the value and the bounds are a mean over; None where each comparison counts by itself.
    """

    protocol: str
    rule: str | None
    attack: str
    decision: Decision
    reason: str
    threshold: float | None
    k: int
    n: int
    invalid: int
    excluded: int
    value: float | None
    measure: Measure = "flip_rate"
    reference: float | None = None
    only_here: int | None = None
    only_there: int | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    needed: int | None = None
    skipped: bool = False
    eligible_share: float | None = None
    prompts: int | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """What a live gate took.

    Attributes:
        cases: that were judged.
        of: that there are.
        calls: distinct requests behind the verdicts, those answered from the store included; what a generator or a
            verifier was asked is not among them.
        saved: about how many more all the cases would have taken.
        budget: the most calls of all models that were allowed; None for any number.
        stopped: why it ended there, in a few words.
        cut: whether the budget ended it, so that what was not asked may still be needed.
    """

    cases: int
    of: int
    calls: int
    saved: int
    budget: int | None
    stopped: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate decides.

    Attributes:
        decision: of all checks together: pass where all pass, fail where any fails.
        reason: in a line.
        threshold: the largest flip rate to accept where a check has none of its own; None where there is none.
        confidence: of each one-sided bound.
        certify: whether an inconclusive gate counts as failed.
        checks: in the order of protocols and attacks.
        effort: of a live gate; None for a finished run.
        notes: what a reader must know, one line each.
    """

    decision: Decision
    reason: str
    threshold: float | None
    confidence: float
    certify: bool
    checks: tuple[Check, ...]
    effort: Effort | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Of the command."""
        return 1 if self.certify and self.decision == "inconclusive" else EXIT_CODES[self.decision]

    def document(self) -> dict[str, Any]:
        """As JSON values, figures rounded to four decimals."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "threshold": self.threshold,
            "confidence": self.confidence,
            "checks": [round_values(asdict(check)) for check in self.checks],
            "effort": None if self.effort is None else asdict(self.effort),
            "notes": list(self.notes),
        }


def undecided_verdict(reason: str) -> Verdict:
    """The verdict of a gate that came to none."""
    return Verdict("inconclusive", reason, None, 0.0, False, ())


def combine_checks(checks: Sequence[Check], flaw: str | None) -> tuple[Decision, str]:
    """The decision of a gate and the reason for it, in a line."""
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "no flip rate of an attack was measured (controls are not checked)"
    for decision in ("fail", "inconclusive"):
        bad = [check for check in checks if check.decision == decision]
        if bad:
            first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return bad[0].decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    rises = [check for check in checks if check.measure == "flip_rate_rise"]
    rates = [check for check in checks if check.measure != "flip_rate_rise"]
    return "pass", " and ".join(
        [*([_describe_below(rates)] if rates else []), *([_describe_no_rise(rises)] if rises else [])]
    )


def _describe_below(checks: Sequence[Check]) -> str:
    limits = sorted({check.threshold for check in checks if check.threshold is not None})
    below = f"{limits[0]:g}" if len(limits) == 1 else "their thresholds"
    several = len(checks) > 1
    if any(check.measure == "excess_flip_rate" for check in checks):
        rates = f"all {len(checks)} flip rates exceed" if several else "the flip rate exceeds"
        return f"{rates} the judge's own noise by less than {below}"
    return f"all {len(checks)} flip rates are below {below}" if several else f"the flip rate is below {below}"


def _describe_no_rise(checks: Sequence[Check]) -> str:
    which = "the flip rate did not rise" if len(checks) == 1 else f"none of {len(checks)} flip rates rose"
    most = max((check.threshold for check in checks if check.threshold is not None), default=0.0)
    risen = [f"{line(c.protocol)} under {line(c.attack)}" for c in checks if c.lower is not None and c.lower > 0]
    though = f" (but {', '.join(risen)} did rise)" if risen else ""
    return f"{which} by {100 * most:g} points or more since the baseline{though}"
