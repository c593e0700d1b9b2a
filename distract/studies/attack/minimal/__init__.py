"""The smallest flip: of a rewrite that turned a verdict over, the fewest words that are enough to."""

from __future__ import annotations

from distract.core.records import Edit, Smallest, applied
from distract.studies.attack.minimal.changed_words import Word, counts, said
from distract.studies.attack.minimal.clearest import clearest_flips, plan_for
from distract.studies.attack.minimal.edits import edits, phrases
from distract.studies.attack.minimal.search import MOST
from distract.studies.attack.minimal.smallest import smallest

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
