"""Weights in memory, loaded at first use: their precision, their device, and the tokens that fit beside them.

On processors without bfloat16 units, bfloat16 is a hundred times slower than float32; on processors with them it is
several times faster. Timing matrix products for 50 ms tells the two apart. The result is kept in the cache folder, so
that the same command keeps using the same judge.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import math
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from distract.core import files
from distract.core.errors import BackendError, UsageError
from distract.models import hardware
from distract.models.cache import keep, recall
from distract.models.location import HubModel, silence_transformers
from distract.models.transformers.architecture import LEAST_TOKENS, config_number, most_tokens
from distract.models.transformers.embedded import print_note

FASTER = 1.5
"""Multiple of float32's rate from which a smaller type is worth its rounding."""

CACHE_FILE = "precision.json"
SECONDS = 0.05  # time spent on matrix products of each type


def matrix_rate(dtype: str, device: str, shape: tuple[int, int, int], seconds: float = SECONDS) -> float:
    """Floating-point operations per second of matrix products; takes the arguments of ``product_times``."""
    times = product_times(dtype, device, shape, seconds)
    return product_operations(shape) / min(times) if times else 0.0


def product_operations(shape: tuple[int, int, int]) -> float:
    """Floating-point operations of a product of (rows, columns, outputs)."""
    rows, columns, outputs = shape
    return 2.0 * rows * columns * outputs


def product_times(dtype: str, device: str, shape: tuple[int, int, int], seconds: float = SECONDS) -> list[float]:
    """Seconds of each of several matrix products; empty if the device does not support them."""
    import torch

    rows, columns, outputs = shape
    times: list[float] = []
    try:
        kind = getattr(torch, dtype)
        # Random numbers, since a GPU is faster on equal ones; from a generator of their own, to disturb no other draw.
        draw = {"generator": torch.Generator(device).manual_seed(0), "dtype": kind, "device": device}
        left, right = torch.randn((rows, columns), **draw), torch.randn((outputs, columns), **draw)
        with torch.inference_mode():
            _time_product(left, right)  # the first product sets up memory, threads and kernels
            while len(times) < 5 or sum(times) < seconds:
                times.append(_time_product(left, right))
    except (RuntimeError, TypeError):
        return []
    return times


def _time_product(left: Any, right: Any) -> float:
    import torch

    begin = time.perf_counter()
    torch.nn.functional.linear(left, right)
    if left.is_cuda:
        torch.cuda.synchronize(left.device)
    return time.perf_counter() - begin


def measure_rates(device: str, seconds: float = SECONDS) -> dict[str, float]:
    """Rates of float32 and of types that may replace it: bfloat16, and on a GPU float16."""
    # On a CPU, use a shape so small that even a type without hardware support takes milliseconds.
    size = 2048 if device.startswith("cuda") else 256
    kinds = ("float32", "bfloat16", "float16") if device.startswith("cuda") else ("float32", "bfloat16")
    return {kind: matrix_rate(kind, device, (size, size, size), seconds) for kind in kinds}


def choose_dtype(rates: Mapping[str, float]) -> str:
    """The type to use: float32 unless another is clearly faster, and float16 only if bfloat16 is slow."""
    half = "float16" if rates.get("float16", 0.0) >= FASTER * rates.get("bfloat16", 0.0) else "bfloat16"
    return half if rates.get(half, 0.0) >= FASTER * rates["float32"] else "float32"


def recall_dtype(folder: Path, on_gpu: bool = True) -> str | None:
    """The fastest type on this machine, without importing torch; None if not measured yet."""
    dtype = recall(folder / CACHE_FILE).get(_describe_machine(on_gpu))
    return dtype if dtype in ("float32", "bfloat16", "float16") else None


def find_dtype(folder: Path, on_gpu: bool = True) -> str:
    """The fastest type on this machine, measured now if needed."""
    if (known := recall_dtype(folder, on_gpu)) is not None:
        return known
    import torch

    dtype = choose_dtype(measure_rates("cuda" if on_gpu and torch.cuda.is_available() else "cpu"))
    keep(folder / CACHE_FILE, {**recall(folder / CACHE_FILE), _describe_machine(on_gpu): dtype})
    return dtype


