"""Requests to a model and its replies."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from distract.core.records.cases import Response

Role = Literal["judge", "generator", "verifier", "reference"]
"""A model's task: judge, rewrite, check that a rewrite says the same, or help the judge."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Names of places in ``Slots.outcomes``; no protocol shows more responses."""

NO_REPLY = "no reply"
"""Prefix of a reply's failure if the model never answered, through no fault of its own."""

MAX_TOKENS = 10**9
"""Upper bound for a reported token count; a sum of numbers with thousands of digits is not valid JSON."""

dump_json = json.JSONEncoder(check_circular=False).encode
"""``json.dumps`` for values that cannot contain themselves."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn sent to a model."""

    role: Literal["system", "user", "assistant"]
    content: str  # verbatim text, never markup


@dataclass(frozen=True, slots=True)
class Slots:
    """The structure behind a request, for planted judges: they see this where a model sees text.

    Attributes:
        case: id of the case.
        shown: the responses in the order in which the request shows them.
        outcomes: the exact text of each possible answer, by meaning: ``"first"``, ``"second"``, ``"tie"`` for a
            comparison (and ``"third"``, ``"fourth"`` … if more are shown); ``"1"``, ``"2"`` … for a rating; for a
            ranking the letter of each, and ``"ranking"``: the form of an answer, ``...`` standing for the order.
        ORDINALS: ``"first"``, ``"second"`` and so on, up to ten.
    """

    ORDINALS: ClassVar[tuple[str, ...]] = ORDINALS
    case: str
    shown: tuple[Response, ...]
    outcomes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model.

    Attributes:
        messages: the turns to send.
        choices: if not empty, the request is for the probability of each as the next text instead of for an answer.
        prefill: the fixed start of the answer.
        max_tokens: maximum number of tokens of an answer in text.
        temperature: 0 is greedy.
        top_p: share of the probability to sample from, above 0 up to 1; 1 is all of it.
        seed: seed for a sampled answer; together with ``sample`` it fixes the draw.
        sample: index that tells repeated samples of the same request apart.
        stop: texts of which the first to occur ends an answer in text, and is kept.
        slots: the structure behind the text; not part of ``key``.
        to: the role of the model to ask; not part of ``key``, since the store adds that model's identity.
        key: SHA-256 (hex) of the request's content; the store adds the judge's identity.
    """

    messages: tuple[Message, ...]
    choices: tuple[str, ...] = ()
    prefill: str = ""
    max_tokens: int = 16
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    sample: int = 0
    stop: tuple[str, ...] = ()
    slots: Slots | None = field(default=None, compare=False)
    to: Role = field(default="judge", compare=False)
    key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        turns = [(message.role, message.content) for message in self.messages]
        choices, stop = tuple(self.choices or ()), tuple(self.stop or ())  # a plug-in may pass lists, or None
        settings = (self.prefill, self.max_tokens, self.temperature, self.top_p, self.seed, self.sample)
        # Computed once: both the store and the rows use it, and hashing a prompt takes time.
        text = dump_json([turns, choices, *settings, stop])
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest())


def token_count(value: object) -> int:
    """Bound the token count that a server reports; 0 if it is not a number."""
    return min(max(value, 0), MAX_TOKENS) if type(value) is int else 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    text: str = ""  # the model's own words, without the prefill
    probabilities: tuple[float, ...] | None = None  # over the request's choices, in order, summing to 1
    mass: float | None = None  # total probability of the choices before normalising, 0 to 1
    finish: str = "stop"  # ``stop``, ``length`` or ``choices``
    failure: str | None = None  # reason for having no usable answer (``too long``, ``refused`` …)
    tokens_in: int = 0  # tokens of the prompt, shared ones included
    tokens_out: int = 0  # tokens generated

    @property
    def answered(self) -> bool:
        """False if the model never answered: such a reply is not stored, and the same command asks again."""
        return self.failure is None or not self.failure.startswith(NO_REPLY)


KeepText = Literal["failures", "all", "none"]
"""The judge's own words that a run folder keeps: those that could not be read, all, or none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply in words, or one that could not be read, behind a judgment."""

    key: str  # of the request
    reply: Reply
    labels: tuple[str, ...]  # forms of a verdict; empty if the request was for another text
    failure: str | None  # why this reply left the judgment without a verdict

    @classmethod
    def of(cls, request: Request, reply: Reply, failure: str | None) -> Answer | None:
        """Describe a reply; None if it holds nothing but probabilities, or never came."""
        is_unread = isinstance(failure, ParseFailure) and failure.reply is reply
        if not reply.answered or (reply.probabilities is not None and not is_unread):
            return None
        outcomes = dict(request.slots.outcomes) if request.slots else {}
        labels = [outcomes["ranking"]] if "ranking" in outcomes else outcomes.values() or request.choices
        wanted = tuple(request.prefill + label for label in labels)
        return cls(request.key, reply, wanted, failure if is_unread else None)


class ParseFailure(str):
    """The reason why a reply holds no verdict: plain text that carries the reply."""

    reply: Reply

    def __new__(cls, why: str, reply: Reply) -> ParseFailure:
        failure = super().__new__(cls, why)
        failure.reply = reply
        return failure
