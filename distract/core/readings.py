"""Compare verdicts on the same request, to tell whether the same judge gave them.

A server does not say which weights answer, and one that batches does not repeat a text letter by letter, nor a
probability digit by digit. So only verdicts count, and moves of probabilities too large for noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.printable import count
from distract.core.records import Reply

DIFFERING, MOVE = 2, 0.1
"""This many different verdicts, or a probability that moves by more than this, are not noise."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A verdict as read, and the shares behind it: probabilities, or scores as places on their scale (0 to 1)."""

    outcome: object
    shares: tuple[float, ...] | None = None

    def differs(self, other: Reading) -> bool:
        """Whether the verdicts differ."""
        return self.outcome != other.outcome

    def move(self, other: Reading) -> float | None:
        """The largest distance between shares; None if a verdict has none, or others."""
        if not self.shares or not other.shares or len(self.shares) != len(other.shares):
            return None
        return max(abs(one - two) for one, two in zip(self.shares, other.shares, strict=True))

    @property
    def lead(self) -> float | None:
        """The lead of the largest share over the next; None without shares."""
        if not self.shares:
            return None
        first, second = sorted(self.shares, reverse=True)[:2]
        return first - second

    @property
    def document(self) -> dict[str, Any]:
        """The reading as JSON values."""
        shares = None if self.shares is None else [round(share, 4) for share in self.shares]
        return {"verdict": self.outcome, "shares": shares}


def find_largest_move(pairs: Sequence[tuple[Reading, Reading]]) -> float | None:
    """The largest move of any share; None if no verdict has shares."""
    moves = [move for before, now in pairs if (move := before.move(now)) is not None]
    return round(max(moves), 4) if moves else None


def read_choice(reply: Reply) -> Reading:
    """Read the choice of a reply: the most likely one, or its words if the server gives no probabilities."""
    probabilities = reply.probabilities
    if not probabilities:
        return Reading(reply.text.strip())
    return Reading(probabilities.index(max(probabilities)), probabilities)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """How far two series of verdicts on the same requests are apart."""

    pairs: Sequence[tuple[Reading, Reading]]

    @property
    def differing(self) -> int:
        return sum(one.differs(two) for one, two in self.pairs)

    @property
    def largest_move(self) -> float | None:
        return find_largest_move(self.pairs)

    @property
    def is_noise(self) -> bool:
        """Whether one judge may have given both series."""
        return self.differing < DIFFERING and (self.largest_move or 0.0) <= MOVE

    @property
    def rank(self) -> tuple[bool, int, float]:
        """A key to sort by: the larger, the farther apart."""
        return not self.is_noise, self.differing, self.largest_move or 0.0

    def describe(self, other: str) -> str:
        """Say how many verdicts differ from those of ``other``."""
        moved = "" if self.largest_move is None else f", with probabilities up to {self.largest_move:.2f} away"
        return f"{self.differing} of {count(len(self.pairs), 'request')} differently than {other}{moved}"
