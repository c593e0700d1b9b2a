"""The record of one call of an invariant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Decision = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class InvariantFinding:
    """Whether a judge kept one invariant.

    Attributes:
        invariant: Name of the function that was called, such as "swap_consistent".
        protocol: Protocol that asked the judge.
        attack: Attack that rewrote a response; "" for none.
        n: Number of cases that test the invariant and have a valid verdict.
        k: Number of these cases that violate it.
        invalid: Number of cases without a valid verdict.
        excluded: Number of cases that do not test it, such as those without a loser.
        threshold: Highest rate of violations at which the invariant still holds; None for the strict form.
        lower: One-sided lower bound of the rate; None for the strict form.
        upper: One-sided upper bound of the rate; None for the strict form.
        decision: Whether the invariant held; "inconclusive" also fails the test, except for one drawn example.
        words: Words of the smallest change found to flip a verdict, as `"might" -> "definitely"`.
        searching: Whether this is one example of a hypothesis search, so that there is no rate.
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
