"""Usage of a run so far: replies, tokens and their cost, by model.

Prices come from the catalogue or from the user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from distract.core import timer
from distract.core.records import Reply, Request, Role


@dataclass(slots=True)
class Tally:
    """Usage of a run so far."""

    stored: int = 0  # replies found in the store
    made: int = 0  # replies made
    unanswered: int = 0  # requests without a reply
    # Distinct requests, by model and by kind (text or a verdict on choices); stored ones included.
    asked: Counter[tuple[Role, Literal["text", "choices"]]] = field(default_factory=Counter)
    tokens: dict[Role, tuple[int, int]] = field(default_factory=dict)  # of prompts and of answers, new replies only
    cause: str = ""  # reason why the last unanswered request got no reply
    readings: dict[Role, str] = field(default_factory=dict)  # the way in which a local model read its prompts
    workers: dict[Role, tuple[int, int]] = field(default_factory=dict)  # copies of a model: running, and all
    # Checks whether the judge is still the same, by name, for the manifest; their replies are not counted above.
    checks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    # The verdicts (``frozen.Reading``) for which several servers are asked again at the end.
    frozen: dict[Role, list[tuple[Request, Any]]] = field(default_factory=dict)
    manners: dict[Role, Mapping[str, Any]] = field(default_factory=dict)  # capabilities of a server's model
    unshared: str = ""  # reason why processes cannot wait for each other's replies; empty if they can

    @property
    def tokens_in(self) -> int:
        return sum(prompts for prompts, _ in self.tokens.values())

    @property
    def tokens_out(self) -> int:
        return sum(answers for _, answers in self.tokens.values())

    def document(self) -> dict[str, Any]:
        requests: dict[str, dict[str, int]] = {}
        for (role, kind), number in sorted(self.asked.items()):
            requests.setdefault(role, {})[kind] = number
        tokens = {role: {"in": used[0], "out": used[1]} for role, used in sorted(self.tokens.items())}
        counts = {"stored": self.stored, "made": self.made, "unanswered": self.unanswered}
        readings = {"reading": dict(sorted(self.readings.items()))} if self.readings else {}
        manners = {"manners": dict(sorted(self.manners.items()))} if self.manners else {}
        return {**counts, "asked": requests, "tokens": tokens, **readings, **manners}

    def ask(self, requests: Iterable[Request]) -> None:
        self.asked.update((request.to, "choices" if request.choices else "text") for request in requests)

    def count_replies(self, role: Role, replies: Sequence[Reply]) -> None:
        self.count_tokens(role, replies)
        for reply in replies:
            self.made += reply.answered
            if not reply.answered:
                self.unanswered += 1
                self.cause = str(reply.failure)

    def count_tokens(self, role: Role, replies: Sequence[Reply]) -> None:
        prompts, answers = self.tokens.get(role, (0, 0))
        new_prompts = sum(reply.tokens_in for reply in replies)
        new_answers = sum(reply.tokens_out for reply in replies)
        self.tokens[role] = prompts + new_prompts, answers + new_answers
        timer.count("tokens asked", new_prompts + new_answers)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of prompts and of answers, each at least 0."""

    prompts: float
    answers: float

    def of(self, prompts: int, answers: int) -> float:
        return (self.prompts * prompts + self.answers * answers) / 1e6


def cost(prices: Mapping[Role, Price], tokens: Mapping[Role, tuple[int, int]]) -> float | None:
    """Sum the US dollars for models with a known price; None if there are none."""
    known = [prices[role].of(*used) for role, used in tokens.items() if role in prices]
    return sum(known) if known else None


_SCRIPTS = ((0x10000, 2.5), (0xAC00, 1.9), (0x2E80, 1.5), (0x900, 1.2), (0x590, 0.9), (0x370, 0.7), (0x80, 1.1))
"""Tokens per character from these code points: emoji, Korean, Chinese and Japanese, Indian scripts and signs, Hebrew
and Arabic, Greek and Cyrillic, accented Latin letters. Vocabularies that know a script well need fewer."""


@lru_cache(maxsize=4096)
def _weigh(character: str) -> float:
    if not character.isascii():
        return next(tokens for start, tokens in _SCRIPTS if ord(character) >= start)
    return 0.06 if character.isalpha() else 1.0 if character.isdigit() else {"\n": 0.9, " ": 0.0}.get(character, 0.75)


def estimate_tokens(text: str) -> float:
    """Estimate the tokens of a text by its kinds of characters, without a tokenizer."""
    return 0.8 * len(text.split()) + sum(_weigh(one) * number for one, number in Counter(text).items())


def format_dollars(amount: float) -> str:
    """Format an amount: ``$12.30``; small ones with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.2g}"
