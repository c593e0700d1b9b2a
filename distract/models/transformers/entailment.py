"""Models of natural language inference, and those of the MiniCheck kind: does a text say what a sentence says?

They are sequence classifiers of a pair: the text, then the sentence. The probability of yes is that of the label that
stands for entailment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from distract.core import timer
from distract.core.errors import UsageError
from distract.core.records import Reply, Request
from distract.models.location import silence_transformers
from distract.models.transformers.architecture import reward_labels
from distract.models.transformers.reward import RewardModel

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
