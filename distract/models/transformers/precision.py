"""The precision in which a model runs fastest on this machine, and the rate of matrix products.

On processors without bfloat16 units, bfloat16 is a hundred times slower than float32; on processors with them it is
several times faster. Timing matrix products for 50 ms tells the two apart. The result is kept in the cache folder, so
that the same command keeps using the same judge.
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
