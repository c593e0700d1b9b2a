"""A board as plain data: the rating and rank of each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of a model."""

    model: str
    rating: float
    low: float | None  # lower end of the 95% interval of the rating; None where there is none, and then a note says why
    high: float | None  # upper end
    error: float | None  # standard error over prompts
    rank: int  # 1 is best; equal ratings share the better one
    rank_low: int | None  # best rank of the 95% range over draws
    rank_high: int | None  # worst rank
    matches: int
    wins: int
    losses: int
    ties: int
    sigma: float | None  # the system's own uncertainty, where it has one


@dataclass(frozen=True, slots=True)
class Board:
    """Models under one rating system."""

    system: str
    unit: str  # ``points`` or ``share``
    parameters: Mapping[str, Any]
    standings: tuple[Standing, ...]  # best first; names break ties
    matches: int
    prompts: int  # number of prompts with a match; of matches, where prompts are not known
    invalid: int  # number of comparisons without a valid verdict
    draws: int  # number of draws of prompts; 0 with fewer than two of them
    interval: Literal["sandwich", "bootstrap"] | None  # method behind the intervals; None where no model has one
    extra: Mapping[str, float]  # further figures of the system
    notes: tuple[str, ...]  # warnings for the reader, one line each
