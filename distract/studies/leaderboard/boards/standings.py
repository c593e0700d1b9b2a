"""A board as plain data: where each model stands. It knows nothing of how ratings are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a model stands.

    Attributes:
        model: its name.
        rating: more is better.
        low: lower end of its 95% interval; None where there is none, and then a note says why.
        high: upper end.
        error: standard error over prompts.
        rank: 1 is best; equal ratings share the better one.
        rank_low: best rank of the 95% range over draws.
        rank_high: worst one.
        matches: that it played.
        wins: of them.
        losses: of them.
        ties: of them.
        sigma: the system's own uncertainty, where it has one.
    """

    model: str
    rating: float
    low: float | None
    high: float | None
    error: float | None
    rank: int
    rank_low: int | None
    rank_high: int | None
    matches: int
    wins: int
    losses: int
    ties: int
    sigma: float | None


@dataclass(frozen=True, slots=True)
class Board:
    """Models under one rating system.

    Attributes:
        system: its name.
        unit: ``points`` or ``share``.
        parameters: all of the system's.
        standings: best first; names break ties.
        matches: how many.
        prompts: how many there are in them; matches, where prompts are not known.
        invalid: comparisons that are no match.
        draws: how often prompts were drawn again; 0 with fewer than two of them.
        interval: where intervals come from; None where no model has one.
        extra: further figures of the system.
        notes: what a reader must know, a line each.
    """

    system: str
    unit: str
    parameters: Mapping[str, Any]
    standings: tuple[Standing, ...]
    matches: int
    prompts: int
    invalid: int
    draws: int
    interval: Literal["sandwich", "bootstrap"] | None
    extra: Mapping[str, float]
    notes: tuple[str, ...]
