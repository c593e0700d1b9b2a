"""From log-probabilities of next tokens to a reply on choices.

A choice is one token that tells it apart from the others, or its full continuation where no single token does. It
knows no model and no tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from distract.core.records import Reply
from distract.models.transformers.chat import EncodedRequest

Tokens = tuple[int, ...]


def extra_tokens(encoded: EncodedRequest) -> int:
    """Tokens forwarded beyond the prompt."""
    return max((len(one) - 1 for one in encoded.continuations), default=0)


def choice_ids(encoded: EncodedRequest) -> tuple[Tokens, ...]:
    """The ids of each choice after the prompt."""
    return encoded.continuations or tuple((token,) for token in encoded.choice_tokens or ())


def lookups(encoded: EncodedRequest) -> dict[Tokens, set[int]]:
    """After which ids beyond the prompt the probability of which tokens is needed."""
    found: dict[Tokens, set[int]] = {}
    for way in choice_ids(encoded):
        for at, token in enumerate(way):
            found.setdefault(way[:at], set()).add(token)
    return found


def make_reply(encoded: EncodedRequest, seen: Mapping[Tokens, Mapping[int, float]]) -> Reply:
    """Log-probabilities of tokens to probabilities of choices."""
    continuations, count = choice_ids(encoded), len(encoded.prompt)
    logs = [sum(seen[way[:at]][token] for at, token in enumerate(way)) for way in continuations]
    if any(math.isnan(log) for log in logs):
        return Reply(finish="choices", failure="not a number", tokens_in=count)
    top = max(logs)
    if top == -math.inf:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    weights = [math.exp(log - top) for log in logs]
    own = list(weights)
    for i, way in enumerate(continuations):
        # "1" stands for all that begins with it; what belongs to the choice "10" is not its own.
        longer = {
            one: weights[j] for j, one in enumerate(continuations) if len(one) > len(way) and one[: len(way)] == way
        }
        nearest = {one for one in longer if not any(one[: len(o)] == o for o in longer if len(o) < len(one))}
        own[i] = max(0.0, weights[i] - sum(longer[one] for one in nearest))
    total = sum(own)
    if total <= 0.0:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    probabilities = tuple(weight / total for weight in own)
    mass = min(1.0, total * math.exp(top))
    return Reply(probabilities=probabilities, mass=mass, finish="choices", tokens_in=count)
