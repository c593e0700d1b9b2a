"""Ratings from matches: the matches, draws of their prompts, and the record that a rating system is."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core import registry
from distract.stats.ratings.system import RatingSystem


def systems() -> Mapping[str, RatingSystem]:
    """Every rating system by name."""
    return registry.plugins("distract.leaderboards", RatingSystem)


def get_system(name: str) -> RatingSystem:
    """The rating system that has that name, or had it."""
    present = next((one.name for one in systems().values() if one.former == name), name)
    return registry.get_plugin("rating system", present, systems())
