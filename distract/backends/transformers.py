"""Any Hugging Face causal language model as a backend, on a CPU or a GPU.

A verdict on choices costs no generated token: one forward gives the distribution after the prompt. All prompts
of a round are laid out by ``packing`` so that what they share is computed once; a probe at load decides whether
the model does that exactly, and what it does instead.

It does not know what is judged, what a store holds, or how a chat template works.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from distract.backends import Batch, embedded
from distract.backends.chat import Chat, Encoded
from distract.backends.packing import Forward, Sharing, plan, prune
from distract.errors import BackendError, UsageError
from distract.records import Reply, Request

Tokens = tuple[int, ...]
Kept = list[tuple[Any, Any]]
"""Keys and values of a run of tokens, per layer, each (1, heads, tokens, width)."""

DTYPES = ("auto", "float32", "bfloat16", "float16")
QUANTIZATIONS = (None, "bnb-8bit", "bnb-4bit")
READINGS: Mapping[Sharing, str] = {"packed": "packed", "prefix": "one by one", "none": "one by one"}


class Transformers:
    """A model run by Hugging Face transformers.

    Args:
        model: a name on the Hugging Face hub or a folder.
        revision: a branch, tag or commit of the hub; ``main`` unless given.
        dtype: ``auto`` is bfloat16 on a GPU and float32 on a CPU.
        device_map: as transformers takes it; the first GPU, or else the CPU, unless given.
        quantization: None, ``bnb-8bit`` or ``bnb-4bit``.
        trust_remote_code: run code that comes with the model.
        batch_tokens: most tokens in one forward.
        name: shown to people; the model's unless given.
        prepare: makes the model's folder at first use; ``model`` and ``revision`` then only identify it.

    Raises:
        UsageError: an argument is none of those it may be.
    """

    reads_slots = False
    _by_runs = False

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device_map: Any = None,
        quantization: str | None = None,
        trust_remote_code: bool = False,
        batch_tokens: int = 2048,
        name: str | None = None,
        prepare: Callable[[], Path] | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(f"unknown dtype {dtype!r} (known: {', '.join(DTYPES)})")
        if quantization not in QUANTIZATIONS:
            raise UsageError(f"unknown quantization {quantization!r} (known: none, bnb-8bit, bnb-4bit)")
        if batch_tokens < 1:
            raise UsageError(f"batch_tokens must be at least 1, not {batch_tokens}")
        self.model, self.revision, self.name = str(model), revision, name or str(model)
        self.dtype, self.device_map, self.quantization = dtype, device_map, quantization
        self.trust_remote_code, self.batch_tokens, self._prepare = trust_remote_code, batch_tokens, prepare

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Model, revision, engine, dtype (and quantization); for the embedded judge without any import."""
        found = {
            "model": self.model,
            "revision": self._commit,
            "engine": "transformers",
            "dtype": self._dtype,
        }
        return found if self.quantization is None else {**found, "quantization": self.quantization}

    @property
    def reading(self) -> str:
        """``packed`` or ``one by one``; loads the model."""
        return READINGS[self._sharing]

    def encode(self, request: Request) -> tuple[int, ...]:
        """The token ids forwarded for a request, prefill included; loads the tokenizer only."""
        return self._chat.encode(request).prompt

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens shown; loads the tokenizer only."""
        return str(self._chat.tokenizer.decode(list(ids), skip_special_tokens=False))

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``; one batch per forward or generated answer."""
        if not wanted:
            return
        encoded = [self._chat.encode(request) for request in requests]
        limit = self._context
        long = {i: len(e.prompt) for i, e in enumerate(encoded) if len(e.prompt) + _longest(e) > limit}
        failed = [(i, self._too_long(n)) for i, n in long.items() if i in wanted]
        if failed:
            yield failed
        yield from self._read({i: e for i, e in enumerate(encoded) if requests[i].choices and i not in long}, wanted)
        for index in sorted(wanted - long.keys()):
            if not requests[index].choices:
                yield [(index, self._generate(requests[index], encoded[index].prompt))]

    def _too_long(self, tokens: int) -> Reply:
        failure = f"too long: {tokens} tokens, the model takes {int(self._context)}"
        return Reply(finish="length", failure=failure, tokens_in=tokens)

    def _read(self, encoded: Mapping[int, Encoded], wanted: frozenset[int]) -> Iterator[Batch]:
        """Verdicts on choices, through a plan over all requests of the round."""
        # A choice of several tokens is read along its way: one sequence per place where a token is looked up.
        owners: list[tuple[int, Tokens, set[int]]] = []
        for index, one in encoded.items():
            owners.extend((index, walked, nexts) for walked, nexts in _lookups(one).items())
        sequences = [encoded[index].prompt + walked for index, walked, _ in owners]
        forwards = plan(sequences, self.batch_tokens, self._sharing)
        open_ = {i for i, (index, _, _) in enumerate(owners) if index in wanted}
        seen: dict[int, dict[Tokens, dict[int, float]]] = {}
        left = {index: len(_lookups(one)) for index, one in encoded.items() if index in wanted}
        for forward, logarithms in self._run(prune(forwards, open_)):
            batch = []
            for row, (_, ending) in enumerate(forward.reads):
                for sequence in open_.intersection(ending):
                    index, walked, nexts = owners[sequence]
                    order = sorted(nexts)
                    values = logarithms[row, order].tolist()
                    seen.setdefault(index, {})[walked] = dict(zip(order, values, strict=True))
                    left[index] -= 1
                    if not left[index]:
                        batch.append((index, _verdict(encoded[index], seen.pop(index))))
            if batch:
                yield sorted(batch, key=lambda pair: pair[0])

    def _run(self, forwards: Sequence[Forward], sharing: Sharing | None = None) -> Iterator[tuple[Forward, Any]]:
        """Run forwards in order; yields each with the log-probabilities of its reads, (reads, vocabulary)."""
        kept: dict[int, Kept] = {}
        bases = {forward.index: forward.base for forward in forwards}
        for forward in forwards:
            # The order is depth first: what is not below the current forward is never needed again.
            alive, base = set(), forward.base
            while base is not None:
                alive.add(base)
                base = bases[base]
            kept = {index: held for index, held in kept.items() if index in alive}
            past = None if forward.base is None else kept[forward.base]
            with self._failing("run"):
                logarithms, held = self._forward(forward, past, sharing or self._sharing)
            if forward.keep:
                kept[forward.index] = held
            if forward.reads:
                yield forward, logarithms

    def _forward(self, forward: Forward, past: Kept | None, sharing: Sharing) -> tuple[Any, Kept]:
        """One pass: log-probabilities at the reads in float32, and the keys and values to keep."""
        import torch
        from transformers import DynamicCache

        model, count = self._loaded, len(forward.tokens)
        rows = torch.tensor([at for at, _ in forward.reads] or [count - 1], device=model.device)
        options: dict[str, Any] = {"use_cache": False, "logits_to_keep": rows}
        cache = None
        if forward.keep or past:
            cache = DynamicCache()
            for layer, (keys, values) in enumerate(past or ()):
                cache.update(keys, values, layer)
            options.update(use_cache=True, past_key_values=cache)
        if sharing == "packed":
            options["position_ids"] = torch.from_numpy(forward.positions)[None].to(model.device)
            if not forward.chain and self._by_runs:
                # A mask of four dimensions keeps the model from making its own; ``_attend`` does not read it.
                options["attention_mask"] = torch.zeros((1, 1, 1, 1), dtype=model.dtype)
                options["runs"] = self._runs(forward)
            elif not forward.chain:
                options["attention_mask"] = self._mask(forward)
        with torch.inference_mode(), _quiet():
            ids = torch.from_numpy(np.ascontiguousarray(forward.tokens))[None].to(model.device)
            logits = model(input_ids=ids, **options).logits[0]
            if len(logits) != len(rows):
                logits = logits[rows]  # a model that ignores logits_to_keep
            logarithms = torch.log_softmax(logits.float(), dim=-1)
        held = [(layer.keys, layer.values) for layer in cache.layers] if forward.keep and cache else []
        return logarithms, held

    def _mask(self, forward: Forward) -> Any:
        """What to add to the attention scores: 0 where a token is seen; shape (1, 1, n, past + n)."""
        import torch

        model, count = self._loaded, len(forward.tokens)
        # Added rather than boolean: the eager attention of older architectures adds whatever it is given.
        mask = torch.zeros((1, 1, count, forward.past + count), dtype=model.dtype, device=model.device)
        hidden = torch.from_numpy(~forward.visible()).to(model.device)
        mask[0, 0, :, forward.past :].masked_fill_(hidden, torch.finfo(model.dtype).min)
        return mask

    def _runs(self, forward: Forward) -> list[tuple[int, int, Any, Any]]:
        """The mask in parts: (start, stop, which keys these queries see, their mask), for ``_attend``."""
        import torch

        found = []
        for start, stop, before in forward.runs():
            own = np.arange(start, stop)
            keys = np.concatenate((np.arange(forward.past), forward.past + before, forward.past + own))
            mask = torch.full((1, 1, len(own), len(own)), torch.finfo(self._loaded.dtype).min).triu(1)
            mask = torch.nn.functional.pad(mask, (len(keys) - len(own), 0)).to(self._loaded.dtype)
            found.append((start, stop, torch.from_numpy(keys), mask))
        return found

    def _generate(self, request: Request, prompt: Tokens) -> Reply:
        """An answer in words, greedy or sampled with a seed that the request determines."""
        import torch
        from transformers import GenerationConfig

        model = self._loaded
        room = min(request.max_tokens, self._context - len(prompt))
        if room < 1:
            return self._too_long(len(prompt) + 1)
        how: dict[str, Any] = {"do_sample": False}
        if request.temperature > 0:
            how = {"do_sample": True, "temperature": request.temperature, "top_k": 0, "top_p": 1.0}
        ids = torch.tensor([prompt], device=model.device)
        devices = [model.device] if model.device.type == "cuda" else []
        with self._failing("run"), _quiet(), torch.inference_mode(), torch.random.fork_rng(devices):
            torch.manual_seed(int(request.key[:15], 16))
            config = GenerationConfig(max_new_tokens=int(room), **how)
            out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        new = out[0, len(prompt) :].tolist()
        ended = bool(new) and new[-1] in self._ends
        text = str(self._chat.tokenizer.decode(new, skip_special_tokens=True))
        return Reply(text, finish="stop" if ended else "length", tokens_in=len(prompt), tokens_out=len(new))

    @cached_property
    def _chat(self) -> Chat:
        transformers = self._libraries()[1]
        with self._failing("load"), _quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._place, **self._origin)
        return Chat(tokenizer, self.name)

    @cached_property
    def _loaded(self) -> Any:
        """The model, ready to run."""
        torch, transformers = self._libraries()
        options: dict[str, Any] = {"dtype": getattr(torch, self._dtype), **self._origin}
        device_map = self.device_map
        if self.quantization:
            bits = {"bnb-8bit": {"load_in_8bit": True}, "bnb-4bit": {"load_in_4bit": True}}[self.quantization]
            if bits.get("load_in_4bit"):
                bits["bnb_4bit_compute_dtype"] = options["dtype"]
            try:
                importlib.import_module("bitsandbytes")
            except ImportError as error:
                raise UsageError(f"{self.quantization} needs bitsandbytes: pip install bitsandbytes") from error
            options["quantization_config"] = transformers.BitsAndBytesConfig(**bits)
            device_map = device_map or "auto"
        with self._failing("load"), _quiet():
            kind = transformers.AutoModelForCausalLM
            if device_map is not None:
                model = kind.from_pretrained(self._place, device_map=device_map, **options)
            else:
                model = kind.from_pretrained(self._place, **options)
                model = model.to("cuda" if torch.cuda.is_available() else "cpu")
            # A model's own sampling defaults (penalties, top-p) would change what greedy means.
            own = model.generation_config
            self._ends = {self._chat.tokenizer.eos_token_id, *np.atleast_1d(own.eos_token_id or [])} - {None}
            self._ends = {int(end) for end in self._ends}
            pad = own.pad_token_id if own.pad_token_id is not None else min(self._ends, default=0)
            model.generation_config = transformers.GenerationConfig(
                eos_token_id=sorted(self._ends) or None, pad_token_id=pad
            )
        return model.eval()

    @cached_property
    def _sharing(self) -> Sharing:
        """The fastest way of laying out forwards that this model does exactly."""
        if _windowed(self._loaded.config):
            return "none"
        size = self._loaded.get_input_embeddings().num_embeddings
        ids = [(7 * i * i + 13 * i + 11) % size for i in range(40)]
        probe = [ids[:28], ids[:24] + ids[30:36], ids[:20] + ids[36:]]
        exact = self._distributions(probe, "none")
        # Total variation, since a small model's probabilities may all be tiny. In half precision two exact
        # ways differ by rounding alone; a mask that is not respected differs by far more.
        single = self._dtype == "float32" and not self.quantization
        # On a CPU a dense mask costs more than it hides; on a GPU many small kernels do.
        ways: list[tuple[Sharing, bool]] = [("packed", False), ("prefix", False)]
        if self._loaded.device.type == "cpu" and self._loaded.config._attn_implementation == "sdpa":
            ways.insert(0, ("packed", True))
        for sharing, by_runs in ways:
            self._attend_by_runs(by_runs)
            try:
                found = self._distributions(probe, sharing)
            except (BackendError, TypeError, ValueError, KeyError, IndexError, AttributeError):
                continue
            if (abs(found - exact).sum(axis=1) / 2).max() <= (1e-4 if single else 3e-2):
                return sharing
        return "none"

    def _attend_by_runs(self, wanted: bool) -> None:
        """Exchange the model's attention for one that looks only where a run of queries may."""
        if wanted != self._by_runs:
            with _quiet():
                if wanted:
                    from transformers import AttentionInterface, AttentionMaskInterface
                    from transformers.masking_utils import sdpa_mask

                    AttentionInterface.register("distract", _attend)
                    AttentionMaskInterface.register("distract", sdpa_mask)
                self._loaded.set_attn_implementation("distract" if wanted else "sdpa")
            self._by_runs = wanted

    def _distributions(self, sequences: Sequence[Sequence[int]], sharing: Sharing) -> Any:
        """Probabilities after each sequence, (sequences, vocabulary), from forwards small enough to branch."""
        rows: dict[int, Any] = {}
        for forward, logarithms in self._run(plan(sequences, 24, sharing), sharing):
            for row, (_, ending) in enumerate(forward.reads):
                rows.update((sequence, logarithms[row].exp().cpu().numpy()) for sequence in ending)
        return np.stack([rows[index] for index in range(len(sequences))])

    @cached_property
    def _context(self) -> float:
        """Most tokens that the model takes."""
        config = self._loaded.config.get_text_config()
        return getattr(config, "max_position_embeddings", None) or math.inf

    @cached_property
    def _dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "bfloat16" if self._libraries()[0].cuda.is_available() else "float32"

    @cached_property
    def _place(self) -> str:
        return str(self._prepare()) if self._prepare else self.model

    @cached_property
    def _origin(self) -> dict[str, Any]:
        """Where transformers looks; a folder never leads to the network."""
        if self._prepare or Path(self.model).is_dir():
            return {"local_files_only": True, "trust_remote_code": self.trust_remote_code}
        return {"revision": self._commit, "trust_remote_code": self.trust_remote_code}

    @cached_property
    def _commit(self) -> str:
        """What fixes the weights: a commit of the hub, or a digest of a folder's configuration and files."""
        if self.revision and (self._prepare or re.fullmatch("[0-9a-f]{40}", self.revision)):
            return self.revision
        here = Path(self.model)
        if here.is_dir():
            files = sorted((path.name, path.stat().st_size) for path in here.iterdir() if path.is_file())
            config = here / "config.json"
            settings = config.read_bytes() if config.is_file() else b""
            return hashlib.sha256(settings + repr(files).encode()).hexdigest()
        transformers = self._libraries()[1]
        with self._failing("load"), _quiet():
            config = transformers.AutoConfig.from_pretrained(
                self.model, revision=self.revision, trust_remote_code=self.trust_remote_code
            )
        return str(getattr(config, "_commit_hash", None) or self.revision or "main")

    def _libraries(self) -> tuple[Any, Any]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import torch
                import transformers
        except ImportError as error:
            raise UsageError(f'{self.name} needs {error.name}: pip install "distract[local]"') from error
        return torch, transformers

    @contextlib.contextmanager
    def _failing(self, doing: str) -> Iterator[None]:
        """Turn what the libraries raise into one line."""
        try:
            import safetensors

            broken: tuple[type[Exception], ...] = (safetensors.SafetensorError, RuntimeError)
        except ImportError:
            broken = (RuntimeError,)
        if doing == "load":
            broken = (*broken, OSError, ValueError, TypeError, KeyError, AttributeError, ImportError)
        try:
            yield
        except broken as error:
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            reason = (reason or type(error).__name__).rstrip(".")
            if "out of memory" in str(error).lower() or "can't allocate" in str(error).lower():
                hint = f"give it less at once (batch_tokens, now {self.batch_tokens}) or a smaller model"
            elif doing == "load":
                hint = "check the name or folder, the revision, the access rights and the network"
            else:
                hint = "the replies so far are stored; run again, or with dtype float32"
            raise BackendError(f"cannot {doing} the model {self.name}: {reason}; {hint}") from error