def _describe_machine(on_gpu: bool) -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        described = []
    lines = {line.split(":", 1)[0].strip(): line.split(":", 1)[-1].strip() for line in reversed(described)}
    units = sorted(unit for unit in lines.get("flags", "").split() if "bf16" in unit)
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    parts = (lines.get("model name", platform.processor() or platform.machine()), *units)
    gpus = [gpu.name for gpu in hardware.gpus()] if on_gpu else ["no GPU"]
    return "; ".join((*parts, *gpus, f"torch {torch}"))


QUANTIZATIONS = (None, "bnb-8bit", "bnb-4bit")
_TRIM, _MAP = -1, -3
"""Parameters of GNU's malloc (malloc.h): the free memory kept at the end, and the size of separately mapped blocks."""
_KEPT = 2**30
"""Bytes of the largest block to keep, and maximum free bytes to keep at the end of memory."""
T = TypeVar("T")
_HEAD = re.compile(r"(?:^|\.)(?:score|classifier|v_head|value_head|qa_outputs)\.")


class LocalModel(HubModel):
    """A model of Hugging Face transformers, and how to load it."""

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        device_map: Any = None,
        quantization: str | None = None,
        batch_tokens: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, dtype=dtype, **options)
        if quantization not in QUANTIZATIONS:
            raise UsageError(f"unknown quantization {quantization!r} (known: none, bnb-8bit, bnb-4bit)")
        if batch_tokens is not None and batch_tokens < 1:
            raise UsageError(f"batch_tokens must be at least 1, not {batch_tokens}")
        self.device_map, self.quantization = device_map, quantization
        self._given_tokens = batch_tokens

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """See ``Backend.identity``; imports nothing for the embedded judge."""
        identity = {"model": self.model, **self._weights_id, "engine": "transformers", "dtype": self._dtype}
        identity |= self._template_id
        return identity if self.quantization is None else {**identity, "quantization": self.quantization}

    def load(self) -> None:
        """Load the weights now instead of at the first request."""
        _ = self._loaded

    @cached_property
    def _loaded(self) -> Any:
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
        self._check_kind()
        with self._translate_errors("load"), silence_transformers():
            self._check_mapped(transformers)
            if device_map is not None:
                options["device_map"] = device_map
            # List weights of another shape like missing ones instead of raising an error.
            options |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
            model, info = self._auto_class(transformers).from_pretrained(self._place, **options)
            self._check_weights(info)
            self._check_unchanged()
            if device_map is None:
                model = model.to("cuda" if torch.cuda.is_available() else "cpu")
            if model.device.type == "cpu":
                keep_freed_memory()
            self._adjust(model)
        return model.eval()

    def _auto_class(self, transformers: Any) -> Any:
        return transformers.AutoModelForCausalLM

    def _adjust(self, model: Any) -> None:
        """Remove a model's own sampling defaults (penalties, top-p), which would change greedy answers."""
        transformers, own = self._libraries()[1], model.generation_config
        self._ends = {self._chat.tokenizer.eos_token_id, *np.atleast_1d(own.eos_token_id or [])} - {None}
        self._ends = {int(end) for end in self._ends}
        pad = own.pad_token_id if own.pad_token_id is not None else min(self._ends, default=0)
        model.generation_config = transformers.GenerationConfig(
            eos_token_id=sorted(self._ends) or None, pad_token_id=pad
        )

    def _check_mapped(self, transformers: Any) -> None:
        """Raise unless transformers, or the model's own code, knows it as a causal language model."""
        config = transformers.AutoConfig.from_pretrained(self._place, **self._origin)
        own_code = getattr(config, "auto_map", None) or {}
        if type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING and "AutoModelForCausalLM" not in own_code:
            kind = next(iter(config.architectures or ()), config.model_type)
            raise UsageError(
                f"{self.name} is a {kind[:80]}, which transformers does not load as a causal language model; "
                "vLLM may (--engine vllm)"
            )

    def _check_weights(self, info: Mapping[str, Any]) -> None:
        """Raise if the checkpoint lacks a weight, which loading would initialise at random."""
        odd = [f"{name} {list(shape)}, not {list(expected)}" for name, shape, expected in info["mismatched_keys"]]
        heads = [name for name in info["unexpected_keys"] if _HEAD.search(name)]
        problems = {
            "lacks weights": info["missing_keys"],
            "has weights whose shapes differ from config.json": odd,
            "has a scoring or classification head instead of a language model head": heads,
        }
        for problem, names in problems.items():
            if names:
                listed = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
                raise UsageError(f"the checkpoint of {self.name} {problem}: {listed}; fetch or save it again")

    @cached_property
    def _context(self) -> float:
        config = self._loaded.config.get_text_config()
        return getattr(config, "max_position_embeddings", None) or math.inf

    @cached_property
    def batch_tokens(self) -> int:
        """Maximum tokens in one forward pass; loads the model unless set by the user."""
        if self._given_tokens is not None:
            return self._given_tokens
        model, torch = self._loaded, self._libraries()[0]
        on_gpu = model.device.type == "cuda"
        free = torch.cuda.mem_get_info(model.device)[0] if on_gpu else hardware.free_memory()
        return most_tokens(model.config.get_text_config(), model.dtype.itemsize, model.device.type, free)

    def _fit_memory(self, run: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield from ``run``; when memory runs out, halve the tokens of a forward pass and call it again."""
        torch = self._libraries()[0]
        while True:
            before = self.batch_tokens
            try:
                yield from run()
                return
            except BackendError as error:
                if not isinstance(error.__cause__, torch.OutOfMemoryError) or before <= LEAST_TOKENS:
                    raise
            vars(self)["batch_tokens"] = max(before // 2, LEAST_TOKENS)
            print_note(
                f"out of memory with {before} tokens in a forward pass; going on with {self.batch_tokens} "
                f"(next time: --model-option batch-tokens={self.batch_tokens})"
            )
            gc.collect()  # the frames of an error may refer to each other
            torch.cuda.empty_cache()  # does nothing without a GPU

    @property
    def products(self) -> tuple[str, str, tuple[int, int, int]]:
        """Type, device and shape of a forward pass's matrix products, for ``matrix_rate``; loads the model."""
        config, place = self._loaded.config.get_text_config(), self._loaded.device
        hidden = config_number(config, "hidden_size", 1024)
        shape = self.batch_tokens, hidden, config_number(config, "intermediate_size", 4 * hidden)
        return str(self._loaded.dtype).removeprefix("torch."), str(place), shape

    @cached_property
    def matrix_rate(self) -> float:
        """Floating-point operations per second of such products, measured for 50 ms."""
        return matrix_rate(*self.products)

    @cached_property
    def _dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        on_gpu = self.device_map not in ("cpu", {"": "cpu"})
        # Avoid importing torch if this machine has been measured before.
        if (known := recall_dtype(files.cache_folder(), on_gpu)) is None:
            self._libraries()
            known = find_dtype(files.cache_folder(), on_gpu)
        return known

    def _hint(self, doing: str, problem: str) -> str:
        if "out of memory" in problem or "can't allocate" in problem:
            now = "" if "_loaded" not in vars(self) else f" (now {self.batch_tokens})"
            return f"lower batch_tokens{now} or use a smaller model"
        return super()._hint(doing, problem)


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory for later forward passes, in the whole process; returns whether it did."""
    # A forward pass on a CPU allocates and frees tens of megabytes in each layer. By default much of that is returned
    # to the system and allocated again page by page, zeroed, which takes a tenth of the time of a pass of 1,500 tokens.
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, Windows, musl
        return False
    return bool(mallopt(_MAP, _KEPT)) and bool(mallopt(_TRIM, _KEPT))
