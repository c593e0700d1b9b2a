"""Reward models: sequence classifiers with one label, whose output for a conversation is its score.

One forward pass reads several conversations, padded to the longest. The batches are laid out over all requests of a
round, so that a resumed run computes the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from distract.core import timer
from distract.core.backend import Batch
from distract.core.errors import UsageError
from distract.core.records import Reply, Request
from distract.models.location import silence_transformers
from distract.models.transformers.architecture import reward_labels
from distract.models.transformers.chat import Chat
from distract.models.transformers.replies import make_length_failure
from distract.models.transformers.weights import LocalModel

PLAIN = "{% for message in messages %}{{ message['content'] }}\n\n{% endfor %}"
"""Template of a model that has none: the texts with an empty line after each."""


class RewardModel(LocalModel):
    """A backend that scores conversations; takes the arguments of ``LocalModel``."""

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """See ``Backend.identity``."""
        return {**super().identity, "head": "reward"}

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``; the text of a reply is the score."""
        encoded = dict(enumerate(self._encode(requests)))
        long = {i: len(ids) for i, ids in encoded.items() if len(ids) > self._context}
        if failed := [(i, make_length_failure(n, int(self._context))) for i, n in long.items() if i in wanted]:
            yield failed
        fitting = {i: ids for i, ids in encoded.items() if i not in long}
        left = {*wanted} & fitting.keys()

        def run() -> Iterator[Batch]:
            for batch in self._lay_out(fitting):
                if left.isdisjoint(batch):
                    continue
                logits = dict(zip(batch, self._classify([encoded[i] for i in batch]), strict=True))
                yield [(i, self._make_reply(logits[i], len(encoded[i]))) for i in batch if i in left]
                left.difference_update(batch)

        yield from self._fit_memory(run)

    def _encode(self, requests: Sequence[Request]) -> list[Sequence[int]]:
        return [one.prompt for one in self._chat.encode_all(requests)]

    def _lay_out(self, encoded: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
        """Group conversations of similar length, within the tokens of a forward pass."""
        can_pad = self._loaded.config.get_text_config().pad_token_id is not None
        batch: list[int] = []
        for index in sorted(encoded, key=lambda i: (len(encoded[i]), i)):
            if batch and (not can_pad or (len(batch) + 1) * len(encoded[index]) > self.batch_tokens):
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _classify(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the output for each label, for each sequence."""
        torch, model = self._libraries()[0], self._loaded
        pad = model.config.get_text_config().pad_token_id or 0
        longest = max(map(len, sequences))
        ids = [[*sequence, *[pad] * (longest - len(sequence))] for sequence in sequences]
        mask = [[1] * len(sequence) + [0] * (longest - len(sequence)) for sequence in sequences]
        timer.count("tokens computed", longest * len(sequences))
        with (
            self._translate_errors("run"),
            timer.time_part("forward"),
            torch.inference_mode(),
            silence_transformers(),
        ):
            logits = model(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(mask, device=model.device),
                **self._more_inputs(torch, sequences),
            ).logits
        rows: list[list[float]] = logits.float().reshape(len(sequences), -1).tolist()
        return rows

    def _more_inputs(self, torch: Any, sequences: Sequence[Sequence[int]]) -> Mapping[str, Any]:
        """Return what the model needs beside ids and mask."""
        return {}

    def _make_reply(self, logits: Sequence[float], tokens: int) -> Reply:
        if not math.isfinite(logits[0]):
            return Reply(text=repr(logits[0]), failure="the model's score is not a number", tokens_in=tokens)
        return Reply(text=repr(logits[0]), tokens_in=tokens)

    @cached_property
    def _chat(self) -> Chat:
        transformers = self._libraries()[1]
        with self._translate_errors("load"), silence_transformers():
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._place, **self._origin)
            tokenizer.chat_template = tokenizer.chat_template or PLAIN
            return Chat(tokenizer, self.name, invites=False)

    def _check_config(self, config: Mapping[str, Any]) -> None:
        labels = reward_labels(config)
        if labels is None:
            super()._check_config(config)
            raise UsageError(f"{self.name} is no reward model: its config.json names no ...ForSequenceClassification")
        if labels != 1:
            raise UsageError(
                f"{self.name} is a classifier with {labels} labels, so its output is no score; name a reward model, "
                "which has one (num_labels in config.json)"
            )

    def _auto_class(self, transformers: Any) -> Any:
        return transformers.AutoModelForSequenceClassification

    def _check_mapped(self, transformers: Any) -> None:
        """Leave it to transformers, which names the kinds of models that it can load."""

    def _adjust(self, model: Any) -> None:
        """Change nothing: the model writes no text."""
