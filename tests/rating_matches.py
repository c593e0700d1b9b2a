"""Matches between models with awkward names, for tests of rating systems."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distract.stats.ratings.matches import encode

NAMES = ("a, the first", 'b "quoted"', "c [bold]", "d 🦙", "tie")
Match = tuple[str, str, str]


def played_matches(most: int) -> st.SearchStrategy[list[Match]]:
    """Up to this number of matches of the models."""
    pairs = st.tuples(st.permutations(NAMES), st.sampled_from(("a", "b", "tie")))
    return st.lists(pairs.map(lambda one: (one[0][0], one[0][1], one[1])), min_size=1, max_size=most)


def table(played: list[Match], prompts: list[str] | None = None) -> Any:
    """Encode matches; mypy lets any column be used."""
    a, b, outcomes = zip(*played, strict=True)
    return encode(a, b, outcomes, prompts)


def simulate_matches(models: int, matches: int, seed: int = 0, spread: float = 150.0) -> list[Match]:
    """Matches between models of known strength, a tenth of them ties."""
    random = np.random.default_rng(seed)
    strength = random.normal(0, spread, models)
    a = random.integers(models, size=matches)
    b = (a + random.integers(1, models, size=matches)) % models
    chance = 1 / (1 + 10 ** ((strength[b] - strength[a]) / 400))
    drawn, tied = random.random(matches), random.random(matches) < 0.1
    return [
        (f"m{x:02}", f"m{y:02}", "tie" if tie else "a" if won else "b")
        for x, y, tie, won in zip(a, b, tied, drawn < chance, strict=True)
    ]
