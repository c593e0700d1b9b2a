"""A board as plain data: where each model stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of a model.

    Attributes:
        low: lower end of the 95% interval of the rating; None where there is none, and then a note says why.
        high: upper end.
        error: standard error over prompts.
        rank: 1 is best; equal ratings share the better one.
        rank_low: best rank of the 95% range over draws.
        rank_high: worst rank.
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
        unit: ``points`` or ``share``.
        standings: best first; names break ties.
        prompts: number of prompts with a match; of matches, where prompts are not known.
        invalid: number of comparisons without a valid verdict.
        draws: number of draws of prompts; 0 with fewer than two of them.
        interval: method behind the intervals; None where no model has one.
        extra: further figures of the system.
        notes: warnings for the reader, one line each.
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
