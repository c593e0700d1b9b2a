"""Sequence classifiers: reward models, and models that say whether a text says what a sentence says.

A reward model has one label, whose output for a conversation is its score. Models of natural language inference, and
those of the MiniCheck kind, read a pair: the text, then the sentence. One forward pass reads several conversations or
pairs, padded to the longest. The batches are laid out over all requests of a round, so that a resumed run computes the
same numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from distract.core import timer
from distract.core.backend import Batch
from distract.core.errors import UsageError
from distract.core.records import Reply, Request
from distract.models.location import silence_transformers
from distract.models.transformers.architecture import reward_labels
from distract.models.transformers.replies import make_length_failure
from distract.models.transformers.weights import LocalModel

PLAIN = "{% for message in messages %}{{ message['content'] }}\n\n{% endfor %}"
"""Template of a model that has none: the texts with an empty line after each."""


class RewardModel(LocalModel):
    """A backend that scores conversations; takes the arguments of ``LocalModel``."""

    _plain, _invites = PLAIN, False

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
        with self._translate_errors("run"), timer.time_part("forward"), torch.inference_mode(), silence_transformers():
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


_YES = re.compile(
    r"(?!.*(?:not|non|un|in)[ _-]?(?:entail|support|consistent))(?:.*(?:entail|support|consistent)|yes|true)", re.I
)
"""A label of those that say the same."""


class Pair(list[int]):
    """The ids of a text and a sentence, with the kind of each id where the model tells them apart."""

    kinds: Sequence[int] = ()


class EntailmentModel(RewardModel):
    """A backend that answers whether the first message states the second; takes the arguments of ``LocalModel``."""

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """See ``Backend.identity``."""
        return {**super().identity, "head": "entailment"}

    def _encode(self, requests: Sequence[Request]) -> list[Sequence[int]]:
        pairs = [[message.content.encode(errors="replace").decode() for message in one.messages] for one in requests]
        encoded = list[Sequence[int]]()
        with timer.time_part("tokenise"):
            for text, sentence in pairs:
                # Special tokens in a text are words.
                one = self._tokenizer(text, sentence, split_special_tokens=True)
                encoded.append(pair := Pair(one["input_ids"]))
                pair.kinds = one.get("token_type_ids", ())
        return encoded

    def _more_inputs(self, torch: Any, sequences: Sequence[Sequence[int]]) -> Mapping[str, Any]:
        kinds = [one.kinds for one in sequences if isinstance(one, Pair) and one.kinds]
        longest = max(map(len, sequences))
        rows = [[*own, *[0] * (longest - len(own))] for own in kinds]
        return {"token_type_ids": torch.tensor(rows, device=self._loaded.device)} if kinds else {}

    def _make_reply(self, logits: Sequence[float], tokens: int) -> Reply:
        if not all(map(math.isfinite, logits)):
            return Reply(text=repr(logits), failure="the model's output is not a number", tokens_in=tokens)
        place = self._place_of_yes
        # A single output is the log-odds of yes.
        others = [value - logits[place] for at, value in enumerate(logits) if at != place] or [-logits[0]]
        no = sum(math.exp(min(one, 700)) for one in others)
        return Reply(probabilities=(1 / (1 + no), no / (1 + no)), mass=1.0, tokens_in=tokens)

    @cached_property
    def _place_of_yes(self) -> int:
        config = self._loaded.config
        labels = [str(config.id2label[at]) for at in range(config.num_labels)]
        named = [at for at, label in enumerate(labels) if _YES.match(label)]
        if len(named) == 1 or len(labels) == 1:
            return named[0] if named else 0
        if len(labels) == 2 and not named:
            return 1  # MiniCheck: 1 is supported
        raise UsageError(f"{self.name} has the labels {', '.join(labels)[:200]}; expected one that says entailment")

    @cached_property
    def _tokenizer(self) -> Any:
        transformers = self._libraries()[1]
        with self._translate_errors("load"), silence_transformers():
            return transformers.AutoTokenizer.from_pretrained(self._place, **self._origin)

    def _check_config(self, config: Mapping[str, Any]) -> None:
        if reward_labels(config) is None:
            raise UsageError(f"{self.name} is no classifier: its config.json names no ...ForSequenceClassification")
