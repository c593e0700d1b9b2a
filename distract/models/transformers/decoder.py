"""Answers written side by side: each step adds a token to all, and the next prompt takes the place of what is finished.

Every answer has a row in buffers of keys and values, so that a step copies none of them. The rows end at the same
column (positions are explicit, and windows see as far back as they should), whatever their lengths. A forward that
reads prompts runs only when all that was read before has a row; at most one forward's prompts wait. What else is in
the buffers changes logits by rounding alone; where two tokens are that close, and in bfloat16 some are, it changes an
answer. So a run that was killed may go on with another answer than an uninterrupted one would have had.

It does not know how a prompt is encoded, how forwards are run and planned, or what an answer is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from distract.core import timer
from distract.models.transformers.architecture import forward_operations
from distract.models.transformers.packs import Forward
from distract.models.transformers.trie import Ids

ForwardResult = tuple[Forward, Any, list[tuple[Any, Any]]]
"""A forward, the log-probabilities of its reads, and the keys and values, by layer, of all that it sees."""

ROWS = 64
"""Most answers at once: more gain little on a CPU, and a killed process loses what is unfinished of all."""
_SPARE = 64
"""Columns of the buffers beyond the longest row, and most before it: then all rows move to the front."""
_STEPS = 48
"""How many of them steps may use at least; the others are for rows a little longer than those that are there."""


class AnswerDraft(Protocol):
    """One answer while it is written.

    Attributes:
        start: tokens of its prompt.
        room: most tokens of it, at least 1.
        tokens: those written so far.
        finish: empty while it is not complete.
    """

    start: int
    room: int
    tokens: list[int]
    finish: str

    def write(self, logits: Any, best: int, value: float) -> None:
        """Add a token, given the logits of all and the highest of them."""
        ...


def write(
    model: Any, runs: Iterable[ForwardResult], answers: Mapping[int, AnswerDraft], budget: int, rows: int = ROWS
) -> Iterator[list[int]]:
    """Write all answers to their ends."""
    decoding = Decoder(model, budget, min(rows, len(answers)))
    begun = _start_answers(runs, answers)
    waiting = next(begun, None)
    under_way: dict[int, AnswerDraft] = {}
    while waiting or under_way:
        while waiting:
            index, held, seen = waiting
            if answers[index].finish:
                yield [index]
            elif decoding.can_add(answers[index]):
                decoding.add(answers[index], held, seen)
                under_way[index] = answers[index]
            else:
                break
            waiting = next(begun, None)
        if under_way:
            decoding.step()
            if done := [index for index, answer in under_way.items() if answer.finish]:
                under_way = {index: answer for index, answer in under_way.items() if not answer.finish}
                yield done


class KnownAnswer:
    """An answer that is known before: what the model thinks of it shows whether rows disturb each other."""

    def __init__(self, tokens: Sequence[int], length: int) -> None:
        self.start, self.room = len(tokens) - length, length + 1
        self.tokens, self.finish = list[int](), ""
        self.logits: Any = None
        self._told = tokens[self.start :]

    def write(self, logits: Any, best: int, value: float) -> None:
        """Add the next token whatever the logits; once all are told, those behind the last are ``logits``."""
        if len(self.tokens) == len(self._told):
            self.logits, self.finish = logits.float(), "length"
        self.tokens.append((*self._told, best)[len(self.tokens)])


def _start_answers(
    runs: Iterable[ForwardResult], answers: Mapping[int, AnswerDraft]
) -> Iterator[tuple[int, list[tuple[Any, Any]], Ids]]:
    """Each answer with its first token: its index, what its forward holds, and which places of that it sees."""
    for forward, logarithms, held in runs:
        values, best = (one.tolist() for one in logarithms.max(dim=-1))
        for read, (at, ending) in enumerate(forward.reads):
            for index in ending:
                if index in answers:
                    answers[index].write(logarithms[read], best[read], values[read])
                    yield index, held, forward.seen(at)


class Decoder:
    """A model and the rows that it continues."""

    def __init__(self, model: Any, budget: int, rows: int) -> None:
        self._model, self._budget, self._most = model, budget, rows
        self._rows: list[AnswerDraft | None] = []
        self._filled = self._columns = 0
        self._mask: Any = None
        self._cache: Any = None

    def can_add(self, answer: AnswerDraft) -> bool:
        """Whether there is a row for one more."""
        alive = [one for one in self._rows if one] + [answer]
        return len(alive) == 1 or len(alive) <= min(self._most, self._row_limit(alive))

    def add(self, answer: AnswerDraft, held: Sequence[tuple[Any, Any]], seen: Ids) -> None:
        """Give an answer a row."""
        import torch
        from transformers import Cache

        with torch.inference_mode():
            if self._cache is None:
                self._cache = Cache(layers=[_buffer_class()(*states) for states in held])
            if None not in self._rows or answer.start > self._filled:
                self._lay_out(answer)
            row = self._rows.index(None)
            self._rows[row] = answer
            pad = self._filled - answer.start
            self._mask[row, :pad], self._mask[row, pad:] = 0, 1
            for layer, states in zip(self._cache.layers, held, strict=True):
                layer.fill(row, pad, *states, seen)

    def step(self) -> None:
        """Add a token to each answer; the rows of those that are complete then become free."""
        import torch

        with timer.time_part("forward"), torch.inference_mode():
            alive = [one for one in self._rows if one]
            idle = self._filled - max(map(_cached_length, alive))
            # Moving rows takes about as long as half a step: a few places that nobody needs are not worth it.
            if self._filled == self._columns or idle >= _SPARE or 4 * len(alive) <= 3 * len(self._rows):
                self._lay_out()
            # A free row sees nothing that matters: any token will do.
            last = [(one.tokens[-1], _cached_length(one)) if one else (0, 0) for one in self._rows]
            ids, at = torch.tensor(last, device=self._model.device).T[:, :, None]
            mask = self._mask[:, : self._filled + 1]
            options = {"position_ids": at, "attention_mask": mask, "past_key_values": self._cache, "use_cache": True}
            logits = self._model(input_ids=ids, **options).logits[:, -1]
            values, best = (one.tolist() for one in logits.max(dim=-1))
        count, seen = len(last), self._filled + 1
        timer.count("tokens computed", count)
        timer.count("operations", lambda: forward_operations(self._model, count, count, count * seen))
        self._filled += 1
        for row, answer in enumerate(self._rows):
            if answer:
                answer.write(logits[row], best[row], values[row])
                self._rows[row] = None if answer.finish else answer

    def _row_limit(self, answers: Iterable[AnswerDraft]) -> int:
        """For how many like the longest of these there are places."""
        return self._budget // (max(answer.start + answer.room for answer in answers) + _SPARE)

    def _lay_out(self, more: AnswerDraft | None = None) -> None:
        """Lay out the rows anew: those in use, and free ones where another is to be added."""
        import torch

        used = [row for row, answer in enumerate(self._rows) if answer]
        alive = [answer for answer in self._rows if answer]
        longest, slots = max(map(_cached_length, [*alive, *([more] if more else [])])), len(used)
        if more:
            slots = max(slots + 1, min(self._most, self._row_limit([*alive, more])))
        self._rows = [*alive, *[None] * (slots - len(used))]
        before, self._filled = self._filled, -(-longest // (_SPARE - _STEPS)) * (_SPARE - _STEPS)
        self._columns = self._filled + _STEPS
        for layer in self._cache.layers:
            layer.lay(used, slots, min(before, self._filled), self._filled, self._columns)
        pads = [self._filled - (_cached_length(answer) if answer else 0) for answer in self._rows]
        places = torch.arange(self._columns)
        self._mask = (places >= torch.tensor(pads)[:, None]).long().to(self._model.device)


def _cached_length(answer: AnswerDraft) -> int:
    """How many of its tokens have keys and values: all but the last, which comes next at that position."""
    return answer.start + len(answer.tokens) - 1


@cache
def _buffer_class() -> Any:
    from transformers.cache_utils import DynamicLayer

    class Buffered(DynamicLayer):  # type: ignore[misc]
        """One layer of a cache that writes in place; its keys and values are views of what is filled."""

        def __init__(self, keys: Any, values: Any) -> None:
            super().__init__()
            self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
            self._show([one[:0] for one in (keys, values)], 0)

        def _show(self, whole: list[Any], filled: int) -> None:
            self._whole, (self.keys, self.values) = whole, (one[:, :, :filled] for one in whole)

        def lay(self, rows: list[int], slots: int, kept: int, filled: int, columns: int) -> None:
            """These rows first, the last ``kept`` places of each up to column ``filled``; zeros elsewhere."""
            laid, end = [], self.keys.shape[2]
            for old in self._whole:
                # Zeros, since what a mask hides is still multiplied by 0.
                new = old.new_zeros((slots, old.shape[1], columns, old.shape[3]))
                if rows:
                    new[: len(rows), :, filled - kept : filled] = old[rows, :, end - kept : end]
                laid.append(new)
            self._show(laid, filled)

        def fill(self, row: int, pad: int, keys: Any, values: Any, seen: Any) -> None:
            for mine, given in ((self.keys, keys), (self.values, values)):
                mine[row, :, :pad], mine[row, :, pad:] = 0, given[0][:, seen]

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
            filled = self.keys.shape[2]
            self._show(self._whole, filled + key_states.shape[2])
            self.keys[:, :, filled:], self.values[:, :, filled:] = key_states, value_states
            return self.keys, self.values

    return Buffered
