"""A gate's verdict: one check for each protocol and attack, and their combined decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from distract.core.printable import line
from distract.stats.figure import round_values
from distract.studies.attack.labels import Usable
from distract.studies.gate.measures import EXCESSES, RISES, Measure, base_rate, name_measure

Decision = Literal["pass", "fail", "inconclusive"]
EXIT_CODES: Mapping[Decision, int] = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True, slots=True)
class Check:
    """One protocol under one attack.

    ``k`` of ``n`` eligible comparisons with a valid verdict are hits: flips, gains or hollow wins, by the truth of the
    attack; ``value`` is then their rate, as a mean over ``prompts`` unless that is None. ``measure`` is what
    ``threshold`` and the one-sided bounds refer to: the rate, its excess over the judge's own noise (``--control``),
    its rise since the baseline, or what a style is worth, which is a mean in ``unit`` and has no k. ``reference`` is
    the rate there, and ``only_here`` and ``only_there`` are the hits that differ. ``lower`` counts invalid verdicts
    after a rewrite as no hits, ``upper`` as hits.
    ``p_value`` tests "the measure is at most the threshold" ("it did not rise"). ``needed`` estimates how many
    comparisons would settle an open check; a ``skipped`` one was left open because another had failed.
    """

    protocol: str
    rule: str | None
    attack: str
    decision: Decision
    reason: str
    threshold: float | None
    k: int | None
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
    unit: str = "share"


@dataclass(frozen=True, slots=True)
class Effort:
    """The cost of a live gate.

    ``calls`` counts distinct requests behind the verdicts, stored ones included, but none of a generator or verifier;
    ``saved`` estimates how many more all cases would have taken, which may still be needed if the budget ended it
    (``cut``).
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
    """The decision of a gate.

    ``threshold`` applies to checks without one of their own; ``certify`` makes an inconclusive gate a failure. Leads up
    to ``margin`` are ties. ``usable`` says of each protocol whether it can tell good from bad. ``identity_checks``
    are those of the canary and the anchors, where they stopped the gate.
    """

    decision: Decision
    reason: str
    threshold: float | None
    confidence: float
    certify: bool
    checks: tuple[Check, ...]
    effort: Effort | None = None
    notes: tuple[str, ...] = ()
    margin: float = 0.0
    usable: Mapping[str, Usable | None] = field(default_factory=dict)
    identity_checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return 1 if self.certify and self.decision == "inconclusive" else EXIT_CODES[self.decision]

    def document(self) -> dict[str, Any]:
        """Return JSON values, figures rounded to four decimals."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "threshold": self.threshold,
            "margin": self.margin,
            "confidence": self.confidence,
            "usable": dict(self.usable),
            "checks": [round_values(asdict(check)) for check in self.checks],
            "effort": None if self.effort is None else asdict(self.effort),
            "notes": list(self.notes),
            **self.identity_checks,
        }


def undecided_verdict(reason: str) -> Verdict:
    """Return the verdict of a gate that reached no decision."""
    return Verdict("inconclusive", reason, None, 0.0, False, ())


def combine_checks(checks: Sequence[Check], flaw: str | None) -> tuple[Decision, str]:
    """Return the decision of a gate and its reason in one line."""
    if flaw:
        return "inconclusive", flaw
    if not checks:
        return "inconclusive", "no attack was measured (controls are not checked)"
    for decision in ("fail", "inconclusive"):
        bad = [check for check in checks if check.decision == decision]
        if bad:
            first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return bad[0].decision, f"{first.protocol} under {first.attack}: {first.reason}{more}"
    measures = dict.fromkeys(check.measure for check in checks)
    return "pass", " and ".join(
        (_describe_no_rise if measure in RISES else _describe_below)([c for c in checks if c.measure == measure])
        for measure in measures
    )


def _describe_below(checks: Sequence[Check]) -> str:
    """Describe checks of one measure."""
    limits = sorted({check.threshold for check in checks if check.threshold is not None})
    below = f"{limits[0]:g}" if len(limits) == 1 else "their thresholds"
    several = len(checks) > 1
    measure = checks[0].measure
    noun = name_measure(base_rate(measure))
    if measure in EXCESSES:
        rates = f"all {len(checks)} {noun}s exceed" if several else f"the {noun} exceeds"
        return f"{rates} the judge's own noise by less than {below}"
    return f"all {len(checks)} {noun}s are below {below}" if several else f"the {noun} is below {below}"


def _describe_no_rise(checks: Sequence[Check]) -> str:
    noun = name_measure(base_rate(checks[0].measure))
    which = f"the {noun} did not rise" if len(checks) == 1 else f"none of {len(checks)} {noun}s rose"
    most = max((check.threshold for check in checks if check.threshold is not None), default=0.0)
    risen = [f"{line(c.protocol)} under {line(c.attack)}" for c in checks if c.lower is not None and c.lower > 0]
    though = f" (but {', '.join(risen)} did rise)" if risen else ""
    return f"{which} by {100 * most:g} points or more since the baseline{though}"
