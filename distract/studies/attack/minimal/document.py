"""The smallest flips as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distract.core.records import MinimalFlip
from distract.studies.attack.minimal import count_words


def minimal_document(found: Sequence[MinimalFlip]) -> dict[str, Any]:
    """Return what the smallest flips add to the document of a run."""
    words = [{"word": word.text, "change": word.change, "flips": word.flips} for word in count_words(found)]
    return {"minimal": {"flips": [flatten(one) for one in found], "words": words}}


def flatten(one: MinimalFlip) -> dict[str, Any]:
    """Return a smallest flip as JSON values."""
    return {
        "case": one.case.id,
        "protocol": one.protocol,
        "rule": one.rule,
        "attack": one.attack,
        "rewritten": one.rewritten,
        "other": one.other,
        "edits": [{"removed": edit.old, "added": edit.new} for edit in one.edits],
        "of": one.of,
        "comparisons": one.comparisons,
        "requests": one.requests,
        "invalid": one.invalid,
        "minimal": one.minimal,
    }
