"""Replies of local models: on choices from log-probabilities of next tokens, in words token by token.

A choice is one token that tells it apart from the others, or its full continuation if no single token does. A token
of an answer in words is the likeliest one, or drawn with the answer's own random numbers, so that an answer does not
depend on other requests.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract.core import timer
from distract.core.records import Reply, Request
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.encoder import Tokens

Decode = Callable[[list[int]], str]


def lookups(encoded: EncodedRequest) -> dict[Tokens, set[int]]:
    """Tokens whose probabilities are needed, by the preceding ids beyond the prompt."""
    needed: dict[Tokens, set[int]] = {}
    for ids in encoded.continuations:
        for at, token in enumerate(ids):
            needed.setdefault(ids[:at], set()).add(token)
    return needed


def make_length_failure(tokens: int, context: int) -> Reply:
    """The reply to a request with more tokens than the model's context."""
    failure = f"too long: {tokens} tokens, the model takes {context}"
    return Reply(finish="length", failure=failure, tokens_in=tokens)


def make_reply(encoded: EncodedRequest, logprobs: Mapping[Tokens, Mapping[int, float]]) -> Reply:
    """A reply from log-probabilities of tokens, by the preceding ids beyond the prompt."""
    continuations, count = encoded.continuations, len(encoded.prompt)
    logs = [sum(logprobs[ids[:at]][token] for at, token in enumerate(ids)) for ids in continuations]
    if any(math.isnan(log) for log in logs):
        return Reply(finish="choices", failure="not a number", tokens_in=count)
    top = max(logs)
    if top == -math.inf:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    weights = [math.exp(log - top) for log in logs]
    own = list(weights)
    for i, ids in enumerate(continuations):
        # The token "1" covers all numbers that begin with it, so the weight of the choice "10" is subtracted.
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


def draw_token(logits: NDArray[np.floating[Any]], temperature: float, top_p: float, uniform: float) -> int:
    """A token drawn from the likeliest that make up the share ``top_p``, by inverting their distribution."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    tokens = np.arange(len(weights))
    if top_p < 1:
        weights /= weights.sum()
        # Tokens less likely than this make up less than 1 - top_p, so they need no sorting.
        likely = np.flatnonzero(weights >= (1 - top_p) / len(weights))
        order = likely[np.argsort(-weights[likely], kind="stable")]
        last = int(np.searchsorted(np.cumsum(weights[order]), top_p))
        # Sort by id again, since rounding may swap two tokens in the order of likelihood.
        tokens = np.sort(order[: last + 1])
    sums = np.cumsum(weights[tokens])
    place = int(np.searchsorted(sums, uniform * sums[-1], side="right"))
    return int(tokens[min(place, len(tokens) - 1)])


class Answer:
    """One answer while it is written, for ``decoder``."""

    def __init__(self, request: Request, start: int, room: int, ends: Collection[int], decode: Decode) -> None:
        self.start, self.room, self.tokens, self.finish = start, room, list[int](), ""
        self._request, self._ends, self._decode, self._failure = request, ends, decode, ""
        self._stops = [stop for stop in request.stop if stop]
        # A token has at least one byte of text, and the start of a cut text may decode differently.
        self._tail = 4 + max((len(stop.encode()) for stop in self._stops), default=0)
        self._stream = random.Random(int(request.key[:15], 16))

    def write(self, logits: Any, best: int, value: float) -> None:
        """Add a token, given all logits and the highest of them."""
        if not math.isfinite(value):
            self._failure = "not a number"
        elif self._request.temperature > 0:
            temperature, top_p = self._request.temperature, self._request.top_p
            best = draw_token(logits.float().cpu().numpy(), temperature, top_p, self._stream.random())
        self.tokens.append(best)
        if self._failure or best in self._ends or (self._stops and self._is_stopped()):
            self.finish = "stop"
        elif len(self.tokens) >= self.room:
            self.finish = "length"

    def reply(self) -> Reply:
        """The complete answer."""
        text = self._decode(self.tokens)
        text = text[: self._find_stop(text)]
        failure = self._failure or None
        return Reply(text, finish=self.finish, failure=failure, tokens_in=self.start, tokens_out=len(self.tokens))

    def _is_stopped(self) -> bool:
        # Decode the tail first, since decoding the whole answer in every step would be quadratic.
        return all(
            self._find_stop(self._decode(tokens)) is not None for tokens in (self.tokens[-self._tail :], self.tokens)
        )

    def _find_stop(self, text: str) -> int | None:
        return min((text.find(stop) + len(stop) for stop in self._stops if stop in text), default=None)


def write_alone(model: Any, prompts: Sequence[Tokens], answers: Mapping[int, Answer]) -> Iterator[list[int]]:
    """Write answers one after the other with the model's own ``generate``, for models with any kind of cache."""
    for index, answer in answers.items():
        with timer.time_part("forward"):
            _generate(model, prompts[index], answer)
        timer.count("tokens computed", answer.start + len(answer.tokens) - 1)
        yield [index]


def _generate(model: Any, prompt: Tokens, answer: Answer) -> None:
    import torch
    from transformers import GenerationConfig

    def choose(_: Any, scores: Any) -> Any:
        value, best = scores[0].max(dim=-1)
        answer.write(scores[0], int(best), float(value))
        return scores.fill_(-torch.inf).index_fill_(1, torch.tensor(answer.tokens[-1:], device=scores.device), 0)

    def finished(ids: Any, _: Any) -> Any:
        return torch.full((1,), bool(answer.finish), device=ids.device)

    ids = torch.tensor([prompt], device=model.device)
    options = {"generation_config": GenerationConfig(max_new_tokens=answer.room, do_sample=False)}
    options |= {"logits_processor": [choose], "stopping_criteria": [finished]}
    model.generate(ids, attention_mask=torch.ones_like(ids), **options)
