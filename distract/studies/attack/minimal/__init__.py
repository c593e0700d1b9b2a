"""The smallest flip: the fewest words of a rewrite that still flip the verdict."""

from __future__ import annotations

from distract.core.records import Edit, MinimalFlip, apply_edits
from distract.studies.attack.minimal.changed_words import FlipWord, count_words, describe_edits
from distract.studies.attack.minimal.clearest import clearest_flips, search_flip
from distract.studies.attack.minimal.edits import find_edits, group_edits
from distract.studies.attack.minimal.search import MOST
from distract.studies.attack.minimal.smallest import find_smallest

__all__ = [
    "MOST",
    "Edit",
    "FlipWord",
    "MinimalFlip",
    "apply_edits",
    "clearest_flips",
    "count_words",
    "describe_edits",
    "find_edits",
    "find_smallest",
    "group_edits",
    "search_flip",
]
