"""The smallest flip: of a rewrite that turned a verdict over, the fewest words that are enough to."""

from __future__ import annotations

from distract.core.records import Edit, Smallest, applied
from distract.minimal.chosen import clearest_flips, plan_for
from distract.minimal.edits import edits, phrases
from distract.minimal.finding import smallest
from distract.minimal.search import MOST
from distract.minimal.words import Word, counts, said

__all__ = [
    "MOST",
    "Edit",
    "Smallest",
    "Word",
    "applied",
    "clearest_flips",
    "counts",
    "edits",
    "phrases",
    "plan_for",
    "said",
    "smallest",
]
