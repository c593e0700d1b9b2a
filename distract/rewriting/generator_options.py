"""Options of a writer model: sampling, retries, and the test for a complete answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from distract.core.errors import UsageError
from distract.core.records import Message, Reply, Request

MOST_ODDS = 12.0
"""Largest log-odds, where a probability is 0."""

SPARE = 64
"""Token limit for the shortest text."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """The parameters of a writer model, and of the model that reads what it wrote."""

    temperature: float = 0.7  # 0 is greedy
    top_p: float = 1.0  # share of the probability to sample from
    max_tokens: int = 2048  # per text
    retries: int = 1  # further attempts after a rejected one
    best_of: int = 1  # texts per attempt, of which the most distracting faithful one is kept
    verifier_threshold: float = 0.5  # log-odds that a sentence says the same, both ways, for it to stay

    def __post_init__(self) -> None:
        ranges = {
            "temperature": (0 <= self.temperature <= 10, "from 0 to 10"),
            "top_p": (0 < self.top_p <= 1, "above 0 up to 1"),
            "max_tokens": (self.max_tokens >= 1, "from 1"),
            "retries": (self.retries >= 0, "from 0"),
            "best_of": (self.best_of >= 1, "from 1"),
            "verifier_threshold": (abs(self.verifier_threshold) <= MOST_ODDS, f"from {-MOST_ODDS:g} to {MOST_ODDS:g}"),
        }
        for name, (is_valid, expected) in ranges.items():
            if not is_valid:
                raise UsageError(f"{name} {getattr(self, name)}: expected a number {expected}")
        if self.best_of > 1 and self.temperature == 0:
            raise UsageError("best_of above 1 needs a temperature above 0: greedy texts are all the same")

    @property
    def parameters(self) -> Mapping[str, float | int]:
        """The options of the writer, in the form of the run's record."""
        return {name: value for name, value in asdict(self).items() if name != "verifier_threshold"}

    def request(
        self, messages: tuple[Message, ...], *, seed: int, sample: int = 0, like: str | None = None, stop: str = ""
    ) -> Request:
        """Request one text, up to ``stop``; ``like`` is a text of similar length, for the token limit."""
        # The number of bytes bounds the tokens in any script, and is 2.5 times those of an English text: enough for
        # prolix ones.
        max_tokens = self.max_tokens if like is None else min(self.max_tokens, SPARE + 5 * len(like.encode()) // 8)
        is_sampled = self.temperature > 0
        return Request(
            messages,
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p if is_sampled else 1.0,
            seed=seed if is_sampled else 0,
            # A repeated greedy request gives the same text, so all samples share one.
            sample=sample if is_sampled else 0,
            stop=(stop,) if stop else (),
            to="generator",
        )


def flaws(reply: Reply) -> tuple[str, ...]:
    """Return reasons to reject a reply that is not a complete text."""
    if reply.failure is not None:
        return (f"no text: {reply.failure}",)
    if not reply.text.strip():
        return ("empty",)
    return ("truncated",) if reply.finish == "length" else ()
