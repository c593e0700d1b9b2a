"""What a run has used so far: replies and tokens, by the model they were asked of. It knows no price and no plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from distract.core import timer
from distract.core.backend import Backend
from distract.core.records import Reply, Request, Role
from distract.core.store import Store

Answerer = tuple[Backend, Store]
"""What answers requests, and where its replies are kept."""


@dataclass(frozen=True, slots=True)
class Canary:
    """What came of asking a judge again whose replies are stored.

    Attributes:
        asked: requests that were asked again.
        differing: how many of the new replies are read as something else.
        largest_move: of a probability; None where no reply has any.
    """

    asked: int
    differing: int
    largest_move: float | None


@dataclass(slots=True)
class Tally:
    """What a run has used so far.

    Attributes:
        stored: replies found in the store.
        made: replies made.
        unanswered: requests that no reply came to.
        asked: distinct requests by the model they went to and by whether an answer in ``text`` or a verdict on
            ``choices`` was wanted; stored ones included.
        tokens: of the replies made, by the model they came from: (of prompts, of answers).
        cause: why the last of the unanswered ones was not answered.
        readings: how a model that is run here read its prompts, by its role.
        canary: what came of asking the judge again; None where it was not. Its tokens are among the others, its replies
            are not.
        manners: how a model on a server was asked, by its role.
        unshared: why processes cannot wait for each other's replies; empty where they can.
    """

    stored: int = 0
    made: int = 0
    unanswered: int = 0
    asked: Counter[tuple[Role, Literal["text", "choices"]]] = field(default_factory=Counter)
    tokens: dict[Role, tuple[int, int]] = field(default_factory=dict)
    cause: str = ""
    readings: dict[Role, str] = field(default_factory=dict)
    canary: Canary | None = None
    manners: dict[Role, Mapping[str, Any]] = field(default_factory=dict)
    unshared: str = ""

    @property
    def tokens_in(self) -> int:
        """Tokens of the prompts of the replies made."""
        return sum(prompts for prompts, _ in self.tokens.values())

    @property
    def tokens_out(self) -> int:
        """Tokens of the replies made."""
        return sum(answers for _, answers in self.tokens.values())

    def document(self) -> dict[str, Any]:
        """All of it as JSON values."""
        asked: dict[str, dict[str, int]] = {}
        for (role, kind), number in sorted(self.asked.items()):
            asked.setdefault(role, {})[kind] = number
        tokens = {role: {"in": used[0], "out": used[1]} for role, used in sorted(self.tokens.items())}
        counts = {"stored": self.stored, "made": self.made, "unanswered": self.unanswered}
        read = {"reading": dict(sorted(self.readings.items()))} if self.readings else {}
        manners = {"manners": dict(sorted(self.manners.items()))} if self.manners else {}
        return {**counts, "asked": asked, "tokens": tokens, **read, **manners}

    def ask(self, requests: Iterable[Request]) -> None:
        """Count distinct requests."""
        self.asked.update((request.to, "choices" if request.choices else "text") for request in requests)

    def count_replies(self, role: Role, replies: Sequence[Reply]) -> None:
        """Count replies that were made."""
        self.count_tokens(role, replies)
        for reply in replies:
            self.made += reply.answered
            if not reply.answered:
                self.unanswered += 1
                self.cause = str(reply.failure)

    def count_tokens(self, role: Role, replies: Sequence[Reply]) -> None:
        """Count the tokens of replies that were made."""
        prompts, answers = self.tokens.get(role, (0, 0))
        read, written = sum(reply.tokens_in for reply in replies), sum(reply.tokens_out for reply in replies)
        self.tokens[role] = prompts + read, answers + written
        timer.count("tokens asked", read + written)
