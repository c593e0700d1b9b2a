"""Options of a writer model: sampling, retries, and the test for a complete answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from distract.core.errors import UsageError
from distract.core.records import Message, Reply, Request
from distract.models.options import OptionGroup, describe, setting
from distract.models.ranges import TOKENS, NumberRange, WholeRange

MOST_ODDS = 12.0
"""Largest log-odds, where a probability is 0."""

SPARE = 64
"""Token limit for the shortest text."""


_rewriting = partial(setting, panel="Rewriting")


@dataclass(frozen=True, kw_only=True)
class TextOptions(OptionGroup):
    """How a model writes a text."""

    retries: int = _rewriting(1, "more attempts after a rejected text", WholeRange(0, 1000))
    temperature: float = _rewriting(0.7, "temperature of the generator; 0 is greedy", NumberRange(0, 10))
    top_p: float = _rewriting(1.0, "top-p of the generator", NumberRange(0, 1, "least"))
    max_tokens: int = _rewriting(2048, "maximum number of tokens of a generated text", TOKENS)


@dataclass(frozen=True, kw_only=True)
class VerifierOptions(OptionGroup):
    """Who reads what was written."""

    verifier: str | None = _rewriting(
        None,
        "model that reads whether each restyled sentence says the same, nli:MODEL, or none. Default: a model that "
        "writes reads what it wrote",
    )
    verifier_threshold: float = _rewriting(
        0.5,
        "log-odds that a sentence says the same, below which it is put back",
        NumberRange(-MOST_ODDS, MOST_ODDS),
    )


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions(TextOptions, VerifierOptions):
    """The parameters of a writer model, and of the model that reads what it wrote."""

    best_of: int = _rewriting(1, "texts per attempt; the best is kept", WholeRange(1, 1000))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_of > 1 and self.temperature == 0:
            raise UsageError("best_of above 1 needs a temperature above 0: greedy texts are all the same")

    @property
    def parameters(self) -> Mapping[str, float | int]:
        """The options of the writer, in the form of the run's record."""
        return {name: getattr(self, name) for name in (*describe(TextOptions), "best_of")}

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
