"""Write answers side by side: each step adds a token to all, and new prompts replace finished answers.

Every answer has a row in buffers of keys and values, so that a step copies none of them. The rows end at the same
column regardless of their lengths (positions are explicit, and windows have the right size). A
forward pass reads new prompts only once all earlier prompts have a row, so that at most one pass's prompts wait. Other
contents of the buffers change logits only by rounding, but this changes an answer if two tokens are that close, as some
are in bfloat16. So a resumed run may get another answer than an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from distract.core import timer
from distract.models.transformers.architecture import forward_operations
from distract.models.transformers.packs import Forward, Ids
from distract.models.transformers.replies import Answer

ForwardResult = tuple[Forward, Any, list[tuple[Any, Any]]]
"""A forward pass, the log-probabilities of its reads, and by layer the keys and values of all tokens that it sees."""

ROWS = 64
"""Maximum answers at once: more gain little on a CPU, and a killed process loses all unfinished ones."""
_SPARE = 64
"""Columns of the buffers beyond the longest row, and maximum of unused ones before it; then all rows move to the
front."""
_STEPS = 48
"""Minimum number of these columns for steps; the others are for slightly longer rows to come."""


class KnownAnswer:
    """An answer known beforehand: the model's logits for it show whether rows disturb each other."""

    def __init__(self, tokens: Sequence[int], length: int) -> None:
        self.start, self.room = len(tokens) - length, length + 1
        self.tokens, self.finish = list[int](), ""
        self.logits: Any = None
        self._known = tokens[self.start :]

    def write(self, logits: Any, best: int, value: float) -> None:
        """Add the next token regardless of the logits, and keep the logits after the last."""
        if len(self.tokens) == len(self._known):
            self.logits, self.finish = logits.float(), "length"
        self.tokens.append((*self._known, best)[len(self.tokens)])


AnswerDraft = Answer | KnownAnswer


def write(
    model: Any, runs: Iterable[ForwardResult], answers: Mapping[int, AnswerDraft], budget: int, rows: int = ROWS
) -> Iterator[list[int]]:
    """Write all answers to their ends; yields the indices of those that became complete together."""
    decoder = Decoder(model, budget, min(rows, len(answers)))
    begun = _start_answers(runs, answers)
    waiting = next(begun, None)
    under_way: dict[int, AnswerDraft] = {}
    while waiting or under_way:
        while waiting:
            index, cached, seen = waiting
            if answers[index].finish:
                yield [index]
            elif decoder.can_add(answers[index]):
                decoder.add(answers[index], cached, seen)
                under_way[index] = answers[index]
            else:
                break
            waiting = next(begun, None)
        if under_way:
            decoder.step()
            if done := [index for index, answer in under_way.items() if answer.finish]:
                under_way = {index: answer for index, answer in under_way.items() if not answer.finish}
                yield done


def _start_answers(
    runs: Iterable[ForwardResult], answers: Mapping[int, AnswerDraft]
) -> Iterator[tuple[int, list[tuple[Any, Any]], Ids]]:
    """Each answer with its first token: its index, its pass's keys and values, and the places of them it sees."""
    for forward, logarithms, cached in runs:
        values, best = (tensor.tolist() for tensor in logarithms.max(dim=-1))
        for read, (at, ending) in enumerate(forward.reads):
            for index in ending:
                if index in answers:
                    answers[index].write(logarithms[read], best[read], values[read])
                    yield index, cached, forward.seen(at)


