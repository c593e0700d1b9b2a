"""Matches between models as columns of numbers, and draws of their prompts with replacement.

A match is one comparison of two models' responses to one prompt, with its outcome. Names are encoded once, so a million
matches need only a few numbers each. A draw is the weight of each prompt; several boards can share draws, so that their
common variation cancels.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from distract.core import printable
from distract.core.errors import UsageError

A, B, TIE = 0, 1, 2  # codes of outcomes: a win of the first model, of the second, or a tie

OUTCOMES = {"a": A, "b": B, "tie": TIE}


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Matches in the order of play.

    Attributes:
        models: sorted names, at least two.
        a: index of the first model of each match, shape (matches,), int32.
        b: index of the second model.
        outcome: ``A``, ``B`` or ``TIE``, int8.
        cluster: index of the prompt of each match, int32, because matches of one prompt are not independent; None if
            each match has its own prompt, or prompts are unknown.
        prompts: names of the prompts; empty if ``cluster`` is None.
        lengths: characters of the two responses, shape (matches, 2), int32; None if unknown.
        invalid: number of comparisons without a valid verdict, which are not matches.
        A, B, TIE: codes of ``outcome``.
    """

    A: ClassVar[int] = A
    B: ClassVar[int] = B
    TIE: ClassVar[int] = TIE
    models: tuple[str, ...]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    outcome: NDArray[np.int8]
    cluster: NDArray[np.int32] | None = None
    prompts: tuple[str, ...] = ()
    lengths: NDArray[np.int32] | None = None
    invalid: int = 0

    def __len__(self) -> int:
        return len(self.a)

    @property
    def clusters(self) -> int:
        """Number of independent units: prompts, or matches if prompts are unknown."""
        return len(self) if self.cluster is None else len(self.prompts)


def encode(
    a: Iterable[str],
    b: Iterable[str],
    outcomes: Iterable[str],
    prompts: Iterable[str] | None = None,
    lengths: Sequence[tuple[int, int]] | None = None,
    invalid: int = 0,
) -> Matches:
    """Encode names as numbers; ``lengths`` are the characters of both responses of each match."""
    index: defaultdict[str, int] = defaultdict(count().__next__)
    first, second = _column(index, a), _column(index, b)
    if not len(first):
        more = f" ({printable.count(invalid, 'comparison is', 'comparisons are')} invalid)" if invalid else ""
        raise UsageError(f"no matches to rate{more}")
    try:
        outcome = np.fromiter(map(OUTCOMES.__getitem__, outcomes), np.int8)
    except KeyError as error:
        raise UsageError(f"unknown outcome {error.args[0]!r}; expected a, b or tie") from None
    names, order = _sort_names(index)
    first, second = order[first], order[second]
    places: defaultdict[str, int] = defaultdict(count().__next__)
    cluster = None if prompts is None else _column(places, prompts)
    columns = {len(first), len(second), len(outcome), *(() if cluster is None else (len(cluster),))}
    table = None if lengths is None else np.asarray(lengths, np.int32).reshape(-1, 2)
    if len(columns | (set() if table is None else {len(table)})) > 1:
        raise UsageError("columns of matches differ in length")
    if len(alone := np.flatnonzero(first == second)):
        name = names[int(first[alone[0]])]
        raise UsageError(f"match {alone[0] + 1}: {name!r} plays itself; a match needs two models")
    return Matches(names, first, second, outcome, cluster, tuple(places), table, invalid)


def _column(index: defaultdict[str, int], names: Iterable[str]) -> NDArray[np.int32]:
    # One pass, without a copy of the names.
    return np.fromiter(map(index.__getitem__, names), np.int32)


def _sort_names(index: defaultdict[str, int]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The sorted names, and the place of each number among them."""
    names = tuple(sorted(index))
    order = np.empty(len(names), np.int32)
    order[[index[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return names, order


MAX_WEIGHTS = 64_000_000  # maximum size of the table of weights; beyond it, systems draw counts of matches themselves


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
