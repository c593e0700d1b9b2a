"""The smallest flips as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distract.core.records import MinimalFlip
from distract.studies.attack.minimal import count_words


def minimal_document(smallest: Sequence[MinimalFlip]) -> dict[str, Any]:
    """Return what the smallest flips add to the document of a run."""
    words = [{"word": word.text, "change": word.change, "flips": word.flips} for word in count_words(smallest)]
    return {"minimal": {"flips": [flatten(flip) for flip in smallest], "words": words}}


def flatten(flip: MinimalFlip) -> dict[str, Any]:
    """Return a smallest flip as JSON values."""
    names = ("protocol", "rule", "attack", "rewritten", "other")
    numbers = ("of", "comparisons", "requests", "invalid", "minimal")
    return {
        "case": flip.case.id,
        **{name: getattr(flip, name) for name in names},
        "edits": [{"removed": edit.old, "added": edit.new} for edit in flip.edits],
        **{name: getattr(flip, name) for name in numbers},
    }
