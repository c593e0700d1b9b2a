"""Answers in words, many at a time: what their prompts share is read once, each step writes a token of every answer.

The answers of a round are cut into batches, which depend on all of them and never on what is already stored. The keys
and values of each prompt are gathered from the forwards of ``packing`` into buffers for the whole batch with room for
what will be written, so that a step copies none of them. A token is the likeliest one, or drawn with random numbers of
the answer's own: what else is in the batch changes an answer by rounding at most.

It does not know how a prompt is encoded, how forwards are run, or what an answer is for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distract.backends.packing import Forward
from distract.records import Reply, Request

Tokens = tuple[int, ...]
Decode = Callable[[list[int]], str]
Run = tuple[Forward, Any, list[tuple[Any, Any]]]
"""A forward, the log-probabilities of its reads, and the keys and values, by layer, of all that it sees."""

ROWS = 32
"""Most answers in a batch; on a CPU, 32 take 1.5 times as long as 16, and a killed process loses fewer than of 64."""


def batches(prompts: Mapping[int, Tokens], rooms: Mapping[int, int], budget: int, rows: int = ROWS) -> list[list[int]]:
    """Which answers are written together.

    Args:
        prompts: token ids, by index of the request.
        rooms: most tokens of each answer, by the same indices.
        budget: most places for tokens in a batch, padding included; one answer alone may exceed it.
        rows: most answers in a batch.
    """
    # Padding costs in every step, a prefix read twice only once: neighbours are about as long first of all, and share
    # the most among those.
    order = sorted((rooms[i], int(math.log(len(prompt), 1.25)), prompt, i) for i, prompt in prompts.items())
    made: list[list[int]] = []
    longest = 0
    for _, _, prompt, index in order:
        longest = max(longest, len(prompt))
        if made and len(made[-1]) < rows and (len(made[-1]) + 1) * (longest + rooms[index]) <= budget:
            made[-1].append(index)
        else:
            made.append([index])
            longest = len(prompt)
    return made


def draw(logits: NDArray[np.floating[Any]], temperature: float, top_p: float, uniform: float) -> int:
    """A token from the likeliest that together have the share ``top_p``, by inverting their distribution.

    Args:
        logits: of every token, or their log-probabilities.
        temperature: above 0.
        top_p: above 0; at 1 every token may be drawn.
        uniform: from 0 up to but not 1; all that is random.
    """
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
    """One answer while it is written: its ``tokens`` so far, and ``finish`` once it is complete.

    Args:
        request: what it answers.
        start: tokens of its prompt.
        room: most tokens of it.
        ends: tokens that end it.
        decode: the text of token ids, special tokens left out.
    """

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
            best = draw(logits.float().cpu().numpy(), *how)
        self.tokens.append(best)
        if self._failure or best in self._ends or (self._stops and self._stopped()):
            self.finish = "stop"
        elif len(self.tokens) >= self.room:
            self.finish = "length"

    def reply(self) -> Reply:
        """What has been written."""
        text = self._decode(self.tokens)
        text = text[: self._cut(text)]
        failure = self._failure or None
        return Reply(text, finish=self.finish, failure=failure, tokens_in=self.start, tokens_out=len(self.tokens))

    def _stopped(self) -> bool:
        # The tail first: to decode all in every step would be quadratic.
        return all(self._cut(self._decode(tokens)) is not None for tokens in (self.tokens[-self._tail :], self.tokens))

    def _cut(self, text: str) -> int | None:
        """Where the stop that ends first does."""
        return min((text.find(stop) + len(stop) for stop in self._stops if stop in text), default=None)


class Decoding:
    """Prompts as keys and values, right-aligned, and a model that continues all; ``logits`` are those at their ends.

    Args:
        model: a causal language model of transformers.
        runs: the forwards that read the prompts.
        rows: the row of each sequence that they read and that is wanted.
        lengths: tokens of each row.
        room: most tokens that will be added.
    """

    def __init__(self, model: Any, runs: Iterable[Run], rows: dict[int, int], lengths: list[int], room: int) -> None:
        import torch
        from transformers import Cache

        self._model, self._pads = model, [max(lengths) - length for length in lengths]
        places = torch.arange(max(lengths) + room)
        self._mask = (places >= torch.tensor(self._pads)[:, None]).long().to(model.device)
        first: dict[int, Any] = {}
        with torch.inference_mode():
            for forward, logarithms, held in runs:
                if not first:
                    shape = len(lengths), max(lengths), room
                    self._cache = Cache(layers=[_buffered()(*states, *shape) for states in held])
                for read, (at, ending) in enumerate(forward.reads):
                    for row in [rows[sequence] for sequence in ending if sequence in rows]:
                        first[row] = logarithms[read]
                        for layer, states in zip(self._cache.layers, held, strict=True):
                            layer.fill(row, self._pads[row], *states, forward.seen(at))
            self.logits = torch.stack([first[row] for row in range(len(lengths))])

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> None:
        """Add a token to each row."""
        import torch

        ids, at = torch.tensor([tokens, positions], device=self._model.device)[:, :, None]
        mask = self._mask[:, : self._cache.get_seq_length() + 1]
        options = {"position_ids": at, "attention_mask": mask, "past_key_values": self._cache, "use_cache": True}
        with torch.inference_mode():
            self.logits = self._model(input_ids=ids, **options).logits[:, -1]

    def keep(self, rows: list[int]) -> None:
        """Drop the other rows, and the padding that none of these has."""
        cut = min(self._pads[row] for row in rows)
        self._pads = [self._pads[row] - cut for row in rows]
        self._mask = self._mask[rows, cut:]
        for layer in self._cache.layers:
            layer.keep(rows, cut)


def write(decoding: Decoding, answers: Sequence[Answer]) -> None:
    """Write all answers, one a row, to their ends."""
    while True:
        values, best = (one.tolist() for one in decoding.logits.max(dim=-1))
        for row, answer in enumerate(answers):
            if not answer.finish:
                answer.write(decoding.logits[row], best[row], values[row])
        alive = [row for row, answer in enumerate(answers) if not answer.finish]
        if not alive:
            return
        # Dropping rows copies the others, which takes as long as a step or two.
        if 4 * len(alive) <= 3 * len(answers):
            decoding.keep(alive)
            answers = [answers[row] for row in alive]
        # A finished row stays at its last place, since the next might be outside the context.
        last = [(answer.tokens[-1], answer.start + len(answer.tokens) - 1) for answer in answers]
        decoding.step(*zip(*last, strict=True))


def write_alone(model: Any, prompt: Tokens, answer: Answer) -> None:
    """Write one answer with the model's own ``generate``, whatever it keeps of what it has seen."""
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


