"""In which precision a model runs fastest on this machine, and how fast matrix products are here at all.

Processors without units for bfloat16 compute it a hundred times slower than float32, those with them several times
faster: 50 ms of matrix products tell. What they told is kept beside the cached models, so that a machine decides once
and the same command keeps asking the same judge. It knows no model.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from distract.models import hardware
from distract.models.cache import keep, recall

FASTER = 1.5
"""Times the rate of float32 that a smaller type must reach to be worth its rounding."""

CACHE_FILE = "precision.json"
SECONDS = 0.05
"""Of matrix products for each type."""


def matrix_rate(dtype: str, device: str, shape: tuple[int, int, int], seconds: float = SECONDS) -> float:
    """Floating-point operations a second that products of matrices reach; arguments are those of ``product_times``."""
    times = product_times(dtype, device, shape, seconds)
    return product_operations(shape) / min(times) if times else 0.0


def product_operations(shape: tuple[int, int, int]) -> float:
    """Floating-point operations of a product of that shape."""
    rows, columns, outputs = shape
    return 2.0 * rows * columns * outputs


def product_times(dtype: str, device: str, shape: tuple[int, int, int], seconds: float = SECONDS) -> list[float]:
    """Seconds of each of several products of matrices."""
    import torch

    rows, columns, outputs = shape
    times: list[float] = []
    try:
        kind = getattr(torch, dtype)
        left = torch.ones((rows, columns), dtype=kind, device=device)
        right = torch.ones((outputs, columns), dtype=kind, device=device)
        with torch.inference_mode():
            _time_product(left, right)  # memory, threads and kernels are set up here
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
    """Rates of float32 and of what may take its place: bfloat16, and on a GPU float16."""
    # Small enough that a type without units for it is found out in as many milliseconds.
    size = 2048 if device.startswith("cuda") else 256
    kinds = ("float32", "bfloat16", "float16") if device.startswith("cuda") else ("float32", "bfloat16")
    return {kind: matrix_rate(kind, device, (size, size, size), seconds) for kind in kinds}


def choose_dtype(found: Mapping[str, float]) -> str:
    """The type to run in: float32 unless another is clearly faster, and float16 only where bfloat16 is slow."""
    half = "float16" if found.get("float16", 0.0) >= FASTER * found.get("bfloat16", 0.0) else "bfloat16"
    return half if found.get(half, 0.0) >= FASTER * found["float32"] else "float32"


def recall_dtype(folder: Path, on_gpu: bool = True) -> str | None:
    """The type that this machine was found to be fast in; None where it has not been measured. Imports no torch."""
    found = recall(folder / CACHE_FILE).get(_describe_machine(on_gpu))
    return found if found in ("float32", "bfloat16", "float16") else None


def find_dtype(folder: Path, on_gpu: bool = True) -> str:
    """The same, measured now where it has not been."""
    if (known := recall_dtype(folder, on_gpu)) is not None:
        return known
    import torch

    found = choose_dtype(measure_rates("cuda" if on_gpu and torch.cuda.is_available() else "cpu"))
    keep(folder / CACHE_FILE, {**recall(folder / CACHE_FILE), _describe_machine(on_gpu): found})
    return found


def _describe_machine(on_gpu: bool) -> str:
    """What decides the rates: the processor, the GPUs, and the torch that drives them."""
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
