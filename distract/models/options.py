"""How models are loaded and servers asked: every option of every engine, and which engine each is for.

It opens nothing and knows no model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from distract.core.errors import UsageError

_LOCAL = frozenset(("transformers", "vllm"))


@dataclass(frozen=True, slots=True)
class Options:
    """How models are run; what is None or as it is here is left to the engine.

    Attributes:
        engine: ``vllm`` or ``transformers``, for names that leave it open.
        catalogue: file whose judges are added to those of ours.
        dtype: of weights run here: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        quantization: ``bnb-8bit`` or ``bnb-4bit``; with vLLM any that it knows.
        revision: of the judge: a commit, branch or tag of the hub.
        trust_remote_code: run code that comes with a model.
        device_map: as transformers takes it.
        batch_tokens: most tokens in a forward of transformers; None for as many as pay and fit.
        tensor_parallel: GPUs that vLLM spreads a model over; all that it needs when None.
        max_length: most tokens of prompt and answer with vLLM; the model's when None.
        gpu_memory: share of a GPU's memory that vLLM takes, above 0 up to 1.
        base_url: of an OpenAI-compatible server.
        concurrency: most requests under way at a server, at least 1.
        timeout: seconds for one reply of a server.
        attempts: at most, for one request to a server.
        price_in: of the judge, in US dollars per million tokens of prompts.
        price_out: the same of answers.
        judge_version: tells the judge from another one that had its name.
    """

    engine: str | None = None
    catalogue: Path | None = None
    dtype: str = "auto"
    quantization: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    device_map: str | None = None
    batch_tokens: int | None = None
    tensor_parallel: int | None = None
    max_length: int | None = None
    gpu_memory: float | None = None
    base_url: str | None = None
    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = 6
    price_in: float | None = None
    price_out: float | None = None
    judge_version: str | None = None

    def given(self) -> frozenset[str]:
        """The names of those that are not as they are by default."""
        return frozenset(one.name for one in fields(self) if getattr(self, one.name) != one.default)


USES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("engine", "dtype", "quantization", "trust_remote_code", "revision"), _LOCAL),
        **dict.fromkeys(("device_map", "batch_tokens"), frozenset(("transformers",))),
        **dict.fromkeys(("tensor_parallel", "max_length", "gpu_memory"), frozenset(("vllm",))),
        **dict.fromkeys(("base_url", "concurrency", "timeout", "attempts"), frozenset(("openai",))),
    }
)
"""Engines that an option is for; one that is not here is for none in particular."""


def check(options: Options, engines: Mapping[str, str], judge: str | None) -> None:
    """See that every option that was given is for a model of the command."""
    for name in sorted(options.given() & USES.keys()):
        meant = {judge: engines[judge]} if name == "revision" and judge else engines
        if not USES[name].intersection(meant.values()):
            raise UsageError(
                f"{flag(name)} is for models on {_format_engines(USES[name])}; {_describe_models(meant)}; leave it out"
            )


def flag(name: str) -> str:
    """An option as it is typed."""
    return "--" + name.replace("_", "-")


def _format_engines(engines: Collection[str]) -> str:
    names = {"transformers": "transformers", "vllm": "vLLM", "openai": "an OpenAI-compatible server"}
    return " or ".join(names[engine] for engine in sorted(engines))


def _describe_models(engines: Mapping[str, str]) -> str:
    where = {"planted": "is planted and loads no model", "openai": "is asked on a server"}
    return ", ".join(f"{name} {where.get(engine, f'runs on {engine}')}" for name, engine in engines.items())
