"""How a writer model is asked: its sampling, how often it may try again, and what counts as a whole answer.

It knows no attack, no prompt and no backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from distract.core.errors import UsageError
from distract.core.records import Message, Reply, Request

SPARE = 64
"""Tokens that even the shortest text may take."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """The parameters of a writer model.

    Attributes:
        temperature: of sampling; 0 is greedy.
        top_p: share of the probability that is sampled from, above 0 up to 1.
        max_tokens: the most that one text may take.
        retries: further attempts after a rejected one, each told why.
        best_of: texts per attempt, of which the most distracting faithful one is kept; needs a temperature above 0.
    """

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 2048
    retries: int = 1
    best_of: int = 1

    def __post_init__(self) -> None:
        ranges = {
            "temperature": (0 <= self.temperature <= 10, "from 0 to 10"),
            "top_p": (0 < self.top_p <= 1, "above 0 up to 1"),
            "max_tokens": (self.max_tokens >= 1, "from 1"),
            "retries": (self.retries >= 0, "from 0"),
            "best_of": (self.best_of >= 1, "from 1"),
        }
        for name, (fine, expected) in ranges.items():
            if not fine:
                raise UsageError(f"{name} {getattr(self, name)}: expected a number {expected}")
        if self.best_of > 1 and self.temperature == 0:
            raise UsageError("best_of above 1 needs a temperature above 0: greedy texts are all the same")

    @property
    def parameters(self) -> Mapping[str, float | int]:
        """For the record."""
        return asdict(self)

    def request(self, messages: tuple[Message, ...], *, seed: int, sample: int = 0, like: str | None = None) -> Request:
        """Ask for one text."""
        # Bytes bound tokens in every script; this is two and a half times an English text, and the most prolix fits.
        room = self.max_tokens if like is None else min(self.max_tokens, SPARE + 5 * len(like.encode()) // 8)
        sampled = self.temperature > 0
        return Request(
            messages,
            max_tokens=room,
            temperature=self.temperature,
            top_p=self.top_p if sampled else 1.0,
            seed=seed if sampled else 0,
            # The same greedy request again is the same text: it is asked for once.
            sample=sample if sampled else 0,
            to="generator",
        )


def flaws(reply: Reply) -> tuple[str, ...]:
    """Why an answer is not a whole text, as a reason to reject it; empty when it is."""
    if reply.failure is not None:
        return (f"no text: {reply.failure}",)
    if not reply.text.strip():
        return ("empty",)
    return ("truncated",) if reply.finish == "length" else ()
