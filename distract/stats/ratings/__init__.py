"""Ratings from matches: matches, draws of their prompts, and the record of a rating system."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core import registry
from distract.stats.ratings.system import RatingSystem


def systems() -> Mapping[str, RatingSystem]:
    """Every rating system by name."""
    return registry.plugins("distract.leaderboards", RatingSystem)


def get_system(name: str, is_recorded: bool = False) -> RatingSystem:
    """The rating system with that current or former name; a recorded name loads no file."""
    present = next((system.name for system in systems().values() if system.former == name), name)
    if is_recorded:
        return registry.look_up("rating system", present, systems())
    return registry.find_plugin("distract.leaderboards", RatingSystem, "rating system", present, systems())
