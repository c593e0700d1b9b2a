"""Local models through vLLM."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.judging.providers.transformers import LocalOptions
from distract.models.fit import fit_options
from distract.models.opener import resolve_prefixed
from distract.models.options import setting
from distract.models.provider import Provider, Target
from distract.models.ranges import NumberRange, WholeRange


@dataclass(frozen=True)
class VllmOptions(LocalOptions):
    """The settings of vLLM."""

    tensor_parallel: int | None = setting(None, "GPUs for one model", WholeRange(1, 1024))
    max_length: int | None = setting(None, "maximum number of tokens of prompt and answer", WholeRange(16))
    gpu_memory: float | None = setting(None, "share of a GPU's memory", NumberRange(0, 1, "least"))


def _open(target: Target, options: VllmOptions) -> Backend:
    from distract.models.vllm.backend import Vllm

    own = {name: getattr(options, name) for name in ("tensor_parallel", "max_length", "gpu_memory")}
    return Vllm(target.model, **options.collect(target), **own)


vllm = Provider(
    "vllm",
    {"vllm:MODEL": "the same as transformers:MODEL, through vLLM"},
    _open,
    options=VllmOptions,
    extra="vllm",
    library="vllm",
    resolve=resolve_prefixed,
    fits=fit_options,
    title="vLLM",
)
