"""The control that does nothing: the response as it is. It knows nothing of texts at all."""

from __future__ import annotations

from distract import Attack, Constraint


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Return the turn."""
    return turn


none = Attack("none", "control: the response unchanged", rewrite)