@cache
def _buffered() -> Any:
    from transformers.cache_utils import DynamicLayer

    class Buffered(DynamicLayer):  # type: ignore[misc]
        """One layer of a cache that writes in place; its keys and values are views of what is filled."""

        def __init__(self, keys: Any, values: Any, rows: int, filled: int, room: int) -> None:
            super().__init__()
            self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
            # Zeros, since what a mask hides is still multiplied by 0.
            self._show([s.new_zeros((rows, s.shape[1], filled + room, s.shape[3])) for s in (keys, values)], filled)

        def _show(self, whole: list[Any], filled: int) -> None:
            self._whole, (self.keys, self.values) = whole, (one[:, :, :filled] for one in whole)

        def fill(self, row: int, pad: int, keys: Any, values: Any, seen: Any) -> None:
            self.keys[row, :, pad:], self.values[row, :, pad:] = keys[0][:, seen], values[0][:, seen]

        def keep(self, rows: Any, cut: int) -> None:
            self._show([one[rows, :, cut:] for one in self._whole], self.keys.shape[2] - cut)

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
            filled = self.keys.shape[2]
            self._show(self._whole, filled + key_states.shape[2])
            self.keys[:, :, filled:], self.values[:, :, filled:] = key_states, value_states
            return self.keys, self.values

    return Buffered
