"""Any Hugging Face causal language model as a backend, on a CPU or a GPU.

A verdict on choices needs no generated token: one forward pass gives the distribution after the prompt. ``packs`` lays
out all prompts of a round so that shared parts are computed once; ``decoder`` writes answers in words many at a time.
Probes at load time test whether the model does either exactly, and choose a slower way otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from distract.core import timer
from distract.core.backend import Batch
from distract.core.errors import BackendError
from distract.core.records import Request
from distract.models.location import silence_transformers
from distract.models.transformers import embedded
from distract.models.transformers.architecture import WRITING, forward_operations, layers, reach
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.decoder import ForwardResult, KnownAnswer, write
from distract.models.transformers.encoder import Tokens
from distract.models.transformers.packs import (
    Attention,
    Forward,
    Sharing,
    dense_masks,
    lay_out,
    layer_parts,
    prune,
    register_attention,
    segment,
)
from distract.models.transformers.replies import Answer, lookups, make_length_failure, make_reply, write_alone
from distract.models.transformers.weights import LocalModel

REFUSALS = (BackendError, TypeError, ValueError, KeyError, IndexError, AttributeError)
"""Errors of models that do not support the way in which they are run."""

PROMPT_MODES: Mapping[Sharing, str] = {"packed": "packed", "prefix": "cached prefix", "none": "one by one"}


class Transformers(LocalModel):
    """A backend on a model run by Hugging Face transformers; takes the arguments of ``LocalModel``."""

    _attention: Attention = "dense"

    @property
    def prompt_mode(self) -> str:
        """The way in which prompts are read: ``packed``, ``cached prefix`` or ``one by one``; loads the model."""
        return PROMPT_MODES[self._sharing]

    @property
    def used(self) -> str | None:
        """``prompt_mode`` if a prompt has been read, else None; does not load the model."""
        return self.prompt_mode if "_sharing" in vars(self) else None

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``; yields a batch per forward pass, and answers in words once complete."""
        if not wanted:
            return
        encoded = self._chat.encode_all(requests)
        long = {i: e.length for i, e in enumerate(encoded) if e.length > self._context}
        failed = [(i, make_length_failure(n, int(self._context))) for i, n in long.items() if i in wanted]
        if failed:
            yield failed
        fitting = {i: e for i, e in enumerate(encoded) if i not in long}
        yield from self._read({i: e for i, e in fitting.items() if requests[i].choices}, wanted)
        yield from self._write(requests, {i: e.prompt for i, e in fitting.items() if not requests[i].choices}, wanted)

    def _read(self, encoded: Mapping[int, EncodedRequest], wanted: frozenset[int]) -> Iterator[Batch]:
        """Verdicts on choices, laid out over all requests of the round."""
        # A choice of several tokens takes one sequence per place where a token is looked up.
        owners = [
            (index, walked, nexts) for index, request in encoded.items() for walked, nexts in lookups(request).items()
        ]
        sequences = [encoded[index].prompt + walked for index, walked, _ in owners]
        open_ = {i for i, (index, _, _) in enumerate(owners) if index in wanted}
        seen: dict[int, dict[Tokens, dict[int, float]]] = {}
        left = {index: len(lookups(request)) for index, request in encoded.items() if index in wanted}
        for forward, logarithms in self._run_all(sequences, open_):
            batch = []
            for row, (_, ending) in enumerate(forward.reads):
                for sequence in open_.intersection(ending):
                    index, walked, nexts = owners[sequence]
                    order = sorted(nexts)
                    values = logarithms[row, order].tolist()
                    seen.setdefault(index, {})[walked] = dict(zip(order, values, strict=True))
                    left[index] -= 1
                    if not left[index]:
                        batch.append((index, make_reply(encoded[index], seen.pop(index))))
            if batch:
                yield sorted(batch, key=lambda pair: pair[0])

    def _run_all(self, sequences: Sequence[Tokens], wanted: Collection[int]) -> Iterator[tuple[Forward, Any]]:
        """Run the forward passes that read the wanted sequences, with fewer tokens each after running out of memory."""
        left = set(wanted)

        def run() -> Iterator[tuple[Forward, Any]]:
            forwards = lay_out(sequences, self.batch_tokens, self._sharing, reach(self._loaded.config))
            for forward, logarithms, _ in self._run(prune(forwards, left), self._sharing):
                yield forward, logarithms
                left.difference_update(*(ending for _, ending in forward.reads))

        return self._fit_memory(run)

    def _write(
        self, requests: Sequence[Request], prompts: Mapping[int, Tokens], wanted: frozenset[int]
    ) -> Iterator[Batch]:
        """Answers in words, their prompts laid out over all requests of the round."""
        rooms = {i: int(min(requests[i].max_tokens, self._context - len(prompt))) for i, prompt in prompts.items()}
        # Start with the longest, because they finish last and the others are padded to them.
        order = sorted(prompts, key=lambda i: (-len(prompts[i]) - rooms[i], prompts[i], i))
        left = {at: i for at, i in enumerate(order) if i in wanted}
        if not left:
            return
        decode = partial(self._chat.tokenizer.decode, skip_special_tokens=True)

        def run() -> Iterator[Batch]:
            answers = {at: Answer(requests[i], len(prompts[i]), rooms[i], self._ends, decode) for at, i in left.items()}
            for done in self._write_all([prompts[i] for i in order], answers):
                yield [(left.pop(at), answers[at].reply()) for at in done]

        yield from self._fit_memory(run)

    def _write_all(self, sequences: Sequence[Tokens], answers: Mapping[int, Answer]) -> Iterator[list[int]]:
        """Write answers from their beginning to their ends; yields the indices of those that became complete."""
        furthest = reach(self._loaded.config)
        together = {
            at: answer for at, answer in answers.items() if self._can_batch and answer.start + answer.room <= furthest
        }
        forwards = lay_out(sequences, self.batch_tokens, self._sharing, furthest, early=False)
        runs = self._run(prune(forwards, together), self._sharing, hold=True)
        alone = {at: answer for at, answer in answers.items() if at not in together}
        written = chain(
            write(self._loaded, runs, together, WRITING * self.batch_tokens),
            write_alone(self._loaded, sequences, alone),
        )
        while True:
            with self._translate_errors("run"), silence_transformers():
                done = next(written, None)
            if done is None:
                return
            yield done

    def _run(self, forwards: Sequence[Forward], sharing: Sharing, hold: bool = False) -> Iterator[ForwardResult]:
        """Run forward passes; yields those with reads, their log-probabilities and, with ``hold``, all they see."""
        caches: dict[int, Any] = {}
        bases = {forward.index: forward.base for forward in forwards}
        for forward in forwards:
            # The order is depth first, so only the bases of the current forward pass are needed again.
            alive, base = set(), forward.base
            while base is not None:
                alive.add(base)
                base = bases[base]
            caches = {index: cache for index, cache in caches.items() if index in alive}
            past = None if forward.base is None else caches[forward.base]
            with self._translate_errors("run"):
                logarithms, cache = self._forward(forward, past, sharing, hold or forward.keep)
            if forward.keep:
                caches[forward.index] = cache
            if forward.reads:
                yield forward, logarithms, [(layer.keys, layer.values) for layer in cache.layers] if hold else []

    def _forward(self, forward: Forward, past: Any, sharing: Sharing, keep: bool) -> tuple[Any, Any]:
        """Run one pass: log-probabilities at the reads in float32 and, with ``keep``, a cache of all tokens seen."""
        import torch
        from transformers import DynamicCache

        model, count = self._loaded, len(forward.tokens)
        rows = torch.tensor([at for at, _ in forward.reads] or [count - 1], device=model.device)
        options: dict[str, Any] = {"use_cache": False, "logits_to_keep": rows}
        seen = layers(model.config)
        cache = None
        if keep or past is not None:
            if past is None:
                # Layers keep all tokens, since the mask handles windows.
                cache = DynamicCache(config=None if seen else model.config)
            else:  # copy the cache, since other forward passes build on it
                cache = _copy_start(past, forward.past) if sharing == "packed" else deepcopy(past)
            options.update(use_cache=True, past_key_values=cache)
        if sharing == "packed":
            options["position_ids"] = torch.from_numpy(forward.positions)[None].to(model.device)
            assert seen
            if not forward.is_chain and self._attention == "dense":
                options["attention_mask"] = dense_masks(forward, seen, model.dtype, model.device)
            elif not forward.is_chain:
                # A 4-D mask keeps the model from making its own; ``attend`` ignores it.
                options["attention_mask"] = torch.zeros((1, 1, 1, 1), dtype=model.dtype, device=model.device)
                if self._attention == "kernel":
                    options["runs"] = segment(forward, seen, model.device)
                else:
                    options["runs"] = layer_parts(forward, seen, model.dtype, model.device)
        timer.count("tokens computed", count)
        timer.count("operations", lambda: forward_operations(model, count, len(forward.reads), forward.pairs))
        with timer.time_part("forward"), torch.inference_mode(), silence_transformers():
            ids = torch.from_numpy(np.ascontiguousarray(forward.tokens))[None].to(model.device)
            logits = model(input_ids=ids, **options).logits[0]
            if len(logits) != len(rows):
                logits = logits[rows]  # a model that ignores logits_to_keep
            logarithms = torch.log_softmax(logits.float(), dim=-1)
            if timer.is_measuring() and logarithms.is_cuda:
                torch.cuda.synchronize(logarithms.device)  # a GPU works on while its results are awaited
        return logarithms, cache

    @cached_property
    def _sharing(self) -> Sharing:
        """The fastest layout of forward passes that this model computes exactly."""
        probe, exact = self._probe
        ways: list[tuple[Sharing, Attention]] = [("packed", "dense"), ("prefix", "dense")]
        if not layers(self._loaded.config):
            # Windows and the like are longer than the probe, so only the configuration shows them.
            ways = ways[1:]
        elif self._loaded.config._attn_implementation == "sdpa":
            # Dense masks are slow everywhere, many small kernels are slow on a GPU, and the large one computes in
            # half precision only.
            if self._loaded.device.type == "cpu":
                ways.insert(0, ("packed", "runs"))
            elif self._loaded.dtype.itemsize == 2:
                ways.insert(0, ("packed", "kernel"))
        for sharing, attention in ways:
            self._attend_by(attention)
            try:
                if self._is_exact(self._distributions(probe, sharing), exact):
                    return sharing
            except REFUSALS:
                continue
        return "none"

    @cached_property
    def _can_batch(self) -> bool:
        """Whether the model continues sequences of different lengths side by side exactly."""
        if self._sharing == "none" or not layers(self._loaded.config):
            return False
        probe, exact = self._probe
        try:
            # Use more answers than rows, so that one takes the place of another.
            known = {at: KnownAnswer(ids, 2 + at) for at, ids in enumerate(probe)}
            forwards = lay_out([ids[: known[at].start] for at, ids in enumerate(probe)], 24, self._sharing, early=False)
            with self._translate_errors("run"), silence_transformers():
                for _ in write(self._loaded, self._run(forwards, self._sharing, hold=True), known, 1024, 2):
                    pass
                result = np.stack([answer.logits.softmax(dim=-1).cpu().numpy() for answer in known.values()])
            return self._is_exact(result, exact)
        except REFUSALS:
            return False

    @cached_property
    def _probe(self) -> tuple[list[Tokens], Any]:
        """Sequences of different lengths with shared starts, and the probabilities after each when read alone."""
        size = self._loaded.get_input_embeddings().num_embeddings
        ids = tuple((7 * i * i + 13 * i + 11) % size for i in range(40))
        probe = [ids[:28], ids[:24] + ids[30:36], ids[:20] + ids[36:]]
        return probe, self._distributions(probe, "none")

    def _is_exact(self, result: Any, exact: Any) -> bool:
        # Compare by total variation, since a small model's probabilities may all be tiny. In half precision two exact
        # ways differ only by rounding; a mask that the model ignores makes a far larger difference.
        single = self._dtype == "float32" and not self.quantization
        return bool((abs(result - exact).sum(axis=1) / 2).max() <= (1e-4 if single else 3e-2))

    def _attend_by(self, attention: Attention) -> None:
        """Switch between the model's own attention and ours."""
        if attention != self._attention:
            with silence_transformers():
                register_attention()
                self._loaded.set_attn_implementation("sdpa" if attention == "dense" else "distract")
            self._attention = attention

    def _distributions(self, sequences: Sequence[Sequence[int]], sharing: Sharing) -> Any:
        """Probabilities after each sequence, (sequences, vocabulary), from forward passes so small that they branch."""
        rows: dict[int, Any] = {}
        forwards = lay_out(sequences, 24, sharing, reach(self._loaded.config), early=False)
        for forward, logarithms, _ in self._run(forwards, sharing):
            for row, (_, ending) in enumerate(forward.reads):
                rows.update((sequence, logarithms[row].exp().cpu().numpy()) for sequence in ending)
        return np.stack([rows[index] for index in range(len(sequences))])


def _copy_start(cache: Any, tokens: int) -> Any:
    from transformers import DynamicCache

    result = DynamicCache()
    for number, layer in enumerate(cache.layers):
        if layer.keys is not None:  # a layer may share those of another
            result.update(layer.keys[:, :, :tokens], layer.values[:, :, :tokens], number)
    return result


def embedded_judge(**options: Any) -> Transformers:
    """The judge ``smollm2-135m``, fetched at first use; in float32 unless ``dtype`` is given."""
    fixed = {"revision": embedded.SHA256, "prepare": embedded.ensure}
    return Transformers(embedded.NAME, **{"dtype": "float32", **options, **fixed})
