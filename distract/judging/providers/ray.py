"""Local models on the workers of a Ray cluster, each through transformers or vLLM."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import cast

from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.printable import count
from distract.judging.providers import transformers, vllm
from distract.models.fit import Load, Machine, explain_misfit, model_size
from distract.models.hardware import free_memory, gpus
from distract.models.opener import EMBEDDED, resolve_prefixed
from distract.models.options import flag, setting
from distract.models.provider import Provider, Target
from distract.models.ranges import Address, NumberRange
from distract.models.ray.backend import RayWorkers
from distract.models.ray.cluster import RayPool, Share, describe_nodes, divide, list_held, list_nodes
from distract.models.ray.dispatch import LoadableBackend

ENGINES = {
    "transformers": (transformers.transformers, transformers.TransformersOptions),
    "vllm": (vllm.vllm, vllm.VllmOptions),
}
"""The engines of workers, with their settings."""


@dataclass(frozen=True)
class RayOptions(vllm.VllmOptions, transformers.TransformersOptions):
    """The settings of workers: their own, and those of their engine."""

    workers: int | None = None
    ray_address: str | None = setting(
        None, "address of a Ray cluster, auto for the one of this machine; default: local", Address("auto", "local")
    )
    num_gpus: float | None = setting(
        None,
        "GPUs of a Ray worker; default: tensor-parallel, or none where there is none",
        NumberRange(0, 1024, "least"),
    )
    worker_engine: str | None = setting(
        None, "engine of Ray workers, vllm or transformers; default: vllm where it is installed and there are GPUs"
    )

    def of_engine(self, engine: str) -> transformers.LocalOptions:
        """Return the settings for the engine of the workers; raises if another is set."""
        if engine not in ENGINES:
            raise UsageError(f"{flag('worker_engine', engine)}: expected {' or '.join(ENGINES)}")
        kind = ENGINES[engine][1]
        used = {each.name for each in fields(kind)}
        for each in fields(self):
            is_own = each.name in RayOptions.__annotations__ or each.name in used
            if not is_own and getattr(self, each.name) != each.default:
                raise UsageError(
                    f"{flag(each.name)} is not for workers on {engine}; remove it, or change {flag('worker_engine')}"
                )
        settings: transformers.LocalOptions = kind(**{name: getattr(self, name) for name in used})
        return settings


def _open(target: Target, options: RayOptions) -> Backend:
    address = None if options.ray_address in ("", "local") else options.ray_address
    nodes = list_nodes(address)
    held = list_held(address)
    each = 0 if options.device_map == "cpu" else options.num_gpus
    workers, share = divide(nodes, address, options.workers, each, options.tensor_parallel, held)
    engine = options.worker_engine or ("vllm" if share.gpus and find_spec("vllm") else "transformers")
    settings = options.of_engine(engine)
    if settings.dtype == "auto" and target.model != EMBEDDED and bool(share.gpus) != bool(gpus()):
        # The driver identifies the model, and has other hardware than the workers.
        settings = replace(settings, dtype="bfloat16" if share.gpus else "float32")
    if address is None:
        _check_fit(target, engine, settings, workers, share)
    model = cast(LoadableBackend, ENGINES[engine][0].open(replace(target, engine=engine), settings))
    pool = RayPool(model, address, workers, share)
    placement = f"{count(workers, 'worker')} × {share} with {engine} on {describe_nodes(nodes, address)}"
    return RayWorkers(model, pool, workers, name=target.name, placement=placement)


def _check_fit(target: Target, engine: str, settings: transformers.LocalOptions, workers: int, share: Share) -> None:
    """Raise if the workers of a local cluster do not fit on this machine together."""
    parameters, weights_gb = model_size(target)
    memory = free_memory()
    # A fraction of a GPU leaves the others their memory.
    cards = [replace(gpu, free=int(gpu.free * min(1, share.gpus))) for gpu in gpus()[: math.ceil(share.gpus)]]
    machine = Machine(cards, memory if memory is None else memory // workers)
    most = max(1, len(cards))
    load = Load(parameters or 0, engine, settings.quantization, settings.dtype, weights_gb, most, spread=True)
    if parameters is not None and (
        problem := explain_misfit(f"one of {workers} workers with {target.name}", load, machine, {})
    ):
        raise UsageError(problem)


ray = Provider(
    "ray",
    {"ray:MODEL": "the same as transformers:MODEL, on the workers of a Ray cluster (--workers)"},
    _open,
    options=RayOptions,
    extra="ray",
    library="ray",
    resolve=resolve_prefixed,
    title="Ray workers",
)
