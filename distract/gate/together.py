"""What several checks come to together: pass where all pass, fail where any fails.

It knows no measure.
"""

from __future__ import annotations

from collections.abc import Sequence

from distract.gate.records import Check, Decision


def together(checks: Sequence[Check], flaw: str | None, passed: str) -> tuple[Decision, str]:
    """The decision of a gate and the reason for it, in a line.

    Args:
        checks: of each protocol and attack; those that were skipped since another had failed do not count beside it.
        flaw: why nothing must be relied on; None where there is no such reason.
        passed: the reason where all of them pass.
    """
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "no flip rate of an attack was measured (controls are not checked)"
    for decision in ("fail", "inconclusive"):
        bad = [check for check in checks if check.decision == decision]
        if bad:
            first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return bad[0].decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    return "pass", passed
