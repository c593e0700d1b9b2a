"""What several checks come to together: pass where all pass, fail where any fails.

It knows no protocol or attack by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from distract.core.printable import line
from distract.studies.gate.verdict import Check, Decision


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