class Decoder:
    """A model and the rows that it continues."""

    def __init__(self, model: Any, budget: int, rows: int) -> None:
        self._model, self._budget, self._most = model, budget, rows
        self._rows: list[AnswerDraft | None] = []
        self._filled = self._columns = 0
        self._mask: Any = None
        self._cache: Any = None

    def can_add(self, answer: AnswerDraft) -> bool:
        """Whether there is a row for another answer."""
        alive = [*(row for row in self._rows if row), answer]
        return len(alive) == 1 or len(alive) <= min(self._most, self._row_limit(alive))

    def add(self, answer: AnswerDraft, cached: Sequence[tuple[Any, Any]], seen: Ids) -> None:
        """Give an answer a row."""
        import torch
        from transformers import Cache

        with torch.inference_mode():
            if self._cache is None:
                self._cache = Cache(layers=[_buffer_class()(*states) for states in cached])
            if None not in self._rows or answer.start > self._filled:
                self._lay_out(answer)
            row = self._rows.index(None)
            self._rows[row] = answer
            pad = self._filled - answer.start
            self._mask[row, :pad], self._mask[row, pad:] = 0, 1
            for layer, states in zip(self._cache.layers, cached, strict=True):
                layer.fill(row, pad, *states, seen)

    def step(self) -> None:
        """Add a token to each answer, and free the rows of complete ones."""
        import torch

        with timer.time_part("forward"), torch.inference_mode():
            alive = [answer for answer in self._rows if answer]
            idle = self._filled - max(map(_cached_length, alive))
            # Keep a few unused places, since moving rows takes about half a step.
            if self._filled == self._columns or idle >= _SPARE or 4 * len(alive) <= 3 * len(self._rows):
                self._lay_out()
            # A free row has no effect, so any token will do.
            last = [(answer.tokens[-1], _cached_length(answer)) if answer else (0, 0) for answer in self._rows]
            ids, at = torch.tensor(last, device=self._model.device).T[:, :, None]
            mask = self._mask[:, : self._filled + 1]
            options = {"position_ids": at, "attention_mask": mask, "past_key_values": self._cache, "use_cache": True}
            logits = self._model(input_ids=ids, **options).logits[:, -1]
            values, best = (tensor.tolist() for tensor in logits.max(dim=-1))
        count, seen = len(last), self._filled + 1
        timer.count("tokens computed", count)
        timer.count("operations", lambda: forward_operations(self._model, count, count, count * seen))
        self._filled += 1
        for row, answer in enumerate(self._rows):
            if answer:
                answer.write(logits[row], best[row], values[row])
                self._rows[row] = None if answer.finish else answer

    def _row_limit(self, answers: Iterable[AnswerDraft]) -> int:
        """The number of answers that fit, each as long as the longest of these."""
        return self._budget // (max(answer.start + answer.room for answer in answers) + _SPARE)

    def _lay_out(self, more: AnswerDraft | None = None) -> None:
        """Rearrange the rows: those in use, then free ones if an answer is to be added."""
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
    """The number of its tokens that have keys and values: all but the last, which is processed next."""
    return answer.start + len(answer.tokens) - 1


@cache
def _buffer_class() -> Any:
    from transformers.cache_utils import DynamicLayer

    class Buffered(DynamicLayer):  # type: ignore[misc]
        """One layer of a cache that writes in place; its keys and values are views of the filled columns."""

        def __init__(self, keys: Any, values: Any) -> None:
            super().__init__()
            self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
            self._show([states[:0] for states in (keys, values)], 0)

        def _show(self, whole: list[Any], filled: int) -> None:
            self._whole, (self.keys, self.values) = whole, (states[:, :, :filled] for states in whole)

        def lay(self, rows: list[int], slots: int, kept: int, filled: int, columns: int) -> None:
            """Put these rows first, the last ``kept`` places of each up to column ``filled``; zeros elsewhere."""
            buffers, end = [], self.keys.shape[2]
            for old in self._whole:
                # Fill with zeros, since hidden values are still multiplied by 0.
                new = old.new_zeros((slots, old.shape[1], columns, old.shape[3]))
                if rows:
                    new[: len(rows), :, filled - kept : filled] = old[rows, :, end - kept : end]
                buffers.append(new)
            self._show(buffers, filled)

        def fill(self, row: int, pad: int, keys: Any, values: Any, seen: Any) -> None:
            for buffer, states in ((self.keys, keys), (self.values, values)):
                buffer[row, :, :pad], buffer[row, :, pad:] = 0, states[0][:, seen]

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
            filled = self.keys.shape[2]
            self._show(self._whole, filled + key_states.shape[2])
            self.keys[:, :, filled:], self.values[:, :, filled:] = key_states, value_states
            return self.keys, self.values

    return Buffered
