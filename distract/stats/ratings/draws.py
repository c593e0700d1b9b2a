"""Prompts drawn again, with replacement: how much each counts in each draw.

The same draws can be put to several boards, so that what they have in common cancels (ANCHORS, section 3). It knows no
rating system.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_WEIGHTS = 64_000_000
"""Numbers of a table of weights; beyond, where each match is a prompt of its own, systems draw matches themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How prompts are drawn again.

    Attributes:
        seed: of the draws.
        count: how many, at least 2.
        weights: how often each prompt is in each draw, shape (count, clusters), uint8; None: matches are drawn, each
            for itself, as the system sees fit.
    """

    seed: int
    count: int
    weights: NDArray[np.uint8] | None

    def normal(self, models: Sequence[str]) -> NDArray[np.float64]:
        """Standard normal numbers, shape (count, models): a model's depend on its name and the seed alone."""
        columns = [_generator("normal", self.seed, name).standard_normal(self.count) for name in models]
        return np.stack(columns, axis=1)

    def generator(self, purpose: str) -> np.random.Generator:
        """Random numbers for something that a system draws itself; the same for the same seed and purpose."""
        return _generator(purpose, self.seed, "")


def draw(seed: int, count: int, clusters: int, *, table: bool = True) -> Draws:
    """Draw prompts with replacement, as many as there are."""
    if not table or count * clusters > MAX_WEIGHTS:
        return Draws(seed, count, None)
    random = _generator("prompts", seed, "")
    weights = np.empty((count, clusters), np.uint8)
    for row in weights:
        # Nobody is drawn more than 255 times: the chance of that is below one in 10^500.
        row[:] = np.bincount(random.integers(clusters, size=clusters), minlength=clusters)
    return Draws(seed, count, weights)


def _generator(purpose: str, seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{purpose}\x1e{seed}\x1e{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
