"""The smallest flip: of a rewrite that turned a verdict over, the fewest words that are enough to."""

from __future__ import annotations

from distract.core.records import Edit, Smallest, applied
from distract.studies.explain.edits import edits, phrases
from distract.studies.explain.search import MOST
from distract.studies.explain.selection import clearest_flips, plan_for
from distract.studies.explain.smallest import smallest
from distract.studies.explain.words import Word, counts, said

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
