"""Replies on choices, from log-probabilities of next tokens.

A choice is one token that tells it apart from the others, or its full continuation where no single token does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from distract.core.records import Reply
from distract.models.transformers.chat import EncodedRequest

Tokens = tuple[int, ...]


def extra_tokens(encoded: EncodedRequest) -> int:
    """How many tokens to forward beyond the prompt."""
    return max((len(ids) - 1 for ids in encoded.continuations), default=0)


def choice_ids(encoded: EncodedRequest) -> tuple[Tokens, ...]:
    """Ids of each choice after the prompt."""
    return encoded.continuations or tuple((token,) for token in encoded.choice_tokens or ())


def lookups(encoded: EncodedRequest) -> dict[Tokens, set[int]]:
    """Tokens whose probability is needed, by the ids beyond the prompt that they follow."""
    needed: dict[Tokens, set[int]] = {}
    for ids in choice_ids(encoded):
        for at, token in enumerate(ids):
            needed.setdefault(ids[:at], set()).add(token)
    return needed


def make_length_failure(tokens: int, context: int) -> Reply:
    """The reply to a request of more tokens than the model takes."""
    failure = f"too long: {tokens} tokens, the model takes {context}"
    return Reply(finish="length", failure=failure, tokens_in=tokens)


def make_reply(encoded: EncodedRequest, logprobs: Mapping[Tokens, Mapping[int, float]]) -> Reply:
    """A reply from log-probabilities of tokens, by the ids beyond the prompt that they follow."""
    continuations, count = choice_ids(encoded), len(encoded.prompt)
    logs = [sum(logprobs[ids[:at]][token] for at, token in enumerate(ids)) for ids in continuations]
    if any(math.isnan(log) for log in logs):
        return Reply(finish="choices", failure="not a number", tokens_in=count)
    top = max(logs)
    if top == -math.inf:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    weights = [math.exp(log - top) for log in logs]
    own = list(weights)
    for i, ids in enumerate(continuations):
        # "1" stands for all that begins with it, so the weight of the choice "10" is taken out.
        longer = {
            other: weights[j]
            for j, other in enumerate(continuations)
            if len(other) > len(ids) and other[: len(ids)] == ids
        }
        nearest = {other for other in longer if not any(other[: len(o)] == o for o in longer if len(o) < len(other))}
        own[i] = max(0.0, weights[i] - sum(longer[other] for other in nearest))
    total = sum(own)
    if total <= 0.0:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    probabilities = tuple(weight / total for weight in own)
    mass = min(1.0, total * math.exp(top))
    return Reply(probabilities=probabilities, mass=mass, finish="choices", tokens_in=count)
