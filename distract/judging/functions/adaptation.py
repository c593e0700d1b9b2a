"""Judges of other frameworks, taken as judge functions: an object that is one becomes a callable with a declaration."""

from __future__ import annotations

from typing import Any

from distract.judging.functions import deepeval, inspect_ai
from distract.judging.functions.neighbours import Adapted


def adapt(judge: Any) -> Adapted:
    """Turn a judge of a known framework into a function; anything else comes back as it is."""
    if deepeval.is_judge(judge):
        return deepeval.adapt(judge)
    return inspect_ai.adapt(judge) if inspect_ai.is_judge(judge) else (judge, {})


def is_function(judge: object) -> bool:
    """Tell whether a value can be a judge function."""
    return not isinstance(judge, type) and callable(adapt(judge)[0])
