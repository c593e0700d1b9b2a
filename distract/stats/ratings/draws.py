"""Draws of prompts with replacement: the weight of each prompt in each draw.

Several boards can share draws, so that their common variation cancels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_WEIGHTS = 64_000_000
"""Maximum size of the table of weights; beyond it, systems draw counts of matches themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of prompts.

    Attributes:
        seed: seed of the draws.
        count: number of draws, at least 2.
        weights: how often each draw has each prompt, shape (count, clusters), uint8; None if systems draw counts of
            matches themselves.
    """

    seed: int
    count: int
    weights: NDArray[np.uint8] | None

    def normal(self, models: Sequence[str]) -> NDArray[np.float64]:
        """Standard normal numbers, shape (count, models); those of a model depend only on its name and the seed."""
        columns = [_generator("normal", self.seed, name).standard_normal(self.count) for name in models]
        return np.stack(columns, axis=1)

    def generator(self, purpose: str) -> np.random.Generator:
        """Random numbers for a system's own draws, determined by seed and purpose."""
        return _generator(purpose, self.seed, "")


def draw(seed: int, count: int, clusters: int, *, table: bool = True) -> Draws:
    """Draw as many prompts as there are, with replacement; without a table if it is too large or unwanted."""
    if not table or count * clusters > MAX_WEIGHTS:
        return Draws(seed, count, None)
    random = _generator("prompts", seed, "")
    weights = np.empty((count, clusters), np.uint8)
    for row in weights:
        # No prompt exceeds 255 draws: the chance is below one in 10^500.
        row[:] = np.bincount(random.integers(clusters, size=clusters), minlength=clusters)
    return Draws(seed, count, weights)


def _generator(purpose: str, seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{purpose}\x1e{seed}\x1e{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
