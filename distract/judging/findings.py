"""What a judge was found to do about one invariant: one `Finding` per call of an invariant.

Only the record. Which invariants there are, how a finding is reached and who reads it is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Decision = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class InvariantFinding:
    """What a judge was found to do about one invariant.

    Attributes:
        invariant: Name of the function that was called, such as "swap_consistent".
        protocol: Protocol by which the judge was asked.
        attack: Attack by which a response was rewritten; "" where none plays a part.
        n: Cases with a valid verdict that say something about the invariant.
        k: Of them, those that violate it.
        invalid: Cases without a valid verdict.
        excluded: Cases that say nothing about it, such as those without a loser.
        threshold: Rate of violations up to which the invariant counts as held; None for the strict form.
        lower: One-sided lower bound of that rate; None for the strict form.
        upper: One-sided upper bound of it.
        decision: Whether the invariant held; "inconclusive" fails too, where it is not one drawn example.
        words: Words of the smallest change that was found to flip a verdict, as `"might" -> "definitely"`.
        searching: Whether this is one of many examples inside a search by hypothesis, of which no rate follows.
    """

    invariant: str
    protocol: str
    attack: str
    n: int
    k: int
    invalid: int
    excluded: int
    threshold: float | None
    lower: float | None
    upper: float | None
    decision: Decision
    words: tuple[str, ...] = ()
    searching: bool = False
