"""What tokens cost. Prices come from the catalogue or from the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distract.core.records import Role

MAX_PRICE = 1_000_000
"""US dollars per million tokens: no token costs a dollar."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of prompts and of answers, each at least 0."""

    prompts: float
    answers: float

    def of(self, prompts: int, answers: int) -> float:
        """Cost of so many tokens in US dollars."""
        return (self.prompts * prompts + self.answers * answers) / 1e6


def cost(prices: Mapping[Role, Price], tokens: Mapping[Role, tuple[int, int]]) -> float | None:
    """Sum the US dollars for models with a known price; None if there are none."""
    known = [prices[role].of(*used) for role, used in tokens.items() if role in prices]
    return sum(known) if known else None


def format_dollars(amount: float) -> str:
    """Format an amount: ``$12.30``; small ones with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.2g}"
