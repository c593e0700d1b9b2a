"""An answer in words while it is written: which token comes next, and when it is complete.

A token is the likeliest one, or drawn with random numbers of the answer's own, so that an answer does not depend on
what else is asked.

It does not know how a model is run (``decoder`` writes many side by side), how a prompt is encoded, or what an answer
is for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract.core import timer
from distract.core.records import Reply, Request

Tokens = tuple[int, ...]
Decode = Callable[[list[int]], str]


def draw_token(logits: NDArray[np.floating[Any]], temperature: float, top_p: float, uniform: float) -> int:
    """A token from the likeliest that together have the share ``top_p``, by inverting their distribution."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    tokens = np.arange(len(weights))
    if top_p < 1:
        weights /= weights.sum()
        # All that are less likely than this have less than 1 - top_p together: no need to sort them.
        likely = np.flatnonzero(weights >= (1 - top_p) / len(weights))
        order = likely[np.argsort(-weights[likely], kind="stable")]
        last = int(np.searchsorted(np.cumsum(weights[order]), top_p))
        # By id again, since rounding that swaps two tokens would swap what is drawn.
        tokens = np.sort(order[: last + 1])
    sums = np.cumsum(weights[tokens])
    place = int(np.searchsorted(sums, uniform * sums[-1], side="right"))
    return int(tokens[min(place, len(tokens) - 1)])


class Answer:
    """One answer while it is written: its ``tokens`` so far, and ``finish`` once it is complete."""

    def __init__(self, request: Request, start: int, room: int, ends: Collection[int], decode: Decode) -> None:
        self.start, self.room, self.tokens, self.finish = start, room, list[int](), ""
        self._request, self._ends, self._decode, self._failure = request, ends, decode, ""
        self._stops = [stop for stop in request.stop if stop]
        # A token is at least one byte of text; and a text cut at its start may decode differently there.
        self._tail = 4 + max((len(stop.encode()) for stop in self._stops), default=0)
        self._stream = random.Random(int(request.key[:15], 16))

    def write(self, logits: Any, best: int, value: float) -> None:
        """Add a token, given the logits of all and the highest of them."""
        if not math.isfinite(value):
            self._failure = "not a number"
        elif self._request.temperature > 0:
            how = self._request.temperature, self._request.top_p, self._stream.random()
            best = draw_token(logits.float().cpu().numpy(), *how)
        self.tokens.append(best)
        if self._failure or best in self._ends or (self._stops and self._is_stopped()):
            self.finish = "stop"
        elif len(self.tokens) >= self.room:
            self.finish = "length"

    def reply(self) -> Reply:
        """What has been written."""
        text = self._decode(self.tokens)
        text = text[: self._find_stop(text)]
        failure = self._failure or None
        return Reply(text, finish=self.finish, failure=failure, tokens_in=self.start, tokens_out=len(self.tokens))

    def _is_stopped(self) -> bool:
        # The tail first: to decode all in every step would be quadratic.
        return all(
            self._find_stop(self._decode(tokens)) is not None for tokens in (self.tokens[-self._tail :], self.tokens)
        )

    def _find_stop(self, text: str) -> int | None:
        """Where the stop that ends first does."""
        return min((text.find(stop) + len(stop) for stop in self._stops if stop in text), default=None)


def write_alone(model: Any, prompts: Mapping[int, Tokens], answers: Mapping[int, Answer]) -> Iterator[list[int]]:
    """Write one after the other with the model's own ``generate``, whatever it keeps of what it has seen."""
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
