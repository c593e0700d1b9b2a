"""Judge one response alone: its score against the mark from which a response passes.

A row of the design ``pass`` has the response as a and the mark as b, so a is preferred exactly when the response
passes. A protocol that scores is asked about a comparison of the response with itself: both requests are equal, and
equal requests are sent once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from distract.core.errors import UsageError
from distract.core.plugin import Protocol
from distract.core.records import Judgment, Outcome, Row
from distract.judging.comparison import RowFactory
from distract.judging.verdicts import outcome

COMPARES = "compares two responses, and cannot pass or fail one"
"""Why a protocol cannot say whether a response passes."""


@dataclass(frozen=True, slots=True)
class PassMark:
    """The lowest score that passes, and who set it."""

    value: float
    origin: str


def find_mark(protocol: Protocol, requested: float | None = None) -> PassMark:
    """Find the mark of a protocol that scores: its own, the one requested, or the middle of its scale."""
    if protocol.pass_mark is not None:
        return PassMark(protocol.pass_mark, "the judge's own mark")
    low, high = protocol.scale or (None, None)
    if requested is not None:
        if not (-math.inf if low is None else low) <= requested <= (math.inf if high is None else high):
            raise UsageError(f"--pass-mark {requested:g}: the scale of {protocol.name} is {_describe_scale(low, high)}")
        return PassMark(requested, "--pass-mark")
    if low is None or high is None:
        raise UsageError(
            f"{protocol.name} has no pass mark, and its scale ({_describe_scale(low, high)}) has no middle; "
            "name the lowest score that passes with --pass-mark"
        )
    return PassMark((low + high) / 2, "the middle of its scale")


def _describe_scale(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "open at both ends"
    return f"from {low:g}" if high is None else f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def against_mark(row: RowFactory, mark: float) -> RowFactory:
    """Make rows of a response against the mark from judgments of the response against itself."""

    def make(*, judgments: Sequence[Judgment] = (), **fields: Any) -> Row:
        return row(judgments=tuple(_replace_second(judgment, mark) for judgment in judgments), **fields)

    return make


def _replace_second(judgment: Judgment, mark: float) -> Judgment:
    if judgment.scores is None or judgment.failure is not None:
        return judgment
    scores = (judgment.scores[0], mark)
    # Ratings are whole numbers: one reaches the mark exactly when it reaches the next whole number.
    ratings = None if judgment.ratings is None else (judgment.ratings[0], math.ceil(mark))
    criteria = judgment.criteria and {name: (score, mark) for name, (score, _) in judgment.criteria.items()}
    judged = replace(judgment, scores=scores, ratings=ratings, criteria=criteria)
    return replace(judged, preferred=read_pass([judged], "score"))


def read_pass(judgments: Sequence[Judgment], rule: str | None) -> Outcome | None:
    """Read whether a response passes, as ``verdicts.outcome`` reads a comparison; a score equal to the mark passes.

    Without a rule, the stored verdict counts.
    """
    if rule is not None:
        return "a" if outcome(judgments, rule) == "tie" else outcome(judgments, rule)
    stored = {judgment.preferred for judgment in judgments}
    return stored.pop() if len(stored) == 1 else None


def is_scoring(rule: str | None) -> bool:
    """Whether a rule compares scores; others name the source of a stored verdict."""
    return rule in ("score", "rating")


def read_verdict(row: Row, judgments: Sequence[Judgment], rule: str | None) -> Outcome | None:
    """Read the verdict of judgments of a row."""
    read = read_pass if row.design == "pass" else outcome
    return read(judgments, rule if is_scoring(rule) else None)
