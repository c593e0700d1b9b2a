"""Matches between models with awkward names, for tests of rating systems."""

from __future__ import annotations

from hypothesis import strategies as st

from distract.stats.ratings.matches import Matches, encode

NAMES = ("a, the first", 'b "quoted"', "c [bold]", "d 🦙")
Match = tuple[str, str, str]


def played_matches(most: int) -> st.SearchStrategy[list[Match]]:
    """Up to this number of matches of the models."""
    pairs = st.tuples(st.permutations(NAMES), st.sampled_from(("a", "b", "tie")))
    return st.lists(pairs.map(lambda one: (one[0][0], one[0][1], one[1])), min_size=1, max_size=most)


def table(played: list[Match], prompts: list[str] | None = None) -> Matches:
    a, b, outcomes = zip(*played, strict=True)
    return encode(a, b, outcomes, prompts)