def embedded_judge(**options: Any) -> Transformers:
    """The judge ``smollm2-135m``, fetched at first use; float32 unless ``dtype`` is given.

    Args:
        **options: those of ``Transformers`` but the model, its revision and ``prepare``.
    """
    fixed = {"revision": embedded.SHA256, "prepare": embedded.ensure}
    return Transformers(embedded.NAME, **{"dtype": "float32", **options, **fixed})


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, runs: Any = None, **options: Any
) -> Any:
    """Attention of transformers' form; with ``runs``, each run of queries against the keys that it sees."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward as attend

    if runs is None:
        return attend(module, query, key, value, attention_mask, **options)
    parts = []
    for start, stop, at, mask in runs:
        seen = (key.index_select(2, at), value.index_select(2, at))
        parts.append(attend(module, query[:, :, start:stop], *seen, mask, **options)[0])
    return torch.cat(parts, dim=1), None


def _longest(encoded: Encoded) -> int:
    """Tokens forwarded beyond the prompt."""
    return max((len(one) - 1 for one in encoded.continuations), default=0)


def _ways(encoded: Encoded) -> tuple[Tokens, ...]:
    """The ids of each choice after the prompt."""
    return encoded.continuations or tuple((token,) for token in encoded.choice_tokens or ())


def _lookups(encoded: Encoded) -> dict[Tokens, set[int]]:
    """After which ids beyond the prompt the probability of which tokens is needed."""
    found: dict[Tokens, set[int]] = {}
    for way in _ways(encoded):
        for at, token in enumerate(way):
            found.setdefault(way[:at], set()).add(token)
    return found


def _verdict(encoded: Encoded, seen: Mapping[Tokens, Mapping[int, float]]) -> Reply:
    """Log-probabilities of tokens to probabilities of choices."""
    ways, count = _ways(encoded), len(encoded.prompt)
    logs = [sum(seen[way[:at]][token] for at, token in enumerate(way)) for way in ways]
    if any(math.isnan(log) for log in logs):
        return Reply(finish="choices", failure="not a number", tokens_in=count)
    top = max(logs)
    if top == -math.inf:
        return Reply(finish="choices", mass=0.0, failure="no choice has any probability", tokens_in=count)
    weights = [math.exp(log - top) for log in logs]
    own = list(weights)
    for i, way in enumerate(ways):
        # "1" stands for all that begins with it; what belongs to the choice "10" is not its own.
        longer = {one: weights[j] for j, one in enumerate(ways) if len(one) > len(way) and one[: len(way)] == way}
        nearest = {one for one in longer if not any(one[: len(o)] == o for o in longer if len(o) < len(one))}
        own[i] = max(0.0, weights[i] - sum(longer[one] for one in nearest))
    total = sum(own)
    probabilities = tuple(weight / total for weight in own)
    mass = min(1.0, total * math.exp(top))
    return Reply(probabilities=probabilities, mass=mass, finish="choices", tokens_in=count)


def _windowed(config: Any) -> bool:
    """Whether any layer sees less than everything before a token."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None)
    if kinds:
        return any(kind != "full_attention" for kind in kinds)
    return bool(getattr(text, "sliding_window", None)) and getattr(text, "use_sliding_window", True) is not False


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and advice from transformers; its settings are put back afterwards."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
