"""Words for the outcome of a comparison and for the grade of one response, from which every reader of them derives.

Words are in lower case. A reader that knows more of its input (a letter for a tie, names of models) adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distract.core.records import Outcome
from distract.core.vocabulary import list_words

FIRST, SECOND, PASSES, FAILS = map(list_words, ("first", "second", "pass", "fail"))
ARENA_TIES = ("tie", "tie (bothbad)", "bothbad", "both_bad", "tie (inconsistent)")
"""Ties of published votes."""
TIES = (*ARENA_TIES, *list_words("tie"))
OUTCOMES: Mapping[str, Outcome] = MappingProxyType(
    {**dict.fromkeys(FIRST, "a"), **dict.fromkeys(SECOND, "b"), **dict.fromkeys(TIES, "tie")}
)
NUMBERS: Mapping[str, Outcome] = MappingProxyType({"1": "a", "2": "b"})
"""Numbers of two responses, where they cannot be anything else."""

GRADES: Mapping[str, float] = MappingProxyType({**dict.fromkeys(PASSES, 1.0), "p": 0.5, **dict.fromkeys(FAILS, 0.0)})
"""Grades of one response; C, P and I stand for correct, partly correct and incorrect."""

NO_VERDICTS = frozenset(("", "nan", "null", "none", "<na>", "n/a", "error", "invalid", "no verdict"))
