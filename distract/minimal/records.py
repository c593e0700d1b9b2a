"""The smallest part of a rewrite that still flips a verdict, as plain data.

Only the records: how the part is found is not known here, nor how it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from distract.records import Case


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one turn: about a word replaced, inserted or deleted, with white space where it has to go along.

    Attributes:
        turn: index of the turn.
        start: of the characters of the original turn that it replaces.
        end: after the last of them; equal to ``start`` for an insertion.
        new: what stands there instead; empty for a deletion.
        old: what stood there.
    """

    turn: int
    start: int
    end: int
    new: str
    old: str


@dataclass(frozen=True, slots=True)
class Smallest:
    """A flip, and the fewest of its edits that were found to be enough for it.

    Attributes:
        case: whose responses were compared.
        protocol: by which they were.
        rule: by which a scoring protocol is decided; None for others.
        attack: that rewrote a response.
        rewritten: author of the rewritten response.
        severity: of that response.
        other: author of the response that had won, which stays as it is.
        edits: those that are enough.
        of: how many single edits lie between the original and the whole rewrite.
        original: the turns before.
        turns: the original with only ``edits`` applied.
        before: strengths of the rewritten response and the other one in the original pair, as in ``flips.Flip``.
        after: the same with only ``edits`` applied.
        comparisons: how many different texts were judged in the search.
        requests: how many different requests were behind all of it, those of the original and of the whole rewrite
            included.
        invalid: how many of those texts had no valid verdict, which is taken for no flip.
        minimal: whether without any single edit the verdict is a valid one and no flip; False where the search was
            ended before that was shown.
    """

    case: Case
    protocol: str
    rule: str | None
    attack: str
    rewritten: str
    severity: int | None
    other: str
    edits: tuple[Edit, ...]
    of: int
    original: tuple[str, ...]
    turns: tuple[str, ...]
    before: tuple[float, float]
    after: tuple[float, float]
    comparisons: int
    requests: int
    invalid: int
    minimal: bool
