"""Rewrites of responses, and the smallest part of a rewrite that still flips a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from distract.core.records.cases import Case, Evidence, Response
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


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one turn: about a word replaced, inserted or deleted, with the white space around it."""

    turn: int  # index of the turn
    start: int  # range of characters of the original turn that it replaces; empty for an insertion
    end: int
    new: str  # empty for a deletion
    old: str


@dataclass(frozen=True, slots=True)
class MinimalFlip:
    """A flip, and the smallest subset of its edits that was found to be sufficient."""

    case: Case
    protocol: str
    rule: str | None  # the rule by which a scoring protocol is decided
    attack: str
    rewritten: str  # author of the rewritten response
    severity: int | None  # of that response
    other: str  # author of the response that had won, which is unchanged
    edits: tuple[Edit, ...]  # the sufficient subset
    of: int  # number of single edits between the original and the whole rewrite
    original: tuple[str, ...]  # the turns before
    turns: tuple[str, ...]  # the original with only ``edits`` applied
    before: tuple[float, float]  # strengths of the rewritten and the other response in the original pair
    after: tuple[float, float]  # the same with only ``edits`` applied
    comparisons: int  # number of different texts judged in the search
    requests: int  # number of different requests, those of the original and of the whole rewrite included
    invalid: int  # number of those texts without a valid verdict, which counts as no flip
    minimal: bool  # without any single edit the verdict is valid and no flip; False if the search ended before that


@dataclass(frozen=True)
class CaseResult:
    """The results of one case, or of one of its flips."""

    rows: list[Row] = field(default_factory=list)  # one per comparison
    rewrites: list[Rewrite] = field(default_factory=list)  # all that were considered
    smallest: list[MinimalFlip] = field(default_factory=list)


def apply_edits(original: Sequence[str], edits: Iterable[Edit]) -> tuple[str, ...]:
    """Apply edits to turns; edits that insert at the same place keep their order."""
    parts: list[list[str]] = [[] for _ in original]
    done = [0] * len(original)
    for edit in sorted(edits, key=attrgetter("turn", "start", "end")):
        parts[edit.turn] += [original[edit.turn][done[edit.turn] : edit.start], edit.new]
        done[edit.turn] = edit.end
    return tuple("".join([*part, text[at:]]) for part, text, at in zip(parts, original, done, strict=True))
