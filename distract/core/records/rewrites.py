"""Rewrites of responses."""

from __future__ import annotations

from dataclasses import dataclass, field

from distract.core.records.cases import Evidence, Response
from distract.core.records.rows import Row


def slug(reason: str) -> str:
    """Return the stable beginning of a reason to reject a text; details follow its colon."""
    return reason.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A response rewritten by an attack, and the reasons not to use it.

    The rewritten response has the author and severity of the original. A response that was made worse has its new
    severity, and no attack.
    """

    case: str
    response: Response
    original: tuple[str, ...]  # the turns that were rewritten
    generator: str
    reasons: tuple[str, ...]  # the fidelity rules that it breaks; empty when accepted
    evidence: Evidence = ()  # measurements, by rule

    @property
    def is_accepted(self) -> bool:
        return not self.reasons

    @property
    def rival(self) -> str | None:
        """Author of the response against which it was written; None if its attack does not depend on one."""
        return next((str(value) for name, value in self.evidence if name == "rival"), None)


@dataclass(frozen=True)
class CaseResult:
    """The results of one case."""

    rows: list[Row] = field(default_factory=list)  # one per comparison
    rewrites: list[Rewrite] = field(default_factory=list)  # all that were considered
