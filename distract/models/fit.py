"""Whether a model of a given size fits on this machine, and one line on what would work where it does not.

Sizes of models are in GB of 10^9 bytes. Those of GPUs and of memory are shown in units of 2^30 bytes, as they are
sold. These are estimates from the weights alone. It asks no machine, opens no model and reads no catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from distract.models.hardware import Gpu

LocalEngine = Literal["transformers", "vllm"]

BITS: Mapping[str, int] = {
    **dict.fromkeys(("bnb-4bit", "bitsandbytes", "awq", "gptq", "mxfp4"), 4),
    **dict.fromkeys(("bnb-8bit", "fp8"), 8),
}
"""Bits of a weight in each quantization that is known; any other counts as 16."""

ROOM: Mapping[LocalEngine, float] = {"transformers": 1.05, "vllm": 1.1}
"""Times the weights that must be free: activations come on top, and keys and values, of which vLLM keeps many."""

_CARDS = (16, 24, 32, 48, 80)
_BYTES, _SOLD = 10**9, 2**30


def weights_size(parameters: float, bits: int = 16) -> float:
    """GB of a model's weights: bytes of each weight, and half a bit of scales for each where it is quantized."""
    return parameters * (bits if bits >= 16 else bits + 0.5) / 8


def format_size(gb: float) -> str:
    """GB for people, in two digits: ``140 GB``, ``40 GB``, ``6.4 GB``."""
    return f"{float(f'{gb:.2g}'):g} GB"


def can_fit(
    parameters: float,
    gpus: Sequence[Gpu],
    memory: int | None,
    *,
    engine: LocalEngine = "transformers",
    quantization: str | None = None,
    dtype: str = "auto",
    weights_gb: float | None = None,
    tensor_parallel: int = 1,
    spread: bool = False,
) -> bool:
    """Whether the weights fit, with room to run; True where the machine does not say what it has.

    Without a GPU, a model runs from memory, in float32 unless told otherwise: that fits, though it is slow.
    """
    bits = _bits(quantization, dtype, bool(gpus))
    published = gpus and weights_gb and not quantization and bits == 16
    wanted = (weights_gb if published and weights_gb else weights_size(parameters, bits)) * ROOM[engine] * _BYTES
    if not gpus:
        return memory is None or wanted <= memory
    if engine == "vllm":
        shared = gpus[:tensor_parallel]
        return len(shared) == tensor_parallel and wanted / tensor_parallel <= min(gpu.free for gpu in shared)
    if quantization or spread:
        return wanted <= sum(gpu.free for gpu in gpus) + ((memory or 0) if spread and not quantization else 0)
    return wanted <= gpus[0].free


def explain_misfit(
    name: str,
    parameters: float,
    gpus: Sequence[Gpu],
    memory: int | None,
    *,
    engine: LocalEngine = "transformers",
    quantization: str | None = None,
    dtype: str = "auto",
    weights_gb: float | None = None,
    tensor_parallel: int = 1,
    spread: bool = False,
    others: Mapping[str, float] | None = None,
) -> str | None:
    """None where the model fits, as ``fits`` says; else one line: what it needs, what is here, what would work."""

    def fit(
        billions: float = parameters,
        how: str | None = quantization,
        shared: int = tensor_parallel,
        spread: bool = spread,
        published: float | None = weights_gb,
    ) -> bool:
        return can_fit(
            billions,
            gpus,
            memory,
            engine=engine,
            quantization=how,
            dtype=dtype,
            weights_gb=published,
            tensor_parallel=shared,
            spread=spread,
        )

    if fit():
        return None
    ways = []
    if engine == "vllm":
        powers = (2**n for n in range(len(gpus).bit_length()) if 2**n != tensor_parallel)
        ways += [f"--tensor-parallel {n}" for n in powers if fit(shared=n)][:1]
    elif len(gpus) > 1 and not spread and fit(spread=True):
        ways.append("--device-map auto")
    # What is published in few bits is not quantized again.
    four = weights_size(parameters, 4) if quantization is None and not weights_gb else None
    if four and gpus and fit(how="bnb-4bit"):
        ways.append("--quantization bnb-4bit")
    if not ways:
        bits = _bits(quantization, dtype, True)
        held = weights_gb if weights_gb and not quantization else weights_size(parameters, bits)
        ways += [f"--quantization bnb-4bit on {_describe_cards(four, engine)}"] if four else []
        ways.append(_describe_cards(held, engine))
    smaller = sorted((billions, other) for other, billions in (others or {}).items() if other != name)
    fitting = [
        other for billions, other in reversed(smaller) if billions < parameters and fit(billions, published=None)
    ]
    ways += [f"a smaller judge that fits ({' or '.join(fitting[:2])})"] if fitting else []
    ways.append("a server that has it (--judge http://HOST/v1#MODEL)")
    needs = _describe_need(parameters, quantization, dtype, weights_gb, bool(gpus))
    return f"{name} does not fit: it needs {needs}; here: {_describe_machine(gpus, memory)}; use {', or '.join(ways)}"


def _bits(quantization: str | None, dtype: str, gpu: bool) -> int:
    if quantization:
        return BITS.get(quantization, 16)
    return 32 if dtype == "float32" or (dtype == "auto" and not gpu) else 16


def _describe_cards(gb: float, engine: LocalEngine) -> str:
    """The smallest usual GPU that holds so much, or the fewest large ones."""
    wanted = gb * ROOM[engine]
    for card in _CARDS:
        if wanted <= card:
            return f"a GPU of {card} GB"
    count = 2
    while wanted > count * _CARDS[-1]:
        count *= 2
    how = f"--tensor-parallel {count}" if engine == "vllm" else "--device-map auto"
    return f"{how} on {count} GPUs of {_CARDS[-1]} GB"


def _describe_need(parameters: float, quantization: str | None, dtype: str, weights_gb: float | None, gpu: bool) -> str:
    if weights_gb and not quantization:
        return f"about {format_size(weights_gb)} on GPUs as published"
    plain = "float32" if dtype == "float32" else "bf16" if dtype == "auto" else dtype
    first = (
        f"about {format_size(weights_size(parameters, _bits(quantization, dtype, True)))} in {quantization or plain}"
    )
    text = first if quantization else f"{first} ({format_size(weights_size(parameters, 4))} in 4 bits)"
    if gpu or quantization:
        return text
    return f"{text} on GPUs, or {format_size(weights_size(parameters, _bits(None, dtype, False)))} of memory"


def _describe_machine(gpus: Sequence[Gpu], memory: int | None) -> str:
    if not gpus:
        ram = "" if memory is None else f" and {memory / _SOLD:.0f} GB of memory"
        return f"no GPU seen{ram}"
    totals = [round(gpu.total / _SOLD) for gpu in gpus]
    each = f"{totals[0]} GB" if len(set(totals)) == 1 else " and ".join(f"{total} GB" for total in totals)
    taken = sum(gpu.free for gpu in gpus) < 0.9 * sum(gpu.total for gpu in gpus)
    free = f", {sum(gpu.free for gpu in gpus) / _SOLD:.0f} GB of it free" if taken else ""
    return f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''} of {each}{free}"
