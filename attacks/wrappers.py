"""Attacks that only add text: sentences before and after a response, which stays as it is, byte for byte.

The format decides which of the sentences fits; where none does, the response is left alone, and so excluded. A claim or
an injection need not keep the format: breaking it can only harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distract import Attack, Constraint

from .rules import Candidate, Text, apply, order_options


def make_wrapper(
    name: str, summary: str, *, before: Sequence[str] = (), after: Sequence[str] = (), **declared: Any
) -> Attack:
    """Make an attack that puts one of the sentences before, and one after each turn."""
    is_bound = declared.get("effect", "same") in ("same", "control")

    def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
        if is_bound:
            return wrap(turn, before, after, constraints, seed)
        # Letters matter in an injection, so it does not follow the case of the text.
        heads, tails = order_options(before, seed, "before"), order_options(after, seed, "after")
        return "\n\n".join([*heads[:1], turn, *tails[:1]])

    return Attack(name, summary, rewrite, keeps="text", adds=(*before, *after), **declared)


def wrap(turn: str, before: Sequence[str], after: Sequence[str], constraints: tuple[Constraint, ...], seed: int) -> str:
    """Put the first of the sentences that the format allows, in an order by the seed, before and after a turn."""
    if not turn.strip():
        return turn
    text, candidates = Text(turn), list[Candidate]()
    if before:
        sentences = text.adapt_all(order_options(before, seed, "before"))
        candidates.append(tuple((0, 0, f"{sentence}\n\n") for sentence in sentences))
    if after:
        sentences = text.adapt_all(order_options(after, seed, "after"))
        candidates.append(tuple((len(turn), len(turn), f"\n\n{sentence}") for sentence in sentences))
    return apply(turn, candidates, constraints)
