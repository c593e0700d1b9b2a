"""What tokens cost. It knows no model: prices come from the catalogue or from the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distract.core.records import Role

MAX_PRICE = 1_000_000
"""US dollars per million tokens: a dollar for each is more than any costs."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of prompts and of answers, each at least 0."""

    prompts: float
    answers: float

    def of(self, prompts: int, answers: int) -> float:
        """US dollars for so many tokens."""
        return (self.prompts * prompts + self.answers * answers) / 1e6


def cost(prices: Mapping[Role, Price], tokens: Mapping[Role, tuple[int, int]]) -> float | None:
    """US dollars for the tokens of the models whose price is known; None where that is none of them."""
    known = [prices[role].of(*used) for role, used in tokens.items() if role in prices]
    return sum(known) if known else None


def format_dollars(amount: float) -> str:
    """As people read it: ``$12.30``; small amounts with two digits that say something."""
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.2g}"
