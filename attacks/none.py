"""The control that does nothing."""

from __future__ import annotations

from distract import Attack, Constraint


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Return the turn unchanged."""
    return turn


none = Attack("none", "control: the response unchanged", rewrite)
