"""Judgments, and the rows that record them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from distract.core.records.requests import Answer

UNCHANGED = "the control changes nothing in it"
"""Reason to exclude a comparison from the noise: it repeats the original and is answered from the store."""

RESAMPLED = "resample"
"""The control for sampled verdicts: a second sample with nothing changed. It takes the place of an attack's name."""

Outcome = Literal["a", "b", "tie"]
"""The preferred response; ``a`` is the first one of the *comparison*, not the slot."""

PASS_MARK = "pass mark"
"""Stands in for the author of b where one response is judged alone: a is preferred when the response passes."""

MIRROR: Mapping[Outcome, Outcome] = MappingProxyType({"a": "b", "b": "a", "tie": "tie"})


@dataclass(frozen=True, slots=True)
class Judgment:
    """A protocol's conclusion about one comparison, in terms of ``a`` and ``b``.

    Attributes:
        preferred: None exactly when ``failure`` is set.
        probabilities: probabilities of a, b and tie, summing to 1, for a protocol that compares.
        scores: scores of a and b, for a protocol that scores (probability-weighted mean).
        ratings: ratings of a and b, for a protocol that scores (most likely integer).
        mass: lowest probability mass on the choices among the replies read, if known.
        read: ``choices`` (log-probabilities) or ``text`` (a parser).
        failure: reason for having no verdict; ``ParseFailure`` if a reply could not be read.
        answers: the judge's own words, until the row is written; not part of the record.
    """

    preferred: Outcome | None
    probabilities: tuple[float, float, float] | None = None
    scores: tuple[float, float] | None = None
    ratings: tuple[int, int] | None = None
    mass: float | None = None
    read: str = "choices"
    failure: str | None = None
    answers: tuple[Answer, ...] = field(default=(), compare=False, repr=False)

    def mirror(self) -> Judgment:
        p, s, r = self.probabilities, self.scores, self.ratings
        return Judgment(
            preferred=None if self.preferred is None else MIRROR[self.preferred],
            probabilities=None if p is None else (p[1], p[0], p[2]),
            scores=None if s is None else (s[1], s[0]),
            ratings=None if r is None else (r[1], r[0]),
            mass=self.mass,
            read=self.read,
            failure=self.failure,
        )


@dataclass(frozen=True, slots=True)
class Side:
    """The response on one side of a comparison."""

    author: str
    attack: str | None = None
    severity: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One judged comparison, or the reason why it was not judged.

    Its design names the two kinds of response that it compares, as its study describes them; ``extra`` holds what only
    that study records, as JSON values that are not empty.
    """

    case: str  # id of the case
    cluster: str  # name of its exact prompt, for joins
    design: str
    protocol: str
    judge: str
    attack: str  # ``none`` before a rewrite, else the distractor's name
    a: Side
    b: Side
    target: Literal["a", "b"] | None = None  # the side that the attack rewrote, None before
    judgments: tuple[Judgment, ...] = ()  # one per order shown, in terms of a and b; empty when excluded
    keys: tuple[str, ...] = ()  # keys of the requests behind the judgments, without repetition
    tokens: tuple[tuple[int, int], ...] = ()  # of each of those requests: (of the prompt, of the answer)
    excluded: str | None = None  # reason for not making the comparison
    label: Outcome | None = None  # human preference, if known
    data: str = ""  # name of the data set; empty if the run has only one
    subset: str = ""  # name of the part of the data set that the case belongs to
    shown: tuple[Literal["a", "b"], ...] = ()  # side shown first, per judgment; empty for separate scores
    prompt_group: str = ""  # name of its prompt, however it is written; empty where only its cluster is known
    extra: Mapping[str, Any] = field(default_factory=dict)  # written beside the other fields, by name

    @property
    def group(self) -> str:
        """The prompt as statistics know it: rows that share it are not independent."""
        return self.prompt_group or self.cluster

    def without_answers(self) -> Row:
        """Drop the judge's own words, which take memory."""
        if not any(judgment.answers for judgment in self.judgments):
            return self
        return replace(self, judgments=tuple(replace(judgment, answers=()) for judgment in self.judgments))
